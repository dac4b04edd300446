"""Microcompact: old tool results give way to a placeholder; the newest that fit are kept."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ....context import Context
from ....items import FunctionCallOutput
from .rounds import by_model, tokens

CLEARED = "[Old tool result content cleared]"
_SAVED = "<persisted-output>\nTool result saved to: "


class Micro(NamedTuple):
    """Which results are cleared (positions), and what is estimated to be kept and freed."""

    places: tuple[int, ...]
    kept: int
    freed: int


def old_results(context: Context, keep: int) -> Micro:
    """Walk from the newest result back: those that fit into `keep` tokens together stay, all older
    ones go. A result that the model has not answered yet always stays."""
    places: list[int] = []
    kept = freed = 0
    full, answered = False, False
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        answered = answered or by_model(item)
        if not isinstance(item, FunctionCallOutput) or is_cleared(item.output):
            continue
        size = tokens(item.output)
        full = full or (answered and kept + size > keep)
        if not full:
            kept += size
        elif len(item.output) > len(cleared(item).output):
            places.append(at)
            freed += size
    return Micro(tuple(reversed(places)), kept, freed)


def cleared(result: FunctionCallOutput) -> FunctionCallOutput:
    """The result without its content. Where the whole text is in a file, the path stays."""
    text = _note(result.saved) if result.saved else CLEARED
    return msgspec.structs.replace(result, output=text)


def is_cleared(text: str) -> bool:
    """Whether a result is a placeholder already."""
    return text == CLEARED or (text.startswith(_SAVED) and len(text) < 2_000)


def _note(path: str) -> str:
    return f"{_SAVED}{path}\n\nOpen that file if you need the content again.\n</persisted-output>"
