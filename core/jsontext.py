"""JSON of any text: what no UTF-8 can hold becomes readable instead of an error.

Python strings may hold lone surrogates (bytes of a file name, half an emoji of a stream that was
cut between two deltas). They have no UTF-8 form, so no journal, no digest and no request can carry
them as they are. Two halves that belong together are joined; a half that stands alone becomes its
escape, the six characters `\\ud83d`. Inside JSON texts (tool arguments, opaque items) that escape
is the same value; elsewhere it is what a reader can see. All other text is kept exactly.
"""

from __future__ import annotations

from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()
_DETERMINISTIC = msgspec.json.Encoder(order="deterministic")


def encode(value: Any, *, deterministic: bool = False) -> bytes:
    """JSON in UTF-8. `deterministic` sorts the keys of mappings, for digests."""
    try:
        return (_DETERMINISTIC if deterministic else _ENCODER).encode(value)
    except UnicodeEncodeError:
        # Ordered here, since after this step a struct looks like any mapping.
        plain = msgspec.to_builtins(value, order="deterministic" if deterministic else None)
        return _ENCODER.encode(_storable(plain))


def storable(text: str) -> str:
    """The text as a journal keeps it; the same object unless it holds a surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return joined.encode("utf-8", "backslashreplace").decode()
    return text


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
        case _:
            return value
