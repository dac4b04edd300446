"""Lines of many megabytes, read in small steps: the decoder would hold everything up for each.

A line gets that long by its texts. So these are looked for, measured and cut piece by piece, and
what is left is decoded like any other line. Between two pieces other threads get their turn.
"""

from __future__ import annotations

import re
import secrets
import zlib
from typing import Any, Final

import msgspec

from .cutting import Cut, sample_of, size_in_bytes
from .lines import parse

LONG: Final = 2 << 20
"""Bytes of a line from which on it is read in steps."""
PIECE: Final = 256 * 1024
"""Bytes of a text that are looked at in one step."""
WHOLE: Final = 1 << 20
"""Bytes of a text from which on it is no longer decoded in one piece."""
SHORT: Final = 2048
"""Bytes of a text up to which it stays in its line."""
HEAD: Final = 512
"""Characters of the heads."""
SAMPLE: Final = 4_000
"""Characters of the sample of such a text."""

_RUN = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
"""The inside of a JSON text, as far as it goes without half an escape."""
_HIGH_HALF = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_TEXT = msgspec.json.Decoder(str)


def checked(raw: bytes | bytearray) -> int:
    """The check of a long line, never 0. Other threads run meanwhile."""
    return zlib.crc32(raw) or 1


def parse_long(raw: bytes | bytearray) -> tuple[dict[str, Any] | None, str, int]:
    """Like `lines.parse`, with a `Cut` for each long text, and with the check of the bytes.

    Where that does not work out (the line is torn, or holds what must be mended), the line is read
    as a whole.
    """
    try:
        short, cuts = _shortened(raw)
        value = msgspec.json.decode(short)
    except (ValueError, RecursionError):
        value, cuts = None, {}
    if not isinstance(value, dict):
        return *parse(raw), checked(raw)
    return _restored(value, cuts), "", checked(raw)


class _Torn(ValueError):
    """A text has no end."""


_MARK = f"\x00{secrets.token_hex(8)}:"
"""Begins the stand-in for a cut text; nobody can have written it into a file."""


def _shortened(raw: bytes | bytearray) -> tuple[bytes, dict[str, Cut]]:
    out: list[bytes | bytearray] = []
    cuts: dict[str, Cut] = {}
    done = 0
    start = raw.find(b'"')
    while start >= 0:
        end = _end(raw, start + 1)
        if end - start > SHORT:
            out.append(raw[done:start])
            mark = f"{_MARK}{len(cuts)}"
            cuts[mark] = _cut(raw, start + 1, end)
            out.append(msgspec.json.encode(mark))
            done = end + 1
        start = raw.find(b'"', end + 1)
    out.append(raw[done:])
    return b"".join(out), cuts


def _end(raw: bytes | bytearray, at: int) -> int:
    """Where the text that begins at `at` has its closing quote."""
    window = PIECE
    while True:
        match = _RUN.match(raw, at, min(len(raw), at + window))
        after = match.end() if match else at
        if after < len(raw) and raw[after] == 0x22:
            return after
        if at + window >= len(raw):
            raise _Torn
        # Without a step forward the window ends within an escape.
        window = PIECE if after > at else window + PIECE
        at = after


def _cut(raw: bytes | bytearray, start: int, end: int) -> Cut:
    if end - start < WHOLE:
        text = _decoded(raw[start:end])
        return Cut(text[:HEAD], len(text), size_in_bytes(text), hash(text), sample_of(text))
    head, chars, size, check, sample = "", 0, 0, 0, ""
    while start < end:
        stop = _boundary(raw, start, min(end, start + PIECE), end)
        text = _decoded(raw[start:stop])
        head = head or text[:HEAD]
        chars, size = chars + len(text), size + size_in_bytes(text)
        check = hash((check, text))
        if len(sample) < SAMPLE:
            sample += sample_of(text)
        start = stop
    return Cut(head, chars, size, check, sample)


def _boundary(raw: bytes | bytearray, start: int, stop: int, end: int) -> int:
    """The last place up to `stop` at which neither an escape nor a character is torn."""
    if stop >= end:
        return end
    match = _RUN.match(raw, start, stop)
    at = match.end() if match else stop
    while at > start and raw[at] & 0xC0 == 0x80:
        at -= 1
    if _HIGH_HALF.search(raw, max(start, at - 6), at):
        at -= 6
    return at if at > start else end


def _decoded(inside: bytes | bytearray) -> str:
    return _TEXT.decode(b'"' + inside + b'"')


def _restored(value: Any, cuts: dict[str, Cut]) -> Any:
    match value:
        case str():
            return cuts.get(value, value) if value.startswith(_MARK) else value
        case list():
            return [_restored(each, cuts) for each in value]
        case dict():
            return {key: _restored(each, cuts) for key, each in value.items()}
        case _:
            return value
