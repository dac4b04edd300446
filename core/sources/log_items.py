"""The messages of a logged request as our items, in each of the three dialects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..items import (
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
from .base import WireItem
from .claude_items import assistant_items, user_items
from .codex_items import dict_of, item_of, json_of, text_of, texts_of
from .request_log import Logged

_ROLES = {role.value: role for role in Role}


def items_of(found: Logged) -> tuple[Item, ...]:
    """All items of a request, in order; a system text beside them is the first one."""
    items: list[Item] = []
    if found.system and found.wire == "anthropic":
        items.append(Message(Role.SYSTEM, found.system))
    for message in found.sent:
        items.extend(_items(message, found.wire))
    return tuple(items)


def _items(message: WireItem, wire: str) -> Iterator[Item]:
    role, content = text_of(message.get("role")), message.get("content")
    if wire == "responses":
        yield item_of(message if "type" in message else {"type": "message", **message})
    elif wire == "anthropic" and role == "assistant":
        yield from assistant_items(content)
    elif wire == "anthropic" and role == "user":
        yield from user_items(content)
    else:
        yield from _chat(message, role, content)


def _chat(message: WireItem, role: str, content: object) -> Iterator[Item]:
    if role == "tool" or role == "function":
        id = text_of(message.get("tool_call_id")) or text_of(message.get("name"))
        text = text_of(content) or "\n".join(texts_of(content))
        yield FunctionCallOutput(id, text, text_of(message.get("name")))
        return
    if role not in _ROLES:
        yield OtherItem(role or "(no role)", json_of(message), "\n".join(texts_of(content)))
        return
    thought = text_of(message.get("reasoning_content")) or text_of(message.get("reasoning"))
    if thought:
        yield Reasoning(summary=thought)
    said = _content(content)
    if said:
        yield Message(_ROLES[role], said)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = dict_of(dict_of(call).get("function"))
        written = function.get("arguments")
        arguments = written if isinstance(written, str) else json_of(written)
        yield FunctionCall(
            text_of(dict_of(call).get("id")), text_of(function.get("name")), arguments
        )


def _content(content: object) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = tuple(_part(part) for part in parts)
    if len(found) == 1 and isinstance(found[0], TextPart):
        return found[0].text
    return found


def _part(part: Any) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    kind = text_of(dict_of(part).get("type"))
    match kind:
        case "text" | "input_text" | "output_text":
            return TextPart(text_of(part.get("text")))
        case "image_url":
            image = part.get("image_url")
            url = text_of(image) or text_of(dict_of(image).get("url"))
            return ImagePart(url, text_of(dict_of(image).get("detail")))
        case _:
            return OpaquePart(kind or "part", json_of(part))
