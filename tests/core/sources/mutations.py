"""Recordings, damaged in every way that a property test can think of.

Tests import it by its place: `from .mutations import mutated`. What begins like a packed file is
left out: it is another kind of file, and refused as one that is damaged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.sources.packed import ZSTD
from thresher.core.sources.report import state_at
from thresher.core.state import SessionState

_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8)
)
JUNK = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
PACKED = (b"\x1f\x8b", ZSTD)
DEEP = b'{"type":"message","id":"deep","parentId":null,"x":' + b"[" * 5000 + b"]" * 5000 + b"}\n"


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to every value inside."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, each in value.items():
            found += places(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            found += places(each, (*path, at))
    return found


class Recording(bytes):
    """Shown by its size: a whole recording is too long to print."""

    def __repr__(self) -> str:
        return f"Recording of {len(self):,} bytes"


def recording(data: bytes) -> Recording:
    assume(not data.startswith(PACKED))
    return Recording(data)


def sound(records: Sequence[e.Record]) -> SessionState:
    """The state after records of a damaged file: they fit together, and each can be stored."""
    state = state_at(records)
    assert not [problem for problem in state.problems if problem.kind == "record"]
    numbers = [record.n for record in records]
    assert numbers == sorted(numbers)
    for record in records:
        assert e.decode(e.encode(record)).event == record.event
    return state


@st.composite
def mutated_value(draw: st.DrawFn, value: Any) -> Any:
    """A value with one thing inside it changed or taken out."""
    found = places(value)
    if not found:
        return value
    value = json.loads(json.dumps(value))
    *way, last = draw(st.sampled_from(found))
    parent = value
    for step in way:
        parent = parent[step]
    if isinstance(parent, dict) and draw(st.booleans()):
        del parent[last]
    else:
        parent[last] = draw(JUNK)
    return value


@st.composite
def mutated(draw: st.DrawFn, recordings: Sequence[Sequence[bytes]]) -> bytes:
    """One of the recordings (as lines) with up to six mutations."""
    lines = list(draw(st.sampled_from(recordings)))
    kinds = ["drop", "double", "swap", "cut", "bytes", "nul", "deep", "value", "value", "value"]
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(kinds)):
            case "drop":
                lines[at] = b""
            case "double":
                lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "bytes":
                place = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:place] + draw(st.binary(max_size=6)) + lines[at][place:]
            case "nul":
                lines.insert(at, b"\x00" * draw(st.integers(1, 600)) + b"\n")
            case "deep":
                lines.insert(at, DEEP)
            case _:
                try:
                    value = json.loads(lines[at])
                except (ValueError, RecursionError):
                    continue
                lines[at] = json.dumps(draw(mutated_value(value))).encode() + b"\n"
    return recording(b"".join(lines))
