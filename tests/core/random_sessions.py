"""Random sessions: a list of steps that hypothesis draws, and what each step says.

Test files load this one with runpy, since importlib mode puts no folder of tests on sys.path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.context import EntryId, Inserted, Kept, Replaced, Segment
from thresher.core.debug.restore import last_compaction, preview_restore, preview_undo
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Reasoning,
    Role,
    assistant,
    system,
    user,
)
from thresher.core.state import SessionState
from thresher.core.tokens import Basis, Scope, Tokens, Usage

STEPS = (
    "user", "assistant", "reasoning", "batch", "batch", "cut batch", "deltas", "request", "usage",
    "compact", "compact", "compact", "pipeline", "skip", "fail", "open pass", "turn", "end turn",
    "approval", "breaker", "overflow", "model", "note", "outside", "developer", "undo", "restore",
    "pin", "breakpoint", "stop",
)  # fmt: skip

TEXTS = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from('\x00\x1b\ud800\udfff\u202e[]\n"\\')),
    max_size=30,
)


class Step(NamedTuple):
    """One step: its kind, a number that settles its details, and a text."""

    kind: str
    seed: int
    text: str


def steps(most: int = 40) -> st.SearchStrategy[list[Step]]:
    """Lists of steps, as they are drawn."""
    step = st.builds(Step, st.sampled_from(STEPS), st.integers(0, 2**20), TEXTS)
    return st.lists(step, max_size=most)


class InMemory:
    """Emits into a history alone, without a file; `said` keeps the ephemeral records as well."""

    def __init__(self) -> None:
        self.history = History()
        self.said: list[e.Record] = []

    @property
    def state(self) -> SessionState:
        return self.history.state

    @property
    def next_line(self) -> int:
        return len(self.history)

    def emit(self, event: e.Event) -> e.Record:
        n = -1 if isinstance(event, e.EPHEMERAL) else self.next_line
        record = e.decode(e.encode(e.Record(n, float(len(self.said)), event)))
        self.said.append(record)
        self.history.append(record)
        return record


def begin(to: InMemory) -> None:
    """The lines every session starts with."""
    to.emit(e.SessionStarted(session_id="s", agent="thresher", model="m", policy="gone-policy"))
    to.emit(e.ItemAppended(item=system("rules")))


def play(to: InMemory, script: Iterable[Step]) -> None:
    """Say what the steps mean, through `emit`; `to` may be a Session."""
    for number, step in enumerate(script):
        _SAY[step.kind](to, Random(step.seed), step.text, number)


def _calls(to: InMemory, draw: Random, text: str, number: int, *, answer: bool) -> None:
    ids = [f"call {number} {at}" for at in range(draw.randint(1, 3))]
    if draw.random() < 0.2:
        ids = ["again"]  # some providers use an id more than once
    for id in ids:
        to.emit(e.ItemAppended(item=FunctionCall(id, "bash", text), turn=1, round=number))
    for id in ids[: len(ids) if answer else draw.randint(0, len(ids) - 1)]:
        to.emit(e.ToolStarted(call_id=id, name="bash"))
        to.emit(e.ToolOutput(call_id=id, text=text))
        if draw.random() < 0.8:
            to.emit(e.ToolFinished(call_id=id, ok=draw.random() < 0.7, size=len(text)))
        failed = draw.random() < 0.3
        to.emit(e.ItemAppended(item=FunctionCallOutput(id, text, name="bash", is_error=failed)))


def _segments(state: SessionState, draw: Random, text: str) -> list[Segment]:
    """Keep, rewrite and remove groups at random, so that no pair is torn."""
    entries = state.context.entries
    open_calls: dict[str, list[EntryId]] = {}
    partner: dict[EntryId, EntryId] = {}
    for entry in entries:
        match entry.item:
            case FunctionCall(call_id=call_id):
                open_calls.setdefault(call_id, []).append(entry.id)
            case FunctionCallOutput(call_id=call_id) if open_calls.get(call_id):
                partner[entry.id] = open_calls[call_id].pop(0)
            case _:
                pass
    gone = {entry.id for entry in entries if draw.random() < 0.5 and entry.id not in partner}
    gone |= {output for output, call in partner.items() if call in gone}
    segments: list[Segment] = [
        Inserted(CompactionSummary(text, prefix="before: "), state.context.span(gone))
    ]
    for entry in entries:
        if entry.id in gone:
            continue
        if draw.random() < 0.2 and isinstance(entry.item, FunctionCallOutput):
            short = FunctionCallOutput(entry.item.call_id, "...", name="bash")
            segments.append(Replaced(entry.id.bare, short))
        else:
            segments.append(Kept(entry.id.bare, entry.id.bare))
    return segments


def compacted(to: InMemory, segments: list[Segment], *, pass_id: str, text: str) -> None:
    """Say that this compaction happened, as an engine would."""
    state = to.state
    ordinal = state.compactions + 1
    change = state.context.apply(segments, to.next_line, ordinal)
    size = state.messages_tokens.value
    to.emit(
        e.HistoryCompacted(
            ordinal=ordinal, pass_id=pass_id, policy="gone-policy", stage="summary",
            moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO, reason=f"{size} >= 10",
            segments=tuple(segments), items_before=len(state.context),
            items_after=len(change.after), kept=len(change.kept), removed=len(change.removed),
            replaced=len(change.replaced), inserted=len(change.inserted),
            removed_ids=state.context.span(change.removed),
            before=Tokens(size, Basis.ESTIMATED, Scope.MESSAGES),
            after=Tokens(size // 2, Basis.ESTIMATED, Scope.MESSAGES),
            usage=state.usage, summary=text, digest=change.after.digest(),
            memory={"cuts": (ordinal, [ordinal]), "last": text}, window=ordinal,
        )
    )  # fmt: skip


def _compact(to: InMemory, draw: Random, text: str, number: int) -> None:
    pass_id = f"pass {number}"
    if draw.random() < 0.8:
        to.emit(e.CompactionStarted(pass_id=pass_id, policy="gone-policy", reason="due"))
        to.emit(e.MessageDelta(text=text, channel="summary", pass_id=pass_id))
    if draw.random() < 0.3:
        to.emit(e.SummaryAttemptFailed(pass_id=pass_id, model="m", kind="timeout", message=text))
    if draw.random() < 0.5:
        to.emit(e.UsageReported(usage=Usage(50, 5), purpose=e.Purpose.COMPACTION))
        to.emit(e.CompactionProposed(pass_id=pass_id, policy="p", stage="s", reason="r", kept=1))
    compacted(to, _segments(to.state, draw, text), pass_id=pass_id, text=text)


def _pipeline(to: InMemory, draw: Random, text: str, number: int) -> None:
    for _ in range(2):
        compacted(to, _segments(to.state, draw, text), pass_id=f"pass {number}", text=text)


def _fail(to: InMemory, draw: Random, text: str, number: int) -> None:
    outcome = draw.choice([e.Outcome.EMPTY, e.Outcome.FAILED, e.Outcome.ABORTED])
    if draw.random() < 0.5:
        to.emit(e.CompactionStarted(pass_id=f"pass {number}", policy="p"))
        to.emit(e.MessageDelta(text=text, channel="summary", pass_id=f"pass {number}"))
    to.emit(
        e.CompactionFailed(
            pass_id=f"pass {number}", policy="p", moment=Moment.OVERFLOW, trigger=Trigger.OVERFLOW,
            outcome=outcome, reason=text, failures=1,
        )
    )  # fmt: skip


def _skip(to: InMemory, draw: Random, text: str, number: int) -> None:
    outcome = draw.choice([e.Outcome.NO_OP, e.Outcome.GREW, e.Outcome.SUPERSEDED])
    to.emit(
        e.CompactionSkipped(
            pass_id=f"pass {number}", policy="p", moment=Moment.MANUAL, trigger=Trigger.MANUAL,
            outcome=outcome, reason=text,
        )
    )  # fmt: skip


def _usage(to: InMemory, draw: Random, text: str, number: int) -> None:
    cached = draw.choice([None, 0, 5])
    usage = Usage(draw.randint(0, 9000), draw.randint(0, 99), cached_tokens=cached)
    to.emit(e.UsageReported(usage=usage, estimated=draw.random() < 0.3))


def _deltas(to: InMemory, draw: Random, text: str, number: int) -> None:
    for _ in range(draw.randint(1, 4)):
        to.emit(e.MessageDelta(text=text, channel=draw.choice(["assistant", "reasoning"])))


def _approval(to: InMemory, draw: Random, text: str, number: int) -> None:
    to.emit(e.ApprovalRequested(call_id=text, name="bash", arguments=text))
    if draw.random() < 0.7:
        to.emit(e.ApprovalAnswered(call_id=text, name="bash", decision="once"))


def _breaker(to: InMemory, draw: Random, text: str, number: int) -> None:
    to.emit(e.BreakerOpened(failures=3, reason=text))
    if draw.random() < 0.5:
        to.emit(e.BreakerClosed(by="user"))


def _undo(to: InMemory, draw: Random, text: str, number: int) -> None:
    if last_compaction(to.state) is not None:
        with suppress(ThresherError):
            to.emit(preview_undo(to.state).event())


def _restore(to: InMemory, draw: Random, text: str, number: int) -> None:
    gone = [id for id, fate in to.state.fates.items() if fate.removed_by]
    if gone:
        with suppress(ThresherError):
            to.emit(preview_restore(to.state, draw.choice(gone)).event())


def _pin(to: InMemory, draw: Random, text: str, number: int) -> None:
    context = to.state.context
    if not len(context):
        return
    to.emit(e.EntriesPinned(entries=context.span(draw.choices(context.ids, k=2))))
    if draw.random() < 0.3:
        to.emit(e.EntriesUnpinned(entries=draw.choice(to.state.pins).bare))


def _stop(to: InMemory, draw: Random, text: str, number: int) -> None:
    pass_id = f"held {number}"
    to.emit(e.CompactionStarted(pass_id=pass_id, policy="p"))
    to.emit(e.DebuggerStopped(breakpoint="step", point="edit", reason=text, pass_id=pass_id))
    to.emit(e.CompactionDecided(pass_id=pass_id, choice=e.Choice.FOCUS, text=text))
    if draw.random() < 0.7:
        to.emit(e.DebuggerContinued(how="skip", pass_id=pass_id))


def _breakpoint(to: InMemory, draw: Random, text: str, number: int) -> None:
    to.emit(e.BreakpointSet(text=draw.choice(["compaction", "tokens:5", text])))
    if draw.random() < 0.3:
        to.emit(e.BreakpointCleared(text=draw.choice(to.state.breakpoints)))


def _just(event: Callable[[str, int], e.Event]) -> Callable[[InMemory, Random, str, int], None]:
    def say(to: InMemory, draw: Random, text: str, number: int) -> None:
        to.emit(event(text, number))

    return say


_SAY: dict[str, Callable[[InMemory, Random, str, int], None]] = {
    "user": _just(lambda text, _: e.ItemAppended(item=user(text), turn=1)),
    "assistant": _just(lambda text, _: e.ItemAppended(item=assistant(text))),
    "reasoning": _just(lambda text, _: e.ItemAppended(item=Reasoning(text))),
    "developer": _just(lambda text, _: e.ItemAppended(item=Message(Role.DEVELOPER, text))),
    "outside": _just(lambda text, _: e.ItemAppended(item=user(text), in_context=False)),
    "batch": lambda to, draw, text, number: _calls(to, draw, text, number, answer=True),
    "cut batch": lambda to, draw, text, number: _calls(to, draw, text, number, answer=False),
    "request": _just(lambda _, number: e.RequestSent(request=number, digests=("abc",))),
    "turn": _just(lambda _, number: e.TurnStarted(turn=number)),
    "end turn": _just(lambda text, number: e.TurnFinished(turn=number, outcome="completed")),
    "overflow": _just(lambda text, _: e.ContextOverflowed(message=text, used=9, limit=8)),
    "model": _just(lambda text, _: e.ModelChanged(model=text)),
    "note": _just(lambda text, _: e.Note(kind="n", text=text)),
    "open pass": _just(lambda _, n: e.CompactionStarted(pass_id=f"open {n}", policy="p")),
    "compact": _compact,
    "pipeline": _pipeline,
    "skip": _skip,
    "fail": _fail,
    "usage": _usage,
    "deltas": _deltas,
    "approval": _approval,
    "breaker": _breaker,
    "undo": _undo,
    "restore": _restore,
    "pin": _pin,
    "breakpoint": _breakpoint,
    "stop": _stop,
}


def snapshot(state: SessionState) -> dict[str, object]:
    """All public fields of a state, with the shared tables cut to what this position knows."""
    fields = {name: value for name, value in vars(state).items() if not name.startswith("_")}
    at = state.position
    fields["known"] = {id: entry for id, entry in state.known.items() if id.line <= at}
    del fields["bodies"]  # where texts are read from, which says nothing of a position
    fields["costs"] = {id: state.cost(id) for id in fields["known"]}
    return fields | {
        "context": state.context.entries,
        "runs": (state.tools, state.tool_calls, state.tool_failures),
        "parts": {kind: tokens for kind, tokens in state.parts.items() if tokens},
        "since_usage": state.since_usage,
        "messages_tokens": state.messages_tokens,
        "reported": state.reported,
    }
