"""What a Claude Code session holds that is not known, not new, or not whole: counted and listed."""

from __future__ import annotations

from typing import Any

from .. import events as e
from .claude_items import unknown_blocks
from .claude_known import FIELDS
from .claude_reading import Reading
from .codex_items import json_of
from .lines import Line


class Oddities:
    """The fold over everything that does not fit."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._fields: set[str] = set()
        self.repeats: tuple[int, int] | None = None
        """The first and the last line of a run of records that the file held already."""

    def unknown(self, n: int, kind: str, value: object) -> None:
        """Something of a kind that is not known."""
        size = len(json_of(value))
        self._r.out.add(n, e.UnknownRecord(type=kind or "(no type)", line=n, size=size))

    def blocks(self, n: int, content: object) -> None:
        """Look for unknown blocks in a message."""
        for kind in unknown_blocks(content):
            self.unknown(n, f"block {kind}", content)

    def fields(self, n: int, kind: str, value: dict[str, Any]) -> None:
        """Look for unknown fields in a record."""
        known = FIELDS.get(kind)
        if known is None or known.issuperset(value):
            return
        for field in sorted(value.keys() - known):
            name = f"field {kind}.{field}"
            if name not in self._fields:
                # Named once: a field of every record would else fill the timeline.
                self._fields.add(name)
                self.unknown(n, name, value[field])

    def repeated(self, n: int) -> None:
        """A record that the file held already."""
        self.repeats = (self.repeats[0] if self.repeats else n, n)

    def tell_repeats(self) -> None:
        """A run of such records is over."""
        repeats, self.repeats = self.repeats, None
        if repeats is not None:
            first, last = repeats[0] + 1, repeats[1] + 1
            span = f"line {first}" if first == last else f"lines {first} to {last}"
            text = f"{span}: records that the file holds already; the first of each counts"
            self._r.note(self._r.out.not_before(repeats[1]), "duplicate", text)

    def bad(self, line: Line) -> None:
        """A line that could not be read, or only after mending it."""
        fate = "is left out" if line.value is None else "was mended"
        message = f"line {line.number + 1} (byte {line.offset:,}) {fate}: {line.fault}"
        self._r.out.add(
            line.number,
            e.ErrorRaised(kind="bad_line", message=message, line=line.number, offset=line.offset),
        )
