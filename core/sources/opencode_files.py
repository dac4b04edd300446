"""OpenCode's sessions in plain files: the JSON trees of old versions, exports, recorded streams.

A tree is `storage/session/PROJECT/ID.json`, `storage/message/SESSION/ID.json` and
`storage/part/MESSAGE/ID.json`; an export is what `opencode export` prints; a stream is what a
server told, one event a line. Only files of the tree itself are opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ..errors import ThresherError
from .codex_items import dict_of, text_of
from .follow import Appended, FileEvent, Tail
from .lines import LineReader, is_packed, open_bytes, parse, read_lines, unreadable
from .opencode_changes import BAD, MESSAGE, PART, Change, id_time, stamp, streamed
from .opencode_fold import SessionInfo
from .opencode_rows import Rows

STORAGE: Final = "storage"
_NEWEST: Final = 3
"""Messages of a tree whose files are asked for changes all the time."""
_MOST: Final = 256 << 20
"""Bytes of an export that are read at most."""


class Tree:
    """One session of a JSON tree."""

    logged = False

    def __init__(self, root: Path, session: str = "") -> None:
        self.root = root
        self.info = _chosen(root, session)
        self._rows = Rows()
        self._asked: tuple[object, ...] = ()

    def baseline(self) -> int:
        """V2 never wrote trees."""
        return 0

    def signature(self) -> tuple[object, ...]:
        """Changes whenever a file of the session may have changed."""
        found: list[object] = []
        for path in self._files():
            try:
                stat = path.stat()
                found.append((path.name, stat.st_size, stat.st_mtime_ns))
            except OSError:
                continue
        return tuple(found)

    def changed(self) -> bool:
        """One of its newest files may have changed since this was asked last: cheap, and enough
        while it grows at its end."""
        messages = self.root / "message" / self.info.id
        newest = sorted(messages.glob("*.json"))[-_NEWEST:]
        files = [messages, *newest]
        for message in newest:
            files += sorted((self.root / "part" / message.stem).glob("*.json"))
        found: list[object] = []
        for path in files:
            with contextlib.suppress(OSError):
                stat = path.stat()
                found.append((path.name, stat.st_size, stat.st_mtime_ns))
        before, self._asked = self._asked, tuple(found)
        return before != self._asked

    def more(self) -> Iterator[Change]:
        """The changes since the last call."""
        rows = [_file_row(n, path) for n, path in enumerate(self._files())]
        yield from self._rows.news(sorted(rows, key=_order))

    def _files(self) -> Iterator[Path]:
        messages = sorted((self.root / "message" / self.info.id).glob("*.json"))
        yield from messages
        for message in messages:
            yield from sorted((self.root / "part" / message.stem).glob("*.json"))


class Export:
    """What `opencode export` printed."""

    logged = False

    def __init__(self, path: Path) -> None:
        self.path = path
        value = _document(path)
        self.info = info_of(dict_of(value.get("info")))
        self._value: dict[str, Any] | None = value

    def baseline(self) -> int:
        """Only V1 is exported."""
        return 0

    def signature(self) -> tuple[object, ...]:
        """An export does not change."""
        return ()

    def more(self) -> Iterator[Change]:
        """The changes that led to it, once."""
        value, self._value = self._value, None
        if value is not None:
            yield from Rows().news(sorted(_exported(value), key=_order))


class Stream:
    """Events of a server, one a line, as somebody recorded them; of one session."""

    logged = True

    def __init__(self, path: Path, session: str = "") -> None:
        self.path = path
        self.info = _stream_info(path, session)
        self._tail = Tail(path)
        self._reader = LineReader()
        self._near = self.info.made
        self._count = 0
        self._packed = is_packed(path)

    def baseline(self) -> int:
        """Not in a stream."""
        return 0

    def signature(self) -> tuple[object, ...]:
        """Changes whenever the file may have changed."""
        try:
            stat = self.path.stat()
        except OSError:
            return ()
        return (stat.st_ino, stat.st_size, stat.st_mtime_ns)

    def more(self) -> Iterator[Change]:
        """The changes since the last call."""
        if self._packed:
            if not self._count:
                for line in read_lines(self.path):
                    yield from self._taken(line.value, line.fault)
            return
        while not self._tail.ended and (change := self._tail.look()) is not None:
            match change:
                case Appended(data=data):
                    for line in self._reader.feed(data):
                        yield from self._taken(line.value, line.fault)
                case FileEvent(text=text, at=at):
                    yield Change(self._count, at, BAD, {}, text)
        for line in self._reader.whole():
            yield from self._taken(line.value, line.fault)

    def _taken(self, value: dict[str, Any] | None, fault: str) -> Iterator[Change]:
        n = self._count
        if value is None:
            self._count += 1
            yield Change(n, 0.0, BAD, {}, f"event {n + 1} is left out: {fault}")
            return
        change, session, _ = streamed(value, n, self._near)
        if change is None or (session and session != self.info.id):
            return
        self._count += 1
        self._near = change.at or self._near
        yield msgspec.structs.replace(change, n=n, fault=fault)


def tree_root(path: Path) -> Path | None:
    """The root of the JSON tree that a folder is, or is the data folder of."""
    for root in (path, path / STORAGE):
        if (root / "session").is_dir() and (root / "message").is_dir():
            return root
    return None


def tree_of(path: Path) -> tuple[Path, str] | None:
    """The root and the session, when this file is the session file of a tree."""
    if path.suffix != ".json" or len(path.parents) < 3 or path.parents[1].name != "session":
        return None
    root = path.parents[2]
    return (root, path.stem) if (root / "message").is_dir() else None


def tree_sessions(root: Path) -> list[tuple[SessionInfo, Path]]:
    """The sessions of a tree and their files, the one last active first; what cannot be read is
    left out."""
    found: list[tuple[SessionInfo, Path]] = []
    for path in (root / "session").glob("*/*.json"):
        try:
            value, _ = parse(path.read_bytes())
        except OSError:
            continue
        if value is not None:
            info = info_of(value)
            info = info if info.id == path.stem else msgspec.structs.replace(info, id=path.stem)
            found.append((info, path))
    return sorted(found, key=lambda pair: (-pair[0].last, pair[0].id))


def info_of(value: dict[str, Any]) -> SessionInfo:
    """A session's own JSON."""
    times = dict_of(value.get("time"))
    return SessionInfo(
        id=text_of(value.get("id")),
        title=text_of(value.get("title")),
        directory=text_of(value.get("directory")),
        model=text_of(dict_of(value.get("model")).get("id")),
        version=text_of(value.get("version")),
        parent=text_of(value.get("parentID")),
        made=stamp(times.get("created")),
        last=stamp(times.get("updated")) or stamp(times.get("created")),
    )


def is_stream(value: dict[str, Any]) -> bool:
    """A line of one of the event streams."""
    payload = value.get("payload")
    if isinstance(payload, dict):
        return "directory" in value and isinstance(payload.get("type"), str)
    id = text_of(value.get("id"))
    body = value.get("properties", value.get("data"))
    return id.startswith("evt_") and isinstance(value.get("type"), str) and isinstance(body, dict)


def is_export(head: bytes) -> bool:
    """The beginning of an export: an object with the session's info first."""
    start = head.lstrip()[:400]
    return start.startswith(b"{") and b'"info"' in start and b'"ses_' in start


def _chosen(root: Path, session: str) -> SessionInfo:
    known = [info for info, _ in tree_sessions(root)]
    if not known:
        raise ThresherError("No sessions", f"{root} holds no OpenCode session that can be read.")
    if not session:
        return next((info for info in known if not info.parent), known[0])
    found = [info for info in known if info.id == session]
    found = found or [info for info in known if session in info.id]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(info.id for info in (found or known)[:5])
    raise ThresherError(
        "Which session", f"{session!r} does not name one session of {root}: {shown}."
    )


def _file_row(n: int, path: Path) -> Change:
    type = MESSAGE if path.parents[1].name == "message" else PART
    try:
        value, fault = parse(path.read_bytes())
    except OSError as error:
        value, fault = None, error.strerror or str(error)
    if value is None:
        return Change(n, 0.0, BAD, {}, f"{path.name} is left out: {fault}")
    owner = {} if type == MESSAGE else {"messageID": path.parent.name}
    value = {**owner, "id": path.stem, **value}
    at = stamp(dict_of(value.get("time")).get("created"))
    return Change(n, at, type, value, fault)


def _exported(value: dict[str, Any]) -> Iterator[Change]:
    messages = value.get("messages")
    for n, message in enumerate(messages if isinstance(messages, list) else ()):
        info = dict_of(dict_of(message).get("info"))
        id = text_of(info.get("id"))
        if not id:
            yield Change(n, 0.0, BAD, {}, f"message {n + 1} is left out: it has no id")
            continue
        yield Change(n, stamp(dict_of(info.get("time")).get("created")), MESSAGE, info)
        parts = dict_of(message).get("parts")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                yield Change(n, 0.0, PART, {"messageID": id, **part})


def _order(row: Change) -> tuple[int, int, str]:
    """Messages by their time, then parts by their id, as the tables have them."""
    made = dict_of(row.data.get("time")).get("created")
    first = made if row.type == MESSAGE and isinstance(made, int) else 0
    rank = {BAD: 0, MESSAGE: 1}.get(row.type, 2)
    return rank, first, text_of(row.data.get("id"))


def _document(path: Path) -> dict[str, Any]:
    try:
        with open_bytes(path) as file:
            data = file.read(_MOST)
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error
    value, fault = parse(data)
    if value is None:
        raise ThresherError("Unreadable export", f"{path} is not a whole JSON object: {fault}.")
    return value


def _stream_info(path: Path, session: str) -> SessionInfo:
    for line in read_lines(path):
        if line.value is None:
            continue
        change, found, _ = streamed(line.value, 0, 0.0)
        if change is not None and found and (not session or session in found):
            made = stamp(change.data.get("timestamp")) or change.at
            made = made or id_time(text_of(line.value.get("id")), _any_time(line.value))
            return SessionInfo(id=found, made=made or _any_time(line.value))
    what = f"no event of session {session!r}" if session else "no event of a session"
    raise ThresherError("No session", f"{path} holds {what}.")


def _any_time(value: Any) -> float:
    """The first time in milliseconds in a value, since a stream's own events have none."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in ("time", "created", "start", "timestamp") and (found := stamp(each)):
                return found
        values = list(value.values())
    else:
        values = value if isinstance(value, list) else []
    return next((found for each in values if (found := _any_time(each))), 0.0)
