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
