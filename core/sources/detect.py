"""Which program wrote this file? Asked once, of its beginning, before anything is shown."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..errors import ThresherError
from .lines import open_bytes, unreadable
from .packed import beginning
from .registry import Format, formats, holds_several, recognise
from .sample import Sample, contained

HEAD = 1 << 20
"""Bytes looked at."""


class Detected(msgspec.Struct, frozen=True):
    """What the file is, and the sentence that says how it is known, or why it is not."""

    format: Format
    why: str


def detect(path: Path) -> Detected:
    """Tell the format of a file, or of a folder that is a session.

    A missing or unreadable file, any other folder and an empty file are ThresherError.
    """
    file, inner = contained(path)
    sample = Sample(file, folder=True) if file.is_dir() else Sample(file, _head(file))
    for format in formats():
        if why := recognise(format, sample):
            if inner and not holds_several(format):
                break
            return Detected(format, f"{why} is one of a {format}")
    if inner:
        # It goes on below a file that is none of several sessions: the system says what that is.
        _head(path)
    if sample.folder:
        raise ThresherError(
            "Not a file", f"{path} is a directory; give one session file, or run thresher sessions."
        )
    return Detected(Format.UNKNOWN, _why_unknown(path, sample))


def require_known(path: Path) -> Format:
    """Like `detect`, but an unknown format is a ThresherError too."""
    found = detect(path)
    if found.format is Format.UNKNOWN:
        raise ThresherError("Unknown format", found.why)
    return found.format


def _head(path: Path) -> bytes:
    try:
        with open_bytes(path) as file:
            head = beginning(file, HEAD)
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
    return head


def _why_unknown(path: Path, sample: Sample) -> str:
    known = f"known are: {', '.join(formats())}"
    if not any(line.value for line in sample.lines):
        lines = sample.lines
        size = len(sample.head)
        reason = lines[0].fault if lines else f"its first {size:,} bytes hold no line"
        return (
            f"{path} is not a session file: no JSON object in its first lines ({reason}); {known}."
        )
    return f"{path} holds JSON lines, but none of a format that is known here; {known}."


__all__ = ["Detected", "Format", "detect", "require_known"]
