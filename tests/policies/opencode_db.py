"""Recorded OpenCode sessions: the rows of its database as items, and what its endpoint received.

V1 keeps messages and their parts in `message` and `part`, V2 whole messages in `session_message`.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thresher.core.items import FunctionCall, FunctionCallOutput, Item, assistant, user
from thresher.core.models import Budget, Fact
from thresher.core.tokens import Usage

FIXTURES = Path(__file__).parent.parent / "fixtures" / "opencode"


@dataclass(frozen=True)
class Stored:
    """One message of V1: its `data`, and that of its parts in their order."""

    id: str
    data: dict[str, Any]
    parts: list[dict[str, Any]]

    @property
    def compaction(self) -> dict[str, Any] | None:
        return next((part for part in self.parts if part["type"] == "compaction"), None)

    @property
    def is_user(self) -> bool:
        return bool(self.data["role"] == "user")

    @property
    def is_summary(self) -> bool:
        return bool(self.data.get("summary"))

    @property
    def error(self) -> str:
        return str(self.data.get("error", {}).get("name", ""))

    @property
    def goes_on(self) -> bool:
        return any(part.get("metadata", {}).get("compaction_continue") for part in self.parts)

    @property
    def text(self) -> str:
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def usage(self) -> Usage | None:
        told = self.data.get("tokens")
        return _usage(told) if told and told.get("total") else None

    @property
    def items(self) -> list[Item]:
        if self.is_user:
            return [user(self.text)]
        said: list[Item] = []
        outputs: list[Item] = []
        for part in self.parts:
            if part["type"] == "text":
                said.append(assistant(part["text"]))
            elif part["type"] == "tool":
                state = part["state"]
                failed = state["status"] == "error"
                said.append(FunctionCall(part["callID"], part["tool"], compact(state["input"])))
                outputs.append(
                    FunctionCallOutput(
                        part["callID"],
                        state["error"] if failed else state["output"],
                        part["tool"],
                        is_error=failed,
                    )
                )
        return said + outputs

    @property
    def cleared(self) -> list[str]:
        """The call ids whose outputs were pruned."""
        return [
            part["callID"]
            for part in self.parts
            if part["type"] == "tool" and part["state"].get("time", {}).get("compacted")
        ]


@dataclass(frozen=True)
class Row:
    """One message of V2."""

    id: str
    type: str
    data: dict[str, Any]

    @property
    def items(self) -> list[Item]:
        if self.type == "user":
            return [user(self.data["text"])]
        said: list[Item] = []
        outputs: list[Item] = []
        for part in self.data.get("content", []):
            if part["type"] == "text":
                said.append(assistant(part["text"]))
            elif part["type"] == "tool":
                state = part["state"]
                said.append(FunctionCall(part["id"], part["name"], compact(state["input"])))
                outputs.append(FunctionCallOutput(part["id"], _output(state), part["name"]))
        return said + outputs


@dataclass(frozen=True)
class Recording:
    """One recorded session."""

    name: str
    v1: list[Stored]
    v2: list[Row]
    config: dict[str, Any]
    requests: list[dict[str, Any]] = field(repr=False)

    @property
    def budget(self) -> Budget:
        """The limits of its one model, as its configuration states them."""
        (provider,) = self.config["provider"].values()
        (model,) = provider["models"].values()
        limit = model["limit"]

        def fact(name: str) -> Fact:
            return Fact(limit.get(name), "opencode.json")

        return Budget(fact("context"), fact("input"), fact("output"), Fact(None, "not set"))

    @property
    def compaction(self) -> dict[str, Any]:
        return dict(self.config.get("compaction", {}))

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [row for row in self.requests if row["kind"] == kind]


def recording(name: str, folder: Path) -> Recording:
    """Read a fixture; its database is unpacked into `folder`."""
    where = FIXTURES / name
    path = folder / "opencode.db"
    path.write_bytes(gzip.decompress((where / "opencode.db.gz").read_bytes()))
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
        v1, v2 = list(_v1(db)), list(_v2(db))
    lines = gzip.decompress((where / "requests.jsonl.gz").read_bytes()).decode().splitlines()
    config = json.loads((where / "opencode.json").read_text())
    return Recording(name, v1, v2, config, [json.loads(line) for line in lines])


def wire(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of a request without the system prompt; no content is the same as an empty one."""
    return [
        {**message, "content": message.get("content") or ""}
        for message in messages
        if message["role"] != "system"
    ]


def block(text: str, tag: str) -> str | None:
    """What stands between the first `<tag>` and its last `</tag>`; None when there is none."""
    start, end = f"<{tag}>\n", f"\n</{tag}>"
    if start not in text:
        return None
    return text[text.index(start) + len(start) : text.rindex(end)]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _v1(db: sqlite3.Connection) -> Iterator[Stored]:
    messages = db.execute("SELECT id, data FROM message ORDER BY time_created, id").fetchall()
    for id, data in messages:
        parts = db.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (id,))
        yield Stored(id, json.loads(data), [json.loads(part) for (part,) in parts])


def _v2(db: sqlite3.Connection) -> Iterator[Row]:
    for id, kind, data in db.execute("SELECT id, type, data FROM session_message ORDER BY seq"):
        yield Row(id, kind, json.loads(data))


def _usage(told: dict[str, Any]) -> Usage:
    cache = told["cache"]
    return Usage(
        input_tokens=told["input"] + cache["read"] + cache["write"],
        output_tokens=told["output"] + told["reasoning"],
        cached_tokens=cache["read"],
        reasoning_tokens=told["reasoning"],
        total_tokens=told["total"],
    )


def _output(state: dict[str, Any]) -> str:
    texts = [part["text"] for part in state["content"] if part["type"] == "text"]
    return "\n".join(texts) if texts else compact(state["structured"])
