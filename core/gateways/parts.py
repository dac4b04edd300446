"""Parts of a message that a protocol may have no form for."""

from __future__ import annotations

from typing import Any

import msgspec


def left_out(kind: str) -> str:
    """What stands in the place of a part that the protocol in use has no form for."""
    return f"[a part of kind {kind} was left out here: this protocol has no form for it]"


def json_object(text: str) -> dict[str, Any] | None:
    """The object that a part was kept as; None where the text is none."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None
