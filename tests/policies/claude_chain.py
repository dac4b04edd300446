"""Recordings of Claude Code as contexts: what the model saw at a line of a transcript, and the
shape of a request, in the same few words on both sides."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from thresher.core.compaction.policies.claude_code_parts.texts import NOTED, RESTORED
from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Reasoning,
    Role,
    assistant,
)
from thresher.core.tokens import Usage

FIXTURES = Path(__file__).parents[1] / "fixtures" / "claude_code"
HOME = "/home/user/project/"
Record = dict[str, Any]
Shape = list[tuple[str, ...]]


@cache
def records(name: str) -> list[Record]:
    return _lines(f"{name}.jsonl.gz")


@cache
def requests(name: str) -> list[Record]:
    return _lines(f"{name}.requests.jsonl.gz")


def _lines(file: str) -> list[Record]:
    with gzip.open(FIXTURES / file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def boundaries(name: str) -> list[int]:
    return [i for i, r in enumerate(records(name)) if r.get("subtype") == "compact_boundary"]


def context_before(name: str, line: int) -> Context:
    """The context as it was when the boundary at `line` was made."""
    boundary = records(name)[line]
    chained = chain(records(name)[:line], boundary["logicalParentUuid"])
    kept = boundary["compactMetadata"].get("preservedMessages", {}).get("uuids", ())
    there = {record["uuid"] for _, record in chained}
    # An answer that a resume made up may lie beside the chain.
    beside = [
        (i, r) for i, r in enumerate(records(name)[:line]) if r.get("uuid") in {*kept} - there
    ]
    return context_of([*chained, *beside])


def chain(found: Sequence[Record], leaf: str) -> list[tuple[int, Record]]:
    """(line, record) from the last boundary to the leaf, with parallel calls and their results."""
    line_of: dict[str, int] = {}
    parent: dict[str, str | None] = {}
    for line, record in enumerate(found):
        if "uuid" in record:
            line_of.setdefault(record["uuid"], line)
            parent.setdefault(record["uuid"], record.get("parentUuid"))
    start = max(
        (i for i, r in enumerate(found) if r.get("subtype") == "compact_boundary"), default=-1
    )
    meta = found[start]["compactMetadata"] if start >= 0 else {}
    kept = set(meta.get("preservedMessages", {}).get("allUuids", ()))
    if (segment := meta.get("preservedSegment")) and segment["headUuid"] in line_of:
        anchor, tail = segment["anchorUuid"], segment["tailUuid"]
        for uuid, above in list(parent.items()):
            if above == anchor and uuid not in kept:
                parent[uuid] = tail
        parent[segment["headUuid"]] = anchor
    walked: list[str] = []
    at: str | None = leaf
    while at is not None and at in line_of and at not in walked:
        walked.append(at)
        at = parent[at]
    walked = [uuid for uuid in reversed(walked) if line_of[uuid] > start or uuid in kept]
    return _with_siblings(found, walked, line_of)


def _with_siblings(
    found: Sequence[Record], walked: list[str], line_of: dict[str, int]
) -> list[tuple[int, Record]]:
    mates: dict[str, list[str]] = {}
    results: dict[str, list[str]] = {}
    for record in found:
        if record["type"] == "assistant":
            mates.setdefault(record["message"]["id"], []).append(record["uuid"])
        elif record["type"] == "user" and _is_result(record):
            results.setdefault(record["parentUuid"], []).append(record["uuid"])
    order: dict[str, None] = {}
    for uuid in walked:
        record = found[line_of[uuid]]
        group = mates[record["message"]["id"]] if record["type"] == "assistant" else [uuid]
        order.update(dict.fromkeys(group))
        if record["type"] == "assistant":
            answers = [each for mate in group for each in results.get(mate, ())]
            order.update(dict.fromkeys(sorted(answers, key=line_of.__getitem__)))
    return [(line_of[uuid], found[line_of[uuid]]) for uuid in order]


def _is_result(record: Record) -> bool:
    content = record["message"]["content"]
    return isinstance(content, list) and any(b["type"] == "tool_result" for b in content)


def context_of(chained: Iterable[tuple[int, Record]]) -> Context:
    """A context with the lines of the transcript as ids. Files stand before what was typed last."""
    entries: list[Entry] = []
    for line, record in chained:
        for part, item in enumerate(_items(record)):
            id = EntryId(line, part)
            at = len(entries)
            while record["type"] == "attachment" and at and _typed(entries[at - 1].item):
                at -= 1
            entries.insert(at, Entry(id, item, (id,)))
    return Context(entries)


def _typed(item: Item) -> bool:
    return isinstance(item, Message) and item.role is Role.USER and RESTORED not in item.text


def _items(record: Record) -> list[Item]:
    match record["type"]:
        case "assistant" if not record.get("isApiErrorMessage"):
            return [_said(block) for block in record["message"]["content"]]
        case "user" if record.get("isCompactSummary"):
            return [CompactionSummary(f"Summary:\n{_summary(record['message']['content'])}")]
        case "user":
            return _heard(record["message"]["content"], bool(record.get("isMeta")))
        case "attachment" if record["attachment"]["type"] == "file":
            text = f"{RESTORED}{record['attachment']['filename']}\n..."
            return [Message(Role.USER, text, synthetic=True)]
        case "system" if record.get("subtype") == "local_command":
            return [Message(Role.USER, record["content"], synthetic=True)]
        case _:
            return []


def _said(block: Record) -> Item:
    match block["type"]:
        case "text":
            return assistant(block["text"])
        case "thinking":
            return Reasoning(block["thinking"])
        case _:
            arguments = json.dumps(block["input"], ensure_ascii=False, separators=(",", ":"))
            return FunctionCall(block["id"], block["name"], arguments)


def _heard(content: str | list[Record], meta: bool) -> list[Item]:
    if isinstance(content, str):
        return [Message(Role.USER, content, synthetic=meta)]
    return [
        FunctionCallOutput(b["tool_use_id"], _text(b["content"]), is_error=bool(b.get("is_error")))
        if b["type"] == "tool_result"
        else Message(Role.USER, b["text"], synthetic=meta)
        for b in content
    ]


def _text(content: str | list[Record]) -> str:
    return content if isinstance(content, str) else "".join(b.get("text", "") for b in content)


def usage_before(name: str, line: int) -> Usage:
    """The last report before a line."""
    for record in reversed(records(name)[:line]):
        if record["type"] == "assistant" and record["message"]["model"] != "<synthetic>":
            return usage_of(record["message"]["usage"])
    raise AssertionError("nothing was reported")


def usage_of(told: Record) -> Usage:
    read, written = told["cache_read_input_tokens"], told["cache_creation_input_tokens"]
    return Usage(told["input_tokens"] + read + written, told["output_tokens"])


# -- shapes ----------------------------------------------------------------------------------------

_FILE = re.compile(r'Called the Read tool with the following input: \{"file_path":"([^"]+)"\}')
_NOTE = re.compile(r"Note: (\S+) was read before")
_REMINDER = re.compile(r"\n*<system-reminder>\n(.*?)\n</system-reminder>\n*", re.DOTALL)
_COMMAND = ("<command-", "<local-command", "Caveat:", "/compact")


def shape_of_request(messages: Sequence[Record]) -> Shape:
    """A recorded request: everything but the product's own reminders and command echoes."""
    shape: Shape = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            shape.extend(_block(message["role"], block))
    return shape


def _block(role: str, block: Record) -> Shape:
    match block["type"]:
        case "tool_use":
            return [("call", block["id"])]
        case "thinking":
            return [("thinking", block["thinking"])]
        case "tool_result":
            text, files = _reminders(_text(block["content"]))
            return [("output", block["tool_use_id"], text.strip()), *files]
        case _:
            text, files = _reminders(block["text"])
            if not text or text.startswith(_COMMAND) or "compaction prompt redacted" in text:
                return files
            if text.startswith("This session is being continued"):
                return [("summary", _summary(text)), *files]
            return [*files, (role, text.strip())]


def _reminders(text: str) -> tuple[str, Shape]:
    files: Shape = []
    for reminder in _REMINDER.findall(text):
        if found := _FILE.search(reminder):
            files.append(("file", found[1]))
        elif found := _NOTE.search(reminder):
            files.append(("note", found[1]))
    return _REMINDER.sub("", text), files


def _summary(text: str) -> str:
    """The summary without the product's words around it."""
    body = text.partition("Analysis:\n" if "Analysis:\n" in text else "Summary:\n")[2]
    for behind in ("\n\nIf you need specific details", "\nPlease continue the conversation"):
        body = body.partition(behind)[0]
    return body.replace("Summary:\n", "").rstrip(".\n")


def shape_of_items(items: Iterable[Item]) -> Shape:
    """Items of ours, in the same words."""
    shape: Shape = []
    for item in items:
        match item:
            case CompactionSummary():
                shape.append(("summary", _our_summary(item.content)))
            case FunctionCall():
                shape.append(("call", item.call_id))
            case FunctionCallOutput():
                text, _ = _reminders(item.output)
                shape.append(("output", item.call_id, text.strip()))
            case Reasoning():
                shape.append(("thinking", item.summary))
            case Message() if RESTORED in item.text:
                shape.append(("file", _path(item.text, RESTORED)))
            case Message() if NOTED in item.text:
                shape.append(("note", _path(item.text, NOTED)))
            case Message() if not item.text.startswith(_COMMAND):
                shape.append((item.role.value, item.text.strip()))
    return shape


def _our_summary(text: str) -> str:
    heading = "Analysis:\n" if "Analysis:\n" in text else "Summary:\n"
    body = text.partition(heading)[2] or text
    body = body.partition("\n\n# From here on")[0]
    return body.replace("Summary:\n", "").rstrip(".\n")


def _path(text: str, before: str) -> str:
    path = text.partition(before)[2].partition("\n")[0]
    return path if path.startswith("/") else f"{HOME}{path}"
