"""The help screen: every key, from the same table that binds them, and what the signs mean."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.dom import DOMNode
from textual.geometry import Size
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from ..keys import KEYS, Key, Where, bindings, grouped, shown, shown_keys
from ..offering import Offering
from ..spans import Line, Tone, column, pad, span, wrap
from ..theme import ThemedApp, key_words
from ..widgets.choices import Choice, Choices
from ..widgets.lines import Lines
from .dialog import Dialog

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
FILTERS: tuple[tuple[str, Tone, str], ...] = (
    ('"two words"', Tone.STRONG, "just as they stand"),
    ("-word", Tone.STRONG, "without this word"),
    ("tool:bash", Tone.STRONG, "of this tool; a part of its name will do"),
    ("role:output", Tone.STRONG, "of this role: user, assistant, call, output, ..."),
    ("removed:2", Tone.STRONG, "by compaction 2; removed:any, by whatever"),
    ("in:summary", Tone.STRONG, "in a summary; in:context, what the model sees"),
    ("has:error", Tone.STRONG, "the errors; has:compaction, the compactions"),
    ("size:>10k", Tone.STRONG, "above so many tokens; size:<500, below"),
    ("id:42", Tone.STRONG, "the entry #42"),
)
"""What can be typed to find less; told where one types it."""


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


def node_of(screen: Screen[object], key: Key) -> DOMNode | None:
    """What takes a key on a screen: what has the focus where that does, else what is in view; None
    where nothing does."""
    if key.where is Where.APP:
        return screen.app
    nodes = (screen.focused, screen, *screen.query("*"))
    return next((node for node in nodes if node is not None and _binds(node, key)), None)


def _binds(node: Widget, key: Key) -> bool:
    return all(part.display for part in node.ancestors_with_self if isinstance(part, Widget)) and (
        any(isinstance(each, Binding) and each.id == key.id for each in type(node).BINDINGS)
    )


class Row(NamedTuple):
    """A line of the help, and the keys it tells of: from and up to which cell."""

    line: Line
    keys: tuple[tuple[int, int, Key], ...] = ()


def key_rows(width: int, places: Iterable[Where], table: Sequence[Key] = KEYS) -> list[list[Row]]:
    """One block of rows for every group of keys."""
    blocks: list[list[Row]] = []
    places = list(places)
    shown_here = (shown_keys(key) for key in table if key.where in places)
    keys = max(map(len, shown_here), default=0) + 2
    # What only this screen can do comes before what every list can.
    groups = sorted(
        grouped(places, table), key=lambda each: all(k.where in _SHARED for k in each[1])
    )
    for group, rows in groups:
        block = [Row([span(group.value, Tone.ACCENT)])]
        for key in rows:
            names = column(shown_keys(key), keys, Tone.KEY)
            first, *rest = wrap(key.tip, width - keys)
            here = ((0, width, key),)
            block.append(Row([names, span(first)], here))
            block += [Row([span(" " * keys), span(more)], here) for more in rest]
        blocks.append(block)
    return blocks


def sign_lines(title: str, signs: Iterable[tuple[str, Tone, str]], width: int) -> list[Line]:
    """What signs mean, one a line."""
    lines: list[Line] = [[span(title, Tone.ACCENT)]]
    signs = list(signs)
    cells = max(8, 2 + max(len(sign) for sign, _, _ in signs))
    for sign, tone, words in signs:
        first, *rest = wrap(words, width - cells)
        lines.append([column(sign, cells, tone), span(first)])
        lines += [[span(" " * cells), span(more)] for more in rest]
    return lines


def help_rows(
    width: int, places: Iterable[Where] = Where, table: Sequence[Key] = KEYS
) -> list[Row]:
    """The whole help in one column, or in two where they fit."""
    two = width >= _TWO_COLUMNS
    cells = (width - _GAP) // 2 if two else width
    places = list(places)
    blocks = key_rows(cells, places, table)
    filters = (("Finding", FILTERS),) if Where.FIND in places else ()
    for title, signs in (*filters, ("Entries", SIGNS), ("Figures", FIGURES)):
        blocks.append([Row(line) for line in sign_lines(title, signs, cells)])
    if not two:
        return _stacked(blocks)
    split = min(range(1, len(blocks)), key=lambda at: _height(blocks, at))
    rows = zip_longest(_stacked(blocks[:split]), _stacked(blocks[split:]), fillvalue=Row([]))
    begin = cells + _GAP
    return [
        Row(
            [*pad(a.line, cells), span(" " * _GAP), *b.line],
            (*a.keys, *((begin + start, begin + end, key) for start, end, key in b.keys)),
        )
        for a, b in rows
    ]


def _height(blocks: list[list[Row]], split: int) -> int:
    return max(len(_stacked(blocks[:split])), len(_stacked(blocks[split:])))


def _stacked(blocks: list[list[Row]]) -> list[Row]:
    rows: list[Row] = []
    for block in blocks:
        rows += [Row([]), *block] if rows else block
    return rows


class HelpBody(Lines):
    """The help, as high as it needs to be. `places` are those of the screen it is about, `without`
    the ids of keys that can do nothing there. A click on a key is a press of it."""

    class Pressed(Message):
        """A key of the screen below was clicked."""

        def __init__(self, key: Key) -> None:
            super().__init__()
            self.key = key

    def __init__(self, places: Sequence[Where], without: Collection[str] = ()) -> None:
        super().__init__()
        self._here, self._without = tuple(places), without
        self.everything = not self._here
        self._made: tuple[tuple[int, bool], list[Row]] | None = None

    def turn(self) -> None:
        """From the keys of this screen to all there are, or back."""
        self.everything = not self.everything or not self._here
        self._lines = None
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """All lines."""
        return len(self._rows(width))

    def draw(self, width: int, height: int) -> list[Line]:
        """The help for this width."""
        return [row.line for row in self._rows(width)]

    def _rows(self, width: int) -> list[Row]:
        asked = (width, self.everything)
        if self._made is None or self._made[0] != asked:
            app = self.app
            table = app.key_table if isinstance(app, ThemedApp) else KEYS
            mine = [key for key in table if key.id not in self._without]
            rows = help_rows(width, *((Where, table) if self.everything else (self._here, mine)))
            self._made = asked, rows
        return self._made[1]

    def key_at(self, x: int, y: int) -> Key | None:
        """The key of the screen below that stands at a cell."""
        rows = self._rows(self.size.width)
        keys = rows[y].keys if 0 <= y < len(rows) else ()
        found = next((key for start, end, key in keys if start <= x < end), None)
        here = found is not None and found.where in self._here and found.id not in self._without
        return found if here else None

    def tip_at(self, x: int, y: int) -> str:
        """That it can be clicked."""
        key = self.key_at(x, y)
        return f"A click presses {shown(key.keys.split(',')[0])}" if key is not None else ""

    def on_click(self, event: events.Click) -> None:
        """Press the key."""
        key = self.key_at(event.x, event.y)
        if key is not None:
            self.post_message(self.Pressed(key))


class HelpScreen(Dialog[Key]):
    """Keys and signs: those of the screen below, or all. The help key closes it again. Answers the
    key that was clicked, or None."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.HELP)

    body = query_one(HelpBody)

    def __init__(self, places: Sequence[Where] = (), without: Collection[str] = ()) -> None:
        super().__init__()
        self._places, self._without = places, without

    def compose(self) -> ComposeResult:
        """A title over the help, which scrolls where it does not fit."""
        with Vertical(classes="dialog"):
            yield Choices([], classes="dialog-title")
            with VerticalScroll(can_focus=True):
                yield HelpBody(self._places, self._without)

    def on_mount(self) -> None:
        """Say what is shown."""
        self._entitle()

    def _entitle(self) -> None:
        everything = self.body.everything
        told = "all keys, and signs" if everything else "keys of this screen, and signs"
        does = "only this screen" if everything else "all keys"
        ways = [Choice(key_words(self.app, "modal.close"), "closes", "close")]
        if self._places:
            ways = [Choice(key_words(self.app, "help.all"), does, "everything"), *ways]
        self.query_one(Choices).set(ways, [span(told, Tone.STRONG), span("   ")])

    def action_everything(self) -> None:
        """All keys, or those of the screen below."""
        self.body.turn()
        self._entitle()

    @on(HelpBody.Pressed)
    def _pressed(self, message: HelpBody.Pressed) -> None:
        self.dismiss(message.key)
