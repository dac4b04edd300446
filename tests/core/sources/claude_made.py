"""Transcripts that are made for a test, record by record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from thresher.core import events as e
from thresher.core.sources.claude_events import Translator
from thresher.core.sources.lines import LineReader
from thresher.core.sources.report import state_at
from thresher.core.state import SessionState


class Made:
    """A transcript that grows. Records follow the last one unless a parent is named."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.last: str | None = None

    def add(self, kind: str, *, parent: str | None = "", **fields: Any) -> str:
        uuid = f"u{len(self.lines)}"
        parent = self.last if parent == "" else parent
        record = {"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": False}
        self.lines.append({**record, "version": "2.1.197", "sessionId": "S", **fields})
        self.last = uuid
        return uuid

    def user(self, text: str, *, parent: str | None = "", **fields: Any) -> str:
        return self.add("user", parent=parent, message={"role": "user", "content": text}, **fields)

    def result(self, call: str, text: str, *, parent: str | None = "") -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.add("user", parent=parent, message={"role": "user", "content": [block]})

    def says(
        self, id: str, *blocks: dict[str, Any], input: int = 0, parent: str | None = "", **more: Any
    ) -> str:
        usage = {"input_tokens": input, "output_tokens": 10, "cache_read_input_tokens": 0}
        message = {"id": id, "role": "assistant", "model": "claude-x", "content": list(blocks)}
        return self.add(
            "assistant", parent=parent, message={**message, "usage": usage, **more}, requestId=id
        )

    def boundary(self, **metadata: Any) -> str:
        told = {"trigger": "auto", "preTokens": 1000, **metadata}
        return self.add("system", parent=None, subtype="compact_boundary", compactMetadata=told)

    def data(self) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)

    def records(self) -> list[e.Record]:
        return read(self.data())

    def state(self) -> SessionState:
        return state_at(self.records())

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.data())
        return path


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "Bash", "input": {}}


def read(data: bytes) -> list[e.Record]:
    translator, reader = Translator(), LineReader()
    found = [record for line in reader.feed(data) for record in translator.feed(line)]
    for line in reader.finish():
        found += translator.feed(line)
    return found + translator.flush()
