"""What a gateway is: a request goes in, deltas and one reply come out, errors have kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import msgspec

from ..compaction.policy import ToolSchema
from ..errors import ThresherError
from ..items import Item
from ..tokens import Usage


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model.

    `items` is the conversation in order, a system message included if there is one.
    `instructions` is system text that is not an item (empty for our own agent). With
    `tool_choice` "none" no tools may be called; `tools` is then usually empty.
    """

    model: str
    items: tuple[Item, ...]
    instructions: str = ""
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: str = "auto"
    max_output: int | None = None


class StopReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    FILTER = "filter"


class ModelReply(msgspec.Struct, frozen=True):
    """A complete answer: its items in order (reasoning, message, function calls), usage if the
    provider reported one, and why it stopped."""

    items: tuple[Item, ...]
    usage: Usage | None
    stop: StopReason
    model: str = ""
    response_id: str = ""


class Sealed(msgspec.Struct, frozen=True):
    """A history that the provider compacted: one sealed item, whose contents only it can read, and
    what that cost."""

    encrypted: str
    usage: Usage | None = None
    model: str = ""
    response_id: str = ""


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """A piece of readable reasoning."""

    text: str


StreamPart: TypeAlias = TextDelta | ReasoningDelta | ModelReply


class ErrorKind(StrEnum):
    """What went wrong at the provider, in our words."""

    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    OVERFLOW = "overflow"
    NETWORK = "network"
    SERVER = "server"
    TIMEOUT = "timeout"
    MALFORMED = "malformed"
    REFUSED = "refused"
    """The request itself was not accepted (a 4xx that is none of the others)."""


class GatewayError(ThresherError):
    """A failed request. `retry_after` is in seconds, when the provider said so; `used` and `limit`
    are the token figures of an overflow error, when it had them."""

    def __init__(
        self,
        kind: ErrorKind,
        msg: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        used: int | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(f"Model request failed ({kind.value})", msg)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.used = used
        self.limit = limit

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.kind in {
            ErrorKind.RATE_LIMIT,
            ErrorKind.NETWORK,
            ErrorKind.SERVER,
            ErrorKind.TIMEOUT,
            ErrorKind.MALFORMED,
        }


class EndpointLimits(msgspec.Struct, frozen=True):
    """What the endpoint itself says of a model; None where it says nothing."""

    context_window: int | None = None
    max_output: int | None = None
    source: str = ""
    max_input: int | None = None


class Gateway(Protocol):
    """A way to a model. `name` is what the screen calls it, `wire` its protocol."""

    @property
    def name(self) -> str: ...

    @property
    def wire(self) -> str: ...

    def wire_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The conversation exactly as it goes out, for digests and inspection."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Send; yields deltas, and last of all one ModelReply. Raises GatewayError."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Send without streaming. Raises GatewayError."""
        ...

    async def limits(self, model: str) -> EndpointLimits | None:
        """What the endpoint says of the model's limits; None when it says nothing."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
