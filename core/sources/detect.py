"""Which program wrote this file? Asked once, of the first lines, before anything is shown."""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from pathlib import Path

import msgspec

from ..errors import ThresherError
from .lines import ZSTD, Line, LineReader, open_bytes, unreadable

HEAD = 1 << 20
"""Bytes looked at."""
LINES = 20
"""Lines looked at: a file may begin with a broken one."""


class Format(StrEnum):
    """The formats that can be opened."""

    CODEX = "codex rollout"
    THRESHER = "thresher journal"
    UNKNOWN = "unknown"


class Detected(msgspec.Struct, frozen=True):
    """What the file is, and the sentence that says how it is known, or why it is not."""

    format: Format
    why: str


_CODEX_TYPES = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}
)


def detect(path: Path) -> Detected:
    """Tell the format of a file.

    A missing or unreadable file, a directory, an empty file and a zstd file are ThresherError.
    """
    head = _head(path)
    reader = LineReader()
    lines = list(islice(reader.feed(head), LINES)) or list(reader.finish())
    for line in lines:
        if (found := _format(line)) is not None:
            return Detected(found, f"line {line.number + 1} is one of a {found}")
    return Detected(Format.UNKNOWN, _why_unknown(path, head, lines))


def require_known(path: Path) -> Format:
    """Like `detect`, but an unknown format is a ThresherError too."""
    found = detect(path)
    if found.format is Format.UNKNOWN:
        raise ThresherError("Unknown format", found.why)
    return found.format


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise ThresherError(
            "Not a file", f"{path} is a directory; give one session file, or run thresher sessions."
        )
    try:
        with open_bytes(path) as file:
            head = file.read(HEAD)
    except FileNotFoundError as error:
        raise ThresherError(
            "No such file", f"{path} does not exist; run thresher sessions for what there is."
        ) from error
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error
    if not head.strip(b"\x00 \t\r\n"):
        raise ThresherError(
            "Empty file", f"{path} holds no session: it is empty, or nothing but blanks."
        )
    if head.startswith(ZSTD):
        raise ThresherError(
            "Compressed session",
            f"{path} is packed with zstd, which is not read yet; "
            "unpack it (zstd -d FILE) and open the result.",
        )
    return head


def _format(line: Line) -> Format | None:
    match line.value:
        case {"type": str(type), "payload": dict()} if type in _CODEX_TYPES:
            return Format.CODEX
        case {"n": int(), "event": {"event": str()}}:
            return Format.THRESHER
        case _:
            return None


def _why_unknown(path: Path, head: bytes, lines: list[Line]) -> str:
    known = "known are Codex rollouts and thresher's own journals"
    if not any(line.value for line in lines):
        reason = lines[0].fault if lines else f"its first {len(head):,} bytes hold no line"
        return (
            f"{path} is not a session file: no JSON object in its first lines ({reason}); {known}."
        )
    return f"{path} holds JSON lines, but none of a format that is known here; {known}."
