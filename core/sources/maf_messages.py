"""Stored messages of the Microsoft Agent Framework (Python), and the marks that compaction leaves.

A compaction there takes nothing away: it marks messages as excluded, with a reason, and puts a
message of its own in front of what it stands for. Both sides name each other by their ids. The
marks are those that `compaction.policies.maf` works with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..compaction.policies.maf.messages import (
    Call,
    ChatMessage,
    Content,
    Hosted,
    Media,
    Result,
    Text,
    Thought,
)
from ..compaction.policies.maf.python_messages import Marked
from ..compaction.policies.maf.python_text import result_text
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
from .base import WireItem
from .codex_items import dict_of, int_of, json_of, text_of

_ROLES: Final = {role.value: role for role in Role}


def is_message(value: object) -> bool:
    """Whether a JSON value is a stored message."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and isinstance(value.get("contents"), list)
    )


def marked(value: WireItem) -> Marked:
    """A stored message with its marks."""
    properties = dict_of(value.get("additional_properties"))
    group = dict_of(properties.get("_group"))
    return Marked(
        chat_message(value),
        excluded=properties.get("_excluded") is True,
        reason=text_of(properties.get("_exclude_reason")) or None,
        tokens=int_of(group.get("token_count")),
        summary_of_messages=_names(group.get("_summary_of_message_ids")),
        summary_of_groups=_names(group.get("_summary_of_group_ids")),
        summarized_by=text_of(group.get("_summarized_by_summary_id")) or None,
    )


def is_annotated(value: WireItem) -> bool:
    """Whether a compaction has looked at this message."""
    return bool(dict_of(dict_of(value.get("additional_properties")).get("_group")).get("id"))


def chat_message(value: WireItem) -> ChatMessage:
    """A stored message as the framework has it."""
    contents = value.get("contents")
    return ChatMessage(
        text_of(value.get("role")),
        tuple(_content(dict_of(each)) for each in contents or () if isinstance(each, dict)),
        text_of(value.get("message_id")) or None,
        text_of(value.get("author_name")),
    )


def sent_form(value: WireItem) -> WireItem:
    """A message without what is only kept beside it: marks, ids, names."""
    return {"role": value.get("role"), "contents": value.get("contents")}


def items_of(value: WireItem, *, summary: bool = False) -> Iterator[Item]:
    """The items of a message, in order: its texts are one item, each other content is its own."""
    message = chat_message(value)
    if summary:
        yield CompactionSummary(message.text, role=_ROLES.get(message.role, Role.ASSISTANT))
        return
    said: list[Part] = []
    raw = [each for each in value.get("contents") or () if isinstance(each, dict)]
    for content, stored in zip(message.contents, raw, strict=True):
        if isinstance(content, Text | Media):
            said.append(_part(content))
            continue
        if said:
            yield _message(message.role, said)
            said = []
        yield _item(content, stored)
    if said or not raw:
        yield _message(message.role, said)


def _names(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _content(value: dict[str, Any]) -> Content:
    kind = text_of(value.get("type"))
    match kind:
        case "text":
            return Text(text_of(value.get("text")))
        case "text_reasoning":
            return Thought(text_of(value.get("text")) or None, text_of(value.get("protected_data")))
        case "function_call":
            arguments = value.get("arguments")
            given = arguments if isinstance(arguments, str | dict) else json_of(arguments)
            return Call(text_of(value.get("call_id")), text_of(value.get("name")), given)
        case "function_result":
            told = value.get("result", value.get("exception"))
            return Result(text_of(value.get("call_id")), _told(told))
        case "data" | "uri":
            return Media(text_of(value.get("uri")), text_of(value.get("media_type")))
        case _:
            return Hosted(kind or "(no type)", text_of(value.get("text")))


def _told(value: object) -> str:
    try:
        return result_text(value)
    except (RecursionError, ValueError):
        return json_of(value)


def _part(content: Text | Media) -> Part:
    if isinstance(content, Text):
        return TextPart(content.text)
    if content.media_type.startswith("image"):
        return ImagePart(content.uri)
    return OpaquePart(content.media_type or "uri", json_of({"uri": content.uri}))


def _message(role: str, parts: list[Part]) -> Item:
    if role not in _ROLES:
        text = "\n".join(part.text for part in parts if isinstance(part, TextPart))
        return OtherItem(role or "(no role)", json_of({"role": role}), text)
    if all(isinstance(part, TextPart) for part in parts):
        text = "".join(part.text for part in parts if isinstance(part, TextPart))
        return Message(_ROLES[role], text)
    return Message(_ROLES[role], tuple(parts))


def _item(content: Content, stored: dict[str, Any]) -> Item:
    match content:
        case Thought():
            return Reasoning(content.text or "", content.protected)
        case Call(id=id, name=name, arguments=arguments):
            given = arguments if isinstance(arguments, str) else json_of(arguments)
            return FunctionCall(id, name, given)
        case Result(call_id=id, text=text):
            return FunctionCallOutput(id, text, is_error="exception" in stored)
        case _:
            return _hosted(stored)


def _hosted(stored: dict[str, Any]) -> Item:
    """Tools that ran elsewhere (MCP, code, shell, search) have kinds of their own."""
    kind = text_of(stored.get("type"))
    id = text_of(stored.get("call_id"))
    if kind.endswith("_tool_call") and id:
        arguments = stored.get("arguments", stored.get("inputs"))
        given = arguments if isinstance(arguments, str) else json_of(arguments)
        return FunctionCall(id, text_of(stored.get("tool_name")) or kind, given)
    if kind.endswith("_tool_result") and id:
        told = stored.get("output", stored.get("outputs"))
        return FunctionCallOutput(id, told if isinstance(told, str) else json_of(told))
    return OtherItem(kind or "(no type)", json_of(stored), text_of(stored.get("text")))
