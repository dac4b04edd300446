"""The stand-in's sealed summaries: it can play the endpoint that compacts by itself.

Sealed here means packed, not secret: the text is the stand-in's own summary, and only the stand-in
unpacks it again. Everything else treats it as the opaque item that a provider would give.
"""

from __future__ import annotations

import base64
import binascii
import zlib

_MARK = b"offline-stand-in:"
_MOST = 1 << 20
"""Bytes of text that are unpacked at most."""


def seal(text: str) -> str:
    """A summary as the encrypted content of an item."""
    packed = zlib.compress(text.encode("utf-8", "backslashreplace"), 9)
    return base64.b64encode(_MARK + packed).decode("ascii")


def unseal(sealed: str) -> str:
    """The text of an item that the stand-in sealed; empty for anything else."""
    try:
        data = base64.b64decode(sealed, validate=True)
        if not data.startswith(_MARK):
            return ""
        return zlib.decompressobj().decompress(data[len(_MARK) :], _MOST).decode("utf-8")
    except (binascii.Error, zlib.error, ValueError):
        return ""
