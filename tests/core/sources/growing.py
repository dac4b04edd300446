"""Sessions of every program that can be followed, which grow by one message at a time."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thresher.core import events as e
from thresher.core.items import user
from thresher.core.sessions.session import Session

FIXTURES = Path(__file__).parents[2] / "fixtures"


class Lines:
    """A file of lines. `line_of(n, text)` makes the line of the n-th message."""

    def __init__(self, path: Path, begin: bytes, line_of: Callable[[int, str], Any]) -> None:
        self.path = path
        self._line_of = line_of
        self._count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(begin)
        self.say("the first thing")

    def line(self, text: str) -> bytes:
        """The next line."""
        self._count += 1
        return json.dumps(self._line_of(self._count, text), ensure_ascii=False).encode() + b"\n"

    def say(self, text: str) -> None:
        """Append a message with this text."""
        with self.path.open("ab") as file:
            file.write(self.line(text))


def codex(folder: Path) -> Lines:
    """A Codex rollout."""
    begin = gzip.decompress((FIXTURES / "codex" / "two_mid_turn.jsonl.gz").read_bytes())
    head = b"".join(begin.splitlines(keepends=True)[:8])

    def line(n: int, text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text}]
        message = {"type": "message", "role": "assistant", "content": content}
        stamp = "2026-11-30T04:12:00.000Z"
        return {"timestamp": stamp, "ordinal": 7 + n, "type": "response_item", "payload": message}

    return Lines(folder / "rollout-2026-11-30T04-11-32-a.jsonl", head, line)


def claude(folder: Path) -> Lines:
    """A Claude Code transcript."""

    def line(n: int, text: str) -> dict[str, Any]:
        message = {"role": "user", "content": text}
        about = {"isSidechain": False, "version": "2.1.197", "sessionId": "S"}
        parent = f"u{n - 1}" if n > 1 else None
        return {"type": "user", "uuid": f"u{n}", "parentUuid": parent, **about, "message": message}

    return Lines(folder / "S.jsonl", b"", line)


def pi(folder: Path) -> Lines:
    """A session of pi."""
    begin = gzip.decompress((FIXTURES / "pi" / "auto_manual.jsonl.gz").read_bytes())
    head = begin.splitlines(keepends=True)[:4]

    def line(n: int, text: str) -> dict[str, Any]:
        message = {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": n}
        parent = f"{n - 1:08x}" if n > 1 else "403b12bc"
        stamp = "2026-11-30T06:48:00.000Z"
        return {
            "type": "message", "id": f"{n:08x}", "parentId": parent, "timestamp": stamp,
            "message": message,
        }  # fmt: skip

    return Lines(folder / "pi.jsonl", b"".join(head), line)


def chat(folder: Path) -> Lines:
    """A log of requests."""
    said: list[dict[str, Any]] = []

    def line(n: int, text: str) -> dict[str, Any]:
        said.append({"role": "user" if n % 2 else "assistant", "content": text})
        return {"model": "m", "messages": [*said]}

    return Lines(folder / "log.jsonl", b"", line)


def otlp(folder: Path) -> Lines:
    """An export of spans; a text is the id of its span."""
    begin = gzip.decompress((FIXTURES / "otlp" / "python.jsonl.gz").read_bytes())

    def line(n: int, text: str) -> dict[str, Any]:
        yes = {"boolValue": True}
        names = ("compaction.triggered", "compaction.compacted")
        attributes: list[dict[str, Any]] = [{"key": name, "value": yes} for name in names]
        span = {"name": "compaction.compact", "spanId": text, "attributes": attributes}
        return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}

    return Lines(folder / "export.jsonl", begin, line)


class Journal:
    """A journal of our own."""

    def __init__(self, folder: Path) -> None:
        started = e.SessionStarted(session_id="", agent="thresher", title="t", model="gpt-5")
        self._session = Session.create(folder, started)
        self._session.emit(e.TurnStarted(turn=1))
        self.path = self._session.path
        self.say("the first thing")

    def say(self, text: str) -> None:
        """Append a message with this text."""
        self._session.emit(e.ItemAppended(item=user(text), turn=1))

    def close(self) -> None:
        """Give the file back."""
        self._session.close("the end")


class Maf:
    """A serialised session of Agent Framework, which is written anew each time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "session.json"
        self._said: list[dict[str, Any]] = []
        self.say("the first thing")

    def say(self, text: str) -> None:
        """Write the session with one message more."""
        content = [{"type": "text", "text": text}]
        number = len(self._said)
        self._said.append(
            {
                "type": "message",
                "role": "user",
                "contents": content,
                "additional_properties": {},
                "message_id": f"m{number}",
            }
        )
        state = {"in_memory": {"messages": self._said}}
        whole = json.dumps({"type": "session", "session_id": "s", "state": state})
        fresh = self.path.with_suffix(".new")
        fresh.write_text(whole)
        fresh.replace(self.path)


class OpenCode:
    """OpenCode's database in WAL mode, open for writing as in the running program."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "opencode.db"
        data = (FIXTURES / "opencode" / "v1-tool-output" / "opencode.db.gz").read_bytes()
        self.path.write_bytes(gzip.decompress(data))
        self._db = sqlite3.connect(self.path, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        rows = self._db.execute("SELECT aggregate_id, max(seq) FROM event GROUP BY 1").fetchall()
        self._session, self._seq = max(rows, key=lambda row: row[1])
        self.say("the first thing")

    def say(self, text: str) -> None:
        """Store an answer with this text."""
        made = 1_796_100_000_000 + self._seq
        id = f"msg_22b{self._seq:09x}001x"
        info = {"id": id, "role": "assistant", "time": {"created": made, "completed": made}}
        part = {"id": f"prt_{self._seq}", "messageID": id, "type": "text", "text": text}
        self._store("message.updated.1", {"info": {**info, "finish": "stop", "modelID": "tiny"}})
        self._store("message.part.updated.1", {"part": {**part, "time": {"end": made}}})
        self._db.commit()

    def begin_the_log_anew(self) -> Path:
        """From here on what is stored is written over the log's beginning, which keeps its size."""
        self._db.execute("PRAGMA wal_checkpoint(RESTART)")
        return self.path.with_name(f"{self.path.name}-wal")

    def close(self) -> None:
        """Let go of the database."""
        self._db.close()

    def _store(self, type: str, data: dict[str, Any]) -> None:
        self._seq += 1
        row = (f"evt_{self._seq}", self._session, self._seq, type, json.dumps(data))
        self._db.execute(
            "INSERT INTO event (id, aggregate_id, seq, type, data) VALUES (?,?,?,?,?)", row
        )


LINES: dict[str, Callable[[Path], Lines]] = {
    "codex": codex,
    "claude": claude,
    "pi": pi,
    "chat": chat,
    "otlp": otlp,
}
"""Sessions that are a file of lines."""
SOURCES: dict[str, Callable[[Path], Any]] = {
    **LINES,
    "journal": Journal,
    "maf": Maf,
    "opencode": OpenCode,
}
