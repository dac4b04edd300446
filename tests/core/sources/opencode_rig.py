"""Recorded OpenCode sessions for tests: their databases, with and without the event table."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[2] / "fixtures" / "opencode"
NAMES = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())
V1 = [name for name in NAMES if name.startswith("v1")]


def database(name: str, folder: Path) -> Path:
    """The database of a recording as a plain file."""
    path = folder / name / "opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress((FIXTURES / name / "opencode.db.gz").read_bytes()))
    return path


def changed(path: Path, *statements: str) -> Path:
    """The same file after some SQL."""
    with closing(sqlite3.connect(path)) as db:
        for statement in statements:
            db.execute(statement)
        db.commit()
    return path


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    """What a query gives."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()


def sent(name: str) -> list[dict[str, Any]]:
    """The recorded requests; `messages` without those of the system."""
    with gzip.open(FIXTURES / name / "requests.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    for each in found:
        each["messages"] = [m for m in each["request"]["messages"] if m["role"] != "system"]
    return found


def tree(path: Path, root: Path) -> Path:
    """The V1 session of a database as the JSON tree of older versions."""
    for id, made in rows(path, "SELECT id, time_created FROM session"):
        info = {"id": id, "title": "old", "directory": "/p", "version": "1.18.33"}
        _write(root / "session" / "proj" / f"{id}.json", {**info, "time": {"created": made}})
    for id, session, data in rows(path, "SELECT id, session_id, data FROM message"):
        _write(root / "message" / session / f"{id}.json", {"id": id, **json.loads(data)})
    for id, message, data in rows(path, "SELECT id, message_id, data FROM part"):
        part = {"id": id, "messageID": message, **json.loads(data)}
        _write(root / "part" / message / f"{id}.json", part)
    return root


def export(path: Path) -> dict[str, Any]:
    """The V1 session of a database as `opencode export` prints it."""
    ((id, title),) = rows(path, "SELECT id, title FROM session")
    messages = []
    query = "SELECT id, data FROM message ORDER BY time_created, id"
    for message, data in rows(path, query):
        parts = rows(path, f"SELECT id, data FROM part WHERE message_id = '{message}' ORDER BY id")
        messages.append(
            {
                "info": {"id": message, "sessionID": id, **json.loads(data)},
                "parts": [{"id": part, "messageID": message, **json.loads(d)} for part, d in parts],
            }
        )
    return {"info": {"id": id, "title": title, "directory": "/p"}, "messages": messages}


def stream(name: str, which: str, folder: Path) -> Path:
    """A recorded event stream as a plain file."""
    path = folder / which
    path.write_bytes(gzip.decompress((FIXTURES / name / f"{which}.gz").read_bytes()))
    return path


def _write(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
