from __future__ import annotations

import asyncio

import pytest

from tests.core.compaction.rig import WORK, Planned, Scripted, steps
from thresher.core import events as e
from thresher.core.compaction.foresee import PLACEHOLDER
from thresher.core.compaction.policies.keep_all import KeepAll
from thresher.core.compaction.policy import Edit, FailureKind, Moment, Skip, SkipKind, Start
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.context import Replaced
from thresher.core.debug.stop import Fate, Point, lines
from thresher.core.errors import ThresherError
from thresher.core.events import Outcome
from thresher.core.items import FunctionCall, FunctionCallOutput, user
from thresher.core.state import CardStatus, Status

from .desk import Desk, until


def decided(desk: Desk) -> list[str]:
    return [event.choice.value for event in desk.rig.told(e.CompactionDecided)]


async def test_the_agent_waits_before_a_summary_is_asked_for_and_shows_what_would_happen() -> None:
    desk = Desk("compaction")
    desk.offer()
    stop = await desk.stop()
    assert (stop.point, stop.breakpoint) == (Point.SUMMARY, "compaction")
    assert desk.state.status is Status.STOPPED
    assert desk.state.stopped is not None
    assert desk.state.stopped.pass_id == stop.pass_id
    assert desk.writer.asks == []
    assert stop.pending is not None
    assert "parse" in stop.pending.ask.items[1].text
    assert stop.proposal is not None
    fates = [(line.fate, line.entry.item.text[:9]) for line in lines(stop.proposal, (), ())]
    assert [fate for fate, _ in fates] == [
        Fate.KEEP, Fate.INSERT, Fate.KEEP, Fate.REMOVE, Fate.REMOVE, Fate.REMOVE, Fate.KEEP,
    ]  # fmt: skip
    assert PLACEHOLDER in stop.proposal.change.after.entries[1].item.text
    assert stop.proposal.after - stop.proposal.before < 0


async def test_apply_sends_the_request_and_then_holds_the_edit_with_its_summary() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    desk.debugger.apply()
    stop = await desk.next()
    assert stop.point is Point.EDIT
    assert len(desk.writer.asks) == 1
    assert stop.proposal is not None
    assert stop.proposal.edit.summary is not None
    assert stop.proposal.edit.summary.text == "short"
    desk.debugger.apply()
    assert (await desk.end()).compacted
    assert desk.state.status is Status.IDLE
    assert desk.state.stopped is None
    assert decided(desk) == ["apply", "apply"]
    assert desk.state.cards[-1].marks == ()
    assert desk.replays()


async def test_going_on_applies_without_a_second_stop() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    desk.debugger.go_on()
    assert (await desk.end()).compacted
    assert len(desk.rig.told(e.DebuggerStopped)) == 1


async def test_skipping_leaves_the_history_and_is_no_failure() -> None:
    desk = Desk("compaction")
    before = desk.texts
    desk.offer()
    await desk.stop()
    desk.debugger.skip()
    await desk.end()
    assert desk.texts == before
    assert desk.writer.asks == []
    assert desk.state.cards[-1].status is CardStatus.ABORTED
    assert desk.state.cards[-1].reason == "skipped by the user"
    assert desk.state.failures == 0
    assert desk.replays()


async def test_an_edit_can_be_skipped_after_its_summary_was_written() -> None:
    desk = Desk("compaction")
    before = desk.texts
    desk.offer()
    await desk.stop()
    desk.debugger.apply()
    await desk.next()
    desk.debugger.skip()
    assert not (await desk.end()).compacted
    assert desk.texts == before
    assert desk.replays()


async def test_a_pinned_entry_stays_with_its_pair_in_this_and_in_every_later_compaction() -> None:
    desk = Desk("compaction")
    output = desk.id(4)
    desk.offer()
    await desk.stop()
    desk.debugger.pin([output])
    shown = desk.debugger.stop
    assert shown is not None
    assert shown.proposal is not None
    assert shown.proposal.change.after.place(output) is not None
    assert shown.told == "pinned 1 by the user"
    desk.debugger.skip()
    await desk.end()
    desk.rig.work(1, 300)
    desk.offer()
    await desk.stop()
    desk.debugger.go_on()
    assert (await desk.end()).compacted
    kept = desk.state.context.get(output)
    assert kept is not None
    assert kept.item == WORK[4]
    assert WORK[3] in desk.state.context.items
    assert any("kept 1 pinned entry, and 1 of the same" in m for m in desk.state.cards[-1].marks)
    assert desk.replays()


async def test_a_summary_is_not_asked_for_when_the_pins_leave_nothing_to_free() -> None:
    desk = Desk("compaction")
    # The output is nearly all there is.
    output = desk.id(4)
    desk.debugger.pin([output])
    desk.offer()
    shown = await desk.stop()
    (why,) = shown.objections
    assert why.startswith("1 pinned entry keeps ")
    assert "the context would not shrink" in why
    assert "unpin something, or leave this compaction out" in why
    for go in (desk.debugger.apply, desk.debugger.go_on, desk.debugger.step):
        with pytest.raises(ThresherError, match="1 pinned entry keeps"):
            go()
    assert desk.writer.asks == []
    desk.debugger.unpin([output])
    assert desk.debugger.stop is not None
    assert desk.debugger.stop.objections == ()
    desk.debugger.go_on()
    assert (await desk.end()).compacted
    assert desk.replays()


async def test_without_a_stop_too_such_pins_are_told_before_anything_is_paid_for() -> None:
    desk = Desk()
    desk.debugger.pin([desk.id(4)])
    desk.offer()
    verdict = await desk.end()
    assert verdict.outcome is Outcome.GREW
    assert verdict.reason.startswith("1 pinned entry keeps ")
    assert desk.writer.asks == []
    assert [card.status.value for card in desk.state.cards] == ["grew"]
    assert desk.state.cards[-1].reason == verdict.reason
    assert desk.replays()


async def test_what_is_unpinned_may_go_again() -> None:
    desk = Desk("compaction")
    output = desk.id(4)
    desk.debugger.pin([output])
    assert desk.state.pins == (output,)
    desk.offer()
    await desk.stop()
    desk.debugger.unpin([output])
    assert desk.debugger.stop is not None
    assert desk.debugger.stop.told == ""
    desk.debugger.go_on()
    await desk.end()
    assert desk.state.context.place(output) is None
    assert desk.replays()


async def test_what_is_dropped_goes_with_this_edit_and_is_named_on_the_card() -> None:
    desk = Desk("compaction")
    first = desk.id(1)
    desk.offer()
    await desk.stop()
    desk.debugger.drop([first])
    shown = desk.debugger.stop
    assert shown is not None
    assert shown.proposal is not None
    dropped = [line for line in lines(shown.proposal, (), shown.drops) if line.by == "user"]
    assert [line.entry.id for line in dropped] == [first]
    desk.debugger.go_on()
    await desk.end()
    assert desk.state.context.place(first) is None
    assert desk.state.cards[-1].marks == ("dropped 1 by the user",)
    assert desk.state.cards[-1].decisions[0].choice is e.Choice.DROP
    assert desk.replays()


async def test_a_drop_can_be_taken_back() -> None:
    desk = Desk("compaction")
    first = desk.id(1)
    desk.offer()
    await desk.stop()
    desk.debugger.drop([first])
    desk.debugger.keep([first])
    desk.debugger.go_on()
    await desk.end()
    assert desk.state.context.place(first) is not None
    assert desk.state.cards[-1].marks == ()


async def test_a_pinned_entry_cannot_be_dropped() -> None:
    desk = Desk("compaction")
    desk.debugger.pin([desk.id(1)])
    desk.offer()
    await desk.stop()
    with pytest.raises(ThresherError, match="unpin it first"):
        desk.debugger.drop([desk.id(1)])
    desk.debugger.skip()
    await desk.end()


async def test_an_edit_that_a_guard_objects_to_is_not_applied_and_stays_held() -> None:
    desk = Desk("compaction")
    head, newest = desk.id(0), desk.id(5)
    desk.offer()
    await desk.stop()
    desk.debugger.apply()
    await desk.next()
    desk.debugger.drop([head, newest])
    assert desk.debugger.stop is not None
    assert len(desk.debugger.stop.objections) == 2
    with pytest.raises(ThresherError, match="newest user message"):
        desk.debugger.apply()
    with pytest.raises(ThresherError, match="system message"):
        desk.debugger.go_on()
    desk.debugger.keep([head, newest])
    desk.debugger.apply()
    assert (await desk.end()).compacted


async def test_a_focus_asks_for_the_summary_anew() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    desk.debugger.focus("the rule about dates")
    stop = await desk.next()
    assert stop.point is Point.SUMMARY
    assert stop.pending is not None
    assert "the rule about dates" in stop.pending.ask.items[0].text
    assert desk.writer.asks == []
    desk.debugger.go_on()
    await desk.end()
    card = desk.state.cards[-1]
    assert card.focus == "the rule about dates"
    assert card.marks == ("focus given by the user",)
    assert desk.replays()


async def test_a_focus_for_a_written_summary_brings_another_one() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    desk.debugger.apply()
    await desk.next()
    desk.debugger.focus("dates")
    stop = await desk.next()
    assert stop.point is Point.EDIT
    assert [ask.focus for ask in desk.writer.asks] == ["", "dates"]
    desk.debugger.apply()
    await desk.end()
    assert desk.state.cards[-1].summary == "shorter"


async def test_a_fresh_summary_is_another_request() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    with pytest.raises(ThresherError, match="none yet"):
        desk.debugger.fresh_summary()
    desk.debugger.apply()
    await desk.next()
    desk.debugger.fresh_summary()
    stop = await desk.next()
    assert stop.point is Point.EDIT
    assert len(desk.writer.asks) == 2
    desk.debugger.apply()
    await desk.end()
    assert desk.state.cards[-1].summary == "shorter"
    assert desk.state.cards[-1].marks == ("summary asked for again by the user",)
    assert desk.replays()


async def test_a_summary_of_the_users_own_is_not_asked_for() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    with pytest.raises(ThresherError, match="empty"):
        desk.debugger.write_summary("  ")
    desk.debugger.write_summary("Dates are ISO.")
    stop = await desk.next()
    assert stop.point is Point.EDIT
    desk.debugger.apply()
    await desk.end()
    card = desk.state.cards[-1]
    assert desk.writer.asks == []
    assert "Dates are ISO." in desk.texts[1]
    assert (card.summary, card.marks) == ("Dates are ISO.", ("summary written by the user",))
    assert card.summariser is not None
    assert (card.summariser.model, card.summariser.usage) == ("the user", None)
    assert desk.replays()


async def test_a_summary_can_be_edited_before_it_is_applied() -> None:
    desk = Desk("compaction")
    output = desk.id(2)
    desk.offer()
    await desk.stop()
    desk.debugger.apply()
    await desk.next()
    desk.debugger.pin([output])
    desk.debugger.write_summary("short, and dates are ISO")
    stop = await desk.next()
    assert stop.told == "pinned 1, summary edited by the user"
    desk.debugger.apply()
    await desk.end()
    card = desk.state.cards[-1]
    assert card.summary == "short, and dates are ISO"
    assert "pinned 1, summary edited by the user" in card.marks
    assert card.summariser is not None
    assert card.summariser.model == "m, edited by the user"
    assert len(desk.writer.asks) == 1
    assert desk.replays()


async def test_another_policy_makes_the_proposal_and_the_one_in_force_stays() -> None:
    items = (*WORK, user("and the tests"))
    desk = Desk("compaction", items=items)
    desk.offer(Moment.MANUAL)
    await desk.stop()
    desk.debugger.choose_policy("codex")
    stop = await desk.next()
    assert stop.pending is not None
    assert stop.pending.policy == "codex"
    desk.debugger.go_on()
    assert (await desk.end()).compacted
    card = desk.state.cards[-1]
    assert (card.policy, card.marks) == ("codex", ("policy codex chosen by the user",))
    assert desk.state.policy == "teaching"
    assert desk.rig.engine.policy.name == "teaching"
    assert desk.state.memory == {}
    assert desk.replays()


async def test_a_policy_that_would_do_nothing_is_not_chosen() -> None:
    desk = Desk("compaction")
    desk.offer()
    stop = await desk.stop()
    with pytest.raises(ThresherError, match="keep-all would do nothing here"):
        desk.debugger.choose_policy(KeepAll.name)
    with pytest.raises(ThresherError, match="Unknown policy"):
        desk.debugger.choose_policy("nobody")
    assert desk.debugger.stop is stop
    desk.debugger.skip()
    await desk.end()


async def test_a_stage_without_a_summary_is_held_before_it_is_applied() -> None:
    def plan(desk: Desk) -> Edit:
        context = desk.state.context
        return Edit(
            stage="prune",
            reason="old",
            segments=(
                *context.keep(range(4)),
                Replaced(context.ids[4].bare, FunctionCallOutput("c1", "(cleared)")),
                *context.keep([5]),
            ),
        )

    desk = Desk("stage:prune")
    desk.rig.engine.policy = steps(Start("prune", "old"), plan(desk))
    desk.offer(Moment.TURN_END)
    stop = await desk.stop()
    assert (stop.point, stop.breakpoint, stop.reason) == (Point.EDIT, "stage:prune", "old")
    assert stop.proposal is not None
    found = [line.fate for line in lines(stop.proposal, (), ())]
    assert found.count(Fate.REPLACE) == found.count(Fate.REPLACEMENT) == 1
    with pytest.raises(ThresherError, match="no summary to edit"):
        desk.debugger.write_summary("text")
    with pytest.raises(ThresherError, match="a focus has no use"):
        desk.debugger.focus("text")
    desk.debugger.pin([desk.id(4)])
    assert desk.debugger.stop is not None
    assert desk.debugger.stop.objections[0] == "the edit changes nothing"
    desk.debugger.unpin([desk.id(4)])
    desk.debugger.apply()
    assert (await desk.end()).compacted
    assert "(cleared)" in desk.texts


async def test_other_stages_and_policies_are_not_held() -> None:
    desk = Desk("stage:prune", "policy:codex")
    desk.offer()
    assert (await desk.end()).compacted


async def test_nobody_is_waited_for_when_nobody_attends() -> None:
    desk = Desk("compaction", "failure", "overflow")
    desk.debugger.attended = False
    desk.offer()
    assert (await desk.end()).compacted
    assert desk.rig.told(e.DebuggerStopped) == []


async def test_an_interrupted_stop_is_on_record_and_nothing_was_changed() -> None:
    desk = Desk("compaction")
    before = desk.texts
    desk.offer()
    await desk.stop()
    assert desk.running is not None
    desk.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await desk.running
    assert desk.texts == before
    assert desk.state.stopped is None
    assert [event.how for event in desk.rig.told(e.DebuggerContinued)] == ["interrupted"]
    assert desk.state.cards[-1].status is CardStatus.ABORTED
    assert desk.replays()


async def test_a_history_that_changed_while_it_was_held_discards_the_proposal() -> None:
    desk = Desk("compaction")
    desk.offer()
    await desk.stop()
    desk.debugger.apply()
    await desk.next()
    desk.rig.say(user("one more thing"))
    desk.debugger.apply()
    await desk.end()
    assert desk.state.cards[-1].status is CardStatus.SUPERSEDED


async def test_a_user_who_decides_nothing_held_is_told_so() -> None:
    desk = Desk()
    for act in (
        desk.debugger.apply,
        desk.debugger.skip,
        desk.debugger.go_on,
        desk.debugger.fresh_summary,
        lambda: desk.debugger.focus("x"),
        lambda: desk.debugger.write_summary("x"),
        lambda: desk.debugger.drop([desk.id(1)]),
        lambda: desk.debugger.choose_policy("codex"),
    ):
        with pytest.raises(ThresherError, match="Not stopped"):
            act()
    with pytest.raises(ThresherError, match="not in the context"):
        desk.debugger.pin([desk.id(1)._replace(line=999)])


async def test_breakpoints_are_kept_with_the_session() -> None:
    desk = Desk("compaction", "tokens:5000", "compaction")
    assert desk.state.breakpoints == ("compaction", "tokens:5000")
    desk.debugger.clear_break("Compaction")
    assert [str(each) for each in desk.debugger.breakpoints] == ["tokens:5000"]
    with pytest.raises(ThresherError, match="no breakpoint overflow"):
        desk.debugger.clear_break("overflow")
    assert desk.replays()


async def test_a_failed_summary_after_a_stop_is_a_failure_as_ever() -> None:
    down = Scripted(SummaryFailed(FailureKind.PROVIDER, "down"))
    desk = Desk("compaction", summarisers=[down], retries=0)
    desk.offer()
    await desk.stop()
    desk.debugger.go_on()
    await desk.end()
    assert desk.state.cards[-1].status is CardStatus.FAILED
    assert desk.state.failures == 1


async def test_a_policy_with_nothing_more_to_say_ends_the_pass_that_was_made_anew() -> None:
    calls: list[int] = []

    def plan(situation):
        calls.append(len(calls))
        if len(calls) > 1:
            yield Skip(SkipKind.NO_OP, "no longer", "late")
            return
        context = situation.context
        yield Edit(stage="cut", reason="due", segments=tuple(context.keep([0, 1, 2, 5])))

    desk = Desk("compaction", policy=Planned(plan))
    desk.offer(Moment.TURN_END)
    await desk.stop()
    before = desk.texts
    desk.debugger.context_changed()
    await until(lambda: desk.over)
    assert desk.texts == before
    assert desk.state.cards[-1].status is CardStatus.NO_OP


async def test_what_a_call_asks_for_is_shown_with_its_tokens() -> None:
    desk = Desk("compaction", items=(*WORK, user("next"), FunctionCall("c2", "bash", "{}"),
                                     FunctionCallOutput("c2", "x" * 4000)))  # fmt: skip
    desk.offer()
    stop = await desk.stop()
    assert stop.proposal is not None
    shown = lines(stop.proposal, (), ())
    gone = sum(line.tokens for line in shown if line.fate is Fate.REMOVE)
    new = sum(line.tokens for line in shown if line.fate is Fate.INSERT)
    assert stop.proposal.before - stop.proposal.after == gone - new
