"""Sending one request to the model, with everything said about it on the record.

The request that goes out is the only witness of what the model saw, so its ids and a digest of each
message are recorded before it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from .. import events as e
from ..compaction.policy import Measure, RequestShape
from ..digest import wire_digests
from ..gateways.base import (
    ErrorKind,
    Gateway,
    GatewayError,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
)
from ..items import Item
from ..sessions.session import Session
from ..tokens import Scope, Tokens
from ..validate import Dialect, validate


class Retrying(msgspec.Struct, frozen=True):
    """How often, and after how many seconds, a request that may succeed later is sent again."""

    attempts: int = 3
    first_wait: float = 0.5
    longest_wait: float = 30.0

    def wait(self, failed: int, retry_after: float | None) -> float:
        """Seconds to wait after the `failed`-th failure; the provider's own wish comes first."""
        if retry_after is not None:
            return min(self.longest_wait, max(0.0, retry_after))
        return float(min(self.longest_wait, self.first_wait * 2 ** (failed - 1)))


class Asker:
    """Asks the model for the next step of a session."""

    def __init__(
        self,
        session: Session,
        gateway: Gateway,
        *,
        dialect: Dialect,
        measure: Measure,
        retrying: Retrying,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.session = session
        self.gateway = gateway
        self.dialect = dialect
        self.measure = measure
        self.retrying = retrying
        self._sleep = sleep
        self.partial = ""

    async def ask(
        self, model: str, shape: RequestShape, turn: int, round: int, max_output: int | None
    ) -> ModelReply:
        """Send the context as it is now. Raises GatewayError when all attempts failed; an
        overflow is never tried again here, since the same request would be refused again."""
        failed = 0
        while True:
            try:
                return await self._once(model, shape, turn, round, max_output)
            except GatewayError as error:
                failed += 1
                if not error.retryable or failed >= self.retrying.attempts:
                    raise
                wait = self.retrying.wait(failed, error.retry_after)
                self.session.emit(
                    e.ErrorRaised(
                        kind=error.kind.value,
                        message=f"{error.msg} Trying again in {wait:.1f} s "
                        f"(attempt {failed + 1} of {self.retrying.attempts}).",
                        where="model request",
                    )
                )
                await self._sleep(wait)

    async def _once(
        self, model: str, shape: RequestShape, turn: int, round: int, max_output: int | None
    ) -> ModelReply:
        context = self.session.state.context
        request = ModelRequest(
            model=model,
            items=context.items,
            instructions=shape.instructions,
            tools=shape.tools,
            max_output=max_output,
        )
        self._check(request)
        digests, digest = wire_digests(self.gateway.wire_messages(request))
        self.session.emit(
            e.RequestSent(
                request=self.session.state.requests + 1,
                purpose=e.Purpose.TURN,
                model=model,
                turn=turn,
                round=round,
                entries=context.span(context.ids),
                digests=digests,
                digest=digest,
                estimate=request_size(self.measure, shape, context.items),
            )
        )
        self.partial = ""
        reply: ModelReply | None = None
        async for part in self.gateway.stream(request):
            match part:
                case TextDelta(text=text):
                    self.partial += text
                    self.session.emit(e.MessageDelta(text=text))
                case ReasoningDelta(text=text):
                    self.session.emit(e.MessageDelta(text=text, channel="reasoning"))
                case ModelReply():
                    reply = part
        self.partial = ""
        if reply is None:
            raise GatewayError(
                ErrorKind.MALFORMED,
                "The answer ended without its last part; nothing was kept of it.",
            )
        if reply.usage is not None:
            self.session.emit(
                e.UsageReported(
                    usage=reply.usage,
                    model=reply.model or model,
                    response_id=reply.response_id,
                    request=self.session.state.requests,
                )
            )
        return reply

    def _check(self, request: ModelRequest) -> None:
        for violation in validate(request.items, self.dialect):
            self.session.emit(
                e.ErrorRaised(
                    kind="order", message=violation.words, where="request before it is sent"
                )
            )


def request_size(measure: Measure, shape: RequestShape, items: tuple[Item, ...]) -> Tokens:
    """The whole request in the measure's own basis: items, instructions and tool schemas."""
    total = sum(measure.item(item) for item in items)
    total += fixed_size(measure, shape)
    return Tokens(total, measure.basis, Scope.REQUEST)


def fixed_size(measure: Measure, shape: RequestShape) -> int:
    """The part of every request that no compaction can remove, in tokens."""
    schemas = msgspec.json.encode(shape.tools).decode() if shape.tools else ""
    return measure.text(shape.instructions) + measure.text(schemas)
