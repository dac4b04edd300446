"""Who writes a summary: a model behind a gateway, or the extractive summariser without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from ..gateways.base import (
    ErrorKind,
    Gateway,
    GatewayError,
    ModelReply,
    ModelRequest,
    StopReason,
    TextDelta,
)
from ..items import FunctionCall, Message
from ..tokens import Usage
from .offline_summary import DEFAULT_LIMIT, extract
from .policy import FailureKind, Summarise

OFFLINE = "offline (extractive)"
"""What the extractive summariser is called wherever a model's name would stand."""

OnDelta = Callable[[str], None]


class Written(msgspec.Struct, frozen=True):
    """A summary as one summariser wrote it. `usage` is None when nothing was reported or used."""

    text: str
    model: str
    usage: Usage | None = None
    response_id: str = ""


class SummaryFailed(Exception):
    """No summary came of an attempt. `passing` says that the same attempt may succeed later;
    `usage` is what it cost nevertheless, `retry_after` the provider's wish in seconds, `used` and
    `limit` the tokens it counted and takes."""

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        passing: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
        used: int | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.passing = passing
        self.retry_after = retry_after
        self.usage = usage
        self.used = used
        self.limit = limit


class Summariser(Protocol):
    """One link of the fallback chain."""

    def label(self, ask: Summarise) -> str:
        """The model's name for the record, or OFFLINE."""
        ...

    def wire(self, ask: Summarise) -> list[dict[str, Any]] | None:
        """The messages exactly as they go out; None when nothing leaves this program."""
        ...

    async def write(self, ask: Summarise, on_delta: OnDelta | None) -> Written:
        """Write it, streaming into `on_delta` if there is one. Raises SummaryFailed."""
        ...


class GatewaySummariser:
    """A model. `max_output` is the largest answer it can give, when that is known: a request for
    more would be refused (gemini-cli#7784)."""

    def __init__(self, gateway: Gateway, model: str, *, max_output: int | None = None) -> None:
        self.gateway = gateway
        self.model = model
        self.max_output = max_output

    def label(self, ask: Summarise) -> str:
        """The model that this ask goes to."""
        return ask.model or self.model

    def wire(self, ask: Summarise) -> list[dict[str, Any]]:
        """The request's messages."""
        return self.gateway.wire_messages(self._request(ask))

    async def write(self, ask: Summarise, on_delta: OnDelta | None) -> Written:
        """One request without tools."""
        request = self._request(ask)
        try:
            if on_delta is None:
                reply: ModelReply | None = await self.gateway.complete(request)
            else:
                reply = None
                async for part in self.gateway.stream(request):
                    match part:
                        case TextDelta(text=text):
                            on_delta(text)
                        case ModelReply():
                            reply = part
                        case _:
                            pass
        except GatewayError as error:
            raise SummaryFailed(
                _KINDS.get(error.kind, FailureKind.PROVIDER),
                error.msg,
                passing=error.retryable,
                retry_after=error.retry_after,
                used=error.used,
                limit=error.limit,
            ) from error
        if reply is None:
            raise SummaryFailed(
                FailureKind.PROVIDER, "The answer ended without its last part.", passing=True
            )
        return self._accept(reply, request.model)

    def _request(self, ask: Summarise) -> ModelRequest:
        wanted, most = ask.max_output, self.max_output
        if wanted is not None and most is not None:
            wanted = min(wanted, most)
        return ModelRequest(
            model=self.label(ask),
            items=ask.items,
            instructions=ask.instructions,
            tools=(),
            tool_choice="none",
            max_output=wanted,
        )

    def _accept(self, reply: ModelReply, model: str) -> Written:
        def refused(kind: FailureKind, message: str) -> SummaryFailed:
            return SummaryFailed(kind, message, usage=reply.usage)

        calls = [item.name for item in reply.items if isinstance(item, FunctionCall)]
        if calls:
            raise refused(
                FailureKind.TOOL_CALL,
                f"The model called {calls[0]} instead of writing a summary.",
            )
        if reply.stop is StopReason.LENGTH:
            raise refused(FailureKind.CUT, "The summary was cut at the model's output limit.")
        if reply.stop is StopReason.FILTER:
            raise refused(FailureKind.PROVIDER, "The provider's content filter stopped the answer.")
        text = "\n".join(item.text for item in reply.items if isinstance(item, Message)).strip()
        if not text:
            raise refused(FailureKind.EMPTY, "The model answered with an empty summary.")
        return Written(text, reply.model or model, reply.usage, reply.response_id)


_KINDS = {
    ErrorKind.OVERFLOW: FailureKind.OVERFLOW,
    ErrorKind.TIMEOUT: FailureKind.TIMEOUT,
    ErrorKind.REFUSED: FailureKind.REFUSED,
}


class OfflineSummariser:
    """The extractive summariser: `limit` bounds its text in characters."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit

    def label(self, ask: Summarise) -> str:
        """It is called what it is."""
        return OFFLINE

    def wire(self, ask: Summarise) -> None:
        """Nothing leaves this program."""

    async def write(self, ask: Summarise, on_delta: OnDelta | None) -> Written:
        """Extract. Fails only when there is nothing to extract from."""
        text = extract(ask.source, limit=self.limit, focus=ask.focus)
        if not text:
            raise SummaryFailed(
                FailureKind.EMPTY, "There is nothing in this history that could be extracted."
            )
        if on_delta is not None:
            on_delta(text)
        return Written(text, OFFLINE)
