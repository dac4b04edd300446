"""A tolerant reader of JSON lines: every line has its number and its place, none stops the rest.

The files belong to other programs, which may crash while they write, and to file systems, which
may leave blocks of NUL bytes behind. So a line that is not a JSON object becomes a `Line` with a
reason, and one that can be mended (stray NUL bytes, invalid UTF-8) is mended and says so.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from stat import S_ISFIFO
from typing import Any, TypeAlias

import msgspec

from ..errors import ThresherError
from .packed import GZIP, ZSTD, open_gzip, open_zstd

CHUNK = 1 << 20
"""Bytes read at a time."""

_BOM = b"\xef\xbb\xbf"

_decode = msgspec.json.Decoder().decode


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line. `number` counts from 0, `offset` is its first byte in the (unpacked) file.

    `value` is the object, or None when there is none to be had; `fault` says what is wrong, also
    when the line could be mended. `check` is one of its bytes where a line was so long that it was
    not decoded in one piece. `known` is what stands for the object where the reader of the file
    has a form of its own for such lines.
    """

    number: int
    offset: int
    size: int
    value: dict[str, Any] | None
    fault: str = ""
    check: int = 0
    known: Any = None


Parsed: TypeAlias = tuple[dict[str, Any] | None, str]
"""An object and what was mended in it, or None and what is wrong."""


class LineReader:
    """Cuts bytes into lines, however the writer's writes were split.

    `feed` gives the lines that are complete; `finish` gives the one that has no newline yet.
    `number` and `offset` are those of the first line. `known` gives a line's `known` from its
    bytes, with `views` from a view of them, or raises a MsgspecError; `wide` the same of bytes
    beyond ASCII, if it sees to it itself that all of them are UTF-8. `parse_long` reads lines of
    `long` bytes and more, which then have a `check`.
    """

    def __init__(
        self,
        *,
        number: int = 0,
        offset: int = 0,
        known: Callable[[Any], object] | None = None,
        views: bool = False,
        wide: Callable[[bytes], object] | None = None,
        long: int = 0,
        parse_long: (
            Callable[[bytes | bytearray], tuple[dict[str, Any] | None, str, int]] | None
        ) = None,
    ) -> None:
        self.number = number
        self.offset = offset
        self._known = known
        self._views = views
        self._wide = wide
        self._long = long
        self._parse_long = parse_long
        self._rest = bytearray()
        """The beginning of a line. A long one arrives in many pieces: it grows in place, so that
        it is never there twice."""
        self._given = False

    @property
    def pending(self) -> int:
        """Bytes of the line that is not complete."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[Line]:
        """Take bytes; blank lines count, but are not given."""
        end, last = data.find(b"\n"), data.rfind(b"\n")
        self._rest += data if end < 0 else data[:end]
        if end < 0:
            return
        raw, self._rest = self._rest, bytearray(data[last + 1 :])
        if self._given and _is_blank(raw):
            # Only the newline of a line that was given before it came.
            self.offset += len(raw) + 1
        elif (found := self._joined(raw)) is not None:
            # Only what was made of it is needed from here on.
            del raw
            yield found
            del found
        self._given = False
        known, long = self._known, self._long if self._parse_long else sys.maxsize
        ascii = known is None or data.isascii()
        pieces = memoryview(data) if self._views else data
        number, offset = self.number, self.offset
        while end < last:
            at, end = end + 1, data.find(b"\n", end + 1)
            size = end + 1 - at
            if known is not None and number and size < long:
                # Nearly all lines are like this one: no call that can be spared.
                try:
                    if ascii:
                        form = known(pieces[at:end])
                    else:
                        line = data[at:end]
                        if line.isascii():
                            form = known(line)
                        elif self._wide is not None:
                            form = self._wide(line)
                        else:
                            # A decoder does not look at the bytes that it passes over.
                            line.decode()
                            form = known(line)
                except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                    pass
                else:
                    yield Line(number, offset, size, None, "", 0, form)
                    number, offset = number + 1, offset + size
                    continue
            self.number, self.offset = number, offset
            found = self._line(data[at:end], size)
            number, offset = self.number, self.offset
            if found is not None:
                yield found
        self.number, self.offset = number, offset

    def whole(self) -> Iterator[Line]:
        """The last line, when only its newline is missing: a writer may never write that one."""
        raw = self._rest
        if not _is_blank(raw) and parse(_without_mark(raw))[0] is not None:
            self._rest = bytearray()
            if (found := self._line(raw, len(raw))) is not None:
                self._given = True
                yield found

    def finish(self) -> Iterator[Line]:
        """The last line, when it has no newline: whole, cut by a crash, or still being written."""
        line, self._rest = self._rest, bytearray()
        if line and (found := self._line(line, len(line))) is not None:
            if found.value is None:
                fault = f"the last line is cut after {len(line):,} bytes ({found.fault})"
                found = msgspec.structs.replace(found, fault=fault)
            yield found

    def _joined(self, raw: bytearray) -> Line | None:
        """A line that came in several pieces, without its newline."""
        number, offset, size = self.number, self.offset, len(raw) + 1
        limit = self._long if self._parse_long else sys.maxsize
        if self._known is not None and number and size < limit:
            try:
                whole = bytes(raw)
                if self._wide is None:
                    whole.decode()
                known = self._known if self._wide is None or whole.isascii() else self._wide
                form = known(whole)
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                pass
            else:
                self.number, self.offset = number + 1, offset + size
                return Line(number, offset, size, None, "", 0, form)
        return self._line(raw, size)

    def _line(self, raw: bytes | bytearray, size: int) -> Line | None:
        number, offset = self.number, self.offset
        self.number += 1
        self.offset += size
        if number == 0:
            raw = _without_mark(raw)
        if _is_blank(raw):
            return None
        if self._parse_long is not None and size >= self._long:
            value, fault, check = self._parse_long(raw)
            return Line(number, offset, size, value, fault, check)
        value, fault = parse(raw)
        return Line(number, offset, size, value, fault)


def parse(raw: bytes | bytearray) -> Parsed:
    """Read one line: (object, "") or (object, what was mended) or (None, what is wrong)."""
    try:
        value = _decode(raw)
        fault = ""
    except (ValueError, RecursionError) as error:
        first = str(error) or type(error).__name__
        value, fault = _mended(raw, first)
    if isinstance(value, dict):
        return value, fault
    if fault and value is None:
        return None, fault
    return None, f"it holds {_named(value)}, not an object"


def read_lines(path: Path) -> Iterator[Line]:
    """Every line of a file (a packed one is unpacked on the way). Errors of the file itself are
    ThresherError, but for packed data that breaks off or is damaged behind some good lines: that
    is the fault of one more line."""
    reader, broken = LineReader(), ""
    try:
        with open_bytes(path) as file:
            # One piece at a time: a call that fails loses what it has gathered before.
            while chunk := file.read1(CHUNK):
                yield from reader.feed(chunk)
    except (OSError, EOFError) as error:
        if not reader.number or not is_packed(path):
            raise unreadable(path, error) from error
        broken = str(error) or type(error).__name__
    yield from reader.finish()
    if broken:
        fault = f"the packed file cannot be read any further ({broken}); what came before is whole"
        yield Line(reader.number, reader.offset, 0, None, fault)


def open_bytes(path: Path) -> BufferedReader:
    """Open for reading, unpacking gzip and zstd. Raises OSError, also on reading where packed data
    is damaged (EOFError where it breaks off)."""
    if S_ISFIFO(path.stat().st_mode):
        # It has no beginning to come back to, and opening it waits for somebody who writes.
        raise OSError(errno.ESPIPE, "it is a pipe, not a file")
    file = path.open("rb")
    start = file.read(len(ZSTD))
    file.seek(0)
    if start[:2] == GZIP:
        file.close()
        return open_gzip(path)
    if start == ZSTD:
        file.close()
        return open_zstd(path)
    return file


def is_packed(path: Path) -> bool:
    """Whether a file is packed with gzip or zstd: such a file is not appended to. Errors count as
    no."""
    try:
        with path.open("rb") as file:
            start = file.read(len(ZSTD))
            return start[:2] == GZIP or start == ZSTD
    except OSError:
        return False


def unreadable(path: Path, error: BaseException) -> ThresherError:
    """The sentence for a file that cannot be read."""
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ThresherError(
        "Unreadable file", f"{path} cannot be read: {why}. Check the path and its permissions."
    )


def _is_blank(raw: bytes | bytearray) -> bool:
    return not raw or raw.isspace()


def _without_mark(raw: bytes | bytearray) -> bytes | bytearray:
    return raw[len(_BOM) :] if raw.startswith(_BOM) else raw


def _mended(raw: bytes | bytearray, first: str) -> tuple[Any, str]:
    bare = raw.strip(b"\x00 \t\r")
    nuls = raw.count(b"\x00")
    if not bare:
        return None, f"it holds nothing but {nuls:,} NUL bytes"
    text, notes = bare, []
    if nuls:
        notes.append(f"{nuls:,} NUL bytes")
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError as error:
        notes.append(f"invalid UTF-8 at its byte {error.start}, shown as U+FFFD")
        decoded = text.decode("utf-8", errors="replace")
    try:
        value = json.loads(decoded)
        value, surrogates = _scrubbed(value)
    except (ValueError, RecursionError):
        return None, "; ".join([f"not valid JSON: {first}", *notes])
    if surrogates:
        notes.append("half characters (lone surrogates), shown as U+FFFD")
    return value, "; ".join(notes)


def _scrubbed(value: Any) -> tuple[Any, bool]:
    """The value with every lone surrogate replaced, since no encoder takes them."""
    match value:
        case str():
            safe = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return safe, safe != value
        case list():
            pairs = [_scrubbed(each) for each in value]
            return [each for each, _ in pairs], any(found for _, found in pairs)
        case dict():
            keys = [_scrubbed(key) for key in value]
            pairs = [_scrubbed(each) for each in value.values()]
            whole = {key: each for (key, _), (each, _) in zip(keys, pairs, strict=True)}
            return whole, any(found for _, found in [*keys, *pairs])
        case _:
            return value, False


def _named(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a bare true or false"
        case int() | float():
            return "a bare number"
        case str():
            return "a bare text"
        case _:
            return "an array"
