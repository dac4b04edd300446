"""The doors to standard output and standard error: clean text, tables, JSON lines, complaints.

Nothing else of the command line writes. Text is cleaned here once more, whoever made it; colours
appear only on a terminal that wants them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

from thresher.core import jsontext
from thresher.core.errors import ThresherError
from thresher.core.text import clean, safe_json

from ..spans import Line, Tone, clip, text_of

UNBOUNDED = 10_000
"""Cells of a line where nobody's screen ends: a pipe or a file."""

_RESET = "\x1b[0m"
_SGR = {
    Tone.STRONG: "\x1b[1m",
    Tone.MUTED: "\x1b[2m",
    Tone.FAINT: "\x1b[2m",
    Tone.ACCENT: "\x1b[36m",
    Tone.SUMMARY: "\x1b[35m",
    Tone.THRESHOLD: "\x1b[33m",
    Tone.REMOVED: "\x1b[31m",
    Tone.KEPT: "\x1b[32m",
    Tone.FAILED: "\x1b[1;31m",
}


class OutputLost(ThresherError):
    """Standard output cannot be written."""

    def __init__(self, error: OSError) -> None:
        why = error.strerror or type(error).__name__
        super().__init__(
            "Output not written", f"standard output cannot be written: {why}. Send it elsewhere."
        )


def columns() -> int:
    """Cells that a line may take: those of the terminal, or what COLUMNS says, else no bound."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(20, shutil.get_terminal_size((80, 24)).columns)
    return UNBOUNDED


def coloured(stream: IO[str]) -> bool:
    """Whether this stream is a terminal whose user wants colours (https://no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def put(lines: Iterable[Line]) -> None:
    """Write lines of spans, each cut to the width there is."""
    colour = coloured(sys.stdout)
    cells = columns()
    for line in lines:
        fitting = clip([(clean(text, keep_newlines=False), tone) for text, tone in line], cells)
        if colour:
            written = "".join(_painted(text, tone) for text, tone in fitting)
        else:
            written = text_of(fitting)
        _write(written.rstrip() + "\n")


def say(text: str = "") -> None:
    """Write plain text of any number of lines."""
    _write(clean(text) + "\n")


def put_json(value: Any) -> None:
    """Write a value as one line of JSON: UTF-8 whatever the locale, and safe on a terminal."""
    encoded = safe_json(jsontext.encode(value).decode()).encode()
    with _told():
        sys.stdout.flush()
        sys.stdout.buffer.write(encoded + b"\n")
        sys.stdout.buffer.flush()


def flush() -> None:
    """Write what is still buffered. Raises OutputLost, as everything here that writes."""
    with _told():
        sys.stdout.flush()


def complain(title: str, msg: str) -> None:
    """Write `title: msg` to standard error, on one line however long."""
    told = clean(f"{title}: {msg}", keep_newlines=False)
    if coloured(sys.stderr):
        head = clean(title, keep_newlines=False)
        told = f"{_SGR[Tone.FAILED]}{head}:{_RESET}{told[len(head) + 1 :]}"
    sys.stderr.write(told + "\n")
    sys.stderr.flush()


def remark(text: str) -> None:
    """Write a note to standard error, where it does not get into what is piped on."""
    sys.stderr.write(clean(text, keep_newlines=False) + "\n")
    sys.stderr.flush()


def _write(text: str) -> None:
    with _told():
        sys.stdout.write(text)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """A full disk is told in words; a reader that went away is for the caller to end with."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error) from error


def _painted(text: str, tone: Tone) -> str:
    code = _SGR.get(tone)
    return f"{code}{text}{_RESET}" if code and text.strip() else text
