"""The Chat Completions protocol: `POST /chat/completions`, spoken by most servers.

Source: the `openai` client's types of `chat.completions.create` and of its chunks; the oddities of
other servers that are taken in are named where they are.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    OtherItem,
    Part,
    Reasoning,
    Role,
    TextPart,
)
from . import errors
from .base import (
    EndpointLimits,
    GatewayError,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    StreamPart,
    TextDelta,
)
from .openai_client import Connection
from .parts import json_object, left_out
from .usage import chat_usage


class ChatGateway:
    """A model behind the Chat Completions protocol."""

    wire = "chat"

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def name(self) -> str:
        """What the screen calls it: the server."""
        return self._connection.endpoint.host

    def wire_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The `messages` array, `request.instructions` in front as a system message."""
        return chat_messages(request.items, request.instructions)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Send; yields deltas, and last of all one ModelReply. Raises GatewayError."""
        assembly = _Assembly()
        body = self._body(request, stream=True)
        try:
            async with aclosing(self._connection.events("/chat/completions", body)) as chunks:
                async for chunk in chunks:
                    for delta in assembly.take(chunk):
                        yield delta
        except GatewayError:
            # What breaks after the announced end costs at most the usage.
            if not assembly.ended:
                raise
        if not assembly.ended:
            raise errors.cut_off(self._connection.place)
        yield assembly.reply()

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Send without streaming. Raises GatewayError."""
        body = self._body(request, stream=False)
        answer = await self._connection.send("/chat/completions", body)
        if not isinstance(answer.get("choices"), list) or not answer["choices"]:
            raise errors.malformed(self._connection.place, "JSON that holds no choices")
        assembly = _Assembly()
        assembly.take(answer)
        return assembly.reply()

    async def limits(self, model: str) -> EndpointLimits | None:
        """What the endpoint says of the model's limits; None when it says nothing."""
        return await self._connection.limits(model)

    async def aclose(self) -> None:
        """Close connections."""
        await self._connection.aclose()

    def _body(self, request: ModelRequest, *, stream: bool) -> dict[str, Any]:
        body: dict[str, Any] = {"model": request.model, "messages": self.wire_messages(request)}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
            body["tool_choice"] = request.tool_choice
        if request.max_output is not None:
            # OpenAI's reasoning models refuse the older name; other servers know only that one.
            newer = self._connection.endpoint.host.endswith(("openai.com", "openai.azure.com"))
            body["max_completion_tokens" if newer else "max_tokens"] = request.max_output
        if stream:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        return body


# Conversation -> wire ----------------------------------------------------------------------------


def chat_messages(items: Sequence[Item], instructions: str = "") -> list[dict[str, Any]]:
    """The items as the `messages` array.

    A call is attached to the assistant message directly before it, else to a new one without
    content; a summary made no calls, whoever's words it is. An output stands behind the message
    that holds its call, also when something else came between: the protocol allows nothing there.
    Reasoning has no place in this protocol.
    """
    blocks: list[list[dict[str, Any]]] = []
    block_of_call: dict[str, list[dict[str, Any]]] = {}
    summary: list[dict[str, Any]] | None = None
    if instructions:
        blocks.append([{"role": "system", "content": instructions}])
    for item in items:
        match item:
            case Message():
                blocks.append([_message(item)])
            case FunctionCall():
                said = blocks[-1] if blocks and blocks[-1] is not summary else None
                if said is None or said[-1]["role"] != "assistant":
                    blocks.append([{"role": "assistant", "content": None}])
                blocks[-1][0].setdefault("tool_calls", []).append(
                    {
                        "id": item.call_id,
                        "type": "function",
                        "function": {"name": item.name, "arguments": item.arguments},
                    }
                )
                block_of_call[item.call_id] = blocks[-1]
            case FunctionCallOutput():
                message = {"role": "tool", "tool_call_id": item.call_id, "content": item.output}
                block = block_of_call.get(item.call_id)
                if block is None:
                    blocks.append([message])
                else:
                    block.append(message)
            case CompactionSummary():
                text = left_out("sealed compaction summary") if item.opaque else item.text
                summary = [{"role": item.role.value, "content": text}]
                blocks.append(summary)
            case OtherItem():
                text = item.text or left_out(item.type)
                blocks.append([{"role": "user", "content": text}])
            case Reasoning():
                continue
    return [message for block in blocks for message in block]


def _message(message: Message) -> dict[str, Any]:
    # "developer" is OpenAI's alone; it reads "system" the same way, and so does everybody else.
    role = "system" if message.role is Role.DEVELOPER else message.role.value
    if isinstance(message.content, str):
        return {"role": role, "content": message.content}
    if message.role is Role.USER:
        return {"role": role, "content": [_part(part) for part in message.content]}
    return {"role": role, "content": message.text}


def _part(part: Part) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart():
            detail = {"detail": part.detail} if part.detail else {}
            return {"type": "image_url", "image_url": {"url": part.url} | detail}
        case OpaquePart():
            own = json_object(part.json) if _OWN_PART.match(part.kind) else None
            return {"type": "text", "text": left_out(part.kind)} if own is None else own


_OWN_PART = re.compile(r"(?:text|image_url|input_audio|video_url|audio_url|file)$")


# Wire -> reply -----------------------------------------------------------------------------------


class _Call:
    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments = ""


class _Assembly:
    """Puts the chunks of a stream together; a whole answer counts as its only chunk."""

    def __init__(self) -> None:
        self._text = ""
        self._refusal = ""
        self._reasoning = ""
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}
        self._finish = ""
        self._usage: object = None
        self._model = ""
        self._id = ""
        self.ended = False

    def take(self, chunk: Mapping[str, Any]) -> list[StreamPart]:
        """Take a chunk in; returns what is to be shown."""
        self._model = str(chunk.get("model") or self._model)
        self._id = str(chunk.get("id") or self._id)
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
            # The chunk with the usage comes after the last choice, so it too marks the end.
            self.ended = self.ended or bool(chunk.get("usage"))
            return []
        choice = choices[0]
        if choice.get("finish_reason"):
            self._finish = str(choice["finish_reason"])
            self.ended = True
        delta = choice.get("delta") or choice.get("message")
        return self._take_delta(delta) if isinstance(delta, Mapping) else []

    def reply(self) -> ModelReply:
        """Everything taken in, as one reply."""
        items: list[Item] = []
        if self._reasoning:
            items.append(Reasoning(self._reasoning))
        if text := self._text or self._refusal:
            items.append(Message(Role.ASSISTANT, text))
        items.extend(FunctionCall(call.id, call.name, call.arguments) for call in self._calls)
        return ModelReply(
            tuple(items), chat_usage(self._usage), self._stop(), self._model, self._id
        )

    def _stop(self) -> StopReason:
        if self._finish in ("length", "max_tokens"):
            return StopReason.LENGTH
        if self._finish == "content_filter" or (self._refusal and not self._calls):
            return StopReason.FILTER
        # Some servers say "stop" although they call tools.
        return StopReason.TOOL_CALLS if self._calls else StopReason.STOP

    def _take_delta(self, delta: Mapping[str, Any]) -> list[StreamPart]:
        shown: list[StreamPart] = []
        # `reasoning_content` is DeepSeek's and vLLM's name, `reasoning` that of OpenRouter.
        if thought := _text_of(delta.get("reasoning_content") or delta.get("reasoning")):
            self._reasoning += thought
            shown.append(ReasoningDelta(thought))
        if text := _text_of(delta.get("content")):
            self._text += text
            shown.append(TextDelta(text))
        if refusal := _text_of(delta.get("refusal")):
            self._refusal += refusal
            shown.append(TextDelta(refusal))
        calls = delta.get("tool_calls")
        for place, piece in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(piece, Mapping):
                self._take_call(piece, place)
        return shown

    def _take_call(self, piece: Mapping[str, Any], place: int) -> None:
        index = piece.get("index")
        at = index if isinstance(index, int) else place
        given = str(piece.get("id") or "")
        call = self._open.get(at)
        # Gemini's endpoint numbers every call of a round 0: another id is another call.
        if call is None or (given and given != call.id):
            call = _Call(given or f"call_{uuid.uuid4().hex[:16]}")
            self._calls.append(call)
            self._open[at] = call
        function = piece.get("function")
        if not isinstance(function, Mapping):
            return
        call.name = call.name or str(function.get("name") or "")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments += arguments
        elif isinstance(arguments, Mapping):  # the object itself, as some older servers send it
            call.arguments = msgspec.json.encode(arguments).decode()


def _text_of(value: object) -> str:
    """A text, or the text parts of a list (Mistral)."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = (part.get("text") for part in value if isinstance(part, Mapping))
        return "".join(part for part in parts if isinstance(part, str))
    return ""
