"""Where a session offered its context to a policy, read from the record.

An offer that came to nothing is not in the journal, but what it stands between is: a user's
message, a request, the outputs of a round. So the moments of the loop (`compaction/policy.py`) are
found again, for our own sessions and as well for those of other agents, whose loops may offer at
fewer of them.
"""

from __future__ import annotations

import msgspec

from .. import events as e
from ..compaction.policy import Moment
from ..history import History
from ..items import FunctionCallOutput, Item, Message, Role


class Offered(msgspec.Struct, frozen=True):
    """A moment. The state then is that of `position`; `line` is the journal line that follows.

    `ordinal` is the compaction that happened here (the last, where a pass made several), or 0;
    `outcome` is "done" then, or how a pass ended that changed nothing, or empty where no rule
    fired. `n` is the line of the event that says so, -1 for none.
    """

    moment: Moment
    position: int
    line: int
    turn: int
    round: int
    outcome: str = ""
    ordinal: int = 0
    n: int = -1


class _Said(msgspec.Struct, frozen=True):
    """A pass that ended: its moment, its outcome and where."""

    moment: Moment | None
    outcome: str
    ordinal: int
    n: int


def moments(history: History) -> tuple[Offered, ...]:
    """Every moment of the loop, in order, those with a compaction among them."""
    reader = _Reader()
    for position, record in enumerate(history.records):
        reader.read(position, record)
    return tuple(reader.found)


class _Reader:
    """One pass over the records. `quiet` is the position after the last item of a round: what a
    pass has recorded since then belongs to the moments that follow it."""

    def __init__(self) -> None:
        self.found: list[Offered] = []
        self._said: list[_Said] = []
        self._turn = self._round = 0
        self._quiet = 0
        self._opening = False
        self._answered = False

    def read(self, position: int, record: e.Record) -> None:
        match record.event:
            case e.TurnStarted(turn=turn):
                self._turn, self._opening, self._answered = turn, True, False
                self._still(position + 1)
            case e.ItemAppended(item=item):
                if self._opening and _typed(item):
                    self._offer(Moment.TURN_START, self._quiet, record.n)
                    self._opening = False
                self._answered = self._answered or isinstance(item, FunctionCallOutput)
                self._still(position + 1)
            case e.RequestSent(purpose=e.Purpose.TURN):
                if self._answered:
                    self._offer(Moment.AFTER_ROUND, self._quiet, record.n)
                self._offer(Moment.BEFORE_REQUEST, position, record.n)
                self._round += 1
                self._answered = False
                self._still(position + 1)
            case e.ContextOverflowed(purpose=e.Purpose.TURN):
                self._still(position + 1)
                self._offer(Moment.OVERFLOW, position + 1, record.n)
            case e.UsageReported(purpose=e.Purpose.TURN, estimated=False):
                self._still(position + 1)
            case e.TurnFinished():
                self._offer(Moment.TURN_END, self._quiet, record.n)
                self._still(position + 1)
            case e.HistoryCompacted() as event:
                self._pass(_Said(event.moment, "done", event.ordinal, record.n))
            case e.CompactionSkipped() | e.CompactionFailed() as event:
                self._pass(_Said(event.moment, event.outcome.value, 0, record.n))
            case _:
                pass

    def _still(self, position: int) -> None:
        self._quiet = position
        self._said.clear()

    def _pass(self, said: _Said) -> None:
        last = self.found[-1] if self.found else None
        if last is not None and last.moment is said.moment is Moment.OVERFLOW:
            self.found[-1] = _with(last, said)
        elif said.moment in (Moment.MANUAL, Moment.MODEL_CHANGE, Moment.TOOL_OUTPUT):
            self._offer(said.moment, self._quiet, said.n)
            self.found[-1] = _with(self.found[-1], said)
        else:
            self._said.append(said)

    def _offer(self, moment: Moment, position: int, line: int) -> None:
        offered = Offered(moment, position, line, self._turn, self._round)
        # What does not name a moment belongs to the first that comes.
        mine = [said for said in self._said if said.moment in (moment, None)]
        for said in mine:
            offered = _with(offered, said)
            self._said.remove(said)
        self.found.append(offered)


def _typed(item: Item) -> bool:
    return isinstance(item, Message) and item.role is Role.USER and not item.synthetic


def _with(offered: Offered, said: _Said) -> Offered:
    if offered.ordinal and not said.ordinal:
        return offered
    return msgspec.structs.replace(offered, outcome=said.outcome, ordinal=said.ordinal, n=said.n)
