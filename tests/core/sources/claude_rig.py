from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

from thresher.core.sources.claude_code import ClaudeSource

FIXTURES = Path(__file__).parents[2] / "fixtures" / "claude_code"
AGENT = "v2_1_197_subagent.agent-a7470dfd9d74177ee"
NAMES = sorted(
    path.name.removesuffix(".jsonl.gz")
    for path in FIXTURES.glob("*.jsonl.gz")
    if ".requests." not in path.name
)
REMINDER = re.compile(r"\n*<system-reminder>\n.*?\n</system-reminder>\n*\Z", re.DOTALL)
ECHOES = ("<system-reminder>", "<local-command-", "<command-", "Caveat: ", "/compact")
PROMPT = "[compaction prompt redacted"


def source(name: str) -> ClaudeSource:
    return ClaudeSource(FIXTURES / f"{name}.jsonl.gz")


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(FIXTURES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sent(name: str) -> list[dict[str, Any]]:
    path = FIXTURES / f"{name}.requests.jsonl.gz"
    return lines(f"{name}.requests") if path.exists() else []


def structure(messages: list[dict[str, Any]]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Roles, order of blocks, ids of tools and whole texts. Left out, as the recordings' notes say:
    reminders and command echoes, which is all that the file does not hold in the same words."""
    found: list[tuple[str, list[tuple[str, ...]]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kept = [each for each in map(block, blocks) if each is not None]
        if not kept:
            continue
        if found and found[-1][0] == message["role"]:
            found[-1][1].extend(kept)
        else:
            found.append((message["role"], kept))
    return found


def block(value: dict[str, Any]) -> tuple[str, ...] | None:
    match value["type"]:
        case "text":
            text = value["text"].strip()
            if text.startswith((*ECHOES, PROMPT)):
                return None
            return ("text", text)
        case "thinking":
            return ("thinking", value["thinking"])
        case "tool_use":
            return ("tool_use", value["id"], value["name"], json.dumps(value["input"]))
        case "tool_result":
            return ("tool_result", value["tool_use_id"], result(value["content"]))
        case other:
            return (other, json.dumps(value))


def result(content: Any) -> str:
    text = content if isinstance(content, str) else "\n".join(each["text"] for each in content)
    while (shorter := REMINDER.sub("", text)) != text:
        text = shorter
    return text.strip()


def by_the_rules(records: list[dict[str, Any]], leaf: str, limit: int) -> list[int]:
    """The lines that make the context, by the rules as the format's notes state them: written down
    a second time, on whole records and without anything of the reader."""
    known: dict[str, int] = {}
    parents: dict[str, str | None] = {}
    boundary = None
    for at, record in enumerate(records[:limit]):
        if (uuid := record.get("uuid")) and uuid not in known:
            known[uuid] = at
            parents[uuid] = record.get("parentUuid")
            if record.get("subtype") == "compact_boundary":
                boundary = at
    preserved: set[str] = set()
    if boundary is not None:
        metadata = records[boundary]["compactMetadata"]
        segment = metadata.get("preservedSegment") or {}
        if (head := segment.get("headUuid")) in known:
            anchor, tail = segment["anchorUuid"], segment["tailUuid"]
            preserved = set(metadata["preservedMessages"]["allUuids"])
            for uuid, parent in list(parents.items()):
                if parent == anchor and uuid not in preserved:
                    parents[uuid] = tail
            parents[head] = anchor
    way: list[str] = []
    at_uuid: str | None = leaf
    while at_uuid is not None:
        way.insert(0, at_uuid)
        at_uuid = parents.get(at_uuid)

    def still_there(uuid: str) -> bool:
        return boundary is None or known[uuid] >= boundary or uuid in preserved

    way = [uuid for uuid in way if still_there(uuid)]
    families = {response(records[known[uuid]]) for uuid in way} - {""}
    chosen = set(way)
    chosen |= {u for u, at in known.items() if response(records[at]) in families and still_there(u)}
    for uuid, at in known.items():
        parent = records[at].get("parentUuid")
        if parent in chosen and response(records[known[parent]]) and has_result(records[at]):
            chosen |= {uuid} if still_there(uuid) else set()
    return sorted(known[uuid] for uuid in chosen)


def response(record: dict[str, Any]) -> str:
    if record["type"] != "assistant" or record.get("isApiErrorMessage"):
        return ""
    return str(record["message"]["id"])


def has_result(record: dict[str, Any]) -> bool:
    content = record.get("message", {}).get("content")
    return isinstance(content, list) and any(each["type"] == "tool_result" for each in content)


def first_lines(name: str) -> dict[int, int]:
    """The line of the first record of each response, by the number of the recorded request."""
    found: dict[int, int] = {}
    for at, record in enumerate(lines(name)):
        if record["type"] == "assistant" and "requestId" in record:
            found.setdefault(int(record["requestId"][-5:]), at)
    return found
