"""A session: the one place where events become records, on disk first and then for everyone.

`emit` writes the line, reads it back into the record that everybody gets, folds it and publishes
it. Since a live session works with what it would read from its own journal, replay equals live by
construction; a value that JSON cannot carry is found when it is said, not when it is resumed.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import msgspec

from .. import events as e
from ..bus import EventBus
from ..errors import ThresherError, storage_error
from ..history import History
from ..paths import ensure_dir
from ..state import SessionState
from .journal import JOURNAL_NAME, Journal

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""

OUTPUTS_NAME = "outputs"
"""The folder beside the journal that holds tool outputs too long for the context."""

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ATTEMPTS = 20
_ON_DISK = (e.SessionStarted, e.HistoryCompacted, e.TurnFinished, e.SessionFinished)


def session_id(at: float) -> str:
    """A new id that sorts by time, to the millisecond: "20260804-153012345-7f3a9c" (UTC)."""
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y%m%d-%H%M%S}{moment.microsecond // 1000:03}-{os.urandom(3).hex()}"


class Session:
    """One writer of one session. All calls come from the thread of its event loop.

    `folder` holds the journal and `outputs`; `notes` says in sentences what a resume found and
    mended, and is empty for a new session.
    """

    def __init__(
        self,
        journal: Journal,
        history: History,
        *,
        clock: Clock = time.time,
        notes: tuple[str, ...] = (),
    ) -> None:
        self.folder = journal.path.parent
        self.history = history
        self.bus = EventBus(len(history))
        self.notes = notes
        self._journal = journal
        self._clock = clock
        self._closed = False

    @classmethod
    def create(
        cls,
        root: Path,
        started: e.SessionStarted,
        *,
        clock: Clock = time.time,
        new_id: Callable[[float], str] = session_id,
    ) -> Session:
        """Begin a session below `root` (`paths.sessions_dir()`), in YYYY/MM/DD/<id>/ by UTC.

        The id is that of `started`, or a new one when it has none. Raises ThresherError when the
        id is taken or no folder name, or when the disk refuses.
        """
        at = clock()
        id, folder = _new_folder(root, started.session_id, at, new_id)
        try:
            journal = Journal.create(folder / JOURNAL_NAME)
        except ThresherError:
            _forget(folder)
            raise
        session = cls(journal, History(), clock=clock)
        try:
            session.emit(msgspec.structs.replace(started, session_id=id))
        except BaseException:
            journal.close()
            _forget(folder)
            raise
        return session

    @property
    def id(self) -> str:
        """The session's id; the folder's name when the journal does not say."""
        return self.state.session_id or self.folder.name

    @property
    def state(self) -> SessionState:
        """The fold of everything so far."""
        return self.history.state

    @property
    def path(self) -> Path:
        """The journal file."""
        return self._journal.path

    @property
    def outputs(self) -> Path:
        """The folder for whole tool outputs; whoever writes into it makes it."""
        return self.folder / OUTPUTS_NAME

    @property
    def next_line(self) -> int:
        """The number that the next lasting record will get."""
        return self._journal.next_line

    @property
    def closed(self) -> bool:
        """True once `close` was called."""
        return self._closed

    def emit(self, event: e.Event) -> e.Record:
        """Record an event and tell everyone; returns its record as the journal has it.

        Lasting events are written and flushed first. When that fails nothing has happened: the
        event is neither folded nor published, and a ThresherError says why. Ephemeral events are
        not written and have number -1.
        """
        at = self._clock()
        if isinstance(event, e.EPHEMERAL):
            record = e.Record(-1, at, event)
        else:
            record, line = _as_journalled(e.Record(self.next_line, at, event))
            self._journal.append(line, sync=isinstance(event, _ON_DISK))
        self.history.append(record)
        self.bus.publish(record)
        return record

    def close(self, reason: str = "") -> None:
        """Record the end and give the lock back, even when the disk refuses the last line (which
        is then the ThresherError that is raised). A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self.emit(e.SessionFinished(reason=reason))
        finally:
            self._journal.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
            return
        # The error on its way out is the one to tell; a disk that also fails must not hide it.
        with contextlib.suppress(ThresherError):
            self.close(f"after an error ({kind.__name__})")


def _as_journalled(record: e.Record) -> tuple[e.Record, bytes]:
    try:
        line = e.encode(record)
        return e.decode(line), line
    except (msgspec.DecodeError, TypeError, ValueError, OverflowError, RecursionError) as fault:
        raise ThresherError(
            "Event not recordable",
            f"the event {e.event_name(record.event)} cannot be written as JSON: {fault}. Nothing "
            "was recorded; this is a fault of the program that said it.",
        ) from fault


def _new_folder(
    root: Path, given: str, at: float, new_id: Callable[[float], str]
) -> tuple[str, Path]:
    day = ensure_dir(root / f"{datetime.fromtimestamp(at, UTC):%Y/%m/%d}")
    id = given
    for _ in range(1 if given else _ATTEMPTS):
        id = given or new_id(at)
        if not _SAFE_ID.fullmatch(id):
            raise ThresherError(
                "Session not created",
                f"{id!r} cannot be the id of a session: use letters, digits, '.', '_' and '-'.",
            )
        folder = day / id
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as error:
            raise storage_error(
                "Session not created", "create the folder", folder, error
            ) from error
        return id, folder
    raise ThresherError(
        "Session not created", f"there is already a session {id!r} in {day}: choose another id."
    )


def _forget(folder: Path) -> None:
    """Remove the folder of a session whose first line was never written."""
    with contextlib.suppress(OSError):
        for left in folder.glob(f"{JOURNAL_NAME}*"):
            left.unlink()
        folder.rmdir()
