"""The help screen: every key, from the same table that binds them, and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size

from ..keys import Where, bindings, grouped, shown_keys
from ..plain import PlainStatic
from ..spans import Line, Tone, column, pad, span, wrap
from ..widgets.lines import Lines
from .dialog import Dialog

_KEYS = 18
_TWO_COLUMNS = 84
_GAP = 4

SIGNS: tuple[tuple[str, Tone, str], ...] = (
    ("-", Tone.REMOVED, "removed: the model does not see it any more"),
    ("=", Tone.KEPT, "kept as it was"),
    ("~", Tone.REWRITTEN, "rewritten: cut, or a placeholder"),
    ("+", Tone.INSERTED, "inserted by the compaction"),
    ("\u25cf", Tone.ACCENT, "running now"),
)
FIGURES: tuple[tuple[str, Tone, str], ...] = (
    ("1,234", Tone.STRONG, "reported, or counted as the model does"),
    ("~1,234", Tone.STRONG, "estimated from the text"),
    ("?", Tone.STRONG, "not known; nothing is assumed in its place"),
    ("#42", Tone.STRONG, "an entry: the line of the record that made it"),
)


def key_lines(width: int, places: Iterable[Where]) -> list[list[Line]]:
    """One block of lines for every group of keys."""
    blocks: list[list[Line]] = []
    for group, rows in grouped(places):
        block: list[Line] = [[span(group.value, Tone.ACCENT)]]
        for key in rows:
            names = column(shown_keys(key), _KEYS, Tone.STRONG)
            first, *rest = wrap(key.tip, width - _KEYS)
            block.append([names, span(first)])
            block += [[span(" " * _KEYS), span(more)] for more in rest]
        blocks.append(block)
    return blocks


def sign_lines(title: str, signs: Iterable[tuple[str, Tone, str]], width: int) -> list[Line]:
    """What signs mean, one a line."""
    lines: list[Line] = [[span(title, Tone.ACCENT)]]
    for sign, tone, words in signs:
        first, *rest = wrap(words, width - 8)
        lines.append([column(sign, 8, tone), span(first)])
        lines += [[span(" " * 8), span(more)] for more in rest]
    return lines


def help_lines(width: int, places: Iterable[Where] = Where) -> list[Line]:
    """The whole help in one column, or in two where they fit."""
    two = width >= _TWO_COLUMNS
    cells = (width - _GAP) // 2 if two else width
    blocks = key_lines(cells, places)
    blocks.append(sign_lines("Entries", SIGNS, cells))
    blocks.append(sign_lines("Figures", FIGURES, cells))
    if not two:
        return _stacked(blocks)
    split = min(range(1, len(blocks)), key=lambda at: _height(blocks, at))
    nothing: Line = []
    rows = zip_longest(_stacked(blocks[:split]), _stacked(blocks[split:]), fillvalue=nothing)
    return [[*pad(a, cells), span(" " * _GAP), *b] for a, b in rows]


def _height(blocks: list[list[Line]], split: int) -> int:
    return max(len(_stacked(blocks[:split])), len(_stacked(blocks[split:])))


def _stacked(blocks: list[list[Line]]) -> list[Line]:
    lines: list[Line] = []
    for block in blocks:
        lines += [[], *block] if lines else block
    return lines


class HelpBody(Lines):
    """The help, as high as it needs to be."""

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """All lines."""
        return len(help_lines(width))

    def draw(self, width: int, height: int) -> list[Line]:
        """The help for this width."""
        return help_lines(width)


class HelpScreen(Dialog[None]):
    """Keys and signs. The help key closes it again."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.HELP)

    def compose(self) -> ComposeResult:
        """A title over the help, which scrolls where it does not fit."""
        with Vertical(classes="dialog"):
            yield PlainStatic("thresher: keys and signs", classes="dialog-title")
            with VerticalScroll(can_focus=True):
                yield HelpBody()

    def on_click(self, event: events.Click) -> None:
        """A click beside it closes it."""
        if event.widget is self:
            self.action_close()
