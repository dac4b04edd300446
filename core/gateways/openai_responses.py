"""The OpenAI Responses protocol: `POST /responses`, items in, items out.

Nothing is stored at the provider (`store: false`), so the whole conversation goes with each
request, sealed reasoning included (openai-agents-python#2333 shows what relying on stored state
does). Source: the `openai` client's types of `responses.create` and of its stream events.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import msgspec

from ..items import CompactionSummary, OtherItem
from . import errors
from .base import (
    EndpointLimits,
    ErrorKind,
    GatewayError,
    ModelReply,
    ModelRequest,
    Sealed,
    StreamPart,
)
from .openai_client import Connection
from .parts import left_out
from .responses_input import response_input
from .responses_reply import Assembly, read_item, read_response

__all__ = ["ResponsesGateway", "left_out", "read_item", "read_response", "response_input"]


class ResponsesGateway:
    """A model behind the Responses protocol."""

    wire = "responses"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """What the screen calls it: the server."""
        return self._connection.endpoint.host

    def wire_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The `input` array; `request.instructions` goes beside it."""
        return response_input(request.items)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Send; yields deltas, and last of all one ModelReply. Raises GatewayError."""
        assembly = Assembly(self._connection.place)
        body = self._body(request, stream=True)
        async with aclosing(self._connection.events("/responses", body)) as events:
            async for event in events:
                delta = assembly.take(event)
                if delta is not None:
                    yield delta
                if assembly.reply is not None:
                    break
        if assembly.reply is None:
            raise errors.cut_off(self._connection.place)
        yield assembly.reply

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Send without streaming. Raises GatewayError."""
        answer = await self._connection.send("/responses", self._body(request, stream=False))
        return read_response(answer, self._connection.place)

    def compaction_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The `input` array of a request for a compaction."""
        return self.wire_messages(_with_trigger(request))

    async def compact_remotely(self, request: ModelRequest) -> Sealed:
        """Let the provider compact the conversation: the same request as any, and one more item
        that asks for it (as Codex 0.171.0 sends it to OpenAI's and Azure's endpoints).

        Of the answer only the sealed item counts. Raises GatewayError, also when the answer holds
        none or more than one.
        """
        reply: ModelReply | None = None
        async for part in self.stream(_with_trigger(request)):
            if isinstance(part, ModelReply):
                reply = part
        items = reply.items if reply is not None else ()
        sealed = [i for i in items if isinstance(i, CompactionSummary) and i.encrypted]
        if reply is None or len(sealed) != 1:
            raise GatewayError(
                ErrorKind.MALFORMED,
                f"{self.name} answered a request for a compaction with {len(sealed)} sealed items "
                "instead of one: it may not compact by itself; the policy codex needs no such "
                "endpoint.",
            )
        return Sealed(sealed[0].encrypted, reply.usage, reply.model, reply.response_id)

    async def limits(self, model: str) -> EndpointLimits | None:
        """What the endpoint says of the model's limits; None when it says nothing."""
        return await self._connection.limits(model)

    async def aclose(self) -> None:
        """Close connections."""
        await self._connection.aclose()

    def _body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        items = self.wire_messages(request)
        body: dict[str, Any] = {"model": request.model, "input": items, "store": False}
        if request.instructions:
            body["instructions"] = request.instructions
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
            body["tool_choice"] = request.tool_choice
        if request.max_output is not None:
            body["max_output_tokens"] = request.max_output
        if _REASONS.match(request.model.rpartition("/")[2]) or any(
            "encrypted_content" in item for item in items
        ):
            body["include"] = ["reasoning.encrypted_content"]
        if stream:
            body["stream"] = True
        return body


def _with_trigger(request: ModelRequest) -> ModelRequest:
    return msgspec.structs.replace(request, items=(*request.items, _TRIGGER))


_TRIGGER = OtherItem("compaction_trigger", '{"type":"compaction_trigger"}')

# Only models that reason take the wish for sealed reasoning; others refuse the request.
_REASONS = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d)|codex)(?!.*-chat)", re.IGNORECASE)
