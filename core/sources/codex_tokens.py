"""Codex's own token estimate: four bytes are a token, rounded up for each item.

The rules are those of Codex CLI 0.171.0 as recorded; with them its own number after each recorded
compaction comes out exactly. Nothing is added for roles, ids or JSON. All figures are tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .base import WireItem
from .codex_items import is_model_made, is_real_user, json_of, sent_form, text_of, texts_of, type_of

BYTES_PER_TOKEN: Final = 4
IMAGE_BYTES: Final = 7373
SEALED_OVERHEAD: Final = 650
"""Bytes of sealed reasoning that are not text."""
NEW_COMPACTION_RULE: Final = (0, 171)
"""The version from which a sealed summary counts a third of its base64 length."""


def tokens_of_bytes(count: int) -> int:
    """Bytes / 4, rounded up."""
    return -(-count // BYTES_PER_TOKEN)


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
    return tokens_of_bytes(_bytes(raw, version))


def estimate_items(
    items: Iterable[WireItem], version: tuple[int, ...] = NEW_COMPACTION_RULE
) -> int:
    """Tokens of several items, each rounded up."""
    return sum(estimate_item(raw, version) for raw in items)


def unreported(history: Sequence[WireItem], version: tuple[int, ...] = NEW_COMPACTION_RULE) -> int:
    """What is in the history beyond the last reported total.

    These are the items after the last one that the model made, and sealed reasoning from before
    the last message of the user. (Whether the server has already counted that reasoning is said in
    a response header only, which is not in the file.)
    """
    made = [at for at, raw in enumerate(history) if is_model_made(raw)]
    if not made:
        return 0
    trailing = estimate_items(history[made[-1] + 1 :], version)
    spoken = [at for at, raw in enumerate(history) if is_real_user(raw)]
    if not spoken:
        return trailing
    before = (raw for raw in history[: spoken[-1]] if type_of(raw) == "reasoning")
    return trailing + estimate_items(before, version)


def _bytes(raw: WireItem, version: tuple[int, ...]) -> int:
    match type_of(raw):
        case "message":
            return _content(raw.get("content"))
        case "function_call" | "custom_tool_call":
            written = raw.get("arguments", raw.get("input"))
            space = text_of(raw.get("namespace")) or "functions"
            return _size(raw.get("name")) + len(space.encode()) + _size(written)
        case "function_call_output" | "custom_tool_call_output":
            names = sum(_size(raw.get(key)) for key in ("call_id", "name", "namespace"))
            return _content(raw.get("output")) + names
        case "reasoning":
            return _sealed(raw)
        case "compaction" | "context_compaction":
            if version < NEW_COMPACTION_RULE:
                return _sealed(raw)
            return _size(raw.get("encrypted_content")) // 3
        case (
            "additional_tools"
            | "local_shell_call"
            | "web_search_call"
            | "tool_search_call"
            | "tool_search_output"
        ):
            return len(json_of(sent_form(raw)).encode("utf-8"))
        case "image_generation_call":
            return IMAGE_BYTES
        case _:
            return 0


def _sealed(raw: WireItem) -> int:
    return max(0, _size(raw.get("encrypted_content")) * 3 // 4 - SEALED_OVERHEAD)


def _size(value: object) -> int:
    return len(value.encode("utf-8", "replace")) if isinstance(value, str) else 0


def _content(content: object) -> int:
    size = sum(_size(text) for text in texts_of(content))
    if isinstance(content, list):
        for part in content:
            match part:
                case {"type": "input_image"}:
                    size += IMAGE_BYTES
                case {"encrypted_content": str(sealed)}:
                    size += -(-len(sealed) * 9 // 16)
                case _:
                    pass
    return size
