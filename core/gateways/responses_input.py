"""A conversation as the `input` array of the Responses protocol."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

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
from .parts import json_object, left_out


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
            return json_object(item.json)


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
            own = json_object(part.json) if _OWN_PART.match(part.kind) else None
            return own or {"type": text_kind, "text": left_out(part.kind)}


_OWN_PART = re.compile(r"(?:input|output)_\w+$|refusal$|encrypted_content$")
