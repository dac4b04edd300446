"""Micro: older tool results become one line each, so that call and id stay and pairs stay whole."""

from __future__ import annotations

import msgspec

from ....context import Context
from ....items import FunctionCall, FunctionCallOutput, Message, Reasoning, Role

_BEGIN, _END = "[Earlier tool result compacted.", "Re-run the tool if the full output is needed.]"
_LONGEST = 1_000
"""A placeholder with a long id and a path is still shorter than this."""


def compacted(context: Context, *, keep: int, longer_than: int) -> dict[int, FunctionCallOutput]:
    """Position -> what stands there from now on. The newest `keep` results stay, and so do all
    that the model has not answered yet."""
    results = [
        (at, entry.item)
        for at, entry in enumerate(context)
        if isinstance(entry.item, FunctionCallOutput)
    ]
    answered = _last_of_model(context)
    return {
        at: msgspec.structs.replace(item, output=text)
        for at, item in results[: max(0, len(results) - keep)]
        if at < answered
        and len(item.output) > longer_than
        and not is_placeholder(item.output)
        and len(text := placeholder(item)) < len(item.output)
    }


def placeholder(result: FunctionCallOutput) -> str:
    """The line for a result. Where its whole text is in a file, the path stays with it."""
    path = f" Full output: {result.saved}." if result.saved else ""
    return f"{_BEGIN} tool_call_id={result.call_id}.{path} {_END}"


def is_placeholder(text: str) -> bool:
    """Whether a result is such a line already, however long its id is."""
    return text.startswith(_BEGIN) and text.endswith(_END) and len(text) <= _LONGEST


def _last_of_model(context: Context) -> int:
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        if isinstance(item, FunctionCall | Reasoning):
            return at
        if isinstance(item, Message) and item.role is Role.ASSISTANT:
            return at
    return -1
