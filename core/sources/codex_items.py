"""Codex's history items (Responses API, as stored in a rollout) and what they are to us.

The wire form is kept as it is wherever a request is rebuilt; this file only reads it. The rules
follow shared facts of the format (types, kinds, prefixes) as recorded from Codex CLI 0.171.0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..compaction.policies.codex.estimate import CALLS, COMPACTIONS, MODEL_MADE, PAYLOAD_TYPES
from ..compaction.policies.codex.history import Half
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
from .lines import Line

METADATA: Final = "internal_chat_message_metadata_passthrough"
"""The one field of a stored item that is not sent."""

OUTPUTS: Final = frozenset(CALLS.values())

KNOWN: Final = MODEL_MADE | OUTPUTS | {"message", "additional_tools", "agent_message"}

PREFIX_BYTES: Final = 399
PREFIX_SHA256: Final = "e9b088e794a6bb9082ac053fcc760bd818d7e720ee4bcdc72c6e480de7b7cb0e"
"""Codex puts a fixed text of this length in front of each local summary; its digest is enough to
recognise it."""

_HARNESS_STARTS: Final = (
    "# AGENTS.md instructions",
    "<environment_context>",
    "<user_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<subagent_notification>",
    "<user_shell_command>",
    "<hook_prompt",
)
"""How harness text in a user message begins, for files that do not say what each part is."""


class Stored(dict[str, Any]):
    """What is read of a wire item again and again (type, id, call id), while the rest of it stays
    in the file. `sealed` are the characters of its sealed part.

    Only comparing needs all of it; `read` gives that, or None where the file has it no more.
    """

    __slots__ = ("_line", "_read", "sealed")

    def __init__(
        self,
        read: Callable[[Line], WireItem | None],
        line: Line,
        type: str,
        id: str | None,
        call_id: str | None,
        sealed: int = 0,
    ) -> None:
        self["type"] = type
        self["id"] = id
        if call_id is not None:
            self["call_id"] = call_id
        self._read = read
        self._line = line
        self.sealed = sealed

    def whole(self) -> WireItem:
        """The item with all of its fields; as it is, where they are lost."""
        return self._read(self._line) or self


def whole_wire(raw: WireItem) -> WireItem:
    """The item with all of its fields (long texts may be cut)."""
    return raw.whole() if isinstance(raw, Stored) else raw


def text_of(value: object) -> str:
    """A str as it is, everything else as the empty text."""
    return value if isinstance(value, str) else ""


def dict_of(value: object) -> dict[str, Any]:
    """A dict as it is, everything else as an empty one."""
    return value if isinstance(value, dict) else {}


def int_of(value: object) -> int | None:
    """A whole number that can be a count; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 53:
        return None
    return value


def json_of(value: object) -> str:
    """A value as JSON text, also where it holds a number that no fixed-width integer can."""
    try:
        return msgspec.json.encode(value).decode("utf-8")
    except OverflowError:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def type_of(raw: WireItem) -> str:
    """The item's type; an item without one is a message."""
    kind = raw.get("type")
    return kind if isinstance(kind, str) and kind else "message"


def sent_form(raw: WireItem) -> WireItem:
    """The item as it goes into a request."""
    return {key: value for key, value in raw.items() if key != METADATA}


def texts_of(content: object) -> list[str]:
    """The text parts of a message or of an output, in order."""
    if isinstance(content, str):
        return [content]
    if isinstance(content, dict):
        return texts_of(content.get("content"))
    if not isinstance(content, list):
        return []
    return [
        part["text"]
        for part in content
        if isinstance(part, dict) and isinstance(part.get("text"), str)
    ]


def kinds_of(raw: WireItem) -> list[str]:
    """What each part of a message is, in the words of Codex; empty in older files."""
    kinds = dict_of(raw.get(METADATA)).get("content_item_kinds")
    return [text_of(kind) for kind in kinds] if isinstance(kinds, list) else []


def split_summary(text: str) -> tuple[str, str] | None:
    """(prefix with its newline, summary) when the text begins with Codex's summary prefix."""
    start = text[: PREFIX_BYTES + 1]
    if start.isascii() and start[PREFIX_BYTES:] != "\n":
        return None
    data = text.encode("utf-8", "replace")
    head, newline = data[:PREFIX_BYTES], data[PREFIX_BYTES : PREFIX_BYTES + 1]
    if newline != b"\n" or hashlib.sha256(head).hexdigest() != PREFIX_SHA256:
        return None
    whole = (head + newline).decode("utf-8", "replace")
    return whole, text[len(whole) :]


def is_summary(raw: WireItem) -> bool:
    """A local summary: a user message that says so, or begins with the prefix."""
    if type_of(raw) != "message" or raw.get("role") != "user":
        return False
    if "compaction.summary" in kinds_of(raw):
        return True
    texts = texts_of(raw.get("content"))
    return bool(texts) and split_summary("".join(texts)) is not None


def is_contextual(raw: WireItem) -> bool:
    """A message of the role user that the harness wrote (instructions, environment, notes)."""
    kinds = kinds_of(raw)
    if any(kinds) and set(kinds) != {"unknown"}:
        return not any(kind.startswith("user.") for kind in kinds)
    texts = texts_of(raw.get("content"))
    return any(text.lstrip().startswith(_HARNESS_STARTS) for text in texts)


def is_harness(raw: WireItem) -> bool:
    """A message that neither the user nor the model wrote, and that is no summary."""
    if type_of(raw) != "message":
        return False
    role = raw.get("role")
    return role == "developer" or (role == "user" and not is_summary(raw) and is_contextual(raw))


def is_real_user(raw: WireItem) -> bool:
    """Something that a user said: the only items that a local compaction keeps."""
    return (
        type_of(raw) == "message"
        and raw.get("role") == "user"
        and not is_summary(raw)
        and not is_contextual(raw)
    )


def is_model_made(raw: WireItem) -> bool:
    """An item that came out of a response."""
    kind = type_of(raw)
    return kind in MODEL_MADE or (kind == "message" and raw.get("role") == "assistant")


def half_of(raw: WireItem) -> Half | None:
    """What half of a pair of call and output an item is."""
    kind = type_of(raw)
    call_id = text_of(raw.get("call_id"))
    if not call_id or (kind not in CALLS and kind not in OUTPUTS):
        # An output without an id is of the harness (a goal, say), and answers no call.
        return None
    return Half(call_id, kind in OUTPUTS)


def item_of(raw: WireItem, *, summary: bool = False) -> Item:
    """Our item for a stored one. `summary` marks a message that is known to be a summary."""
    kind = type_of(raw)
    if kind == "message":
        return _message(raw, summary or is_summary(raw))
    call_id = text_of(raw.get("call_id"))
    match kind:
        case "function_call" if call_id:
            arguments = text_of(raw.get("arguments"))
            space = text_of(raw.get("namespace"))
            return FunctionCall(call_id, text_of(raw.get("name")), arguments, space)
        case "custom_tool_call" if call_id:
            return FunctionCall(call_id, text_of(raw.get("name")), text_of(raw.get("input")))
        case "local_shell_call" if call_id:
            return FunctionCall(call_id, "local_shell", json_of(raw.get("action")))
        case "tool_search_call" if call_id:
            return FunctionCall(call_id, "tool_search", json_of(raw.get("arguments")))
        case "function_call_output" | "custom_tool_call_output" if call_id:
            output = raw.get("output")
            if isinstance(output, str):
                return FunctionCallOutput(call_id, output, text_of(raw.get("name")))
            failed = dict_of(output).get("success") is False
            name = text_of(raw.get("name"))
            return FunctionCallOutput(call_id, _output_text(output), name, failed)
        case "tool_search_output" if call_id:
            return FunctionCallOutput(call_id, json_of(raw.get("tools")), "tool_search")
        case "reasoning":
            readable = [*texts_of(raw.get("summary")), *texts_of(raw.get("content"))]
            return Reasoning("\n\n".join(readable), text_of(raw.get("encrypted_content")))
        case "compaction" | "context_compaction":
            sealed = text_of(raw.get("encrypted_content"))
            return CompactionSummary(encrypted=sealed)
        case _:
            readable = texts_of(raw.get("content")) or texts_of(raw.get("output"))
            return OtherItem(kind, json_of(sent_form(raw)), "\n".join(readable))


_ROLES: Final = frozenset(role.value for role in Role)


def _message(raw: WireItem, summary: bool) -> Item:
    content = raw.get("content")
    if summary:
        whole = "".join(texts_of(content))
        prefix, text = split_summary(whole) or ("", whole)
        return CompactionSummary(text, prefix)
    role = text_of(raw.get("role"))
    if role not in _ROLES:
        return OtherItem("message", json_of(sent_form(raw)), "\n".join(texts_of(content)))
    harness = role == Role.DEVELOPER or (role == Role.USER and is_contextual(raw))
    return Message(Role(role), _parts(content), harness, text_of(raw.get("phase")))


def _parts(content: object) -> str | tuple[Part, ...]:
    if not isinstance(content, list):
        return text_of(content)
    parts = tuple(_part(part) for part in content)
    match parts:
        case (TextPart(text=text),):
            return text
        case ():
            return ""
        case _:
            return parts


def _part(part: object) -> Part:
    match part:
        case {"text": str(text)}:
            return TextPart(text)
        case {"type": "input_image", "image_url": str(url)}:
            return ImagePart(url, text_of(dict_of(part).get("detail")))
        case _:
            return OpaquePart(text_of(dict_of(part).get("type")) or "unknown", json_of(part))


def _output_text(output: object) -> str:
    if isinstance(output, dict):
        output = output.get("content", output.get("content_items", output))
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        return "" if output is None else json_of(output)
    return "\n".join(_output_part(part) for part in output)


def _output_part(part: object) -> str:
    match part:
        case {"text": str(text)}:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return json_of(part)


__all__ = [
    "CALLS", "COMPACTIONS", "KNOWN", "METADATA", "MODEL_MADE", "OUTPUTS", "PAYLOAD_TYPES",
    "Stored", "dict_of", "half_of", "int_of", "is_contextual", "is_model_made", "is_real_user",
    "is_summary", "item_of", "json_of", "kinds_of", "sent_form", "split_summary", "text_of",
    "texts_of", "type_of", "whole_wire",
]  # fmt: skip
