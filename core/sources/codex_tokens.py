"""Codex's own token estimate, for items in the form in which a rollout holds them.

The rule itself is in `compaction.policies.codex.estimate`; here it is fed from the wire form, and
older versions of it are told apart. All figures are tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..compaction.policies.codex.estimate import (
    COMPACTIONS,
    DEFAULT_NAMESPACE,
    IMAGE_BYTES,
    IMAGE_RESULT,
    PAYLOAD_TYPES,
    beyond_report,
    sealed_part_size,
    sealed_size,
    sealed_summary_size,
    tokens_of_bytes,
    utf8_bytes,
)
from .base import WireItem
from .codex_items import (
    Stored,
    is_model_made,
    is_real_user,
    json_of,
    sent_form,
    text_of,
    texts_of,
    type_of,
    whole_wire,
)
from .cutting import length, size_in_bytes

BY_CONTENT: Final = (0, 157)
"""The version from which items are estimated by what they hold."""
SEALED: Final = COMPACTIONS | {"reasoning"}
NEW_COMPACTION_RULE: Final = (0, 171)
"""The version from which a sealed summary counts a third of its base64 length."""


def version_of(text: str) -> tuple[int, ...]:
    """The numbers at the start of "0.171.0-alpha.1"; an unreadable version counts as the newest."""
    numbers: list[int] = []
    for part in text.split("-")[0].split("."):
        if not (part.isascii() and part.isdigit()):
            break
        numbers.append(int(part[:9]))
    return tuple(numbers) or (1 << 30,)


def estimate_item(raw: WireItem, version: tuple[int, ...] = NEW_COMPACTION_RULE) -> int:
    """Tokens of one history item."""
    if type(raw) is dict and raw.get("type") == "message":
        return tokens_of_bytes(_content(raw.get("content")))
    if isinstance(raw, Stored) and raw.sealed:
        return tokens_of_bytes(sealed_size(raw.sealed))
    return tokens_of_bytes(_bytes(raw, version))


def estimate_items(
    items: Iterable[WireItem], version: tuple[int, ...] = NEW_COMPACTION_RULE
) -> int:
    """Tokens of several items, each rounded up."""
    return sum(estimate_item(raw, version) for raw in items)


def estimate_after(
    instructions: str, items: Iterable[WireItem], version: tuple[int, ...] = NEW_COMPACTION_RULE
) -> int:
    """What Codex puts the context at after a compaction: the base instructions and the new history
    (all of it, not cut). Versions before 0.157 count what the JSON of an item takes, as it is
    stored."""
    base = tokens_of_bytes(len(instructions.encode("utf-8", "replace")))
    if version >= BY_CONTENT:
        return base + estimate_items(items, version)
    return base + sum(
        estimate_item(raw, version)
        if type_of(raw) in SEALED
        else tokens_of_bytes(utf8_bytes(json_of(raw)))
        for raw in items
    )


def unreported(history: Sequence[WireItem], version: tuple[int, ...] = NEW_COMPACTION_RULE) -> int:
    """What is in the history beyond the last reported total."""
    return beyond_report(
        history,
        made=is_model_made,
        said=is_real_user,
        thought=lambda raw: raw.get("type") == "reasoning",
        weight=lambda raw: estimate_item(raw, version),
    )


def _bytes(raw: WireItem, version: tuple[int, ...]) -> int:
    kind = type_of(raw)
    raw = whole_wire(raw)
    match kind:
        case "message":
            return _content(raw.get("content"))
        case "function_call" | "custom_tool_call":
            written = text_of(raw.get("arguments", raw.get("input")))
            space = text_of(raw.get("namespace")) or DEFAULT_NAMESPACE
            return sum(map(size_in_bytes, (text_of(raw.get("name")), space, written)))
        case "function_call_output" | "custom_tool_call_output":
            names = (text_of(raw.get(key)) for key in ("call_id", "name", "namespace"))
            return _content(raw.get("output")) + sum(map(size_in_bytes, names))
    sealed = size_in_bytes(text_of(raw.get("encrypted_content")))
    if kind in COMPACTIONS and version >= NEW_COMPACTION_RULE:
        return sealed_summary_size(sealed)
    if kind in COMPACTIONS or kind == "reasoning":
        return sealed_size(sealed)
    if kind in PAYLOAD_TYPES:
        return utf8_bytes(json_of(sent_form(raw)))
    return IMAGE_BYTES if kind == IMAGE_RESULT else 0


def _content(content: object) -> int:
    if not isinstance(content, list):
        return sum(map(size_in_bytes, texts_of(content)))
    size = 0
    for part in content:
        if not isinstance(part, dict):
            continue
        if isinstance(text := part.get("text"), str):
            size += size_in_bytes(text)
        if part.get("type") == "input_image":
            size += IMAGE_BYTES
        elif isinstance(sealed := part.get("encrypted_content"), str):
            size += sealed_part_size(length(sealed))
    return size


__all__ = [
    "NEW_COMPACTION_RULE",
    "estimate_after",
    "estimate_item",
    "estimate_items",
    "tokens_of_bytes",
    "unreported",
    "version_of",
]  # fmt: skip
