"""The size of messages as the JSON that OpenCode would hand to its provider library.

Source: the AI SDK's model messages, which OpenCode turns into JSON only to measure them. A user
message is `{role, content: [text and file parts]}`; a step is an assistant message with its text,
reasoning and calls, and one tool message with all results of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ....items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
)
from .estimate import arguments_value, compact_json, tokens, units
from .media import address, file_name, media_type

INTERRUPTED = "[Tool execution was interrupted]"
"""What stands for the result of a call that has none."""


class Size(msgspec.Struct, frozen=True):
    """Model messages without the list around them: their code units, and how many they are."""

    units: int = 0
    count: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.units + other.units, self.count + other.count)

    @property
    def list_units(self) -> int:
        """The code units of the JSON list: brackets and commas included."""
        return self.units + max(0, self.count - 1) + 2

    @property
    def tokens(self) -> int:
        """The estimate of the JSON list."""
        return tokens(self.list_units)


def size(items: Iterable[Item]) -> Size:
    """The size of one message."""
    found = [compact_json(message) for message in model_messages(items)]
    return Size(sum(map(units, found)), len(found))


def model_messages(items: Iterable[Item]) -> list[dict[str, Any]]:
    """The items of one message, converted."""
    said: list[dict[str, Any]] = []
    calls: dict[str, str] = {}
    results: dict[str, FunctionCallOutput] = {}
    messages: list[dict[str, Any]] = []
    for item in items:
        match item:
            case Message(role=Role.ASSISTANT, content=_):
                if item.text:
                    said.append({"type": "text", "text": item.text})
            case Message():
                messages.append({"role": _role(item), "content": _content(item)})
            case CompactionSummary():
                part = {"type": "text", "text": item.text}
                messages.append({"role": item.role.value, "content": [part]})
            case Reasoning(summary=text):
                if text:
                    said.append({"type": "reasoning", "text": text})
            case FunctionCall():
                calls[item.call_id] = item.name
                said.append(
                    {
                        "type": "tool-call",
                        "toolCallId": item.call_id,
                        "toolName": item.name,
                        "input": arguments_value(item.arguments),
                    }
                )
            case FunctionCallOutput():
                results[item.call_id] = item
            case OtherItem(text=text):
                if text:
                    messages.append({"role": "user", "content": [{"type": "text", "text": text}]})
    if said:
        messages.append({"role": "assistant", "content": said})
    content = [_result(id, calls.get(id, ""), results.get(id)) for id in {**calls, **results}]
    if content:
        messages.append({"role": "tool", "content": content})
    return messages


def _role(message: Message) -> str:
    return "user" if message.role is Role.USER else "system"


def _content(message: Message) -> Any:
    if message.role is not Role.USER:
        return message.text
    if isinstance(message.content, str):
        return [{"type": "text", "text": message.content}]
    parts: list[dict[str, str]] = []
    for part in message.content:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "text": part.text})
            continue
        file = {"type": "file", "mediaType": media_type(part)}
        if name := file_name(part):
            file["filename"] = name
        parts.append({**file, "data": address(part)})
    return parts


def _result(id: str, name: str, output: FunctionCallOutput | None) -> dict[str, Any]:
    if output is None:
        value = {"type": "error-text", "value": INTERRUPTED}
    else:
        value = {"type": "error-text" if output.is_error else "text", "value": output.output}
        name = name or output.name
    return {"type": "tool-result", "toolCallId": id, "toolName": name, "output": value}
