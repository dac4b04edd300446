"""Codex's own token estimate: four bytes are a token, rounded up for each item.

The rules are those of Codex CLI 0.171.0 as recorded; with them its own number after each recorded
compaction comes out exactly. Nothing is added for roles, ids or JSON. Figures are bytes or tokens,
as each name says; the text is counted in UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from ....items import (
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

T = TypeVar("T")

BYTES_PER_TOKEN: Final = 4
IMAGE_BYTES: Final = 7373
SEALED_OVERHEAD: Final = 650
"""Bytes of sealed reasoning that are not text."""
DEFAULT_NAMESPACE: Final = "functions"

PAYLOAD_TYPES: Final = frozenset(
    {
        "additional_tools",
        "local_shell_call",
        "web_search_call",
        "tool_search_call",
        "tool_search_output",
    }
)
"""Items that weigh what their JSON weighs."""
IMAGE_RESULT: Final = "image_generation_call"
CALLS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "function_call_output",
    "tool_search_call": "tool_search_output",
}
"""The calls that have an output, and the type of it."""
COMPACTIONS: Final = frozenset({"compaction", "context_compaction"})
MODEL_MADE: Final = COMPACTIONS | {*CALLS, "reasoning", "web_search_call", IMAGE_RESULT}
"""The types that only the model makes; so are messages of the role assistant."""


def tokens_of_bytes(count: int) -> int:
    """Bytes / 4, rounded up."""
    return -(-count // BYTES_PER_TOKEN)


def utf8_bytes(text: str) -> int:
    """The length of a text in UTF-8; half of a surrogate pair counts as one byte."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def text_tokens(text: str) -> int:
    """Tokens of a text."""
    return tokens_of_bytes(utf8_bytes(text))


def call_bytes(name: str, namespace: str, arguments: str) -> int:
    """A call: its name, its namespace (or the default one) and its arguments."""
    return utf8_bytes(name) + utf8_bytes(namespace or DEFAULT_NAMESPACE) + utf8_bytes(arguments)


def sealed_bytes(base64: str) -> int:
    """Sealed reasoning, by the length of its base64."""
    return sealed_size(utf8_bytes(base64))


def sealed_size(base64: int) -> int:
    """The same, from the bytes of the base64."""
    return max(0, base64 * 3 // 4 - SEALED_OVERHEAD)


def sealed_summary_bytes(base64: str) -> int:
    """A sealed summary (since 0.171; before, it counted as reasoning)."""
    return sealed_summary_size(utf8_bytes(base64))


def sealed_summary_size(base64: int) -> int:
    """The same, from the bytes of the base64."""
    return base64 // 3


def sealed_part_bytes(base64: str) -> int:
    """A sealed part of a tool's output."""
    return sealed_part_size(len(base64))


def sealed_part_size(base64: int) -> int:
    """The same, from the characters of the base64."""
    return -(-base64 * 9 // 16)


def item_bytes(item: Item) -> int:
    """Bytes of one history item."""
    match item:
        case Message(content=content):
            if isinstance(content, str):
                return utf8_bytes(content)
            return sum(map(_part_bytes, content))
        case FunctionCall():
            return call_bytes(item.name, item.namespace, item.arguments)
        case FunctionCallOutput():
            return sum(map(utf8_bytes, (item.output, item.call_id, item.name)))
        case Reasoning():
            return sealed_bytes(item.encrypted)
        case CompactionSummary():
            return sealed_summary_bytes(item.encrypted) if item.opaque else utf8_bytes(item.text)
        case OtherItem(type=kind) if kind in PAYLOAD_TYPES:
            return utf8_bytes(item.json)
        case OtherItem(type=kind):
            return IMAGE_BYTES if kind == IMAGE_RESULT else 0


def estimate(item: Item) -> int:
    """Tokens of one history item."""
    return tokens_of_bytes(item_bytes(item))


def estimate_all(items: Iterable[Item]) -> int:
    """Tokens of several items, each rounded up."""
    return sum(map(estimate, items))


def is_real_user(item: Item) -> bool:
    """Something that a user said: neither harness text nor a summary."""
    return isinstance(item, Message) and item.role is Role.USER and not item.synthetic


def is_model_made(item: Item) -> bool:
    """An item that came out of a response."""
    match item:
        case Message():
            return item.role is Role.ASSISTANT
        case OtherItem():
            return item.type in MODEL_MADE
        case CompactionSummary():
            return item.opaque
        case _:
            return isinstance(item, FunctionCall | Reasoning)


def unreported(items: Sequence[Item]) -> int:
    """What is in a history beyond the last reported total, in tokens."""
    return beyond_report(
        items,
        made=is_model_made,
        said=is_real_user,
        thought=lambda item: isinstance(item, Reasoning),
        weight=estimate,
    )


def beyond_report(
    items: Sequence[T],
    *,
    made: Callable[[T], bool],
    said: Callable[[T], bool],
    thought: Callable[[T], bool],
    weight: Callable[[T], int],
) -> int:
    """The items after the last one that the model `made`, and the `thought` (sealed reasoning) from
    before the last thing that the user `said`; each by its `weight`, in any form of items.

    (Whether the server has already counted that reasoning is said in a response header only.)
    """
    last_made = _last(items, made)
    if last_made is None:
        return 0
    trailing = sum(weight(item) for item in items[last_made + 1 :])
    last_said = _last(items, said)
    if last_said is None:
        return trailing
    return trailing + sum(weight(item) for item in items[:last_said] if thought(item))


def _last(items: Sequence[T], wanted: Callable[[T], bool]) -> int | None:
    return next((at for at in range(len(items) - 1, -1, -1) if wanted(items[at])), None)


def _part_bytes(part: Part) -> int:
    match part:
        case TextPart(text=text):
            return utf8_bytes(text)
        case ImagePart():
            return IMAGE_BYTES
        case OpaquePart(json=json):
            return sealed_part_bytes(_sealed_text(json))


def _sealed_text(json: str) -> str:
    try:
        found = msgspec.json.decode(json)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return ""
    sealed = found.get("encrypted_content") if isinstance(found, dict) else None
    return sealed if isinstance(sealed, str) else ""
