from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.context import Context, EntryId, Inserted, Kept, Replaced, Segment
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    assistant,
    system,
    user,
)
from thresher.core.state import CardStatus, RowKind, SessionState, Status, ToolStatus
from thresher.core.tokens import Basis, Scope, Tokens, Usage

RANDOM = runpy.run_path(str(Path(__file__).with_name("random_sessions.py")))
steps, play, begin, snapshot = (RANDOM[name] for name in ("steps", "play", "begin", "snapshot"))
compacted, InMemory = RANDOM["compacted"], RANDOM["InMemory"]


@pytest.fixture
def to() -> Any:
    started = InMemory()
    begin(started)
    return started


def say(to: Any, *items: Any) -> list[EntryId]:
    return [EntryId(to.emit(e.ItemAppended(item=item)).n) for item in items]


def started(to: Any, pass_id: str = "p", **more: Any) -> None:
    to.emit(e.CompactionStarted(pass_id=pass_id, policy="teaching", stage="full", **more))


def failed(to: Any, outcome: e.Outcome, pass_id: str = "p", **more: Any) -> None:
    to.emit(
        e.CompactionFailed(
            pass_id=pass_id, policy="teaching", moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO,
            outcome=outcome, reason="because", **more,
        )
    )  # fmt: skip


def skipped(to: Any, outcome: e.Outcome, pass_id: str = "p", **more: Any) -> None:
    to.emit(
        e.CompactionSkipped(
            pass_id=pass_id, policy="teaching", moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO,
            outcome=outcome, reason="because", **more,
        )
    )  # fmt: skip


# -- one fold ----------------------------------------------------------------------------------


@given(steps())
def test_a_replay_from_json_gives_the_same_state_as_the_live_fold(script: list[Any]) -> None:
    live = InMemory()
    begin(live)
    play(live, script)
    lines = [e.encode(record) for record in live.said if not record.ephemeral]
    replayed = SessionState()
    for line in lines:
        replayed.apply(e.decode(line))
    assert snapshot(live.state.settled()) == snapshot(replayed)
    assert not [problem for problem in replayed.problems if problem.kind == "record"]


@given(steps())
def test_the_meter_is_the_sum_over_the_context_at_every_moment(script: list[Any]) -> None:
    live = InMemory()
    begin(live)
    play(live, script)
    state = SessionState()
    for record in live.said:
        state.apply(record)
        assert state.messages_tokens.value == sum(state.costs.of(entry) for entry in state.context)


@given(steps())
def test_every_entry_is_in_the_context_or_has_a_fate_that_says_why_not(script: list[Any]) -> None:
    live = InMemory()
    begin(live)
    play(live, script)
    state = live.state
    for id in state.known:
        inside = state.context.get(id) is not None
        assert inside == (state.fate(id).words() == "in context")


@given(steps())
def test_a_copy_does_not_follow_the_original(script: list[Any]) -> None:
    live = InMemory()
    begin(live)
    play(live, script[: len(script) // 2])
    copy = live.state.copy()
    before = snapshot(copy)
    play(live, script[len(script) // 2 :])
    assert snapshot(copy) == before


def test_hostile_text_in_every_place_is_kept_and_breaks_nothing(hostile_text: str) -> None:
    text = hostile_text
    to = InMemory()
    begin(to)
    to.emit(e.SessionStarted(session_id=text, agent=text, cwd=text, model=text, title=text))
    say(to, user(text), assistant(text), FunctionCall(text, text, text))
    to.emit(e.ToolStarted(call_id=text, name=text, arguments=text))
    to.emit(e.ToolOutput(call_id=text, text=text))
    to.emit(e.ToolFinished(call_id=text, name=text, saved=text))
    say(to, FunctionCallOutput(text, text, name=text))
    started(to, text, reason=text)
    to.emit(e.MessageDelta(text=text, channel="summary", pass_id=text))
    compacted(to, to.state.context.keep([0]), pass_id=text, text=text)
    to.emit(e.ErrorRaised(kind=text, message=text, where=text))
    to.emit(e.UnknownRecord(type=text, line=3))
    replayed = SessionState()
    for record in to.history.records:
        replayed.apply(e.decode(e.encode(record)))
    assert snapshot(replayed) == snapshot(to.state.settled())
    assert len(replayed.context) == 1


# -- cards -------------------------------------------------------------------------------------


def test_a_compaction_runs_from_its_start_over_its_proposal_to_done(to: Any) -> None:
    say(to, user("a"), user("b"), user("c"))
    to.emit(e.TurnStarted(turn=1))
    started(to, reason="9 >= 8", trigger=Trigger.MANUAL, focus="tests")
    (card,) = to.state.cards
    assert (card.status, card.reason, card.focus) == (CardStatus.RUNNING, "9 >= 8", "tests")
    assert to.state.status is Status.COMPACTING
    to.emit(e.MessageDelta(text="so ", channel="summary", pass_id="p"))
    to.emit(e.MessageDelta(text="far", channel="summary", pass_id="p"))
    assert to.state.cards[0].streamed == "so far"
    to.emit(
        e.SummaryAttemptFailed(pass_id="p", model="m", kind="timeout", message="slow", attempt=1)
    )
    assert to.state.cards[0].streamed == ""
    to.emit(
        e.CompactionProposed(pass_id="p", policy="teaching", stage="full", reason="r", removed=2)
    )
    assert (to.state.cards[0].status, to.state.cards[0].removed) == (CardStatus.PROPOSED, 2)
    summary = Inserted(CompactionSummary("sum"), "2-3")
    compacted(to, [Kept("1", "1"), summary, Kept("4", "4")], pass_id="p", text="sum")
    (card,) = to.state.cards
    assert (card.status, card.ordinal, card.summary) == (CardStatus.DONE, 1, "sum")
    assert (card.kept, card.removed, card.inserted, card.items_after) == (2, 2, 1, 3)
    assert card.removed_ids == (EntryId(2), EntryId(3))
    assert [failure.kind for failure in card.failed_attempts] == ["timeout"]
    assert card.context_before is not None
    assert len(card.context_before) == 4
    assert card.context_after == to.state.context
    assert to.state.status is Status.THINKING
    assert to.state.card_of(1) == card


@pytest.mark.parametrize("outcome", [e.Outcome.NO_OP, e.Outcome.GREW, e.Outcome.SUPERSEDED])
@pytest.mark.parametrize("announced", [True, False])
def test_a_skipped_compaction_ends_its_card_and_changes_nothing(
    to: Any, outcome: e.Outcome, announced: bool
) -> None:
    before = to.state.context
    if announced:
        started(to)
    size = Tokens(5, Basis.ESTIMATED, Scope.MESSAGES)
    skipped(to, outcome, before=size, after=size)
    (card,) = to.state.cards
    assert (card.status, card.reason, card.after) == (CardStatus(outcome.value), "because", size)
    assert to.state.context == before
    assert (to.state.compactions, to.state.failures) == (0, 0)


@pytest.mark.parametrize(
    ("outcome", "counted"), [(e.Outcome.EMPTY, 1), (e.Outcome.FAILED, 1), (e.Outcome.ABORTED, 0)]
)
def test_a_failed_compaction_ends_its_card_and_only_real_failures_count(
    to: Any, outcome: e.Outcome, counted: int
) -> None:
    started(to)
    to.emit(e.MessageDelta(text="half", channel="summary", pass_id="p"))
    failed(to, outcome, kind="timeout", next_step="the offline summary")
    (card,) = to.state.cards
    assert (card.status, card.failure_kind) == (CardStatus(outcome.value), "timeout")
    assert (card.next_step, card.streamed) == ("the offline summary", "")
    assert to.state.failures == counted


def test_a_success_ends_the_row_of_failures(to: Any) -> None:
    failed(to, e.Outcome.FAILED, "a")
    failed(to, e.Outcome.FAILED, "b")
    assert to.state.failures == 2
    compacted(to, to.state.context.keep([0]), pass_id="c", text="")
    assert to.state.failures == 0


def test_several_edits_of_one_pass_have_a_card_each(to: Any) -> None:
    say(to, user("a"), user("b"))
    started(to)
    compacted(to, to.state.context.keep([0, 1]), pass_id="p", text="first")
    compacted(to, to.state.context.keep([0]), pass_id="p", text="second")
    assert [card.ordinal for card in to.state.cards] == [1, 2]
    assert [row.card for row in to.state.rows if row.kind is RowKind.COMPACTION] == [0, 1]


def test_a_manual_compaction_between_turns_leaves_the_session_idle(to: Any) -> None:
    to.emit(e.TurnStarted(turn=1))
    to.emit(e.TurnFinished(turn=1, outcome="completed"))
    started(to)
    compacted(to, to.state.context.keep([0]), pass_id="p", text="")
    assert to.state.status is Status.IDLE


@pytest.mark.parametrize(
    "segments",
    [
        [Kept("99", "99")],
        [Kept("1", "1"), Kept("1", "1")],
        [Kept("not an id", "1")],
        [Replaced("7", user("x"))],
        [Inserted(user("x"), "1-88")],
    ],
)
def test_a_compaction_that_does_not_fit_is_shown_as_broken_and_changes_nothing(
    to: Any, segments: list[Segment]
) -> None:
    before = to.state.context
    to.emit(
        e.HistoryCompacted(
            ordinal=1, pass_id="p", policy="x", stage="s", moment=None, trigger=Trigger.AUTO,
            reason="", segments=tuple(segments), items_before=1, items_after=1, kept=1, removed=0,
            replaced=0, inserted=0,
        )
    )  # fmt: skip
    assert to.state.context == before
    assert to.state.cards[0].status is CardStatus.BROKEN
    assert "does not fit" in to.state.problems[0].message


def test_a_context_that_differs_from_the_recorded_digest_is_a_problem_that_is_shown(
    to: Any,
) -> None:
    say(to, user("a"))
    compacted(to, to.state.context.keep([0, 1]), pass_id="p", text="")
    records = list(to.history.records)
    forged = SessionState()
    for record in records:
        if record.n == 2:
            record = e.Record(2, record.at, e.ItemAppended(item=user("something else")))
        forged.apply(record)
    assert to.state.problems == []
    (problem,) = forged.problems
    assert "differs from the recorded digest" in problem.message
    assert problem.line == 3
    assert forged.rows[-1].kind is RowKind.ERROR


# -- fates -------------------------------------------------------------------------------------


def test_what_became_of_an_entry_is_told_in_words(to: Any) -> None:
    removed, absorbed = say(to, user("removed"), user("absorbed"))
    call, output, kept = say(
        to, FunctionCall("c", "bash", "{}"), FunctionCallOutput("c", "long"), user("kept")
    )
    outside = EntryId(to.emit(e.ItemAppended(item=user("x"), in_context=False)).n)
    segments = [
        Kept("1", "1"),
        Inserted(CompactionSummary("s"), absorbed.bare),
        Kept(call.bare, call.bare),
        Replaced(output.bare, FunctionCallOutput("c", "short")),
        Kept(kept.bare, kept.bare),
    ]
    line = to.next_line
    compacted(to, segments, pass_id="p", text="s")
    state = to.state
    assert state.fate(removed).words() == "removed by compaction 1"
    assert state.fate(absorbed).words() == f"absorbed by compaction 1 into summary #{line}"
    assert state.fate(output).words() == f"rewritten by compaction 1 into #{line}.1"
    assert state.fate(outside).words() == "recorded, never in the context"
    assert state.fate(kept).words() == "in context"
    rewritten = state.context.get(EntryId(line, 1))
    assert rewritten is not None
    assert (rewritten.origin, rewritten.made_by) == ((output,), 1)


def test_a_rewritten_entry_that_is_rewritten_again_still_descends_from_the_original(
    to: Any,
) -> None:
    (original,) = say(to, user("long"))
    compacted(to, [Kept("1", "1"), Replaced("2", user("shorter"))], pass_id="a", text="")
    second = to.next_line
    compacted(to, [Kept("1", "1"), Replaced("3", user("short"))], pass_id="b", text="")
    entry = to.state.context.get(EntryId(second))
    assert entry is not None
    assert entry.origin == (original,)


# -- figures -----------------------------------------------------------------------------------


def test_a_report_from_before_a_compaction_says_nothing_afterwards(to: Any) -> None:
    to.emit(e.UsageReported(usage=Usage(1000, 10)))
    assert to.state.reported == Tokens(1010, Basis.REPORTED, Scope.REQUEST)
    compacted(to, to.state.context.keep([0]), pass_id="p", text="")
    assert to.state.reported is None
    to.emit(e.UsageReported(usage=Usage(300, 3)))
    assert to.state.reported == Tokens(303, Basis.REPORTED, Scope.REQUEST)


def test_the_growth_of_a_round_is_never_taken_between_a_report_and_an_estimate(to: Any) -> None:
    to.emit(e.UsageReported(usage=Usage(100), estimated=True))
    to.emit(e.UsageReported(usage=Usage(5000)))
    assert to.state.last_growth == []
    to.emit(e.UsageReported(usage=Usage(5600)))
    to.emit(e.UsageReported(usage=Usage(100), estimated=True))
    assert to.state.last_growth == [600]


def compaction_with_figures(to: Any, before: Tokens | None, after: Tokens | None) -> None:
    state = to.state
    to.emit(
        e.HistoryCompacted(
            ordinal=state.compactions + 1, pass_id=f"{to.next_line}", policy="x", stage="s",
            moment=None, trigger=Trigger.AUTO, reason="", items_before=1, items_after=1, kept=1,
            removed=0, replaced=0, inserted=0, before=before, after=after,
            segments=tuple(state.context.keep(range(len(state.context)))),
        )
    )  # fmt: skip


def test_removed_tokens_are_summed_only_where_before_and_after_mean_the_same(to: Any) -> None:
    counted = [Tokens(value, Basis.COUNTED, Scope.MESSAGES) for value in (900, 400)]
    reported = Tokens(5000, Basis.REPORTED, Scope.REQUEST)
    whole = Tokens(700, Basis.COUNTED, Scope.REQUEST)
    compaction_with_figures(to, counted[0], counted[1])
    compaction_with_figures(to, reported, counted[1])
    compaction_with_figures(to, whole, counted[1])
    compaction_with_figures(to, None, counted[1])
    compaction_with_figures(to, counted[1], counted[0])
    compaction_with_figures(to, counted[0], counted[1])
    assert to.state.removed_tokens == {(Basis.COUNTED, Scope.MESSAGES): 500}


def test_the_summarisers_usage_is_its_own_row_and_no_figure_of_the_context(to: Any) -> None:
    to.emit(e.UsageReported(usage=Usage(1000, 10)))
    to.emit(e.UsageReported(usage=Usage(70, 7, cached_tokens=5), purpose=e.Purpose.COMPACTION))
    to.emit(e.UsageReported(usage=Usage(30, 3), purpose=e.Purpose.COMPACTION))
    assert to.state.reported == Tokens(1010, Basis.REPORTED, Scope.REQUEST)
    total = to.state.summariser_usage
    assert total is not None
    assert (total.input_tokens, total.output_tokens, total.cached_tokens) == (100, 10, None)
    assert to.state.summariser_calls == 2


def test_what_was_added_since_the_report_starts_anew_with_each_report(to: Any) -> None:
    say(to, user("some words here"))
    assert to.state.since_usage > 0
    to.emit(e.UsageReported(usage=Usage(10)))
    assert to.state.since_usage == 0
    say(to, user("more"))
    added = to.state.since_usage
    to.state.recount(lambda item: 7, Basis.COUNTED)
    assert added > 0
    assert to.state.since_usage == 7


# -- tools -------------------------------------------------------------------------------------


def test_a_call_runs_from_waiting_to_done(to: Any) -> None:
    (call,) = say(to, FunctionCall("c", "bash", "{}"))
    assert to.state.tools["c"].status is ToolStatus.WAITING
    to.emit(e.ToolStarted(call_id="c", name="bash"))
    to.emit(e.ToolOutput(call_id="c", text="x" * 5000))
    assert to.state.tools["c"].status is ToolStatus.RUNNING
    assert len(to.state.tools["c"].live) == 4000
    to.emit(e.ToolFinished(call_id="c", ok=False, exit_code=2, seconds=1.5, size=9, saved="f"))
    (output,) = say(to, FunctionCallOutput("c", "out"))
    run = to.state.tools["c"]
    assert (run.status, run.exit_code, run.saved, run.live) == (ToolStatus.FAILED, 2, "f", "")
    assert (run.call, run.output) == (call, output)


def test_an_id_that_is_used_again_does_not_overwrite_the_earlier_run(to: Any) -> None:
    say(to, FunctionCall("call_0", "bash", "one"), FunctionCallOutput("call_0", "first"))
    say(to, FunctionCall("call_0", "grep", "two"))
    to.emit(e.ToolStarted(call_id="call_0", name="grep"))
    rows = [row for row in to.state.rows if row.kind is RowKind.TOOL]
    first, second = (to.state.tools[row.call_id] for row in rows)
    assert (first.arguments, first.status) == ("one", ToolStatus.DONE)
    assert (second.arguments, second.status) == ("two", ToolStatus.RUNNING)
    assert to.state.run_of("call_0") == second
    assert second.call_id == "call_0"


def test_a_start_that_comes_before_its_call_gives_one_run(to: Any) -> None:
    to.emit(e.ToolStarted(call_id="c", name="bash"))
    (call,) = say(to, FunctionCall("c", "bash", "{}"))
    run = to.state.tools["c"]
    assert (run.status, run.call, run.arguments) == (ToolStatus.RUNNING, call, "{}")
    assert sum(row.kind is RowKind.TOOL for row in to.state.rows) == 1


def test_output_of_unknown_calls_is_shown_and_no_error(to: Any) -> None:
    to.emit(e.ToolOutput(call_id="nobody", text="x"))
    say(to, FunctionCallOutput("nobody", "x"))
    to.emit(e.ToolFinished(call_id="someone"))
    assert [row.kind for row in to.state.rows[-2:]] == [RowKind.OUTPUT, RowKind.TOOL]
    assert to.state.problems == []


def test_a_pending_question_does_not_outlive_the_turn_or_a_resume(to: Any) -> None:
    to.emit(e.TurnStarted(turn=1))
    to.emit(e.ApprovalRequested(call_id="c", name="bash"))
    assert to.state.status is Status.APPROVAL
    to.emit(e.SessionResumed(notes=("one call was answered",)))
    assert to.state.approval is None
    assert to.state.status is Status.IDLE
    assert to.state.rows[-1].text == "session resumed; one call was answered"


def test_the_context_starts_empty_and_a_first_system_item_is_entry_one(to: Any) -> None:
    assert SessionState().context == Context()
    assert to.state.context.items == (system("rules"),)
    assert to.state.context.ids == (EntryId(1),)


def test_estimates_are_corrected_by_the_sessions_own_reports() -> None:
    history = History()
    text = user("some words of a message " * 100)
    records: list[e.Event] = [e.SessionStarted(session_id="s", agent="thresher")]
    for request in range(1, 6):
        estimate = Tokens(1_000, Basis.ESTIMATED, Scope.REQUEST)
        records.append(e.RequestSent(request=request, estimate=estimate))
        records.append(e.UsageReported(usage=Usage(1_300, 10), request=request))
    records.append(e.ItemAppended(item=text))
    history.extend(e.Record(n, 0.0, event) for n, event in enumerate(records))
    state = history.state
    bare = state.costs.cost(text)
    assert state.correction.ratio == 1.3
    assert state.messages_tokens.value == state.since_usage == round(bare * 1.3)
    state.recount(lambda item: 700, Basis.COUNTED)
    assert state.messages_tokens.value == 700


def test_a_cumulative_report_does_not_spoil_the_correction() -> None:
    history = History()
    records: list[e.Event] = []
    for request, reported in enumerate((1_100, 1_100, 1_100, 9_000, 1_100), 1):
        estimate = Tokens(1_000, Basis.ESTIMATED, Scope.REQUEST)
        records.append(e.RequestSent(request=request, estimate=estimate))
        records.append(e.UsageReported(usage=Usage(reported, 10), request=request))
    history.extend(e.Record(n, 0.0, event) for n, event in enumerate(records))
    assert history.state.correction.ratio == 1.1
    assert history.state.correction.rejected == 1
