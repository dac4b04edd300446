"""Requests of Claude Code without what its transcripts do not hold in the same words.

For comparing a rebuilt request with one that was really sent: reminders (their own blocks, or
written into the last tool result), the echoes of commands, and cache marks are left out on both
sides; what then stands beside each other in the same role is one message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from .base import WireItem
from .claude_items import blocks_of, is_echo
from .codex_items import dict_of, json_of, text_of

_REMINDER: Final = re.compile(r"\s*<system-reminder>(?:(?!<system-reminder>).)*\Z", re.DOTALL)
_SAVED: Final = re.compile(r"\A(<persisted-output>Tool result saved to: )[^\n]*[/\\]")
"""The folder of a cleared result, which is not in the session."""
_OPEN: Final = "<system-reminder>"
_END: Final = "</system-reminder>"


def plain(messages: Iterable[WireItem]) -> list[WireItem]:
    """The messages in a form in which equal ones compare as equal."""
    found: list[WireItem] = []
    for message in messages:
        blocks = [
            block for raw in blocks_of(message.get("content")) if (block := _plain(raw)) is not None
        ]
        role = message.get("role")
        # In the name of the system some models are given what others get as reminders.
        if not blocks or role == "system":
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"].extend(blocks)
        else:
            found.append({"role": role, "content": blocks})
    return found


def _plain(raw: Any) -> Any:
    block = dict_of(raw)
    match block.get("type"):
        case "text":
            text = text_of(block.get("text")).strip()
            # A command that was refused is echoed as it was typed.
            left = text.startswith((_OPEN, "/")) or is_echo(text)
            return None if left or not text else {"type": "text", "text": text}
        case "thinking":
            return {"type": "thinking", "thinking": block.get("thinking")}
        case "tool_use":
            kept = {key: block.get(key) for key in ("type", "id", "name")}
            return {**kept, "input": json_of(block.get("input"))}
        case "tool_result":
            call = block.get("tool_use_id")
            content = _SAVED.sub(r"\1", _without_reminders(_text(block.get("content"))))
            return {"type": "tool_result", "tool_use_id": call, "content": content}
        case _:
            return {key: value for key, value in block.items() if key != "cache_control"}


def _text(content: Any) -> str:
    texts = [
        text_of(each.get("text")) if each.get("type") == "text" else json_of(each)
        for each in map(dict_of, blocks_of(content))
    ]
    return "\n".join(texts)


def _without_reminders(text: str) -> str:
    """The text without the reminders at its end."""
    text = text.strip()
    while text.endswith(_END) and (found := _REMINDER.search(text)) is not None:
        text = text[: found.start()]
    return text.strip()
