from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.compaction.rig import SHAPE, WORK, Planned, Rig, Scripted, steps
from tests.strategies import histories
from thresher.core import events as e
from thresher.core.compaction.engine import Engine
from thresher.core.compaction.gate import Amend, Apply, Proposal, Refuse
from thresher.core.compaction.guards import caused_by
from thresher.core.compaction.policies.keep_all import KeepAll
from thresher.core.compaction.policies.teaching import SUMMARY_PREFIX, Teaching, TeachingParams
from thresher.core.compaction.policy import (
    Answer,
    Applied,
    CompactRemotely,
    Edit,
    Failure,
    FailureKind,
    Files,
    Follow,
    Moment,
    Persist,
    Refused,
    Reread,
    Situation,
    Skip,
    SkipKind,
    Start,
    Step,
    Stored,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.compaction.settings import EngineSettings, Guard
from thresher.core.compaction.store import FileStore
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.context import Inserted, Kept, Replaced
from thresher.core.events import Outcome
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
    assistant,
    system,
    user,
)
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact
from thresher.core.sessions.resume import resume
from thresher.core.sessions.session import Session
from thresher.core.tokens import CharClassCounter, Usage
from thresher.core.validate import Dialect, validate
from thresher.core.views import CardStatus

DUE = 500
CUT = Edit(
    stage="cut", reason="r", segments=(Kept("1", "3"), Inserted(CompactionSummary("s"), "4-5"))
)
"""Over WORK, whose entries are #1 to #5: the pair goes as a whole."""


def replayed(rig: Rig) -> History:
    again = History()
    again.extend(rig.to.history.records)
    return again


# A compaction that works --------------------------------------------------------------------------


async def test_a_due_compaction_is_announced_proposed_and_recorded() -> None:
    rig = Rig()
    rig.report(DUE)
    verdict = await rig.offer()
    assert (verdict.outcome, verdict.compacted, verdict.follow) == (
        Outcome.DONE,
        True,
        Follow.GO_ON,
    )
    assert rig.story == ["compaction_started", "compaction_proposed", "history_compacted"]
    (event,) = rig.told(e.HistoryCompacted)
    assert (event.items_before, event.items_after) == (5, 3)
    assert (event.kept, event.removed, event.replaced, event.inserted) == (2, 3, 0, 1)
    assert (event.removed_ids, event.summary, event.ordinal, event.window) == ("3-5", "short", 1, 1)
    assert event.usage == Usage(DUE)
    assert event.before.comparable(event.after)
    assert event.after.value < event.before.value
    assert event.digest == rig.state.context.digest()
    assert rig.state.context.items == (WORK[0], CompactionSummary("short", SUMMARY_PREFIX), WORK[1])


async def test_the_summary_request_has_its_own_row_and_its_cost_is_counted_apart() -> None:
    rig = Rig(summarisers=[Scripted("short", usage=Usage(1_000, 200))])
    rig.report(DUE)
    await rig.offer()
    (sent,) = rig.told(e.RequestSent)
    assert (sent.purpose, sent.model, len(sent.digests)) == (e.Purpose.COMPACTION, "m", 2)
    assert sent.estimate is not None
    (used,) = [u for u in rig.told(e.UsageReported) if u.purpose is e.Purpose.COMPACTION]
    assert (used.usage, used.request) == (Usage(1_000, 200), sent.request)
    assert rig.state.summariser_usage == Usage(1_000, 200)
    (event,) = rig.told(e.HistoryCompacted)
    assert event.summariser == e.Summariser("m", Usage(1_000, 200))


async def test_a_rule_that_does_not_fire_leaves_no_trace_but_its_reason() -> None:
    rig = Rig()
    rig.report(99)
    lines = rig.to.next_line
    verdict = await rig.offer()
    assert verdict.outcome is None
    assert verdict.reason == "Reported token usage 99 is below the compaction threshold 100."
    assert rig.to.next_line == lines


async def test_usage_from_before_a_compaction_never_sets_off_another() -> None:
    rig = Rig()
    rig.report(DUE)
    await rig.offer()
    rig.work(1)
    verdict = await rig.offer()
    assert (verdict.outcome, rig.state.compactions) == (None, 1)
    assert verdict.reason.startswith("No token usage was reported")


async def test_a_moment_that_the_policy_does_not_know_is_only_offered_when_the_user_wants_it() -> (
    None
):
    rig = Rig()
    rig.report(DUE)
    assert (await rig.offer(Moment.TURN_START)).outcome is None
    rig = Rig(also_at=frozenset({Moment.TURN_START}))
    rig.report(DUE)
    assert (await rig.offer(Moment.TURN_START)).compacted


async def test_an_overflow_is_its_own_trigger_and_wants_a_retry() -> None:
    rig = Rig(also_at=frozenset({Moment.OVERFLOW}))
    verdict = await rig.offer(Moment.OVERFLOW)
    assert verdict.follow is Follow.RETRY
    assert rig.state.cards[0].trigger is Trigger.OVERFLOW


async def test_by_hand_the_focus_goes_to_the_summariser_and_on_the_card() -> None:
    writer = Scripted("short")
    rig = Rig(summarisers=[writer])
    await rig.offer(Moment.MANUAL, focus="the parser")
    assert (writer.asks[0].focus, rig.state.cards[0].focus) == ("the parser", "the parser")


async def test_a_summary_streams_into_its_card_when_wanted() -> None:
    shown: list[str] = []
    rig = Rig(stream_summaries=True, summarisers=[Scripted("one two")])
    subscription = rig.to.bus.subscribe()
    rig.report(DUE)
    await rig.offer()
    for record in subscription.take():
        if isinstance(record.event, e.MessageDelta):
            shown.append(record.event.text)
            assert (record.event.channel, record.event.pass_id) == (
                "summary",
                rig.state.cards[0].pass_id,
            )
    assert "".join(shown) == "one two "


async def test_pass_ids_are_the_line_of_the_first_event_and_never_repeat() -> None:
    rig = Rig(policy=KeepAll())
    for _ in range(3):
        await rig.offer(Moment.MANUAL)
    ids = [event.pass_id for event in rig.told(e.CompactionSkipped)]
    lines = [r.n for r in rig.to.history.records if isinstance(r.event, e.CompactionSkipped)]
    assert ids == [f"p{line}" for line in lines]


# Outcomes -----------------------------------------------------------------------------------------


async def test_by_hand_on_an_empty_session_is_a_no_op_that_is_said_each_time() -> None:
    rig = Rig(items=())
    for _ in range(2):
        assert (await rig.offer(Moment.MANUAL)).outcome is Outcome.NO_OP
    assert [card.status for card in rig.state.cards] == [CardStatus.NO_OP] * 2


async def test_a_policy_without_a_manual_compaction_says_so() -> None:
    rig = Rig(policy=KeepAll())
    verdict = await rig.offer(Moment.MANUAL)
    assert verdict.outcome is Outcome.NO_OP
    assert "never removes anything" in verdict.reason


async def test_a_result_that_grew_is_refused_with_both_figures() -> None:
    rig = Rig(summarisers=[Scripted("word " * 5_000)])
    before = rig.state.context
    verdict = await rig.offer(Moment.MANUAL)
    assert verdict.outcome is Outcome.GREW
    (card,) = rig.state.cards
    assert (card.status, rig.state.context) == (CardStatus.GREW, before)
    assert card.after.value > card.before.value
    assert f"{card.before.value:,} -> {card.after.value:,}" in card.reason


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (FailureKind.EMPTY, Outcome.EMPTY),
        (FailureKind.CUT, Outcome.FAILED),
        (FailureKind.TOOL_CALL, Outcome.FAILED),
        (FailureKind.OVERFLOW, Outcome.FAILED),
    ],
)
async def test_each_failure_of_the_summary_is_told_apart(
    kind: FailureKind, outcome: Outcome
) -> None:
    rig = Rig(summarisers=[Scripted(SummaryFailed(kind, "why"))])
    rig.report(DUE)
    before = rig.state.context
    verdict = await rig.offer()
    assert (verdict.outcome, verdict.compacted) == (outcome, False)
    (failed,) = rig.told(e.CompactionFailed)
    assert (failed.kind, failed.failures, failed.outcome) == (kind.value, 1, outcome)
    assert failed.next_step == "the history is unchanged; failure 1 of 3 in a row"
    assert rig.state.context == before


async def test_a_cancelled_summary_is_recorded_as_aborted_and_the_history_stays() -> None:
    begun = asyncio.Event()

    async def never() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    rig = Rig(summarisers=[Scripted(never)])
    rig.report(DUE)
    before = rig.state.context
    task = asyncio.ensure_future(rig.offer())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert rig.story == ["compaction_started", "compaction_failed"]
    assert rig.state.cards[0].status is CardStatus.ABORTED
    assert (rig.state.context, rig.state.failures) == (before, 0)


async def test_a_result_for_a_history_that_has_changed_is_discarded() -> None:
    async def meanwhile() -> str:
        rig.say(user("one more thing"))
        return "short"

    rig = Rig(summarisers=[Scripted(meanwhile)])
    rig.report(DUE)
    verdict = await rig.offer()
    assert verdict.outcome is Outcome.SUPERSEDED
    assert rig.state.cards[0].status is CardStatus.SUPERSEDED
    assert rig.state.context.items == (*WORK, user("one more thing"))


async def test_a_policy_that_raises_ends_its_pass_and_nothing_else() -> None:
    def broken(situation: Situation) -> Generator[Step, Answer, None]:
        yield Start("s", "r")
        yield Persist("a", "b")
        raise KeyError("gone")

    rig = Rig(policy=Planned(broken))
    verdict = await rig.offer()
    assert verdict.outcome is Outcome.FAILED
    (failed,) = rig.told(e.CompactionFailed)
    assert (failed.kind, failed.reason) == ("policy", "the policy raised KeyError: 'gone'")


async def test_a_plan_that_ends_without_a_word_still_closes_its_card() -> None:
    rig = Rig(policy=steps(Summarise(items=())), summarisers=[Scripted("x")])
    assert (await rig.offer()).outcome is Outcome.NO_OP
    rig = Rig(
        policy=steps(Summarise(items=())),
        summarisers=[Scripted(SummaryFailed(FailureKind.EMPTY, "nothing"))],
    )
    assert (await rig.offer()).outcome is Outcome.EMPTY
    assert [card.status for card in rig.state.cards] == [CardStatus.EMPTY]


# Guards -------------------------------------------------------------------------------------------

FAULTY = {
    "has no call c1": [Kept("1", "3"), Kept("5", "5")],
    "has no output": [Kept("1", "4")],
    "the system message #1 would be lost": [Kept("2", "3")],
    "the newest user message #2 would be lost": [
        Kept("1", "1"),
        Inserted(CompactionSummary("s"), "2-5"),
    ],
    "would not shrink": [Kept("1", "5"), Inserted(user("more"))],
    "nothing to answer": [Kept("1", "1")],
    "changes nothing": [Kept("1", "5")],
    "stands between call": [
        Kept("1", "4"),
        Inserted(user("x"), "3"),
        Replaced("5", FunctionCallOutput("c1", "")),
    ],
}


@pytest.mark.parametrize("words", FAULTY)
async def test_a_faulty_edit_is_refused_with_its_reason(words: str) -> None:
    answers: list[Answer] = []
    edit = Edit(stage="s", reason="r", segments=tuple(FAULTY[words]))
    rig = Rig(policy=steps(edit, answers=answers))
    before = rig.state.context
    verdict = await rig.offer()
    assert (verdict.compacted, rig.state.context) == (False, before)
    (answer,) = answers
    assert isinstance(answer, Refused)
    assert words in answer.reason
    assert answer.context == before
    (card,) = rig.state.cards
    assert words in card.reason


@pytest.mark.parametrize("words", FAULTY)
async def test_in_report_mode_it_happens_and_its_card_is_marked(words: str) -> None:
    answers: list[Answer] = []
    edit = Edit(stage="s", reason="r", segments=tuple(FAULTY[words]))
    rig = Rig(policy=steps(edit, answers=answers), guard=Guard.REPORT)
    assert (await rig.offer()).compacted
    assert isinstance(answers[0], Applied)
    (card,) = rig.state.cards
    assert card.status is CardStatus.DONE
    assert any(words in mark for mark in card.marks)
    assert replayed(rig).state.problems == []


@pytest.mark.parametrize("guard", list(Guard))
@pytest.mark.parametrize(
    "segments", [(Kept("1", "9"),), (Kept("1", "3"), Kept("2", "5")), (Kept("one", "2"),)]
)
async def test_segments_that_do_not_fit_are_refused_in_any_mode(
    segments: tuple[Kept, ...], guard: Guard
) -> None:
    rig = Rig(policy=steps(Edit(stage="s", reason="r", segments=segments)), guard=guard)
    assert (await rig.offer()).outcome is Outcome.FAILED
    assert rig.state.cards[0].failure_kind == "refused"


async def test_a_policy_may_declare_that_it_drops_the_newest_user_message() -> None:
    segments = (Kept("1", "1"), Inserted(CompactionSummary("s"), "2-5"))
    edit = Edit(stage="s", reason="r", segments=segments, drops_newest_user=True)
    assert (await Rig(policy=steps(edit)).offer()).compacted


async def test_a_user_message_cut_short_or_put_in_again_is_not_lost() -> None:
    cut = Edit(stage="s", reason="r", segments=(Kept("1", "1"), Replaced("2", user("Please fix"))))
    assert (await Rig(policy=steps(cut)).offer()).compacted
    again = Edit(
        stage="s",
        reason="r",
        segments=(Kept("1", "1"), Inserted(CompactionSummary("s"), "3-5"), Inserted(WORK[1], "2")),
    )
    assert (await Rig(policy=steps(again)).offer()).compacted


async def test_a_fault_that_was_there_before_does_not_stop_a_compaction() -> None:
    orphan = (*WORK, FunctionCallOutput("lost", "old " * 50))
    edit = Edit(stage="s", reason="r", segments=(Kept("1", "3"), Kept("6", "6")))
    assert (await Rig(items=orphan, policy=steps(edit)).offer()).compacted


async def test_an_order_that_the_dialect_refuses_is_named_with_the_dialect() -> None:
    rig = Rig(dialect=Dialect.STRICT)
    rig.report(DUE)
    assert (await rig.offer()).outcome is Outcome.FAILED
    assert "illegal for the strict dialect" in rig.state.cards[0].reason
    rig = Rig(dialect=Dialect.STRICT, guard=Guard.REPORT)
    rig.report(DUE)
    assert (await rig.offer()).compacted
    assert "illegal for the strict dialect" in rig.state.cards[0].marks[0]


async def test_what_is_put_back_after_a_compaction_counts_towards_its_size() -> None:
    files = "contents of a file\n" * 200
    edit = Edit(
        stage="s",
        reason="r",
        segments=(Kept("1", "2"), Inserted(CompactionSummary("s"), "3-5"), Inserted(user(files))),
    )
    rig = Rig(policy=steps(edit))
    assert (await rig.offer()).outcome is Outcome.GREW


# Several edits in one pass ------------------------------------------------------------------------


async def test_every_edit_of_a_pass_has_its_own_event_and_card() -> None:
    answers: list[Answer] = []
    first = Edit(
        stage="micro",
        reason="one",
        segments=(Kept("1", "4"), Replaced("5", FunctionCallOutput("c1", "-"))),
    )

    def layers(situation: Situation) -> Generator[Step, Answer, None]:
        applied = yield first
        answers.append(applied)
        assert isinstance(applied, Applied)
        yield Skip(SkipKind.NOT_DUE, "no snip")
        yield Start("full", "two")
        summary = yield Summarise(items=applied.context.items)
        assert isinstance(summary, Summary)
        stays = applied.context.keep([0, 1])
        gone = applied.context.span(applied.context.ids[2:])
        yield Edit(
            stage="full",
            reason="two",
            segments=(*stays, Inserted(CompactionSummary(summary.text), gone)),
            summary=summary,
            memory={"layers": 2},
            follow=Follow.RUN_AGAIN,
        )

    rig = Rig(policy=Planned(layers))
    verdict = await rig.offer()
    assert (verdict.outcome, verdict.follow) == (Outcome.DONE, Follow.RUN_AGAIN)
    cards = rig.state.cards
    assert [(c.stage, c.ordinal, c.status) for c in cards] == [
        ("micro", 1, CardStatus.DONE),
        ("full", 2, CardStatus.DONE),
    ]
    assert len({card.pass_id for card in cards}) == 1
    assert (cards[0].replaced, cards[1].removed, cards[1].summary) == (1, 3, "short")
    assert (cards[0].moment, cards[0].trigger) == (Moment.AFTER_ROUND, Trigger.AUTO)
    assert cards[1].context_before == cards[0].context_after
    assert rig.state.memory == {"layers": 2}
    assert replayed(rig).state.context == rig.state.context


async def test_after_a_refusal_the_policy_may_try_something_else() -> None:
    torn = Edit(stage="s", reason="r", segments=(Kept("1", "4"),))
    rig = Rig(policy=steps(torn, CUT))
    assert (await rig.offer()).outcome is Outcome.DONE
    assert [card.status for card in rig.state.cards] == [CardStatus.FAILED, CardStatus.DONE]


async def test_the_fresh_output_can_be_replaced_before_it_enters() -> None:
    fresh = FunctionCallOutput("c9", "long " * 1_000, "bash")
    short = FunctionCallOutput("c9", "long [cut]", "bash")
    rig = Rig(policy=steps(Edit(stage="cap", reason="5,000 > 100", output=short)))
    verdict = await rig.offer(Moment.TOOL_OUTPUT, fresh_output=fresh)
    assert (verdict.output, verdict.compacted) == (short, False)
    assert rig.told(e.Note)[0].text == "planned, cap: 5,000 > 100"
    assert rig.state.cards == []


async def test_an_output_for_another_call_is_refused() -> None:
    rig = Rig(policy=steps(Edit(stage="cap", reason="r", output=FunctionCallOutput("other", ""))))
    fresh = FunctionCallOutput("c9", "text")
    verdict = await rig.offer(Moment.TOOL_OUTPUT, fresh_output=fresh)
    assert (verdict.output, verdict.outcome) == (None, Outcome.FAILED)


# Other asks ---------------------------------------------------------------------------------------


async def test_a_persisted_text_is_a_file_of_the_user_alone(tmp_path: Path) -> None:
    answers: list[Answer] = []
    asks = steps(
        Persist("../out put.txt", "whole"), Persist("../out put.txt", "2"), answers=answers
    )
    await Rig(policy=asks, store=FileStore(tmp_path / "kept")).offer()
    one, two = answers
    assert isinstance(one, Stored)
    assert isinstance(two, Stored)
    assert Path(one.path) == tmp_path / "kept" / "out-put.txt"
    assert Path(two.path) == tmp_path / "kept" / "out-put-2.txt"
    assert Path(one.path).read_text() == "whole"
    assert Path(one.path).stat().st_mode & 0o777 == 0o600


async def test_a_text_that_cannot_be_kept_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file in the way")
    answers: list[Answer] = []
    await Rig(
        policy=steps(Persist("a", "b"), answers=answers), store=FileStore(tmp_path / "kept")
    ).offer()
    assert isinstance(answers[0], Failure)
    assert answers[0].kind is FailureKind.STORAGE


async def test_what_is_not_set_up_is_unsupported() -> None:
    answers: list[Answer] = []
    asks = (Persist("a", "b"), Reread(("x",), 10), CompactRemotely(WORK))
    rig = Rig(policy=steps(*asks, Summarise(items=WORK), answers=answers), summarisers=[])
    await rig.offer()
    kinds = [answer.kind for answer in answers if isinstance(answer, Failure)]
    assert kinds == [FailureKind.UNSUPPORTED] * 4


async def test_files_are_read_again_and_the_provider_compacts_where_that_is_set_up() -> None:
    async def reread(ask: Reread) -> Files:
        return Files(tuple((path, "text") for path in ask.paths))

    async def remote(ask: CompactRemotely, pass_id: str) -> Summary:
        return Summary("", "m", encrypted="sealed")

    def plan(situation: Situation) -> Generator[Step, Answer, None]:
        files = yield Reread(("x",), 10)
        assert files == Files((("x", "text"),))
        sealed = yield CompactRemotely(situation.context.items)
        assert isinstance(sealed, Summary)
        item = CompactionSummary(encrypted=sealed.encrypted)
        yield Edit(
            stage="remote",
            reason="r",
            segments=(Kept("1", "2"), Inserted(item, "3-5")),
            summary=sealed,
        )

    rig = Rig(policy=Planned(plan), reread=reread, remote=remote)
    assert (await rig.offer()).compacted
    (event,) = rig.told(e.HistoryCompacted)
    assert (event.opaque, event.summary) == (True, None)


# The gate -----------------------------------------------------------------------------------------


class Deciding:
    """A gate that answers with what it was given, and keeps what it was asked."""

    def __init__(self, decision: Any) -> None:
        self.decision = decision
        self.seen: list[Proposal] = []

    async def decide(self, proposal: Proposal) -> Any:
        self.seen.append(proposal)
        if callable(self.decision):
            return self.decision()
        return self.decision


async def test_the_gate_sees_the_edit_as_it_would_be_applied() -> None:
    gate = Deciding(Apply())
    rig = Rig(gate=gate)
    rig.report(DUE)
    before = rig.state.context
    assert (await rig.offer()).compacted
    (proposal,) = gate.seen
    assert (proposal.context, proposal.change.after) == (before, rig.state.context)
    (proposed,) = rig.told(e.CompactionProposed)
    assert (proposed.before, proposed.after) == (proposal.before, proposal.after)


async def test_the_gate_can_refuse() -> None:
    rig = Rig(gate=Deciding(Refuse("not now")))
    rig.report(DUE)
    verdict = await rig.offer()
    assert (verdict.outcome, verdict.reason) == (Outcome.ABORTED, "not now")
    assert (rig.state.failures, rig.state.compactions) == (0, 0)


async def test_the_gate_can_change_the_edit_and_the_card_says_so() -> None:
    mine = (Kept("1", "2"), Inserted(CompactionSummary("mine"), "3-5"))
    amended = Amend(Edit(stage="cut", reason="r", segments=mine), ("summary edited by the user",))
    rig = Rig(policy=steps(CUT), gate=Deciding(amended))
    assert (await rig.offer()).compacted
    (card,) = rig.state.cards
    assert (card.removed, card.marks) == (3, ("summary edited by the user",))


async def test_a_changed_edit_is_checked_like_any_other() -> None:
    torn = Edit(stage="cut", reason="r", segments=(Kept("1", "4"),))
    rig = Rig(policy=steps(CUT), gate=Deciding(Amend(torn)))
    assert (await rig.offer()).outcome is Outcome.FAILED
    assert [card.status for card in rig.state.cards] == [CardStatus.FAILED]


async def test_an_event_while_the_gate_holds_moves_the_ids_and_replay_still_agrees() -> None:
    gate = Deciding(lambda: rig.to.emit(e.Note(kind="x", text="meanwhile")) and Apply())
    rig = Rig(gate=gate)
    rig.report(DUE)
    assert (await rig.offer()).compacted
    again = replayed(rig)
    assert (again.state.context, again.state.problems) == (rig.state.context, [])


async def test_a_history_that_changed_while_the_gate_held_supersedes_the_edit() -> None:
    def late() -> Apply:
        rig.say(user("wait"))
        return Apply()

    rig = Rig(gate=Deciding(late))
    rig.report(DUE)
    assert (await rig.offer()).outcome is Outcome.SUPERSEDED
    assert rig.state.compactions == 0


# Failures in a row --------------------------------------------------------------------------------


def failing() -> Scripted:
    return Scripted(SummaryFailed(FailureKind.CUT, "cut"))


async def test_after_three_failures_in_a_row_automatic_compaction_is_off() -> None:
    writer = failing()
    rig = Rig(summarisers=[writer])
    rig.report(DUE)
    for _ in range(5):
        await rig.offer()
    assert rig.story[-2:] == ["compaction_failed", "breaker_opened"]
    assert (len(writer.asks), rig.state.breaker_open, rig.state.failures) == (3, True, 3)
    assert "until you close the breaker" in rig.state.cards[-1].next_step
    assert "automatic compaction is off" in (await rig.offer()).reason


async def test_by_hand_still_works_and_a_success_closes_the_breaker() -> None:
    rig = Rig(summarisers=[Scripted(*[SummaryFailed(FailureKind.CUT, "cut")] * 3, "short")])
    rig.report(DUE)
    for _ in range(3):
        await rig.offer()
    assert (await rig.offer(Moment.MANUAL)).compacted
    assert rig.story[-1] == "breaker_closed"
    assert not rig.state.breaker_open
    assert rig.told(e.BreakerClosed)[0].by == "success"


async def test_the_user_can_close_the_breaker() -> None:
    rig = Rig(summarisers=[failing()], max_failures=1)
    rig.report(DUE)
    await rig.offer()
    assert rig.state.breaker_open
    rig.engine.close_breaker()
    assert (rig.state.breaker_open, rig.state.failures) == (False, 0)
    assert (await rig.offer()).outcome is Outcome.FAILED
    rig.engine.close_breaker()
    rig.engine.close_breaker()
    assert [event.by for event in rig.told(e.BreakerClosed)] == ["user", "user"]


async def test_a_cheap_stage_that_works_does_not_hide_summaries_that_fail() -> None:
    def plan(situation: Situation) -> Generator[Step, Answer, None]:
        last = situation.context.entries[-1]
        output = last.item
        assert isinstance(output, FunctionCallOutput)
        yield Edit(
            stage="micro",
            reason="r",
            segments=(
                *situation.context.keep(range(len(situation.context) - 1)),
                Replaced(last.id.bare, FunctionCallOutput(output.call_id, output.output[:-60])),
            ),
        )
        yield Start("full", "r")
        answer = yield Summarise(items=WORK)
        assert isinstance(answer, Failure)
        yield Skip(SkipKind.FAILED, "no summary", "full", answer)

    rig = Rig(policy=Planned(plan), summarisers=[failing()])
    for _ in range(3):
        await rig.offer()
    assert rig.state.breaker_open


# Progress -----------------------------------------------------------------------------------------


async def test_a_compaction_that_freed_almost_nothing_is_not_repeated_in_its_turn() -> None:
    writer = Scripted("short")
    items = (system("s"), user("long text " * 2_000), assistant("ok " * 50), assistant("x"))
    rig = Rig(items=items, summarisers=[writer])
    for round in range(4):
        rig.report(DUE)
        await rig.offer()
        rig.work(round, size=1)
    assert len(writer.asks) == 1
    assert [card.status for card in rig.state.cards] == [CardStatus.DONE, CardStatus.NO_OP]
    assert "less than 10% progress" in rig.state.cards[1].reason
    rig.engine.new_turn()
    rig.report(DUE)
    await rig.offer()
    assert len(writer.asks) == 2


async def test_a_threshold_below_the_fixed_part_makes_one_attempt_in_a_turn() -> None:
    writer = Scripted("short")
    rig = Rig(summarisers=[writer])
    for round in range(6):
        rig.report(9_500 - round)
        await rig.offer()
        rig.work(round)
    assert len(writer.asks) == 1
    assert "brought the reported size from 9,500 to 9,499 tokens" in rig.state.cards[-1].reason
    assert len(rig.state.cards) == 2


async def test_with_progress_a_long_turn_is_compacted_as_often_as_it_takes() -> None:
    writer = Scripted("short")
    rig = Rig(summarisers=[writer])
    for round in range(3):
        rig.report(9_000)
        assert (await rig.offer()).compacted
        rig.work(round)
        rig.report(50)
        assert (await rig.offer()).outcome is None
        rig.work(round + 10)
    assert len(writer.asks) == 3


async def test_a_summary_that_would_grow_is_asked_for_once_in_a_turn() -> None:
    writer = Scripted("word " * 5_000)
    rig = Rig(summarisers=[writer])
    rig.report(DUE)
    for _ in range(3):
        await rig.offer()
    assert len(writer.asks) == 1
    assert [card.status for card in rig.state.cards] == [CardStatus.GREW, CardStatus.NO_OP]


async def test_by_hand_is_never_held_back() -> None:
    writer = Scripted("word " * 5_000)
    rig = Rig(summarisers=[writer])
    for _ in range(3):
        assert (await rig.offer(Moment.MANUAL)).outcome is Outcome.GREW
    assert len(writer.asks) == len(rig.state.cards) == 3


async def test_in_report_mode_the_loop_of_a_system_goes_on_and_is_marked() -> None:
    rig = Rig(guard=Guard.REPORT)
    for round in range(3):
        rig.report(9_500)
        assert (await rig.offer()).compacted
        rig.work(round)
    marks = [card.marks for card in rig.state.cards]
    assert marks[0] == ()
    assert all("repeated although compaction" in mark[0] for mark in marks[1:])


async def test_a_no_op_of_itself_is_said_once_a_turn() -> None:
    rig = Rig(items=WORK[:2])
    rig.report(DUE)
    for _ in range(3):
        await rig.offer()
    assert [card.status for card in rig.state.cards] == [CardStatus.NO_OP]
    rig.engine.new_turn()
    await rig.offer()
    assert len(rig.state.cards) == 2


# Policies -----------------------------------------------------------------------------------------


async def test_another_policy_is_in_force_from_the_next_moment_on() -> None:
    rig = Rig(policy=KeepAll())
    rig.report(DUE)
    assert (await rig.offer()).outcome is None
    rig.engine.set_policy(Teaching(TeachingParams(threshold=DUE)))
    assert rig.told(e.PolicyChanged)[0].policy_params["threshold"] == DUE
    assert (rig.state.policy, (await rig.offer()).compacted) == ("teaching", True)


# Any history --------------------------------------------------------------------------------------


def run(rig: Rig, moment: Moment = Moment.MANUAL) -> Any:
    return asyncio.run(rig.offer(moment))


@given(histories(orphans=True), st.text(max_size=50))
def test_the_teaching_policy_on_any_history(items: tuple[Item, ...], summary: str) -> None:
    rig = Rig(items=items, summarisers=[Scripted(summary)])
    before, verdict = rig.state.context, run(rig)
    after = rig.state.context
    assert verdict.compacted == (after != before)
    if verdict.compacted:
        (card,) = rig.state.cards
        assert card.after.value < card.before.value
        assert card.kept + card.removed == len(before)
        for dialect in (Dialect.RESPONSES, Dialect.CHAT):
            assert validate(after.items, dialect) == []
    assert replayed(rig).state.context == after
    assert replayed(rig).state.problems == []


@st.composite
def any_edit(draw: st.DrawFn, count: int) -> list[tuple[str, int]]:
    order = draw(st.permutations(range(count))) if draw(st.booleans()) else list(range(count))
    chosen = draw(st.lists(st.sampled_from(order), unique=True)) if order else []
    return [
        (draw(st.sampled_from(["keep", "keep", "keep", "cut", "insert"])), at)
        for at in order
        if at in chosen
    ]


def as_edit(rig: Rig, moves: list[tuple[str, int]]) -> Edit:
    context, segments = rig.state.context, []
    for move, at in moves:
        entry = context.entries[at]
        if move == "keep":
            segments.append(Kept(entry.id.bare, entry.id.bare))
        elif move == "insert":
            segments.append(Inserted(CompactionSummary("s"), entry.id.bare))
        elif isinstance(entry.item, FunctionCallOutput):
            segments.append(Replaced(entry.id.bare, FunctionCallOutput(entry.item.call_id, "-")))
        else:
            segments.append(Replaced(entry.id.bare, entry.item))
    return Edit(stage="any", reason="r", segments=tuple(segments))


@given(histories(), st.data())
def test_no_edit_gets_past_the_guards_with_a_torn_pair_or_an_illegal_order(
    items: tuple[Item, ...], data: st.DataObject
) -> None:
    rig = Rig(items=items)
    edit = as_edit(rig, data.draw(any_edit(len(items))))
    rig.engine.set_policy(steps(edit))
    before, verdict = rig.state.context, run(rig)
    after = rig.state.context
    assert validate(after.items, Dialect.CHAT) == []
    if verdict.compacted:
        typed = [i for i in before.items if isinstance(i, Message) and i.role is Role.USER]
        typed = [message for message in typed if not message.synthetic]
        assert rig.engine.measure.context(after).value < rig.engine.measure.context(before).value
        head = before.items[0]
        if isinstance(head, Message) and head.role is Role.SYSTEM:
            assert after.items[0] == head
        assert typed[-1:] == [] or typed[-1] in after.items
    else:
        assert after == before
        assert rig.state.cards[0].reason


@given(histories(), st.data())
def test_in_report_mode_any_edit_that_fits_is_applied_and_marked_if_faulty(
    items: tuple[Item, ...], data: st.DataObject
) -> None:
    moves = data.draw(any_edit(len(items)))
    strict, lenient = Rig(items=items), Rig(items=items, guard=Guard.REPORT)
    for rig in (strict, lenient):
        rig.engine.set_policy(steps(as_edit(rig, moves)))
    refused = not run(strict).compacted
    assert run(lenient).compacted
    (card,) = lenient.state.cards
    assert bool(card.marks) == refused
    assert replayed(lenient).state.context == lenient.state.context
    assert replayed(lenient).state.problems == []


async def test_a_torn_pair_names_the_compaction_that_tore_it() -> None:
    torn = Edit(stage="prune", reason="r", segments=(Kept("1", "4"),))
    rig = Rig(policy=steps(CUT), guard=Guard.REPORT)
    rig.work(1)
    rig.engine.set_policy(steps(torn))
    await rig.offer()
    rig.say(user("go on"))
    (violation,) = validate(rig.state.context.items, Dialect.CHAT)
    assert (violation.call_id, caused_by(violation, rig.state)) == ("c1", 1)
    stray = validate([FunctionCallOutput("never", "")], Dialect.CHAT)[0]
    assert caused_by(stray, rig.state) == 0


async def test_a_real_session_resumes_to_the_context_that_was_live(tmp_path: Path) -> None:
    session = Session.create(tmp_path, e.SessionStarted(session_id="", agent="thresher"))
    for item in WORK:
        session.emit(e.ItemAppended(item=item))
    session.emit(e.UsageReported(usage=Usage(DUE)))
    engine = Engine(
        session,
        Teaching(TeachingParams(threshold=100)),
        summarisers=[Scripted("half an emoji \ud83d")],
        settings=EngineSettings(),
        measure=Ledger(CharClassCounter()),
        store=None,
    )
    assert (await engine.offer(Moment.AFTER_ROUND, shape=SHAPE, model="m")).compacted
    live, problems = session.state.context, session.state.problems
    session.close()
    again = resume(session.path)
    assert (again.state.context, again.state.context.digest()) == (live, live.digest())
    assert (problems, again.state.problems) == ([], [])
    again.close()


async def test_the_pair_of_a_call_that_is_cut_between_two_callers_stays_whole() -> None:
    items = (user("go"), FunctionCall("a", "x", "{}"), FunctionCall("b", "x", "{}"),
             FunctionCallOutput("a", "1" * 99), FunctionCallOutput("b", "2" * 99))  # fmt: skip
    cut = Edit(stage="s", reason="r", segments=(Kept("1", "1"), Kept("3", "5")))
    rig = Rig(items=items, policy=steps(cut))
    assert not (await rig.offer()).compacted
    assert "has no call a" in rig.state.cards[0].reason


async def test_the_engines_own_share_of_the_window_compacts_where_the_rule_does_not() -> None:
    rig = Rig(policy=Teaching(TeachingParams(threshold=100_000)), threshold_share=0.5)
    unknown = Fact(None, "test")
    rig.to.emit(
        e.ModelChanged(model="m", budget=Budget(Fact(1_000, "test"), unknown, unknown, unknown))
    )
    rig.report(499)
    assert (await rig.offer()).outcome is None
    rig.report(500)
    assert (await rig.offer(Moment.TURN_END)).outcome is None
    assert (await rig.offer()).compacted
    (done,) = rig.told(e.HistoryCompacted)
    assert done.trigger is Trigger.AUTO
    assert done.reason.startswith("Reported token usage 500 reached 500, 50% of the window 1,000.")


async def test_without_a_window_a_share_of_it_says_nothing() -> None:
    rig = Rig(policy=Teaching(TeachingParams(threshold=100_000)), threshold_share=0.5)
    rig.report(50_000)
    assert (await rig.offer()).outcome is None
