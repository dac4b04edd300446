"""Large tool results: which of them go to a file, and what stays of them in the context."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....context import Context
from ....items import FunctionCallOutput

_OPEN, _CLOSE = "<persisted-output>", "</persisted-output>"
_FRAME = 1_000
"""Most characters of the lines around a preview, the path included."""


def preview(text: str, path: str, chars: int) -> str:
    """What stays of a result whose whole text is in a file."""
    return (
        f"{_OPEN}\nFull output saved to: {path}\nOriginal length: {len(text)} chars\n"
        f"Preview:\n{text[:chars]}\n{_CLOSE}"
    )


def is_persisted(text: str, chars: int) -> bool:
    """Whether a text is such a preview. Its length counts too: an output that only begins like one
    is not spared."""
    return text.startswith(_OPEN) and text.endswith(_CLOSE) and len(text) <= chars + _FRAME


def file_name(call_id: str) -> str:
    """The file of a result: the call's id, of which only harmless characters are taken."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', call_id)[:70].strip('-.') or 'result'}.txt"


def newest_batch(context: Context) -> list[int]:
    """The positions of the tool results at the very end."""
    at = len(context)
    while at and isinstance(context.entries[at - 1].item, FunctionCallOutput):
        at -= 1
    return list(range(at, len(context)))


def over_budget(outputs: Sequence[str], budget: int, large: int, chars: int) -> list[int]:
    """Which of a batch's results are to be persisted, in that order: the largest first, as long
    as together they are above `budget`; those of at most `large` characters never."""
    total = sum(map(len, outputs))
    chosen: list[int] = []
    for at in sorted(range(len(outputs)), key=lambda at: -len(outputs[at])):
        size = len(outputs[at])
        if total <= budget or size <= large:
            break
        if is_persisted(outputs[at], chars) or size <= chars + _FRAME:
            continue
        chosen.append(at)
        total -= size - chars
    return chosen
