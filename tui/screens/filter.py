"""A dialog to choose which rows of a diff are shown."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from thresher.core.insight.alignment import RowKind
from thresher.core.insight.diff import Diff, Filter
from thresher.core.text import clean_line

from ..plain import PlainStatic
from ..spans import Line, Tone, column, cut, span, spread
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from ..widgets.diff_lines import ORDER, SIGNS
from ..widgets.row_list import RowList
from .dialog import Dialog

SIZES = (100, 1_000, 5_000, 20_000)
MOST_TOOLS = 200


class _Sieve(NamedTuple):
    """One line: of which group, its value, and how many rows it would let through."""

    group: str
    value: str
    rows: int = -1


class FilterScreen(Dialog[Filter]):
    """Toggles by Enter or a click; answers the filter when it is closed."""

    def __init__(self, diff: Diff, by: Filter) -> None:
        super().__init__()
        self._by = by
        self._choices = list(_choices(diff))
        self._rows = RowList()

    def compose(self) -> ComposeResult:
        """All there is to choose from, with counts."""
        with Vertical(classes="dialog list"):
            yield PlainStatic("show only", classes="dialog-title")
            yield self._rows
            yield Choices(
                [
                    Choice(key_words(self.app, "list.open"), "turns it on or off", "choose"),
                    Choice(key_words(self.app, "modal.close"), "shows what is left", "close"),
                ]
            )

    def on_mount(self) -> None:
        """Begin at the top."""
        self._rows.fill(len(self._choices), self._line)
        self._rows.focus()

    def action_choose(self) -> None:
        """Turn the selected line on or off."""
        self._rows.action_select()

    @on(RowList.Opened)
    def _toggled(self) -> None:
        choice = self._choices[self._rows.cursor]
        match choice.group:
            case "change":
                kinds = self._by.kinds ^ {RowKind(choice.value)}
                self._by = msgspec.structs.replace(self._by, kinds=kinds)
            case "role":
                self._by = msgspec.structs.replace(self._by, roles=self._by.roles ^ {choice.value})
            case "tool":
                self._by = msgspec.structs.replace(self._by, tools=self._by.tools ^ {choice.value})
            case _:
                least = int(choice.value)
                least = 0 if self._by.least == least else least
                self._by = msgspec.structs.replace(self._by, least=least)
        self._rows.again()

    def _chosen(self, choice: _Sieve) -> bool:
        by = self._by
        match choice.group:
            case "change":
                return choice.value in by.kinds
            case "role":
                return choice.value in by.roles
            case "tool":
                return choice.value in by.tools
            case _:
                return int(choice.value) == by.least

    def _line(self, at: int, cells: int) -> Line:
        choice = self._choices[at]
        first = not at or self._choices[at - 1].group != choice.group
        value = clean_line(choice.value, 60)
        told: Line = [span(value)]
        if choice.group == "change":
            glyph, tone = SIGNS[RowKind(choice.value)]
            told = [span(f"{glyph} ", tone), span(value)]
        elif choice.group == "size":
            told = [span(f"from {int(choice.value):,} tokens")]
        mark = span("● " if self._chosen(choice) else "· ", Tone.ACCENT if self._chosen(choice)
                    else Tone.FAINT)  # fmt: skip
        left: Line = [column(cut(choice.group, 8) if first else "", 9, Tone.MUTED), mark, *told]
        right: Line = [span(f"{choice.rows:,}", Tone.MUTED)] if choice.rows >= 0 else []
        return spread(left, right, cells)

    def action_close(self) -> None:
        """Back, with what was chosen."""
        self.dismiss(self._by)


def _choices(diff: Diff) -> list[_Sieve]:
    kinds = diff.rows.counts()
    roles = Counter(diff.role(row) for row in diff.rows)
    tools = Counter(filter(None, (diff.tool(row) for row in diff.rows)))
    found = [_Sieve("change", kind.value, kinds[kind]) for kind in ORDER if kinds[kind]]
    found += [_Sieve("role", role, rows) for role, rows in roles.most_common()]
    found += [_Sieve("tool", tool, rows) for tool, rows in tools.most_common(MOST_TOOLS)]
    return [*found, *(_Sieve("size", str(size)) for size in SIZES)]
