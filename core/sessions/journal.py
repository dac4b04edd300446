"""The journal of a session: JSON lines, append-only, one writer, written before anyone is told.

A line is a `Record` and ends in a newline; its number counts the lines of the file from 0. What is
on disk is never rewritten. Only bytes that never became a whole line are cut off, and only by a
writer: a torn last line that a killed process left, or what a full disk took of a line. Every other
line that cannot be read stays where it is, is counted, and is shown with its place and the reason.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
from filelock import FileLock, Timeout, lock_descriptor

from .. import events as e
from ..errors import ThresherError, storage_error
from ..paths import ensure_dir

JOURNAL_NAME = "journal.jsonl"

LOCK_WAIT = 0.2
"""Seconds a writer waits for the lock: longer than a look at whether it is held takes."""

_BOM = b"\xef\xbb\xbf"
_TAGS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(e.Event))


class BadLine(msgspec.Struct, frozen=True):
    """A line that is no record. `line` counts from 0, `offset` and `size` are bytes; `torn` is
    true for a last line that was never written to its end."""

    line: int
    offset: int
    size: int
    reason: str
    torn: bool = False

    def problem(self) -> e.ErrorRaised:
        """The same as an event, for whoever looks at the session."""
        return e.ErrorRaised(
            kind="torn line" if self.torn else "bad line",
            message=f"a line of {self.size:,} bytes cannot be read: {self.reason}",
            where=JOURNAL_NAME,
            line=self.line,
            offset=self.offset,
        )


class Scanned(NamedTuple):
    """One line of the file: its number from 0, its byte offset, where it ends, what it holds."""

    line: int
    offset: int
    end: int
    found: e.Record | BadLine

    @property
    def torn(self) -> bool:
        """True for an unfinished last line."""
        return isinstance(self.found, BadLine) and self.found.torn


# -- reading -----------------------------------------------------------------------------------


def located(path: Path) -> Path:
    """The journal that a user means by a file or a session's folder.

    Raises ThresherError when there is none, or when it is not an ordinary file.
    """
    try:
        if path.is_dir():
            path = path / JOURNAL_NAME
        mode = path.stat().st_mode
    except OSError as error:
        raise storage_error("Session not readable", "read the session", path, error) from error
    if not stat.S_ISREG(mode):
        raise ThresherError(
            "Session not readable",
            f"{path} is not an ordinary file: name a {JOURNAL_NAME} or the folder that holds it.",
        )
    return path


def scan(path: Path, *, offset: int = 0, line: int = 0, after: int = -1) -> Iterator[Scanned]:
    """Read a journal line by line, from the line number `line` at byte `offset`.

    `after` is the number of the last record before that. A record whose type is not known is an
    UnknownRecord. A whole record whose newline is missing counts as whole. Never writes; raises
    ThresherError when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for raw in file:
                found = _read(raw, line, offset, after)
                if isinstance(found, e.Record):
                    after = found.n
                yield Scanned(line, offset, offset + len(raw), found)
                offset += len(raw)
                line += 1
    except OSError as error:
        raise storage_error("Session not readable", "read the session", path, error) from error


def _read(raw: bytes, line: int, offset: int, after: int) -> e.Record | BadLine:
    text = raw.removeprefix(_BOM) if line == 0 else raw
    try:
        record = _record(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        torn = not raw.endswith(b"\n")
        return BadLine(line, offset, len(raw), _reason(text, fault), torn)
    if record.n <= after:
        reason = f"its number {record.n} does not follow {after}"
        return BadLine(line, offset, len(raw), reason)
    return record


def _record(text: bytes) -> e.Record:
    try:
        return e.decode(text)
    except msgspec.ValidationError:
        envelope = _ENVELOPE.decode(text)
        if envelope.event.event in _TAGS:
            raise
        unknown = e.UnknownRecord(type=envelope.event.event, line=envelope.n, size=len(text))
        return e.Record(envelope.n, envelope.at, unknown)


class _Tagged(msgspec.Struct):
    event: str


class _Envelope(msgspec.Struct):
    n: int
    at: float
    event: _Tagged


_ENVELOPE = msgspec.json.Decoder(_Envelope)


def _reason(text: bytes, fault: Exception) -> str:
    if not text.strip():
        return "it is empty"
    if not text.strip(b"\x00\r\n"):
        return "it holds nothing but NUL bytes"
    if not text.endswith(b"\n"):
        return f"it was not written to its end ({fault})"
    return str(fault)


# -- writing -----------------------------------------------------------------------------------


def running(path: Path) -> bool:
    """Whether some program holds the lock of this journal. Changes nothing."""
    try:
        handle = os.open(_lock_path(path), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not lock_descriptor(handle, blocking=False)
    except OSError:
        return False
    finally:
        os.close(handle)


class Journal:
    """The one writer of a journal file. Not thread-safe: it belongs to the session's thread.

    `next_line` is the number of the next record, `end` the byte where the last whole line ends.
    """

    def __init__(self, path: Path, lock: FileLock, handle: int) -> None:
        self.path = path
        self.end = 0
        self.next_line = 0
        self._lock = lock
        self._handle: int | None = handle
        self._ragged = False
        self._unended = False

    @classmethod
    def create(cls, path: Path) -> Journal:
        """A new, empty journal, readable by this user alone. Raises ThresherError."""
        ensure_dir(path.parent)
        lock = _locked(path)
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            return cls(path, lock, os.open(path, flags, 0o600))
        except OSError as error:
            lock.release()
            raise storage_error("Session not created", "create", path, error) from error

    @classmethod
    def take_up(cls, path: Path) -> tuple[Journal, list[Scanned]]:
        """The writer for a journal that exists, and what is in it.

        Nothing on disk changes before the first append, which cuts a torn last line off. Raises
        ThresherError when another program writes this session or the file cannot be opened.
        """
        lock = _locked(path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            lock.release()
            raise storage_error("Session not writable", "write to", path, error) from error
        journal = cls(path, lock, handle)
        try:
            lines = list(scan(path))
            journal._continue_after(lines)
        except BaseException:
            journal.close()
            raise
        return journal, lines

    def append(self, line: bytes, *, sync: bool = False) -> None:
        """Write one line (given without its newline) and hand it to the operating system.

        `sync` also waits until it is on the disk. When anything fails nothing of the line stays,
        and a ThresherError says why; a later append may succeed.
        """
        if self._handle is None:
            raise ThresherError(
                "Session closed",
                f"{self.path} takes no more records: resume the session to go on with it.",
            )
        data = (b"\n" if self._unended else b"") + line + b"\n"
        try:
            self._make_even(self._handle)
            self._ragged = True
            self._write(self._handle, data)
            if sync:
                os.fsync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._handle, self.end)
                self._ragged = False
            raise storage_error("Session not recorded", "write to", self.path, error) from error
        self._ragged = self._unended = False
        self.end += len(data)
        self.next_line += 1

    def close(self) -> None:
        """Close the file and give the lock back; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
            self._lock.release()

    def _continue_after(self, lines: list[Scanned]) -> None:
        whole = lines[:-1] if lines and lines[-1].torn else lines
        self._ragged = len(whole) < len(lines)
        self.end = whole[-1].end if whole else 0
        numbers = [scanned.found.n for scanned in whole if isinstance(scanned.found, e.Record)]
        self.next_line = max(len(whole), max(numbers, default=-1) + 1)
        if whole and self._handle is not None:
            self._unended = os.pread(self._handle, 1, self.end - 1) != b"\n"

    def _make_even(self, handle: int) -> None:
        """Cut off what is no whole line, and refuse a file that somebody else has changed."""
        if self._ragged:
            os.ftruncate(handle, self.end)
            return
        now = os.fstat(handle)
        if now.st_nlink == 0:
            what = "was deleted while it was open"
        elif now.st_size != self.end:
            what = f"has {now.st_size:,} bytes and should have {self.end:,}"
        else:
            return
        raise ThresherError(
            "Session not recorded",
            f"{self.path} {what}: another program changed it. Start a new session; what was "
            "recorded is left as it is.",
        )

    @staticmethod
    def _write(handle: int, data: bytes) -> None:
        written = os.write(handle, data)
        # A full disk may take a part of it: the next attempt then says why.
        while written < len(data):
            written += os.write(handle, memoryview(data)[written:])


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _locked(path: Path) -> FileLock:
    file = _lock_path(path)
    lock = FileLock(file, LOCK_WAIT, mode=0o600, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise ThresherError(
            "Session in use",
            f"{path.parent} is being written by {_holder(file)}: close it there first, or look at "
            "it without writing with `thresher open`.",
        ) from None
    except OSError as error:
        raise storage_error("Session not lockable", "lock", file, error) from error
    # The number only makes the sentence above better: the lock holds without it.
    with contextlib.suppress(OSError):
        file.write_text(f"{os.getpid()}\n")
    return lock


def _holder(lock: Path) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f"another program (process {int(lock.read_text())})"
    return "another program"
