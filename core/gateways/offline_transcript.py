"""A conversation as the offline stand-in reads it: who said what, which call gave which output.

It is read from the items of a request. The request for a summary often holds the conversation as
one text with a label at the head of each entry ("[user] ...", "[tool call bash] {...}",
"[Assistant tool call]: bash({...})"); such a text is taken apart into the same entries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    OtherItem,
    Role,
)
from .offline_seal import unseal


class Who(StrEnum):
    """What an entry is."""

    SYSTEM = "system"
    USER = "user"
    HARNESS = "harness"
    """Written in the user's name by a program: nobody typed it."""
    ASSISTANT = "assistant"
    CALL = "call"
    OUTPUT = "output"
    SUMMARY = "summary"


class Entry(msgspec.Struct, frozen=True):
    """One entry. `tool` and `arguments` are those of the call, also on its output."""

    who: Who
    text: str
    tool: str = ""
    arguments: dict[str, Any] = {}

    def argument(self, name: str) -> str:
        """A text argument; empty when there is none."""
        value = self.arguments.get(name)
        return value if isinstance(value, str) else ""


def of_items(items: Iterable[Item]) -> list[Entry]:
    """The entries of a conversation in their order; reasoning is passed over."""
    entries: list[Entry] = []
    calls: dict[str, Entry] = {}
    for item in items:
        match item:
            case Message(role=Role.USER):
                entries.append(Entry(Who.HARNESS if item.synthetic else Who.USER, item.text))
            case Message(role=Role.ASSISTANT):
                entries.append(Entry(Who.ASSISTANT, item.text))
            case Message():
                entries.append(Entry(Who.SYSTEM, item.text))
            case FunctionCall():
                entry = Entry(Who.CALL, item.text, item.name, _arguments(item.arguments))
                calls[item.call_id] = entry
                entries.append(entry)
            case FunctionCallOutput():
                call = calls.get(item.call_id)
                name, given = (call.tool, call.arguments) if call else (item.name, {})
                entries.append(Entry(Who.OUTPUT, item.output, name, given))
            case CompactionSummary():
                text = unseal(item.encrypted) if item.opaque else item.text
                entries.append(Entry(Who.SUMMARY, text))
            case OtherItem():
                entries.append(Entry(Who.HARNESS, item.text))
    return entries


def of_summary_request(items: Sequence[Item]) -> list[Entry]:
    """The conversation that a summary request is about, without the request itself."""
    entries: list[Entry] = []
    plain = of_items(items)
    last_user = max((at for at, e in enumerate(plain) if e.who in _ASKING), default=-1)
    for at, entry in enumerate(plain):
        labelled = of_text(entry.text) if entry.who in _ASKING else []
        if labelled:
            entries.extend(labelled)
        elif at != last_user and not (at == 0 and entry.who is Who.SYSTEM):
            entries.append(entry)
    return entries


_ASKING = (Who.USER, Who.HARNESS)


def of_text(text: str) -> list[Entry]:
    """The entries of a labelled text; empty when it holds fewer than two labels."""
    heads = [head for head in _LABEL.finditer(text) if _who(head["label"]) is not None]
    if len(heads) < 2:
        return []
    entries: list[Entry] = []
    waiting: list[Entry] = []
    before = text[: heads[0].start()]
    if prior := _PRIOR.search(text):
        entries.append(Entry(Who.SUMMARY, prior[1].strip()))
    elif "## findings" in before.lower():
        entries.append(Entry(Who.SUMMARY, before.strip()))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        who = _who(head["label"])
        body = text[head.end() : following.start() if following else len(text)].strip()
        match who:
            case Who.CALL:
                call = _labelled_call(head["label"], body)
                waiting.append(call)
                entries.append(call)
            case Who.OUTPUT:
                call = waiting.pop(0) if waiting else Entry(Who.CALL, "")
                entries.append(Entry(Who.OUTPUT, body, call.tool, call.arguments))
            case None:
                continue
            case _:
                entries.append(Entry(who, body))
    return entries


def rounds_since_user(entries: Sequence[Entry]) -> int:
    """How many rounds of tool calls there are after the last thing the user said."""
    start = max((at for at, entry in enumerate(entries) if entry.who is Who.USER), default=-1)
    later = entries[start + 1 :]
    return sum(
        entry.who is Who.CALL and (at == 0 or later[at - 1].who is not Who.CALL)
        for at, entry in enumerate(later)
    )


_LABEL = re.compile(r"^\[(?P<label>[A-Za-z][A-Za-z0-9_ ().-]{1,60})\]:?[ \t]?", re.MULTILINE)
_PRIOR = re.compile(r"<prior-summary>(.*?)</prior-summary>", re.DOTALL)


def _who(label: str) -> Who | None:
    name = label.lower()
    if name.startswith(("tool call", "assistant tool call")):
        return Who.CALL
    if name.startswith(("tool result", "tool error")):
        return Who.OUTPUT
    return _LABELS.get(name)


_LABELS = {
    "user": Who.USER,
    "assistant": Who.ASSISTANT,
    "system": Who.SYSTEM,
    "developer": Who.SYSTEM,
    "earlier summary": Who.SUMMARY,
    "summary": Who.SUMMARY,
    "synthetic context": Who.HARNESS,
    "system update": Who.HARNESS,
    "assistant reasoning": Who.HARNESS,
}


def _labelled_call(label: str, body: str) -> Entry:
    """`[tool call NAME] JSON` or `[Assistant tool call]: NAME(JSON)`."""
    name = re.sub(r"^(?:assistant )?tool call ?", "", label, flags=re.IGNORECASE).strip()
    arguments = body
    if not name and (found := re.match(r"(\w+)\((.*)\)$", body, re.DOTALL)):
        name, arguments = found[1], found[2]
    return Entry(Who.CALL, f"{name} {arguments}", name, _arguments(arguments))


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
