"""What a hook and a console say to one another.

A console writes a `Watch` and holds the lock of its journal beside it. A hook that finds both
writes a `Request`, whose file it keeps locked, and waits for the `Answer`. Either side knows by the
other one's lock whether that is still there: a lock goes with its process, however that ends.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec
from filelock import lock_descriptor

from .place import MOST_BYTES, read_whole, write_whole

T = TypeVar("T", bound=msgspec.Struct)


class Watch(msgspec.Struct, frozen=True):
    """A console wants to be asked about this transcript (its real path) of this agent."""

    transcript: str
    agent: str
    version: str = ""


class Request(msgspec.Struct, frozen=True):
    """A program is about to compact, and waits. `at` and `until` are in seconds since the epoch:
    at `until` the hook lets it go on by itself. `instructions` came with a command of the user."""

    id: str
    at: float
    until: float
    trigger: str
    instructions: str = ""


class Verdict(StrEnum):
    """What a console decides."""

    GO_ON = "go on"
    SKIP = "skip"


class Answer(msgspec.Struct, frozen=True):
    """The decision; `text` is what the program is told besides (a focus for its summary)."""

    verdict: Verdict
    text: str = ""


def put(file: Path, message: msgspec.Struct) -> None:
    """Write a message. Raises OSError."""
    os.close(write_whole(file, _encoded(message)))


def put_and_hold(file: Path, message: msgspec.Struct) -> int:
    """Write a message and keep its file locked: the handle must stay open. Raises OSError."""
    return write_whole(file, _encoded(message), lambda handle: lock_descriptor(handle))


def get(file: Path, kind: type[T]) -> T | None:
    """Read a message; None where there is none, or none that can be read."""
    try:
        data = read_whole(file)
        if data is None or len(data) > MOST_BYTES:
            return None
        return msgspec.json.decode(data, type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def abandoned(file: Path) -> bool:
    """Whether the process that wrote a message with `put_and_hold` is gone."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        return lock_descriptor(handle, blocking=False)
    except OSError:
        return False
    finally:
        os.close(handle)


def _encoded(message: msgspec.Struct) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        # A lone surrogate of a foreign text has no UTF-8.
        safe = {
            name: value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for name, value in msgspec.structs.asdict(message).items()
        }
        return msgspec.json.encode(safe)
