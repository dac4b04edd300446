"""A recorded OpenCode session, lived again: its words are given, its compactions are ours."""

from __future__ import annotations

from typing import Any

from thresher.core import events as e
from thresher.core.compaction.engine import Engine
from thresher.core.compaction.policy import (
    FailureKind,
    Moment,
    Policy,
    RequestShape,
    ToolSchema,
    Trigger,
)
from thresher.core.compaction.recorder import MemoryRecorder
from thresher.core.compaction.settings import EngineSettings, Guard, Verdict
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.context import EntryId, Kept
from thresher.core.gateways.openai_chat import chat_messages
from thresher.core.items import FunctionCall, FunctionCallOutput, Item, system
from thresher.core.ledger import Ledger
from thresher.core.models import Budget
from thresher.core.tokens import CharClassCounter, Usage

from ..core.compaction.rig import Scripted
from .opencode_db import Recording, Stored, compact, wire

SHAPE = RequestShape("be brief")


class Driven:
    """An engine with one policy on a record in memory, with the limits of a recorded model."""

    def __init__(
        self,
        policy: Policy,
        budget: Budget,
        *summaries: Any,
        guard: Guard = Guard.ENFORCE,
        shape: RequestShape = SHAPE,
        lead: tuple[Item, ...] = (system("the system prompt"),),
        store: Any = None,
    ) -> None:
        self.to = MemoryRecorder()
        self.to.emit(
            e.SessionStarted(session_id="s", agent="thresher", policy=policy.name, budget=budget)
        )
        self.scripted = Scripted(*(summaries or ("a summary",)))
        self.shape = shape
        self.came_from: dict[EntryId, str] = {}
        self.engine = Engine(
            self.to,
            policy,
            summarisers=[self.scripted],
            settings=EngineSettings(guard=guard, retries=0, max_failures=9),
            measure=Ledger(CharClassCounter()),
            store=store,
            clock=lambda: 0.0,
        )
        self.say("", *lead)

    @property
    def state(self) -> Any:
        return self.to.state

    @property
    def wire(self) -> list[dict[str, Any]]:
        return wire(chat_messages(self.state.context.items))

    def told(self, kind: type[e.Event]) -> list[Any]:
        return [r.event for r in self.to.history.records if isinstance(r.event, kind)]

    def say(self, message: str, *items: Item) -> None:
        """Append items; `message` is the id of the recorded message that they are."""
        for item in items:
            record = self.to.emit(e.ItemAppended(item=item))
            self.came_from[EntryId(record.n)] = message

    def report(self, usage: Usage | None) -> None:
        if usage is not None:
            self.to.emit(e.UsageReported(usage=usage))

    async def offer(self, moment: Moment, **more: Any) -> Verdict:
        return await self.engine.offer(moment, shape=self.shape, model="m", **more)

    def tail_starts(self) -> list[str]:
        """For each compaction the recorded message at the start of its tail, or nothing."""
        starts = []
        for event in self.told(e.HistoryCompacted):
            after = event.segments[3:] if isinstance(event.segments[0], Kept) else ()
            first = next((s for s in after if isinstance(s, Kept)), None)
            starts.append(self.came_from[EntryId.parse(first.first)] if first else "")
        return starts


def step(id: str, size: int = 10, tool: str = "grep") -> tuple[Item, Item]:
    return FunctionCall(id, tool, '{"path": "a"}'), FunctionCallOutput(id, "x" * size, tool)


def overflow(message: str = "too long") -> SummaryFailed:
    return SummaryFailed(FailureKind.OVERFLOW, message)


async def live_v1(recorded: Recording, policy: Policy, guard: Guard) -> tuple[Driven, list[Any]]:
    """Live a V1 session again. Returns what was driven and every request that was made."""
    answers = [
        overflow() if message.error else message.text
        for message in recorded.v1
        if message.is_summary
    ]
    driven = Driven(policy, recorded.budget, *answers, guard=guard)
    requests: list[Any] = []
    said_again = False
    for message in recorded.v1:
        if message.compaction is not None:
            said_again = bool(message.compaction.get("overflow"))
        elif message.is_user:
            if message.goes_on or said_again:
                said_again = False
                assert driven.wire[-1]["content"] == message.text
            else:
                driven.engine.new_turn()
                driven.say(message.id, *message.items)
                await driven.offer(Moment.BEFORE_REQUEST)
        elif message.is_summary:
            said_again = said_again and not message.error
        else:
            requests.append(driven.wire)
            await _step(driven, message)
    return driven, requests


async def _step(driven: Driven, message: Stored) -> None:
    if not message.parts:  # refused by the provider, so nothing was said
        await driven.offer(Moment.OVERFLOW, trigger=Trigger.OVERFLOW)
        return
    driven.report(message.usage)
    items = message.items
    driven.say(message.id, *items)
    if any(isinstance(item, FunctionCall) for item in items):
        await driven.offer(Moment.AFTER_ROUND)
        await driven.offer(Moment.BEFORE_REQUEST)
    else:
        await driven.offer(Moment.TURN_END)


async def live_v2(recorded: Recording, policy: Policy) -> tuple[Driven, list[Any]]:
    """Live a V2 session again. A compaction that nothing set off came after an overflow."""
    answers = [row.data["summary"] for row in recorded.v2 if row.type == "compaction"]
    told = recorded.of_kind("main")[0]["request"]
    driven = Driven(policy, recorded.budget, *answers, shape=shape_of(told))
    requests: list[Any] = []
    due = 0
    for row in recorded.v2:
        if row.type == "compaction":
            due += 1
            if len(driven.told(e.HistoryCompacted)) < due:
                requests.append(driven.wire)
                await driven.offer(Moment.OVERFLOW, trigger=Trigger.OVERFLOW)
        elif row.type == "user":
            driven.engine.new_turn()
            driven.say(row.id, *row.items)
            await driven.offer(Moment.BEFORE_REQUEST)
        elif row.type == "assistant":
            requests.append(driven.wire)
            items = row.items
            driven.say(row.id, *items)
            if any(isinstance(item, FunctionCall) for item in items):
                await driven.offer(Moment.BEFORE_REQUEST)
    return driven, requests


def shape_of(request: dict[str, Any]) -> RequestShape:
    """A system prompt and tools as large as those that the fixture leaves out."""
    said = request["messages"][0]["content"]
    size = int(said.split("left out: ")[1].split(" ")[0])
    tools = request["tools"]["chars"]
    bare = len(compact([{"name": "t", "description": "", "parameters": {}}]))
    return RequestShape("s" * size, (ToolSchema("t", "d" * (tools - bare), {}),))
