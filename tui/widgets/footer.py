"""The footer: the keys that matter here, and help always within sight.

One widget that draws a line, where Textual's own has a widget for every key and makes all of them
anew whenever the focus moves: half of the time in which a screen opened.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from textual import events
from textual.screen import Screen
from textual.widget import Widget

from ..offering import Offering
from ..spans import Line, Tone, pad, span, width
from .lines import Lines

_HELP = ("help", "app.help")


class _Key(NamedTuple):
    """One key of the line: as it is pressed, as it is shown, what it does."""

    key: str
    shown: str
    label: str
    tip: str
    enabled: bool
    help: bool

    def line(self, over: bool) -> Line:
        """How it looks, under the pointer too."""
        key = Tone.KEY if self.enabled else Tone.FAINT
        label = Tone.FAINT if not self.enabled else Tone.STRONG if over else Tone.MUTED
        return [span(f" {self.shown} ", key), span(f"{self.label} ", label)]


class KeyFooter(Lines):
    """Keys that have no room are left out at the right; the help key stays, so that they are found.
    A key that can do nothing in this session is left out, one that can do nothing now is faint
    where there is room, and leaves first where there is none.

    A click on a key is a press of it.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyFooter { dock: bottom; height: 1; background: $background; pointer: pointer; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[_Key] | None = None
        self._places: list[tuple[int, int, _Key]] = []
        """Columns of each key that is shown: from, up to."""
        self._over: _Key | None = None

    def on_mount(self) -> None:
        """Other keys when the screen says so."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def on_unmount(self) -> None:
        """No more."""
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _changed(self, screen: Screen[Any]) -> None:
        # Several parts of a screen say so in a row while it opens: what is there is looked up once.
        self._keys = None
        self.call_after_refresh(self.show)

    def draw(self, cells: int, height: int) -> list[Line]:
        """The keys that fit, and help at the right edge."""
        if self._keys is None:
            self._keys = list(_keys_of(self))
        line: Line = []
        last: Line = []
        self._places = []
        for key in (key for key in self._keys if key.help):
            last = [span(" "), *key.line(key == self._over)]
            self._places.append((cells - width(last), cells, key))
        room = cells - width(last)
        others = [key for key in self._keys if not key.help]
        if sum(width(key.line(False)) for key in others) > room:
            others = [key for key in others if key.enabled]
        for key in others:
            told = key.line(key == self._over)
            at = width(line)
            if at + width(told) > room:
                break
            self._places.append((at, at + width(told), key))
            line += told
        return [[*pad(line, room), *last]]

    def _at(self, x: int) -> _Key | None:
        return next((key for start, end, key in self._places if start <= x < end), None)

    def tip_at(self, x: int, y: int) -> str:
        """What the key under the pointer does."""
        key = self._at(x)
        return key.tip if key is not None else ""

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The key under the pointer is lit."""
        self._light(self._at(event.x))

    def on_leave(self) -> None:
        """None is."""
        self._light(None)

    def _light(self, key: _Key | None) -> None:
        if key != self._over:
            self._over = key
            self.show()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Press the key."""
        key = self._at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)


def _keys_of(widget: Widget) -> list[_Key]:
    """The keys to show on the screen of a widget, one for each action, help among them once."""
    found: dict[str, _Key] = {}
    screen = widget.screen
    for _, binding, enabled, tip in screen.active_bindings.values():
        if not binding.show or binding.action in found:
            continue
        offer = screen.offers(binding.id) if isinstance(screen, Offering) and binding.id else True
        if offer is False:
            continue
        shown = widget.app.get_key_display(binding)
        found[binding.action] = _Key(
            binding.key, shown, binding.description, tip, enabled and offer is True,
            binding.action in _HELP,
        )  # fmt: skip
    return list(found.values())
