"""Digests of what goes over the wire: the request that was sent is the only witness."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from . import jsontext

SHORT = 12
"""Hex digits of a message's digest."""


def wire_digests(messages: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], str]:
    """A short digest for each message on the wire, and one (64 hex digits) for the whole."""
    each = tuple(
        hashlib.sha256(jsontext.encode(message, deterministic=True)).hexdigest()[:SHORT]
        for message in messages
    )
    return each, hashlib.sha256("".join(each).encode()).hexdigest()
