"""Reading a session back, and going on with it.

A journal is replayed by folding its records: a compaction is applied as it was recorded, so neither
the policy's code nor its constants are needed, and what they are today changes nothing in an old
session. The fold compares the digest that was stored with every compaction; a difference is a
problem that everyone sees.

A session that ended in the middle is mended by appending, never by rewriting. In this order: a
call without any output gets an output that says so, a compaction that never ended is ended as
aborted, a running turn as interrupted, and `session_resumed` says what was done. Each step is a
line of its own, so a process that is killed in between leaves less to mend for the next one.

Where outputs go: after their calls, at the end of the context. That is the legal place, because the
loop puts nothing after a batch of calls before all of its outputs, so in a journal that was cut
anywhere the last batch ends the context. Should other items follow a call all the same (a file
from elsewhere), the output still goes to the end, and a note says that the order is not right.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from .. import events as e
from ..context import EntryId
from ..errors import ThresherError
from ..history import History
from ..items import FunctionCall, FunctionCallOutput, Reasoning
from ..state import CardStatus, SessionState
from .journal import BadLine, Journal, Scanned, located, scan
from .session import Clock, Session

INTERRUPTED = (
    "Error [SESSION_RESUME_INTERRUPTED]: the session was cut off before this call had a result. "
    "It may have taken effect in part, in full or not at all: look before you repeat it."
)
"""The output that a call gets when the program ended before there was one."""


REPAIR = "written on resume for "
"""The note of such an output, before the id of its call: the call id alone may not be enough."""


class Reading(NamedTuple):
    """A journal's records, and every line that could not be read. The latter are also among the
    records, as errors in their place, so that a fold shows them."""

    records: list[e.Record]
    problems: tuple[e.ErrorRaised, ...]


class Orphan(NamedTuple):
    """A call that has no output anywhere in the record; `id` is its entry as it was appended."""

    id: EntryId
    call: FunctionCall
    turn: int
    round: int


def read(path: Path) -> Reading:
    """Replay a session's journal (or folder) without a lock and without writing.

    Raises ThresherError when there is no such file or it cannot be read.
    """
    return _reading(scan(located(path)))


def resume(path: Path, *, clock: Clock = time.time) -> Session:
    """Take a session up again: lock it, replay it, mend it, and go on writing.

    Raises ThresherError when the file cannot be read or written, when another program writes it,
    when it is no session of ours, or when it holds no items. In these cases nothing has changed.
    """
    journal, lines = Journal.take_up(located(path))
    try:
        torn = [scanned for scanned in lines if scanned.torn]
        reading = _reading(scanned for scanned in lines if not scanned.torn)
        _require_items(journal.path, reading.records)
        history = History()
        history.extend(reading.records)
        notes = (*_torn_notes(torn), *_problem_notes(reading, history.state))
        session = Session(journal, history, clock=clock)
        _mend(session, reading.records, notes)
    except BaseException:
        journal.close()
        raise
    return session


def orphans(records: Iterable[e.Record]) -> list[Orphan]:
    """The calls without an output, oldest first. An output answers the oldest open call with its
    call id, since some providers use an id more than once; one that a resume wrote says which."""
    waiting: dict[str, deque[Orphan]] = {}
    for record in records:
        match record.event:
            case e.ItemAppended(item=FunctionCall() as call, in_context=True) as event:
                id = EntryId(record.n, event.part)
                orphan = Orphan(id, call, event.turn, event.round)
                waiting.setdefault(call.call_id, deque()).append(orphan)
            case e.ItemAppended(item=FunctionCallOutput(call_id=call_id), note=note):
                queue = waiting.get(call_id) or deque()
                named = [orphan for orphan in queue if note == f"{REPAIR}{orphan.id}"]
                if named:
                    queue.remove(named[0])
                elif queue:
                    queue.popleft()
            case _:
                pass
    return sorted(orphan for queue in waiting.values() for orphan in queue)


# -- replay ------------------------------------------------------------------------------------


def _reading(lines: Iterable[Scanned]) -> Reading:
    records: list[e.Record] = []
    problems: list[e.ErrorRaised] = []
    for scanned in lines:
        found = scanned.found
        if isinstance(found, BadLine):
            last = records[-1] if records else e.Record(-1, 0.0, e.Note(kind="", text=""))
            problems.append(found.problem())
            found = e.Record(max(last.n + 1, 0), last.at, problems[-1])
        records.append(found)
    return Reading(records, tuple(problems))


def _require_items(path: Path, records: Sequence[e.Record]) -> None:
    if not any(isinstance(record.event, e.SessionStarted) for record in records):
        raise ThresherError(
            "Not a session",
            f"{path} has no start of a thresher session that can be read: open it with the program "
            "that wrote it, or choose another with `thresher sessions`.",
        )
    if not any(isinstance(record.event, e.ItemAppended) for record in records):
        raise ThresherError(
            "Nothing to resume",
            f"{path} ended before anything was said: start a new session with `thresher run`.",
        )


def _torn_notes(torn: Sequence[Scanned]) -> list[str]:
    return [
        f"the last line was not written to its end: {at.end - at.offset:,} bytes from byte "
        f"{at.offset:,} on were cut off"
        for at in torn
    ]


def _problem_notes(reading: Reading, state: SessionState) -> list[str]:
    notes: list[str] = []
    if reading.problems:
        first = reading.problems[0]
        count = len(reading.problems)
        lines = "1 line" if count == 1 else f"{count:,} lines"
        notes.append(
            f"{lines} could not be read and {'is' if count == 1 else 'are'} passed over, first "
            f"line {first.line}: {first.message}"
        )
    notes.extend(problem.message for problem in state.problems if problem.kind == "record")
    return notes


# -- mending -----------------------------------------------------------------------------------


def _mend(session: Session, records: Sequence[e.Record], notes: Sequence[str]) -> None:
    repaired, told = _answer_orphans(session, records)
    _end_passes(session)
    turn = _open_turn(records)
    if turn is not None:
        session.emit(
            e.TurnFinished(turn=turn, outcome="interrupted", message="the session was cut off")
        )
    session.notes = (*notes, *told)
    session.emit(e.SessionResumed(repaired=tuple(repaired), notes=session.notes))


def _answer_orphans(session: Session, records: Sequence[e.Record]) -> tuple[list[str], list[str]]:
    """Give each orphan in the context its output; returns their call ids, and notes."""
    repaired: list[str] = []
    notes: list[str] = []
    open_calls = orphans(records)
    late = _followed_by_others(session.state, {_now(session.state, call.id) for call in open_calls})
    for orphan in open_calls:
        id = _now(session.state, orphan.id)
        name = f"the call {orphan.id} ({orphan.call.name})"
        if session.state.context.place(id) is None:
            notes.append(f"{name} had no result when a compaction removed it")
            continue
        if id in late:
            notes.append(f"{name} is followed by other items: its result stands after them")
        session.emit(
            e.ItemAppended(
                item=FunctionCallOutput(
                    orphan.call.call_id, INTERRUPTED, name=orphan.call.name, is_error=True
                ),
                turn=orphan.turn,
                round=orphan.round,
                note=f"{REPAIR}{orphan.id}",
            )
        )
        repaired.append(orphan.call.call_id)
        notes.append(f"{name} had no result and got one that says so")
    return repaired, notes


def _now(state: SessionState, id: EntryId) -> EntryId:
    """The entry that an entry has become, through any number of rewritings."""
    while (became := state.fate(id).became) is not None:
        id = became
    return id


def _followed_by_others(state: SessionState, calls: set[EntryId]) -> set[EntryId]:
    """Those calls after which something else than their batch stands in the context."""
    late: set[EntryId] = set()
    others = False
    for entry in reversed(state.context.entries):
        if entry.id in calls and others:
            late.add(entry.id)
        others |= not isinstance(entry.item, FunctionCall | FunctionCallOutput | Reasoning)
    return late


def _end_passes(session: Session) -> None:
    """Every compaction that has no end gets one: no outcome is silent."""
    for card in tuple(session.state.cards):
        if card.status in (CardStatus.RUNNING, CardStatus.PROPOSED):
            session.emit(
                e.CompactionFailed(
                    pass_id=card.pass_id,
                    policy=card.policy,
                    moment=card.moment,
                    trigger=card.trigger,
                    outcome=e.Outcome.ABORTED,
                    reason="the session was cut off while this compaction ran",
                    kind="interrupted",
                    stage=card.stage,
                    next_step="nothing was changed; the rule is asked again at its next moment",
                )
            )


def _open_turn(records: Sequence[e.Record]) -> int | None:
    for record in reversed(records):
        match record.event:
            case e.TurnStarted(turn=turn):
                return turn
            case e.TurnFinished():
                return None
            case _:
                pass
    return None
