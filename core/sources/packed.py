"""Packed files, read as a stream: gzip, and zstd (RFC 8878), with which Codex packs old rollouts.

Python has a decoder of zstd from 3.14 on; before that it is `backports.zstd`, the same module for
older versions. It is imported when the first such file is opened.
"""

from __future__ import annotations

import io
import sys
import zlib
from gzip import GzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

GZIP: Final = b"\x1f\x8b"
"""The first bytes of a gzip file."""

ZSTD: Final = b"\x28\xb5\x2f\xfd"
"""The first bytes of a zstd frame."""
_WINDOW_LOG: Final = 27
"""Frames that want more than 128 MiB of memory to be unpacked are refused, as by `zstd` itself."""
_BUFFER: Final = 1 << 17


def open_zstd(path: Path) -> io.BufferedReader:
    """Open for reading, unpacked. Errors, also those of the packed data, are OSError or EOFError
    (the data breaks off)."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    file = zstd.ZstdFile(path, "rb", options=options)
    return io.BufferedReader(_Unpacked(file, zstd.ZstdError, "zstd"), _BUFFER)


def open_gzip(path: Path) -> io.BufferedReader:
    """The same for gzip."""
    return io.BufferedReader(_Unpacked(GzipFile(path, "rb"), zlib.error, "gzip"), _BUFFER)


def beginning(file: io.BufferedReader, size: int) -> bytes:
    """The first bytes of a file, at most `size`; of packed data that is damaged behind its
    first line what comes before. Errors are those of `file`, when there is no whole line."""
    pieces: list[bytes] = []
    left = size
    while left > 0:
        try:
            piece = file.read1(left)
        except (OSError, EOFError):
            if not any(b"\n" in each for each in pieces):
                raise
            break
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


class _Packed(Protocol):
    def read1(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int, /) -> int: ...
    def close(self) -> None: ...


class _Unpacked(io.RawIOBase):
    """The bytes behind all frames of a file; what its decoder raises for damaged data is an OSError
    here."""

    def __init__(self, file: _Packed, error: type[Exception], form: str) -> None:
        self._file = file
        self._error = error
        self._form = form

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with memoryview(buffer) as view:
            try:
                data = self._file.read1(view.nbytes)
            except self._error as error:
                raise self._damaged(error) from error
            view[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        try:
            return int(self._file.seek(offset, whence))
        except self._error as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> OSError:
        return OSError(f"the {self._form} data is damaged ({error})")

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()
