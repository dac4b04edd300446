"""The help screen: every key, from the same table that binds them, and what the signs mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.getters import query_one
from textual.screen import Screen
from textual.widget import Widget

from ..keys import KEYS, Key, Where, bindings, grouped, shown_keys
from ..offering import Offering
from ..plain import PlainStatic
from ..spans import Line, Tone, column, pad, span, wrap
from ..theme import ThemedApp, key_words
from ..widgets.lines import Lines
from .dialog import Dialog

_KEYS = 18
_TWO_COLUMNS = 84
_GAP = 4
_SHARED = (Where.ROWS, Where.LIST, Where.APP)

SIGNS: tuple[tuple[str, Tone, str], ...] = (
    ("-", Tone.REMOVED, "removed: the model does not see it any more"),
    ("=", Tone.KEPT, "kept as it was"),
    ("~", Tone.REWRITTEN, "rewritten: cut, or a placeholder"),
    ("+", Tone.INSERTED, "inserted by the compaction"),
    ("▣", Tone.ACCENT, "pinned: it survives every compaction"),
    ("\u25cf", Tone.ACCENT, "running now"),
)
FIGURES: tuple[tuple[str, Tone, str], ...] = (
    ("1,234", Tone.STRONG, "reported, or counted as the model does"),
    (
        "~1,234",
        Tone.STRONG,
        "estimated from the text; timeline and meter put it right by reports, cards do not",
    ),
    ("?", Tone.STRONG, "not known; nothing is assumed in its place"),
    ("#42", Tone.STRONG, "an entry: the line of the record that made it"),
)


def places_of(screen: Screen[object]) -> list[Where]:
    """The places whose keys work on a screen, as it and its visible widgets bind them; and
    everywhere."""
    where = {key.id: key.where for key in KEYS}
    bound = {
        where[binding.id]
        for node in (screen, *screen.query("*"))
        if all(part.display for part in node.ancestors_with_self if isinstance(part, Widget))
        for binding in type(node).BINDINGS
        if isinstance(binding, Binding) and binding.id in where
    }
    return [place for place in Where if place in bound or place is Where.APP]


def useless(screen: Screen[object]) -> frozenset[str]:
    """The ids of the keys that can never do anything on a screen as it is."""
    if not isinstance(screen, Offering):
        return frozenset()
    return frozenset(key.id for key in KEYS if screen.offers(key.id) is False)


def key_lines(width: int, places: Iterable[Where], table: Sequence[Key] = KEYS) -> list[list[Line]]:
    """One block of lines for every group of keys."""
    blocks: list[list[Line]] = []
    # What only this screen can do comes before what every list can.
    groups = sorted(
        grouped(places, table), key=lambda each: all(k.where in _SHARED for k in each[1])
    )
    for group, rows in groups:
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


def help_lines(
    width: int, places: Iterable[Where] = Where, table: Sequence[Key] = KEYS
) -> list[Line]:
    """The whole help in one column, or in two where they fit."""
    two = width >= _TWO_COLUMNS
    cells = (width - _GAP) // 2 if two else width
    blocks = key_lines(cells, places, table)
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
    """The help, as high as it needs to be. `places` are those of the screen it is about, `without`
    the ids of keys that can do nothing there."""

    def __init__(self, places: Sequence[Where], without: Collection[str] = ()) -> None:
        super().__init__()
        self._here, self._without = tuple(places), without
        self.everything = not self._here

    def turn(self) -> None:
        """From the keys of this screen to all there are, or back."""
        self.everything = not self.everything or not self._here
        self._lines = None
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """All lines."""
        return len(self.draw(width, 0))

    def draw(self, width: int, height: int) -> list[Line]:
        """The help for this width."""
        app = self.app
        table = app.key_table if isinstance(app, ThemedApp) else KEYS
        if self.everything:
            return help_lines(width, Where, table)
        return help_lines(width, self._here, [key for key in table if key.id not in self._without])


class HelpScreen(Dialog[None]):
    """Keys and signs: those of the screen below, or all. The help key closes it again."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.HELP)

    body = query_one(HelpBody)

    def __init__(self, places: Sequence[Where] = (), without: Collection[str] = ()) -> None:
        super().__init__()
        self._places, self._without = places, without

    def compose(self) -> ComposeResult:
        """A title over the help, which scrolls where it does not fit."""
        with Vertical(classes="dialog"):
            yield PlainStatic(classes="dialog-title")
            with VerticalScroll(can_focus=True):
                yield HelpBody(self._places, self._without)

    def on_mount(self) -> None:
        """Say what is shown."""
        self._entitle()

    def _entitle(self) -> None:
        key = key_words(self.app, "help.all")
        told = "all keys, and signs" if self.body.everything else "keys of this screen, and signs"
        other = f"   {key}: only this screen" if self.body.everything else f"   {key}: all keys"
        self.query_one(PlainStatic).show(f"{told}{other if self._places else ''}")

    def action_everything(self) -> None:
        """All keys, or those of the screen below."""
        self.body.turn()
        self._entitle()
