"""The .NET design's groups: what its index divides a conversation into, and what a group weighs.

Walking the messages once, with a turn number that begins at 0:

1. system: a group of its own, of no turn
2. user: the next turn; a group of its own
3. an assistant's message with a function call: it, and all tool messages and reasoning-only
   messages that follow. Call ids are not compared
4. else an assistant's message marked as a summary: a Summary of the current turn
5. else reasoning-only messages: with the call that they lead to, if the next other message is one
6. anything else is AssistantText of the current turn, a tool message without a call included

A message without any content counts as reasoning-only, so it sticks to a neighbouring call.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from .messages import Call, ChatMessage, Content, Media, Result, Text, Thought

CountText = Callable[[str], int]
"""A tokenizer: tokens of a text."""


class GroupKind(StrEnum):
    """The kinds of groups, by the framework's names."""

    SYSTEM = "System"
    USER = "User"
    ASSISTANT_TEXT = "AssistantText"
    TOOL_CALL = "ToolCall"
    SUMMARY = "Summary"


class MessageGroup(msgspec.Struct, eq=False, gc=False):
    """Messages that stay or go together. `size` is in UTF-8 bytes; `turn` is None outside turns,
    0 before the first user message. A group keeps its messages when it is excluded."""

    kind: GroupKind
    messages: tuple[ChatMessage, ...]
    turn: int | None
    size: int
    tokens: int
    excluded: bool = False
    reason: str | None = None

    @property
    def system(self) -> bool:
        """Whether no built-in strategy may exclude it."""
        return self.kind is GroupKind.SYSTEM


def group(
    kind: GroupKind,
    messages: Sequence[ChatMessage],
    turn: int | None,
    count: CountText | None = None,
) -> MessageGroup:
    """A group with its weight."""
    size = sum(content_bytes(c) for m in messages for c in m.contents)
    tokens = size // 4 if count is None else _counted(messages, count)
    return MessageGroup(kind, tuple(messages), turn, size, tokens)


def divide(
    messages: Sequence[ChatMessage], turn: int = 0, count: CountText | None = None
) -> tuple[list[MessageGroup], int]:
    """The groups of messages that follow turn `turn`, and the turn in which they end."""
    groups: list[MessageGroup] = []
    at = 0
    while at < len(messages):
        message, end = messages[at], at + 1
        if message.role == "system":
            groups.append(group(GroupKind.SYSTEM, (message,), None, count))
        elif message.role == "user":
            turn += 1
            groups.append(group(GroupKind.USER, (message,), turn, count))
        elif message.calling:
            end = _followers(messages, end)
            groups.append(group(GroupKind.TOOL_CALL, messages[at:end], turn, count))
        elif _summary(message) or not message.only_thought:
            groups.append(group(_kind_alone(message), (message,), turn, count))
        else:
            end = _thoughts(messages, at)
            if end < len(messages) and messages[end].calling:
                end = _followers(messages, end + 1)
                groups.append(group(GroupKind.TOOL_CALL, messages[at:end], turn, count))
            else:
                groups += [group(_kind_alone(m), (m,), turn, count) for m in messages[at:end]]
        at = end
    return groups, turn


def content_bytes(content: Content) -> int:
    """What a content weighs in the framework's eyes, in bytes."""
    match content:
        case Text(text=text):
            return _bytes(text)
        case Thought(text=text, protected=protected):
            return _bytes(text or "") + _bytes(protected)
        case Call(id=id, name=name, arguments=arguments):
            return _bytes(id) + _bytes(name) + _argument_bytes(arguments)
        case Result(call_id=id, text=text):
            return _bytes(id) + _bytes(text)
        case Media():
            return _media_bytes(content)
        case _:
            return 0


def _kind_alone(message: ChatMessage) -> GroupKind:
    return GroupKind.SUMMARY if _summary(message) else GroupKind.ASSISTANT_TEXT


def _summary(message: ChatMessage) -> bool:
    return message.summary and message.role == "assistant"


def _followers(messages: Sequence[ChatMessage], at: int) -> int:
    while at < len(messages) and (messages[at].role == "tool" or messages[at].only_thought):
        at += 1
    return at


def _thoughts(messages: Sequence[ChatMessage], at: int) -> int:
    while at < len(messages) and messages[at].only_thought:
        at += 1
    return at


def _counted(messages: Sequence[ChatMessage], count: CountText) -> int:
    total = 0
    for message in messages:
        for content in message.contents:
            match content:
                case Text(text=text):
                    total += count(text)
                case Thought(text=text, protected=protected):
                    total += (count(text) if text else 0) + (count(protected) if protected else 0)
                case _:
                    total += content_bytes(content) // 4
    return total


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _argument_bytes(arguments: str | dict[str, Any]) -> int:
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            # What the framework cannot parse has no keys there; its text weighs all the same.
            return _bytes(arguments)
        arguments = parsed
    return sum(_bytes(key) + _bytes(_string_form(value)) for key, value in arguments.items())


def _string_form(value: Any) -> str:
    """A JSON value as .NET's ToString writes it."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _media_bytes(media: Media) -> int:
    rest = _bytes(media.media_type) + _bytes(media.name)
    head, comma, body = media.uri.partition(",")
    if not (comma and head.startswith("data:")):
        return _bytes(media.uri) + rest
    if not head.endswith(";base64"):
        return _bytes(body) + rest
    try:
        return len(b64decode(body, validate=False)) + rest
    except BadBase64:
        return _bytes(body) + rest
