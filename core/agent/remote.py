"""Letting the provider compact: the request for a sealed item, with everything about it on record.

Only the Responses protocol has such a request. Retries follow Codex: at most two, and none when the
provider answered with something else than one sealed item.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from .. import events as e
from ..compaction.policy import (
    CompactRemotely,
    Failure,
    FailureKind,
    Measure,
    RequestShape,
    Summary,
)
from ..digest import wire_digests
from ..gateways.base import ErrorKind, Gateway, GatewayError, ModelRequest, Sealed
from ..sessions.session import Session
from .asking import Retrying, request_size

RETRIES = 2
"""min(the provider's own number, 2) in Codex."""

_KINDS = {
    ErrorKind.OVERFLOW: FailureKind.OVERFLOW,
    ErrorKind.TIMEOUT: FailureKind.TIMEOUT,
    ErrorKind.REFUSED: FailureKind.REFUSED,
}


@runtime_checkable
class CompactsRemotely(Protocol):
    """A gateway whose endpoint compacts by itself."""

    def compaction_messages(self, request: ModelRequest) -> list[dict[str, object]]:
        """The conversation exactly as it goes out."""
        ...

    async def compact_remotely(self, request: ModelRequest) -> Sealed:
        """Send it. Raises GatewayError."""
        ...


class RemoteCompactor:
    """Answers CompactRemotely for one session. `clock` and waits are in seconds."""

    def __init__(
        self,
        session: Session,
        gateway: Gateway,
        *,
        model: str,
        measure: Measure,
        retrying: Retrying,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.session = session
        self.gateway = gateway
        self.model = model
        self.measure = measure
        self.retrying = retrying
        self._clock = clock
        self._sleep = sleep

    async def __call__(self, ask: CompactRemotely, pass_id: str) -> Summary | Failure:
        """The sealed summary, or why there is none."""
        if not isinstance(self.gateway, CompactsRemotely):
            return Failure(
                FailureKind.UNSUPPORTED,
                f"The protocol in use ({self.gateway.wire}) has no request for a compaction by "
                'the provider: use wire = "responses", or the policy codex.',
            )
        began = self._clock()
        request = ModelRequest(
            model=ask.model or self.model,
            items=ask.items,
            instructions=ask.instructions,
            tools=ask.tools,
        )
        for attempt in range(1, RETRIES + 2):
            number = self._sent(self.gateway, request, pass_id)
            try:
                sealed = await self.gateway.compact_remotely(request)
            except GatewayError as error:
                again = error.retryable and attempt <= RETRIES
                again = again and error.kind is not ErrorKind.MALFORMED
                wait = self.retrying.wait(attempt, error.retry_after) if again else 0.0
                self.session.emit(
                    e.SummaryAttemptFailed(
                        pass_id=pass_id,
                        model=request.model,
                        kind=error.kind.value,
                        message=error.msg,
                        attempt=attempt,
                        next_step=f"again in {wait:.1f} s" if again else "no other way is left",
                    )
                )
                if not again:
                    kind = _KINDS.get(error.kind, FailureKind.PROVIDER)
                    return Failure(kind, error.msg, attempt)
                await self._sleep(wait)
            else:
                return self._answered(sealed, request, number, attempt, self._clock() - began)
        raise AssertionError("the last attempt returns")

    def _sent(self, gateway: CompactsRemotely, request: ModelRequest, pass_id: str) -> int:
        state = self.session.state
        digests, digest = wire_digests(gateway.compaction_messages(request))
        shape = RequestShape(request.instructions, request.tools)
        self.session.emit(
            e.RequestSent(
                request=state.requests + 1,
                purpose=e.Purpose.COMPACTION,
                model=request.model,
                turn=state.turn,
                round=state.rounds,
                digests=digests,
                digest=digest,
                estimate=request_size(self.measure, shape, request.items),
                pass_id=pass_id,
            )
        )
        return self.session.state.requests

    def _answered(
        self, sealed: Sealed, request: ModelRequest, number: int, attempts: int, seconds: float
    ) -> Summary:
        model = sealed.model or request.model
        if sealed.usage is not None:
            self.session.emit(
                e.UsageReported(
                    usage=sealed.usage,
                    purpose=e.Purpose.COMPACTION,
                    model=model,
                    response_id=sealed.response_id,
                    request=number,
                )
            )
        return Summary(
            text="",
            model=model,
            usage=sealed.usage,
            attempts=attempts,
            seconds=seconds,
            encrypted=sealed.encrypted,
        )
