"""Running the tool calls of one round, so that every call ends up with exactly one output.

Whatever happens (denied, failed, cancelled in the middle) the outputs are committed in the order of
the calls, and none is left without one: a history with an open call is refused by providers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace

from .. import events as e
from ..compaction.engine import Engine
from ..compaction.policy import Moment, RequestShape
from ..errors import ThresherError
from ..items import FunctionCall, FunctionCallOutput
from ..sessions.session import Session
from .approvals import ApprovalRequest, Approvals, Approver, Decision
from .tools.base import Tool, ToolContext, ToolResult
from .tools.registry import Call, execute, prepare

ABORTED = "Aborted: the user interrupted before this call finished. Nothing is known of its effect."


class RecordingApprover:
    """Puts the question and the answer on the session's record around the real approver."""

    def __init__(self, session: Session, approver: Approver) -> None:
        self._session = session
        self._approver = approver

    async def ask(self, request: ApprovalRequest) -> Decision:
        """Ask; an interrupted question is on record as such."""
        run = self._session.state.tools.get(request.call_id)
        self._session.emit(
            e.ApprovalRequested(
                call_id=request.call_id,
                name=request.tool,
                arguments=run.arguments if run else "",
                scope=request.scope,
            )
        )
        decision: Decision | None = None
        try:
            decision = await self._approver.ask(request)
        finally:
            self._session.emit(
                e.ApprovalAnswered(
                    call_id=request.call_id,
                    name=request.tool,
                    decision=decision.value if decision else "interrupted",
                )
            )
        return decision


class Batch:
    """Runs batches of calls for one agent."""

    def __init__(
        self,
        session: Session,
        engine: Engine,
        tools: Mapping[str, Tool],
        context: ToolContext,
        approvals: Approvals,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self.engine = engine
        self.tools = tools
        self.context = context
        self.approvals = approvals
        self._clock = clock

    async def run(
        self,
        calls: tuple[FunctionCall, ...],
        *,
        turn: int,
        round: int,
        shape: RequestShape,
        model: str,
    ) -> None:
        """Run all calls and commit their outputs in order. Read-only calls run side by side.

        When cancelled, the outputs that are there are committed, the others are written as
        aborted, and the cancellation goes on.
        """
        outputs: dict[str, FunctionCallOutput] = {}
        try:
            if all(self._read_only(call) for call in calls):
                await _side_by_side([self._one(call, outputs) for call in calls])
            else:
                for call in calls:
                    await self._one(call, outputs)
            for call in calls:
                output = outputs.pop(call.call_id)
                verdict = await self.engine.offer(
                    Moment.TOOL_OUTPUT, shape=shape, model=model, fresh_output=output
                )
                self._commit(verdict.output or output, turn, round)
        except ThresherError:
            # The journal cannot be written: nothing more can be put on record.
            raise
        except BaseException:
            for call in calls:
                if self._answered(call):
                    continue
                self._commit(outputs.get(call.call_id) or _aborted(call), turn, round)
            raise

    def _answered(self, call: FunctionCall) -> bool:
        run = self.session.state.tools.get(call.call_id)
        return run is not None and run.output is not None

    def _commit(self, output: FunctionCallOutput, turn: int, round: int) -> None:
        self.session.emit(e.ItemAppended(item=output, turn=turn, round=round))

    def _read_only(self, call: FunctionCall) -> bool:
        tool = self.tools.get(call.name)
        return tool is None or tool.spec.read_only

    async def _one(self, call: FunctionCall, outputs: dict[str, FunctionCallOutput]) -> None:
        ready = prepare(self.tools, call.name, call.arguments)
        if isinstance(ready, Call):
            refused = await self.approvals.allow(call.call_id, ready.tool.spec, ready.arguments)
            result = refused or await self._execute(ready, call)
        else:
            result = ready
        outputs[call.call_id] = FunctionCallOutput(
            call_id=call.call_id,
            output=result.output,
            name=call.name,
            is_error=not result.ok,
            saved=result.saved or "",
        )

    async def _execute(self, ready: Call, call: FunctionCall) -> ToolResult:
        self.session.emit(
            e.ToolStarted(call_id=call.call_id, name=call.name, arguments=call.arguments)
        )
        began = self._clock()

        def stream(text: str) -> None:
            self.session.emit(e.ToolOutput(call_id=call.call_id, text=text))

        context = replace(self.context, stream=stream, call_id=call.call_id)
        result: ToolResult | None = None
        try:
            result = await execute(ready, context)
        finally:
            self.session.emit(
                e.ToolFinished(
                    call_id=call.call_id,
                    name=call.name,
                    ok=result is not None and result.ok,
                    exit_code=result.exit_code if result else None,
                    seconds=_milliseconds(self._clock() - began),
                    size=len(result.output) + result.truncated_chars if result else 0,
                    saved=(result.saved or "") if result else "",
                )
            )
        return result


async def _side_by_side(jobs: Sequence[Coroutine[None, None, None]]) -> None:
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _milliseconds(seconds: float) -> float:
    return float(f"{seconds:.3f}")


def _aborted(call: FunctionCall) -> FunctionCallOutput:
    return FunctionCallOutput(call.call_id, ABORTED, name=call.name, is_error=True)
