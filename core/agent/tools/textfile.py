"""Text files as bytes and back: encoding, byte order mark and line ends are kept."""

from __future__ import annotations

import codecs
import os
from pathlib import Path
from typing import Final

import msgspec

from .base import ToolError
from .workspace import Workspace, quoted

MAX_BYTES: Final = 32 * 2**20
"""The largest file that is taken into memory."""

_SNIFFED: Final = 8192

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# Signatures from the formats' own specifications.
_KINDS: Final = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"RIFF", "a RIFF file (WebP, WAV or AVI)"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or docx, xlsx, jar, wheel)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"OTTO", "a font"),
    (b"wOF", "a font"),
)
_TEXT_CONTROLS: Final = frozenset(b"\t\n\r\f\b\x1b")


class TextFile(msgspec.Struct, frozen=True):
    """The text of a file and what is needed to write it back the same way."""

    text: str
    encoding: str
    """A codec name: utf-8, utf-16-le, utf-16-be, or latin-1 when it is none of these."""
    bom: bytes = b""

    @property
    def newline(self) -> str:
        """The line end that most lines have."""
        return "\r\n" if self.text.count("\r\n") * 2 > self.text.count("\n") else "\n"

    def encode(self, text: str) -> bytes:
        """`text` in this file's encoding. Raises UnicodeEncodeError if it cannot hold it."""
        return self.bom + text.encode(self.encoding)


def read_bytes(workspace: Workspace, real: Path) -> bytes:
    """The whole file. Raises ToolError over MAX_BYTES, OSError and PathRefused otherwise."""
    with workspace.open(real) as file:
        data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            size = os.fstat(file.fileno()).st_size
            raise ToolError(
                f"{quoted(workspace.relative(real))} has {size:,} bytes, more than the "
                f"{MAX_BYTES:,} that are read: take a part of it with bash (head, tail, sed -n)."
            )
    return data


def decode(data: bytes) -> TextFile | None:
    """The text in `data`, or None if it is binary."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return TextFile(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                break
    if b"\0" in data[:_SNIFFED]:
        return None
    try:
        return TextFile(data.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        sample = data[:_SNIFFED]
        controls = sum(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in sample)
        if controls * 20 > len(sample) or any(data.startswith(magic) for magic, _ in _KINDS):
            return None
        return TextFile(data.decode("latin-1"), "latin-1")


def kind(data: bytes) -> str:
    """What binary data probably is, in words."""
    return next((name for magic, name in _KINDS if data.startswith(magic)), "binary data")


def split_lines(text: str) -> list[str]:
    """Lines without their ends. Only LF and CR LF end one, so that numbers agree with grep -n."""
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines
