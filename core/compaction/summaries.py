"""Summary requests: the prompts, and the history written out as text. Pure.

Prompt texts are Markdown files in `prompts/`, in our own words.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
)

_PROMPTS = Path(__file__).parent / "prompts"


@cache
def prompt(name: str) -> str:
    """The prompt `prompts/{name}.md`, without the white space around it."""
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()


def written_out(items: Iterable[Item]) -> str:
    """A history as text, one paragraph an item, oldest first, nothing cut.

    The form is that of the teaching harness: `[role] content`, `[tool call NAME] arguments`,
    `[tool result NAME] output` (`(error)` after the name of one that failed) and
    `[earlier summary] content`. It knows no reasoning, which is left out here; a picture becomes
    the word `[image]`, an item of another kind its readable text.
    """
    names: dict[str, str] = {}
    entries: list[str] = []
    for item in items:
        match item:
            case Message():
                entries.append(f"[{item.role}] {_said(item)}")
            case FunctionCall():
                names[item.call_id] = item.name
                entries.append(f"[tool call {item.name}] {item.arguments}")
            case FunctionCallOutput():
                name = item.name or names.get(item.call_id, "")
                head = f"tool result {name}".rstrip() + (" (error)" if item.is_error else "")
                entries.append(f"[{head}] {item.output}")
            case CompactionSummary():
                entries.append(f"[earlier summary] {item.content}")
            case OtherItem(text=text) if text:
                entries.append(f"[{item.type}] {text}")
            case _:
                pass
    return "\n\n".join(entries)


def _said(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    pictures = sum(isinstance(part, ImagePart) for part in message.content)
    return "\n".join(filter(None, (message.text, *["[image]"] * pictures)))
