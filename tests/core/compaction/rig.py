"""An engine on a record in memory, with summarisers, policies and gates that follow a script."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, ClassVar

import msgspec

from thresher.core import events as e
from thresher.core.compaction.engine import Engine
from thresher.core.compaction.gate import Gate
from thresher.core.compaction.policies.teaching import Teaching, TeachingParams
from thresher.core.compaction.policy import (
    Answer,
    Mark,
    Moment,
    Plan,
    Policy,
    RequestShape,
    Situation,
    Step,
    Summarise,
)
from thresher.core.compaction.recorder import MemoryRecorder
from thresher.core.compaction.settings import EngineSettings, Verdict
from thresher.core.compaction.store import Store
from thresher.core.compaction.summariser import OnDelta, SummaryFailed, Written
from thresher.core.items import FunctionCall, FunctionCallOutput, Item, assistant, system, user
from thresher.core.ledger import Ledger
from thresher.core.models import Budget
from thresher.core.tokens import CharClassCounter, Usage

SHAPE = RequestShape("be brief")
WORK = (
    system("You are an agent."),
    user("Please fix the parser. " * 20),
    assistant("Looking."),
    FunctionCall("c1", "read_file", '{"path": "parser.py"}'),
    FunctionCallOutput("c1", "def parse(): ...\n" * 60, "read_file"),
)
"""Five items in which the output is by far the largest."""


class Scripted:
    """A summariser that gives one answer after the other, the last one for ever: a text, an error,
    or anything to await first."""

    def __init__(self, *answers: Any, model: str = "m", usage: Usage | None = None) -> None:
        self.answers = list(answers)
        self.model = model
        self.usage = usage
        self.asks: list[Summarise] = []

    def label(self, ask: Summarise) -> str:
        return ask.model or self.model

    def wire(self, ask: Summarise) -> list[dict[str, Any]]:
        return [{"role": "user", "content": item.text} for item in ask.items if item.text]

    async def write(self, ask: Summarise, on_delta: OnDelta | None) -> Written:
        self.asks.append(ask)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = await answer()
        if isinstance(answer, SummaryFailed):
            raise answer
        if on_delta is not None:
            for word in answer.split(" "):
                on_delta(f"{word} ")
        return Written(answer, self.label(ask), self.usage)


class Planned:
    """A policy made of a generator function."""

    name: ClassVar[str] = "planned"
    title: ClassVar[str] = "Planned"
    moments: ClassVar[frozenset[Moment]] = frozenset(Moment)

    class Params(msgspec.Struct, frozen=True):
        """None."""

    def __init__(self, plan: Callable[[Situation], Plan]) -> None:
        self.params = self.Params()
        self._plan = plan

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        return ()

    def plan(self, situation: Situation) -> Plan:
        return self._plan(situation)


def steps(*given: Step, answers: list[Answer] | None = None) -> Planned:
    """A policy that yields these steps whatever is answered, and keeps the answers."""

    def plan(situation: Situation) -> Generator[Step, Answer, None]:
        for step in given:
            answer = yield step
            if answers is not None:
                answers.append(answer)

    return Planned(plan)


class Rig:
    """A session with items, and an engine on it."""

    def __init__(
        self,
        items: Iterable[Item] = WORK,
        policy: Policy | None = None,
        *,
        summarisers: Sequence[Any] | None = None,
        gate: Gate | None = None,
        store: Store | None = None,
        reread: Any = None,
        remote: Any = None,
        **settings: Any,
    ) -> None:
        self.to = MemoryRecorder()
        self.waits: list[float] = []
        self.to.emit(e.SessionStarted(session_id="s", agent="thresher", policy="teaching"))
        self.say(*items)
        self.engine = Engine(
            self.to,
            policy or Teaching(TeachingParams(threshold=100)),
            summarisers=[Scripted("short")] if summarisers is None else summarisers,
            settings=EngineSettings(**settings),
            measure=Ledger(CharClassCounter()),
            store=store,
            gate=gate,
            reread=reread,
            remote=remote,
            clock=lambda: 0.0,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    @property
    def state(self) -> Any:
        return self.to.state

    @property
    def events(self) -> list[e.Event]:
        return [record.event for record in self.to.history.records]

    def told(self, kind: type[e.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def story(self) -> list[str]:
        """The names of the compaction events, in order."""
        return [
            name
            for event in self.events
            if (name := e.event_name(event)).startswith(("compaction", "history", "breaker"))
        ]

    def say(self, *items: Item) -> None:
        for item in items:
            self.to.emit(e.ItemAppended(item=item))

    def report(self, total: int) -> None:
        self.to.emit(e.UsageReported(usage=Usage(total)))

    async def offer(self, moment: Moment = Moment.AFTER_ROUND, **more: Any) -> Verdict:
        return await self.engine.offer(moment, shape=SHAPE, model="m", **more)

    def work(self, number: int, size: int = 60) -> None:
        """One more round: a call and its output."""
        id = f"r{number}"
        self.say(
            FunctionCall(id, "bash", '{"command": "make"}'),
            FunctionCallOutput(id, "line of output\n" * size),
        )
