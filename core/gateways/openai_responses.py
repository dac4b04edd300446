"""The OpenAI Responses protocol: `POST /responses`, items in, items out.

Nothing is stored at the provider (`store: false`), so the whole conversation goes with each
request, sealed reasoning included (openai-agents-python#2333 shows what relying on stored state
does). Source: the `openai` client's types of `responses.create` and of its stream events.
"""

from __future__ import annotations

import re
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
    ErrorKind,
    GatewayError,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    Sealed,
    StopReason,
    StreamPart,
    TextDelta,
)
from .openai_client import Connection
from .usage import response_usage


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
        assembly = _Assembly(self._connection.place)
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


# Conversation -> wire ----------------------------------------------------------------------------


def response_input(items: Sequence[Item]) -> list[dict[str, Any]]:
    """The items as the `input` array, in their order.

    Left out is reasoning that cannot be taken back: unsealed (nothing is stored that its id could
    name), or with nothing of the model after it, which the provider refuses.
    """
    wire: list[dict[str, Any]] = []
    for at, item in enumerate(items):
        converted = _wire_item(item)
        if converted is not None and (
            not isinstance(item, Reasoning) or _has_follower(items, at + 1)
        ):
            wire.append(converted)
    return wire


def _has_follower(items: Sequence[Item], at: int) -> bool:
    while at < len(items) and isinstance(items[at], Reasoning):
        at += 1
    if at == len(items):
        return False
    follower = items[at]
    return isinstance(follower, FunctionCall | OtherItem) or (
        isinstance(follower, Message) and follower.role is Role.ASSISTANT
    )


def _wire_item(item: Item) -> dict[str, Any] | None:
    match item:
        case Message():
            wire: dict[str, Any] = {
                "type": "message",
                "role": item.role.value,
                "content": _content(item),
            }
            if item.phase:
                wire["phase"] = item.phase
            return wire
        case FunctionCall():
            call = {
                "type": "function_call",
                "call_id": item.call_id,
                "name": item.name,
                "arguments": item.arguments,
            }
            if item.namespace:
                call["namespace"] = item.namespace
            return call
        case FunctionCallOutput():
            return {
                "type": "function_call_output",
                "call_id": item.call_id,
                "output": item.output,
            }
        case Reasoning():
            if not item.encrypted:
                return None
            summary = [{"type": "summary_text", "text": item.summary}] if item.summary else []
            return {
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": item.encrypted,
            }
        case CompactionSummary():
            if item.opaque:
                return {"type": "compaction", "encrypted_content": item.encrypted}
            return _wire_item(Message(item.role, item.text))
        case OtherItem():
            return _json_object(item.json)


def _content(message: Message) -> list[dict[str, Any]]:
    kind = "output_text" if message.role is Role.ASSISTANT else "input_text"
    if isinstance(message.content, str):
        return [{"type": kind, "text": message.content}]
    return [_part(part, kind) for part in message.content]


def _part(part: Part, text_kind: str) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": text_kind, "text": part.text}
        case ImagePart():
            image = {"type": "input_image", "image_url": part.url}
            return image | ({"detail": part.detail} if part.detail else {})
        case OpaquePart():
            own = _json_object(part.json) if _OWN_PART.match(part.kind) else None
            return own or {"type": text_kind, "text": left_out(part.kind)}


_OWN_PART = re.compile(r"(?:input|output)_\w+$|refusal$|encrypted_content$")


def left_out(kind: str) -> str:
    """What stands in the place of a part that the protocol in use has no form for."""
    return f"[a part of kind {kind} was left out here: this protocol has no form for it]"


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None


# Wire -> reply -----------------------------------------------------------------------------------


def read_response(answer: Mapping[str, Any], place: errors.Place) -> ModelReply:
    """A whole response object. Raises GatewayError when it failed or never ended."""
    output = _dicts(answer.get("output"))
    items = [read for raw in output if (read := read_item(raw)) is not None]
    return _ended(answer, tuple(items), place, refused=any(map(_refuses, output)))


def read_item(raw: Mapping[str, Any]) -> Item | None:
    """One output item; None for one that holds nothing."""
    match raw.get("type"):
        case "message":
            return _read_message(raw)
        case "function_call":
            return FunctionCall(
                call_id=str(raw.get("call_id") or raw.get("id") or ""),
                name=str(raw.get("name") or ""),
                arguments=_argument_text(raw.get("arguments")),
                namespace=str(raw.get("namespace") or ""),
            )
        case "reasoning":
            parts = [*_dicts(raw.get("summary"))] or [*_dicts(raw.get("content"))]
            summary = "\n\n".join(text for part in parts if (text := str(part.get("text") or "")))
            encrypted = str(raw.get("encrypted_content") or "")
            return Reasoning(summary, encrypted) if summary or encrypted else None
        case "compaction" | "compaction_summary":
            return CompactionSummary(encrypted=str(raw.get("encrypted_content") or ""))
        case kind:
            return OtherItem(str(kind), msgspec.json.encode(raw).decode())


class _Assembly:
    """Puts the events of a stream together."""

    def __init__(self, place: errors.Place) -> None:
        self._place = place
        self._items: dict[int, Item] = {}
        self._arguments: dict[int, str] = {}
        self._text = ""
        self._refused = False
        self.reply: ModelReply | None = None

    def take(self, event: Mapping[str, Any]) -> StreamPart | None:
        """Take an event in; returns what is to be shown. Unknown events change nothing."""
        kind = event.get("type") or event.get("object")
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                text = str(event.get("delta") or "")
                self._text += text
                self._refused = self._refused or kind == "response.refusal.delta"
                return TextDelta(text) if text else None
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                text = str(event.get("delta") or "")
                return ReasoningDelta(text) if text else None
            case "response.function_call_arguments.delta":
                at = _index(event)
                self._arguments[at] = self._arguments.get(at, "") + str(event.get("delta") or "")
            case "response.function_call_arguments.done":
                self._arguments[_index(event)] = _argument_text(event.get("arguments"))
            case "response.output_item.done":
                self._take_item(event)
            case "response.completed" | "response.incomplete" | "response.failed":
                self._finish(event.get("response"))
            case "response":
                self._finish(event)
            case "error":
                raise errors.to_error(errors.fault_of_body(event), self._place)
        return None

    def _take_item(self, event: Mapping[str, Any]) -> None:
        raw = event.get("item")
        if not isinstance(raw, Mapping):
            return
        self._refused = self._refused or _refuses(raw)
        item = read_item(raw)
        at = _index(event, len(self._items))
        if isinstance(item, FunctionCall) and not item.arguments:
            item = msgspec.structs.replace(item, arguments=self._arguments.get(at, ""))
        if item is not None:
            self._items[at] = item

    def _finish(self, response: object) -> None:
        answer: Mapping[str, Any] = response if isinstance(response, Mapping) else {}
        items = tuple(self._items[at] for at in sorted(self._items))
        if not items and answer.get("output"):
            self.reply = read_response(answer, self._place)
            return
        if not items and self._text:
            items = (Message(Role.ASSISTANT, self._text),)
        self.reply = _ended(answer, items, self._place, refused=self._refused)


def _ended(
    answer: Mapping[str, Any], items: tuple[Item, ...], place: errors.Place, *, refused: bool
) -> ModelReply:
    status = answer.get("status") or "completed"
    if status == "failed" or (answer.get("error") and not items):
        raise errors.to_error(errors.fault_of_body({"error": answer.get("error") or {}}), place)
    if status not in ("completed", "incomplete"):
        raise errors.malformed(place, f"a response that is {str(status)[:40]} and not complete")
    if status == "incomplete":
        details = answer.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        stop = StopReason.FILTER if reason == "content_filter" else StopReason.LENGTH
    elif any(isinstance(item, FunctionCall) for item in items):
        stop = StopReason.TOOL_CALLS
    else:
        stop = StopReason.FILTER if refused else StopReason.STOP
    return ModelReply(
        items=items,
        usage=response_usage(answer.get("usage")),
        stop=stop,
        model=str(answer.get("model") or ""),
        response_id=str(answer.get("id") or ""),
    )


def _refuses(raw: Mapping[str, Any]) -> bool:
    return any(part.get("type") == "refusal" for part in _dicts(raw.get("content")))


def _read_message(raw: Mapping[str, Any]) -> Message | None:
    parts: list[Part] = []
    for part in _dicts(raw.get("content")):
        match part.get("type"):
            case "output_text" | "text" if part.get("text"):
                parts.append(TextPart(str(part["text"])))
            case "refusal" if part.get("refusal"):
                parts.append(TextPart(str(part["refusal"])))
            case "output_text" | "text" | "refusal":
                continue
            case kind:
                parts.append(OpaquePart(str(kind), msgspec.json.encode(part).decode()))
    if not parts and isinstance(raw.get("content"), str) and raw["content"]:
        parts = [TextPart(raw["content"])]
    if not parts:
        return None
    phase = str(raw.get("phase") or "")
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return Message(Role.ASSISTANT, parts[0].text, phase=phase)
    return Message(Role.ASSISTANT, tuple(parts), phase=phase)


def _argument_text(value: object) -> str:
    """Arguments stay the text that the model wrote; some servers send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _index(event: Mapping[str, Any], otherwise: int = 0) -> int:
    value = event.get("output_index")
    return value if isinstance(value, int) else otherwise
