"""The session as an outline: phases between compactions, in them turns, and what was worked on."""

from __future__ import annotations

from collections import Counter

import msgspec

from .. import events as e
from ..history import History
from ..items import FunctionCall, Message, Role
from .naming import first_line
from .touches import Access, touches


class FileWork(msgspec.Struct, frozen=True):
    """A file that calls named, and how often it was read and written."""

    path: str
    reads: int
    writes: int


class TurnOutline(msgspec.Struct, frozen=True):
    """A turn, or the part of one that lies in a phase (`continued`). `title` is what the user
    said first; `outcome` is empty where the turn ended in a later phase, or not yet."""

    turn: int
    line: int
    title: str
    rounds: int
    calls: int
    outcome: str = ""
    continued: bool = False


class Phase(msgspec.Struct, frozen=True):
    """What lies between two compactions. `first` and `last` are journal lines.

    `ended_by` are the ordinals of the compactions that end it (a pass may make several), empty for
    the last phase. `start` and `end` are the first and last reported totals in it, None where
    nothing was reported. `tools` and `files` are the most used first.
    """

    number: int
    first: int
    last: int
    turns: tuple[TurnOutline, ...]
    rounds: int
    calls: int
    failures: int
    tools: tuple[tuple[str, int], ...]
    files: tuple[FileWork, ...]
    start: int | None
    end: int | None
    ended_by: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Nothing happened in it but its end."""
        return not (self.turns or self.rounds or self.calls)


def outline(history: History) -> tuple[Phase, ...]:
    """The phases of the whole session, in order."""
    phases: list[Phase] = []
    phase = _Phase(history.state.cwd)
    for record in history.records:
        phase.read(record)
        if not isinstance(record.event, e.HistoryCompacted):
            continue
        done = phase.done(len(phases) + 1, (record.event.ordinal,))
        if done.empty and phases:
            # The next edit of the same pass: both end the phase before.
            last = phases[-1]
            ended = (*last.ended_by, record.event.ordinal)
            phases[-1] = msgspec.structs.replace(last, last=record.n, ended_by=ended)
        else:
            phases.append(done)
        phase = phase.next()
    if not (rest := phase.done(len(phases) + 1, ())).empty or not phases:
        phases.append(rest)
    return tuple(phases)


class _Turn:
    def __init__(self, number: int, line: int, title: str = "", continued: bool = False) -> None:
        self.number, self.line, self.title = number, line, title
        self.continued = continued
        self.rounds = self.calls = 0
        self.outcome = ""

    def done(self) -> TurnOutline:
        return TurnOutline(
            self.number, self.line, self.title, self.rounds, self.calls, self.outcome,
            self.continued,
        )  # fmt: skip


class _Phase:
    """Counts until the next compaction."""

    def __init__(self, cwd: str, open_turn: _Turn | None = None) -> None:
        self._cwd = cwd
        self._open = open_turn
        self._first: int | None = None
        self._last = 0
        self._turns: list[_Turn] = []
        self._rounds = self._calls = self._failures = 0
        self._tools: Counter[str] = Counter()
        self._reads: Counter[str] = Counter()
        self._writes: Counter[str] = Counter()
        self._totals: list[int] = []

    def next(self) -> _Phase:
        """The phase that follows, in the turn that is open."""
        return _Phase(self._cwd, self._open)

    def read(self, record: e.Record) -> None:
        self._first = record.n if self._first is None else self._first
        self._last = record.n
        match record.event:
            case e.TurnStarted(turn=turn):
                self._open = _Turn(turn, record.n)
                self._turns.append(self._open)
            case e.TurnFinished(outcome=outcome):
                if self._turns:
                    self._turns[-1].outcome = outcome
                self._open = None
            case e.ItemAppended(item=Message(role=Role.USER, synthetic=False) as item):
                if self._open is not None and not self._open.title:
                    self._open.title = first_line(item.text)
            case e.ItemAppended(item=FunctionCall() as call):
                self._called(call, record.n)
            case e.ToolFinished(ok=False):
                self._failures += 1
            case e.RequestSent(purpose=e.Purpose.TURN):
                self._rounds += 1
                if (turn_now := self._turn(record.n)) is not None:
                    turn_now.rounds += 1
            case e.UsageReported(purpose=e.Purpose.TURN, estimated=False) as event:
                self._totals.append(event.usage.total)
            case _:
                pass

    def done(self, number: int, ended_by: tuple[int, ...]) -> Phase:
        paths = self._reads + self._writes
        return Phase(
            number=number,
            first=self._first or 0,
            last=self._last,
            turns=tuple(turn.done() for turn in self._turns),
            rounds=self._rounds,
            calls=self._calls,
            failures=self._failures,
            tools=tuple(self._tools.most_common()),
            files=tuple(
                FileWork(path, self._reads[path], self._writes[path])
                for path, _ in paths.most_common()
            ),
            start=self._totals[0] if self._totals else None,
            end=self._totals[-1] if self._totals else None,
            ended_by=ended_by,
        )

    def _called(self, call: FunctionCall, line: int) -> None:
        self._calls += 1
        self._tools[call.name] += 1
        if (turn := self._turn(line)) is not None:
            turn.calls += 1
        for touch in touches(call, self._cwd):
            (self._reads if touch.access is Access.READ else self._writes)[touch.path] += 1

    def _turn(self, line: int) -> _Turn | None:
        """The open turn, which may have begun in an earlier phase."""
        if self._open is not None and (not self._turns or self._turns[-1] is not self._open):
            self._open = _Turn(self._open.number, line, self._open.title, continued=True)
            self._turns.append(self._open)
        return self._open
