"""What to call an entry: its role, its tool, and one line that tells it from others.

Texts come from models and tools: whoever shows them passes them through `thresher.core.text`.
"""

from __future__ import annotations

import json
from typing import Any

from ..context import Entry, EntryId
from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
    Reasoning,
    kind_of,
)
from ..state import SessionState

LONGEST = 160
"""Characters of a title."""
_LOOKED_AT = 2_000
_TELLING = (
    "path", "file_path", "filePath", "command", "cmd", "pattern", "query", "url", "prompt", "focus",
)  # fmt: skip
"""The argument that says what a call is about, the first that is there."""


def role_of(item: Item) -> str:
    """The part of the meter it counts towards: system, user, assistant, call, output, ..."""
    return kind_of(item).value


def tool_of(state: SessionState, item: Item) -> str:
    """The tool that a call names or an output comes from; empty for anything else."""
    match item:
        case FunctionCall(name=name):
            return name
        case FunctionCallOutput(name=name, call_id=call_id):
            run = None if name else state.run_of(call_id)
            return run.name if run is not None else name
        case _:
            return ""


def title_of(state: SessionState, id: EntryId) -> str:
    """One line for an entry that is or was known; empty for any other id."""
    entry = state.known.get(id)
    return "" if entry is None else item_title(state, entry.item)


def item_title(state: SessionState, item: Item) -> str:
    """One line for an item: "read_file src/a.py", "user: Fix the test"."""
    match item:
        case FunctionCall():
            return _short(f"{item.name} {subject(item.arguments)}")
        case FunctionCallOutput():
            run = state.run_of(item.call_id)
            name = item.name or (run.name if run is not None else "") or "tool"
            about = subject(run.arguments) if run is not None else ""
            failed = " failed" if item.is_error else ""
            return _short(f"{name}{failed} → {about or first_line(item.output)}")
        case Message():
            pictures = 0 if isinstance(item.content, str) else _pictures(item)
            note = f" [{pictures} image{'s' if pictures != 1 else ''}]" if pictures else ""
            said = "harness" if item.synthetic else item.role.value
            return _short(f"{said}: {first_line(item.text)}{note}")
        case Reasoning():
            return _short(f"reasoning: {first_line(item.summary) or '(sealed)'}")
        case CompactionSummary():
            said = first_line(item.content).lstrip("#*- ")
            return _short(f"summary: {said or '(sealed)'}")
        case OtherItem():
            return _short(f"{item.type}: {first_line(item.text)}")


def subject(arguments: str) -> str:
    """What a call is about, from its JSON arguments; the arguments themselves as a last resort."""
    given = decoded(arguments)
    for name in _TELLING:
        value = given.get(name)
        if isinstance(value, list):
            value = " ".join(str(part) for part in value)
        if isinstance(value, str) and value.strip():
            return _short(value)
    return "" if arguments.strip() in ("", "{}") else _short(arguments)


def decoded(arguments: str) -> dict[str, Any]:
    """The arguments as a mapping; empty when they are no JSON object."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def first_line(text: str) -> str:
    """The first line that says something."""
    return text[:_LOOKED_AT].lstrip().partition("\n")[0].rstrip()


def made_how(state: SessionState, entry: Entry) -> str:
    """What brought an appended entry into being, in words."""
    match entry.item:
        case FunctionCallOutput() as item:
            return f"by {item_title(state, item)}"
        case FunctionCall(name=name):
            return f"as a call of {name}"
        case Message(synthetic=True):
            return "by the harness"
        case Message(role=role):
            return {"user": "by the user", "assistant": "by the model"}.get(role, f"as {role} text")
        case Reasoning():
            return "as the model's reasoning"
        case CompactionSummary():
            return "as a summary"
        case OtherItem(type=type):
            return f"as {type}"


def _pictures(item: Message) -> int:
    return sum(isinstance(part, ImagePart) for part in item.content)


def _short(text: str) -> str:
    line = " ".join(text[:_LOOKED_AT].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
