"""What the Responses protocol answers, as a reply of ours: a whole response, or its stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..items import (
    CompactionSummary,
    FunctionCall,
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
from .base import ModelReply, ReasoningDelta, StopReason, StreamPart, TextDelta
from .usage import response_usage


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


class Assembly:
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
