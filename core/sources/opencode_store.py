"""OpenCode's database beside a running OpenCode: read, and never written to.

SQLite in WAL mode writes even when it only reads: it makes `-wal` and `-shm` files beside the
database. So it is opened in the way that cannot do that:

- no `-wal` file: nobody has it open, and it is opened as immutable;
- `-wal` and `-shm` are there: OpenCode runs; its index is used, mapped read-only;
- a `-wal` without `-shm` (a copy, a crash) and a packed database are copied to our cache first.

Every look is a connection of its own, closed at once: an open one would keep OpenCode from tidying
up its files when it ends.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from .. import paths
from ..errors import ThresherError
from .codex_items import dict_of, text_of
from .lines import is_packed, open_bytes, parse, unreadable
from .opencode_changes import BAD, MESSAGE, PART, ROW, Change, change_of, stamp
from .opencode_fold import SessionInfo

if TYPE_CHECKING:
    import sqlite3

    from .opencode_rows import Rows

MAGIC: Final = b"SQLite format 3\x00"
_COLUMNS: Final = (
    "id", "title", "directory", "model", "version", "parent_id", "time_created", "time_updated"
)  # fmt: skip
BATCH: Final = 500
"""Changes read in one look."""
_TRIES: Final = 5
_PATIENCE: Final = 2.0
"""Seconds to wait for a lock."""


class Database:
    """The file. What is wrong with it as a whole is a ThresherError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._copy: Path | None = None
        self._copied: tuple[object, ...] = ()

    def signature(self) -> tuple[object, ...]:
        """Changes whenever the database may have changed; empty when it is not there."""
        found: list[object] = []
        for path in (self.path, _beside(self.path, "-wal")):
            with contextlib.suppress(OSError):
                stat = path.stat()
                found.append((path.name, stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return tuple(found)

    @contextlib.contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """A connection for one look."""
        import sqlite3

        try:
            connection = sqlite3.connect(self._address(), uri=True, timeout=_PATIENCE)
        except sqlite3.Error as error:
            raise self._bad(error) from error
        try:
            connection.text_factory = bytes
            connection.execute("PRAGMA query_only = 1")
            connection.execute("BEGIN")
            yield connection
        except sqlite3.Error as error:
            raise self._bad(error) from error
        finally:
            connection.close()

    def tables(self) -> set[str]:
        """The names of the tables."""
        with self.look() as db:
            rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {_text(name) for (name,) in rows}

    def _bad(self, error: Exception) -> ThresherError:
        return ThresherError(
            "Unreadable database",
            f"{self.path} cannot be read as an OpenCode database: {error}. If OpenCode is writing "
            "it, try again; if it is a copy, copy the file that ends in -wal too.",
        )

    def _address(self) -> str:
        if is_packed(self.path):
            return _uri(self._cached(packed=True), "immutable=1")
        wal, shm = _beside(self.path, "-wal"), _beside(self.path, "-shm")
        if not _size(wal):
            return _uri(self.path, "immutable=1")
        if shm.exists():
            return _uri(self.path, "mode=ro&readonly_shm=1")
        return _uri(self._cached(packed=False), "mode=rw")

    def _cached(self, *, packed: bool) -> Path:
        """A copy in our cache, made anew when the file has changed."""
        for _ in range(_TRIES):
            before = self.signature()
            if self._copy is not None and before == self._copied:
                return self._copy
            copy = self._place() / "opencode.db"
            try:
                with open_bytes(self.path) as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target)
                if not packed:
                    shutil.copyfile(_beside(self.path, "-wal"), _beside(copy, "-wal"))
                    _beside(copy, "-shm").unlink(missing_ok=True)
            except (OSError, EOFError) as error:
                raise unreadable(self.path, error) from error
            if self.signature() == before:
                self._copy, self._copied = copy, before
                return copy
        raise ThresherError(
            "Busy database", f"{self.path} changes faster than it can be copied: try again."
        )

    def _place(self) -> Path:
        if self._copy is not None:
            return self._copy.parent
        root = paths.ensure_dir(paths.cache_dir() / "opencode")
        folder = Path(tempfile.mkdtemp(dir=root))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder


class Reader:
    """The changes of one session, from the event table or from the rows."""

    def __init__(self, database: Database, session: str = "") -> None:
        self.database = database
        self.info = choose(database, session)
        self._tables = database.tables()
        self._logged = self._is_logged()
        self._next = 0
        self._near = self.info.made
        self._rows: Rows | None = None

    @property
    def logged(self) -> bool:
        """The event table holds the whole session."""
        return self._logged

    def baseline(self) -> int:
        """The change that V2's system text of now is from."""
        if "session_context_epoch" not in self._tables:
            return 0
        with self.database.look() as db:
            found = db.execute(
                "SELECT baseline_seq FROM session_context_epoch WHERE session_id = ?",
                (self.info.id,),
            ).fetchone()
        return found[0] if found and isinstance(found[0], int) else 0

    def more(self) -> Iterator[Change]:
        """The changes since the last call."""
        if not self._logged:
            from .opencode_rows import Rows

            rows = self._rows = self._rows or Rows()
            with self.database.look() as db:
                found = list(_stored_rows(db, self._tables, self.info.id))
            yield from rows.news(found)
            return
        while batch := self._batch():
            yield from batch
            if len(batch) < BATCH:
                return

    def _batch(self) -> list[Change]:
        with self.database.look() as db:
            rows = db.execute(
                "SELECT seq, type, data, id FROM event WHERE aggregate_id = ? AND seq >= ? "
                "ORDER BY seq LIMIT ?",
                (self.info.id, self._next, BATCH),
            ).fetchall()
            others = self._others(db)
        changes = [self._change(*row) for row in rows]
        if changes:
            self._next = changes[-1].n + 1
        return [others.get(change.n, change) for change in changes]

    def _others(self, db: sqlite3.Connection) -> dict[int, Change]:
        """Rows of V2 whose events are not known here, by the number that both share."""
        if "session_message" not in self._tables:
            return {}
        rows = db.execute(
            "SELECT seq, id, type, data, time_created FROM session_message WHERE session_id = ? "
            "AND seq >= ? AND type NOT IN "
            "('user', 'assistant', 'compaction', 'model-switched', 'agent-switched', 'system', "
            "'synthetic', 'shell')",
            (self.info.id, self._next),
        )
        return {row[0]: _row_change(*row) for row in rows if isinstance(row[0], int)}

    def _change(self, seq: object, type: object, data: object, id: object) -> Change:
        n = seq if isinstance(seq, int) else self._next
        value, fault = _json(data)
        if value is None:
            return Change(n, 0.0, BAD, {}, f"change {n} ({_text(type)}) is left out: {fault}")
        change = change_of(n, _text(type), value, _text(id), self._near)
        self._near = change.at or self._near
        return Change(change.n, change.at, change.type, change.data, fault)

    def _is_logged(self) -> bool:
        if "event" not in self._tables:
            return False
        with self.database.look() as db:
            first, count = db.execute(
                "SELECT min(seq), count(*) FROM event WHERE aggregate_id = ?", (self.info.id,)
            ).fetchone()
        return bool(count) and first == 0


def sessions(database: Database) -> list[SessionInfo]:
    """The sessions in a database, the one last active first."""
    with database.look() as db:
        known = {_text(row[1]) for row in db.execute("PRAGMA table_info(session)")}
        if "id" not in known:
            raise ThresherError(
                "Unknown database",
                f"{database.path} is a database, but not OpenCode's: it holds no sessions.",
            )
        wanted = [name for name in _COLUMNS if name in known]
        rows = db.execute(f"SELECT {', '.join(wanted)} FROM session").fetchall()
    found = [_info(dict(zip(wanted, row, strict=True))) for row in rows]
    return sorted(found, key=lambda info: (-info.last, info.id))


def choose(database: Database, session: str) -> SessionInfo:
    """The session with this id, or one that begins like it; without one, the newest that is no
    subagent's. ThresherError when there is none, or more than one."""
    known = sessions(database)
    if not known:
        raise ThresherError("Empty database", f"{database.path} holds no session yet.")
    if not session:
        return next((info for info in known if not info.parent), known[0])
    exact = [info for info in known if info.id == session]
    found = exact or [info for info in known if session in info.id]
    if len(found) != 1:
        shown = ", ".join(info.id for info in (found or known)[:5])
        more = f" and {len(found or known) - 5} more" if len(found or known) > 5 else ""
        what = "is in the ids of several sessions" if found else "is no session"
        raise ThresherError(
            "Which session", f"{session!r} {what} of {database.path}: {shown}{more}."
        )
    return found[0]


def compactions_in(database: Database, session: str) -> int:
    """How many compactions a session had, by their marks alone; failed ones count too."""
    tables = database.tables()
    count = 0
    with database.look() as db:
        if "part" in tables:
            count += db.execute(
                "SELECT count(*) FROM part WHERE session_id = ? AND length(data) < 400 "
                'AND data LIKE \'%"type":"compaction"%\'',
                (session,),
            ).fetchone()[0]
        if "session_message" in tables:
            count += db.execute(
                "SELECT count(*) FROM session_message WHERE session_id = ? AND type = 'compaction'",
                (session,),
            ).fetchone()[0]
    return count


def _info(row: dict[str, Any]) -> SessionInfo:
    model, _ = _json(row.get("model"))
    return SessionInfo(
        id=_text(row.get("id")),
        title=_text(row.get("title")),
        directory=_text(row.get("directory")),
        model=text_of(dict_of(model).get("id")) or text_of(dict_of(model).get("modelID")),
        version=_text(row.get("version")),
        parent=_text(row.get("parent_id")),
        made=stamp(row.get("time_created")),
        last=stamp(row.get("time_updated")) or stamp(row.get("time_created")),
    )


def _stored_rows(db: sqlite3.Connection, tables: set[str], session: str) -> Iterator[Change]:
    """The rows of one session as they are: of V1 the messages, then the parts; of V2 the rows.
    Their numbers are those of the tables' order, and mean nothing yet."""
    n = 0
    if "message" in tables:
        for id, made, data in db.execute(
            "SELECT id, time_created, data FROM message WHERE session_id = ? "
            "ORDER BY time_created, id",
            (session,),
        ):
            yield _row(n, MESSAGE, data, {"id": _text(id)}, made)
            n += 1
    if "part" in tables:
        for id, message, made, data in db.execute(
            "SELECT id, message_id, time_created, data FROM part WHERE session_id = ? ORDER BY id",
            (session,),
        ):
            yield _row(n, PART, data, {"id": _text(id), "messageID": _text(message)}, made)
            n += 1
    if "session_message" in tables:
        for row in db.execute(
            "SELECT seq, id, type, data, time_created FROM session_message "
            "WHERE session_id = ? ORDER BY seq",
            (session,),
        ):
            yield _row_change(*row)


def _row(n: int, type: str, data: object, ids: dict[str, str], made: object) -> Change:
    value, fault = _json(data)
    if value is None:
        return Change(n, stamp(made), BAD, {}, f"{type} {ids['id']} is left out: {fault}")
    return Change(n, stamp(made), type, {**value, **ids}, fault)


def _row_change(seq: object, id: object, type: object, data: object, made: object) -> Change:
    n = seq if isinstance(seq, int) else 0
    value, fault = _json(data)
    if value is None:
        return Change(n, stamp(made), BAD, {}, f"row {_text(id)} is left out: {fault}")
    return Change(n, stamp(made), ROW, {"id": _text(id), "type": _text(type), "data": value}, fault)


def _json(data: object) -> tuple[dict[str, Any] | None, str]:
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if not isinstance(data, bytes):
        return None, "it holds no text"
    return parse(data)


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _uri(path: Path, how: str) -> str:
    return f"file:{quote(str(path.absolute()))}?{how}"


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


__all__ = ["MAGIC", "Database", "Reader", "choose", "sessions"]
