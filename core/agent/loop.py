"""The agent: a turn is rounds, a round is one request and its tool calls.

Between the steps the compaction engine is offered the moments at which no call is open. Everything
that happens is an event of the session; the agent keeps nothing that a resume could not fold again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from .. import events as e
from ..compaction.engine import Engine, Verdict
from ..compaction.policies import registry
from ..compaction.policy import Follow, Measure, Moment, RequestShape, ToolSchema, Trigger
from ..context import EntryId
from ..debug.debugger import Debugger
from ..debug.restore import Preview, preview_restore, preview_undo
from ..errors import ThresherError
from ..events import Outcome
from ..gateways.base import ErrorKind, GatewayError, ModelReply, StopReason
from ..items import FunctionCall, Message, Role, assistant, system, user
from ..models import Budget
from ..sessions.session import Session
from ..tokens import Tokens
from ..validate import ViolationKind, validate
from .asking import Asker, request_size
from .calls import Batch
from .delegate import COMPACT, CompactTool
from .guard import RepeatGuard
from .tools.base import Tool


class TurnOutcome(StrEnum):
    """How a turn ended."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    LIMIT = "limit"


class LoopSettings(msgspec.Struct, frozen=True):
    """Bounds of one turn. `overflow_recoveries` is how often a refused request may be sent again
    after a compaction before the turn ends."""

    max_rounds: int = 50
    max_output: int | None = None
    overflow_recoveries: int = 1


_FAILURES = (Outcome.FAILED, Outcome.EMPTY)


class StopTurn(Exception):
    """Ends the turn with an outcome and a sentence; caught by `run_turn`."""

    def __init__(self, outcome: TurnOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.message = message


@dataclass
class Agent:
    """One agent on one session. Its methods are called from one event loop.

    `system_prompt` becomes the first item of a new session. `tools` are what the model may call;
    a `compact` tool is served by the loop itself, after the whole batch is committed.
    """

    session: Session
    engine: Engine
    asker: Asker
    batch: Batch
    measure: Measure
    model: str
    system_prompt: str
    tools: Mapping[str, Tool]
    settings: LoopSettings = field(default_factory=LoopSettings)
    prepare: Callable[[], Awaitable[None]] | None = None
    """Awaited before the first work: loads what must not delay the first screen."""
    changed_from: tuple[str, Budget | None] | None = None
    """The model and budget that the session worked with before, until the policy was asked."""
    debugger: Debugger | None = None
    """Holds the agent at breakpoints, when somebody attends to it."""
    _task: asyncio.Task[object] | None = field(default=None, init=False)
    _interrupted: bool = field(default=False, init=False)
    _focus: str | None = field(default=None, init=False)

    @property
    def busy(self) -> bool:
        """True while a turn or a manual compaction runs."""
        return self._task is not None and not self._task.done()

    @property
    def shape(self) -> RequestShape:
        """The parts of every request that are not items."""
        specs = (tool.spec for tool in self.tools.values())
        return RequestShape(
            tools=tuple(ToolSchema(spec.name, spec.description, spec.parameters) for spec in specs)
        )

    def begin(self) -> None:
        """Put the system prompt at the head of a session that has no items yet."""
        if not self.session.state.known and self.system_prompt:
            self.session.emit(e.ItemAppended(item=system(self.system_prompt)))

    async def run_turn(self, text: str) -> TurnOutcome:
        """Take a user's message and work until the model is done, a bound is reached, an error
        ends it or the user interrupts. The history is valid in every case."""
        turn = self.session.state.turn + 1
        self.session.emit(e.TurnStarted(turn=turn))
        outcome, message = TurnOutcome.COMPLETED, ""
        try:
            with self._running():
                await self._prepared()
                await self._turn(turn, text)
        except StopTurn as stop:
            outcome, message = stop.outcome, stop.message
        except asyncio.CancelledError:
            self._keep_partial(turn)
            outcome, message = TurnOutcome.INTERRUPTED, "interrupted"
            if not self._interrupted:
                self._finish(turn, outcome, message)
                raise
        self._finish(turn, outcome, message)
        return outcome

    async def compact(self, focus: str = "") -> Verdict | None:
        """Compact on the user's wish: now when idle, else after the running round (then None)."""
        if self.busy:
            self._focus = focus
            return None
        try:
            with self._running():
                await self._prepared()
                return await self._offer(Moment.MANUAL, Trigger.MANUAL, focus)
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            return None

    def interrupt(self) -> bool:
        """Stop what is running; False when nothing is."""
        if self._task is None or self._task.done():
            return False
        self._interrupted = True
        self._task.cancel()
        return True

    # -- the debugger --------------------------------------------------------------------------

    @property
    def size(self) -> Tokens:
        """The whole request as it would be sent now, in the measure's own basis."""
        return request_size(self.measure, self.shape, self.session.state.context.items)

    def set_policy(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Another policy from the next moment on. Raises ThresherError for what there is not."""
        self.engine.set_policy(registry.make(name, params or {}))

    def undo(self) -> Preview:
        """Take the newest compaction back: idle, or at a stop. Raises ThresherError."""
        self._require_still()
        return self._restored(preview_undo(self.session.state, self.asker.dialect))

    def restore(self, id: EntryId) -> Preview:
        """Bring one entry back into the context: idle, or at a stop. Raises ThresherError."""
        self._require_still()
        return self._restored(preview_restore(self.session.state, id, self.asker.dialect))

    def _restored(self, preview: Preview) -> Preview:
        self.session.emit(preview.event())
        # What was judged of the compactions of this turn is about another context.
        self.engine.new_turn()
        if self.debugger is not None:
            self.debugger.context_changed()
        return preview

    def _require_still(self) -> None:
        held = self.debugger is not None and self.debugger.stop is not None
        if self.busy and not held:
            raise ThresherError(
                "Agent at work", "the history can be changed when it is idle or stopped: stop it."
            )
        faults = validate(self.session.state.context.items, self.asker.dialect)
        if self.busy and any(f.kind is ViolationKind.CALL_WITHOUT_OUTPUT for f in faults):
            raise ThresherError(
                "A tool call is open", "its output comes first: step to the end of the round."
            )

    # -- the turn ------------------------------------------------------------------------------

    async def _turn(self, turn: int, text: str) -> None:
        self.engine.new_turn()
        self.begin()
        said = e.ItemAppended(item=user(text), turn=turn)
        try:
            if self.changed_from is not None:
                (model, budget), self.changed_from = self.changed_from, None
                await self._offer(Moment.MODEL_CHANGE, previous_model=model, previous_budget=budget)
            await self._offer(Moment.TURN_START)
        except StopTurn:
            # What the user said is on record, also where a system gives up the turn before it.
            self.session.emit(said)
            raise
        self.session.emit(said)
        guard = RepeatGuard()
        for round in range(1, self.settings.max_rounds + 1):
            reply = await self._request(turn, round)
            for item in reply.items:
                if isinstance(item, Message) and not item.text.strip():
                    continue
                self.session.emit(e.ItemAppended(item=item, turn=turn, round=round))
            calls = tuple(item for item in reply.items if isinstance(item, FunctionCall))
            if not calls:
                if self.debugger is not None:
                    await self.debugger.after_round()
                if await self._ended(reply.stop):
                    return
                continue
            await self.batch.run(calls, turn=turn, round=round, shape=self.shape, model=self.model)
            await self._looked_at(calls)
            if word := guard.see(calls):
                self.session.emit(e.ErrorRaised(kind="loop", message=word, where=f"turn {turn}"))
                if guard.exhausted:
                    raise StopTurn(TurnOutcome.LIMIT, word)
                self.session.emit(
                    e.ItemAppended(
                        item=Message(Role.USER, word, synthetic=True), turn=turn, round=round
                    )
                )
            if self.debugger is not None:
                await self.debugger.after_round()
            await self._after_round(calls)
        raise StopTurn(
            TurnOutcome.LIMIT,
            f"Stopped after {self.settings.max_rounds:,} rounds, the bound for one turn. "
            "Send another message to go on.",
        )

    async def _prepared(self) -> None:
        if self.prepare is not None:
            prepare, self.prepare = self.prepare, None
            await prepare()

    async def _request(self, turn: int, round: int) -> ModelReply:
        recoveries = 0
        await self._offer(Moment.BEFORE_REQUEST)
        while True:
            try:
                return await self.asker.ask(
                    self.model, self.shape, turn, round, self.settings.max_output
                )
            except GatewayError as error:
                if error.kind is not ErrorKind.OVERFLOW:
                    self._report(error)
                    await self._failing(error.msg)
                    raise StopTurn(TurnOutcome.FAILED, error.msg) from error
                self.session.emit(
                    e.ContextOverflowed(
                        message=error.msg,
                        used=error.used,
                        limit=error.limit,
                        request=self.session.state.requests,
                    )
                )
                if self.debugger is not None:
                    await self.debugger.on_overflow(error.msg)
                if recoveries >= self.settings.overflow_recoveries:
                    raise StopTurn(TurnOutcome.FAILED, self._too_large()) from error
                recoveries += 1
                verdict = await self._offer(Moment.OVERFLOW, Trigger.OVERFLOW)
                if not verdict.compacted:
                    if verdict.outcome not in _FAILURES:
                        await self._failing(self._too_large())
                    raise StopTurn(TurnOutcome.FAILED, self._too_large()) from error

    async def _ended(self, stop: StopReason) -> bool:
        if stop is StopReason.LENGTH:
            self.session.emit(
                e.Note(kind="cut", text="the answer was cut at the model's output limit")
            )
        if self._focus is not None:
            await self._manual()
        verdict = await self._offer(Moment.TURN_END)
        return verdict.follow is not Follow.RUN_AGAIN

    async def _after_round(self, calls: tuple[FunctionCall, ...]) -> None:
        asked = next((call for call in calls if call.name == COMPACT), None)
        if asked is not None:
            self._focus = CompactTool.focus_of(asked.arguments)
        if self._focus is not None:
            await self._manual()
        else:
            await self._offer(Moment.AFTER_ROUND)

    async def _manual(self) -> None:
        focus, self._focus = self._focus or "", None
        await self._offer(Moment.MANUAL, Trigger.MANUAL, focus)

    async def _offer(
        self,
        moment: Moment,
        trigger: Trigger = Trigger.AUTO,
        focus: str = "",
        *,
        previous_model: str = "",
        previous_budget: Budget | None = None,
    ) -> Verdict:
        verdict = await self.engine.offer(
            moment,
            shape=self.shape,
            model=self.model,
            trigger=trigger,
            focus=focus,
            previous_model=previous_model,
            previous_budget=previous_budget,
        )
        if verdict.outcome in _FAILURES:
            await self._failing(verdict.reason)
        if verdict.follow is Follow.WAIT and moment is not Moment.MANUAL:
            outcome = TurnOutcome.COMPLETED if verdict.compacted else TurnOutcome.FAILED
            raise StopTurn(outcome, verdict.reason)
        return verdict

    async def _looked_at(self, calls: tuple[FunctionCall, ...]) -> None:
        if self.debugger is None:
            return
        state = self.session.state
        sizes: list[tuple[EntryId, str, int]] = []
        for call in calls:
            run = state.run_of(call.call_id)
            entry = state.known.get(run.output) if run is not None and run.output else None
            if entry is not None:
                sizes.append((entry.id, call.name, self.measure.item(entry.item)))
        await self.debugger.after_outputs(sizes)

    async def _failing(self, reason: str) -> None:
        if self.debugger is not None:
            await self.debugger.on_failure(reason)

    # -- endings -------------------------------------------------------------------------------

    def _running(self) -> _Running:
        return _Running(self)

    def _finish(self, turn: int, outcome: TurnOutcome, message: str) -> None:
        self._focus = None
        self.session.emit(e.TurnFinished(turn=turn, outcome=outcome.value, message=message))

    def _keep_partial(self, turn: int) -> None:
        partial, self.asker.partial = self.asker.partial, ""
        if partial.strip():
            self.session.emit(
                e.ItemAppended(
                    item=assistant(partial), turn=turn, note="interrupted while streaming"
                )
            )

    def _report(self, error: GatewayError) -> None:
        self.session.emit(
            e.ErrorRaised(kind=error.kind.value, message=error.msg, where="model request")
        )

    def _too_large(self) -> str:
        context = self.session.state.context
        if not len(context):
            return "The request is too long for the model although the context is empty."
        largest = max(context, key=lambda entry: self.measure.item(entry.item))
        size = self.measure.item(largest.item)
        return (
            "The request is still too long for the model and nothing more can be compacted. "
            f"The largest part is {largest.id} ({largest.kind.value}, about {size:,} tokens)."
        )


class _Running:
    """Marks the current task as the one that `interrupt` cancels."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def __enter__(self) -> None:
        self.agent._interrupted = False
        self.agent._task = asyncio.current_task()

    def __exit__(self, *_: object) -> None:
        self.agent._task = None
