"""The base of our widgets: lines of spans, drawn with the colours that the theme gives to tones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from ..plain import plain
from ..spans import Line, Span, Tone, pad

_PALETTE: dict[Tone, tuple[str, str]] = {
    Tone.STRONG: ("foreground", ""),
    Tone.MUTED: ("muted", ""),
    Tone.FAINT: ("faint", ""),
    Tone.RULE: ("rule", ""),
    Tone.ACCENT: ("primary", ""),
    Tone.REMOVED: ("removed", ""),
    Tone.KEPT: ("kept", ""),
    Tone.REWRITTEN: ("rewritten", ""),
    Tone.INSERTED: ("inserted", ""),
    Tone.SUMMARY: ("summary", ""),
    Tone.THRESHOLD: ("threshold", ""),
    Tone.FAILED: ("removed", ""),
    Tone.PART_SYSTEM: ("part-system", ""),
    Tone.PART_USER: ("part-user", ""),
    Tone.PART_ASSISTANT: ("part-assistant", ""),
    Tone.PART_OUTPUT: ("part-output", ""),
    Tone.PART_REASONING: ("part-reasoning", ""),
    Tone.PART_OTHER: ("part-other", ""),
    Tone.PART_SUMMARY: ("summary", ""),
    Tone.PART_FREE: ("faint", ""),
    Tone.FILL_SYSTEM: ("part-ink", "part-system"),
    Tone.FILL_USER: ("part-ink", "part-user"),
    Tone.FILL_ASSISTANT: ("part-ink", "part-assistant"),
    Tone.FILL_OUTPUT: ("part-ink", "part-output"),
    Tone.FILL_REASONING: ("part-ink", "part-reasoning"),
    Tone.FILL_OTHER: ("part-ink", "part-other"),
    Tone.FILL_SUMMARY: ("part-ink", "summary"),
    Tone.FILL_FREE: ("muted", "part-free"),
    Tone.FILL_RESERVE: ("faint", "part-free"),
    Tone.FILL_THRESHOLD: ("threshold", "part-free"),
    Tone.FOUND: ("part-ink", "primary"),
    Tone.KEY: ("footer-key-foreground", ""),
}
"""The names of the theme's colours for a tone: of the text, and of what is behind it."""

_BOLD = {Tone.STRONG, Tone.FAILED, Tone.FILL_THRESHOLD, Tone.KEY}


class Toned(Widget):
    """A widget that knows the style of every tone.

    The styles are made from the theme's variables and not from component classes: those are
    matched for each widget whenever one of its classes changes, 30 of them for every widget here,
    which was most of the time until the first picture of the console.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._tones: dict[Tone, Style] = {}
        self._variables: dict[str, str] = {}
        self._backgrounds: dict[str, Style] = {}
        self._grounds: dict[Style | None, tuple[Style, dict[Tone, Style]]] = {}
        """What is behind a line with and without `under`: its style, and those of tones on it."""

    def notify_style_update(self) -> None:
        """Colours may have changed: all are looked up anew."""
        self._forget()
        super().notify_style_update()

    def tone(self, tone: Tone) -> Style:
        """The style of a tone in the theme in force."""
        self._look_up()
        return self._styled(tone)

    def _look_up(self) -> None:
        variables = self.app.theme_variables
        if variables is not self._variables:
            self._variables = variables
            self._forget()

    def _forget(self) -> None:
        self._tones.clear()
        self._backgrounds.clear()
        self._grounds.clear()

    def _styled(self, tone: Tone) -> Style:
        style = self._tones.get(tone)
        if style is None:
            style = self._tones[tone] = _style(tone, self._variables)
        return style

    def behind(self, name: str) -> Style:
        """The background of this name in the theme in force, to lie under a line."""
        self._look_up()
        style = self._backgrounds.get(name)
        if style is None:
            colour = Color.parse(self._variables[name]).rich_color
            style = self._backgrounds[name] = Style(bgcolor=colour)
        return style

    def strip(self, line: Iterable[Span], cells: int, under: Style | None = None) -> Strip:
        """A line as a strip of exactly `cells`, on the background of `under`."""
        self._look_up()
        found = self._grounds.get(under)
        if found is None:
            # A strip without a background would show the terminal's own.
            ground = self.rich_style + under if under else self.rich_style
            found = self._grounds[under] = (ground, {})
        ground, styles = found
        # Everything behind this goes over each segment several times: neighbours are joined.
        joined: list[Span] = []
        for text, tone in pad(list(line), cells):
            if joined and joined[-1][1] is tone:
                joined[-1] = (joined[-1][0] + text, tone)
            else:
                joined.append((text, tone))
            if tone not in styles:
                styles[tone] = ground + self._styled(tone)
        return Strip([Segment(text, styles[tone]) for text, tone in joined], cells)


def _style(tone: Tone, variables: dict[str, str]) -> Style:
    names = _PALETTE.get(tone)
    if names is None:
        return Style()
    text, behind = (Color.parse(variables[name]).rich_color if name else None for name in names)
    return Style(color=text, bgcolor=behind, bold=True if tone in _BOLD else None)


class Lines(Toned):
    """A widget of a few lines that a pure function makes for a width and height.

    `show` takes what is to be shown; `draw` makes the lines; only a difference is painted.
    """

    DEFAULT_CSS = """
    Lines { height: 1; width: 1fr; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: list[Line] | None = None
        self._tip = ""

    def draw(self, width: int, height: int) -> list[Line]:
        """The lines for this size."""
        return []

    def show(self) -> None:
        """Draw again; paints only when a line differs."""
        if not self.size:
            return
        lines = self.draw(self.size.width, self.size.height)
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def on_resize(self) -> None:
        """Another size needs other lines."""
        self._lines = None
        self.show()

    def tip_at(self, x: int, y: int) -> str:
        """What the cell under the pointer means: clean text, empty for nothing."""
        return ""

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """The tooltip is that of the cell under the pointer."""
        if type(self).tip_at is Lines.tip_at:
            return
        at = event.get_content_offset(self)
        told = self.tip_at(at.x, at.y) if at is not None else ""
        if told != self._tip:
            self._tip = told
            if told:
                self.tooltip = None
            if told:
                self.tooltip = plain(told)
            else:
                self.tooltip = None

    def render_line(self, y: int) -> Strip:
        """One line of the widget."""
        if self._lines is None:
            self._lines = self.draw(self.size.width, self.size.height)
        if y >= len(self._lines):
            return self.strip([], self.size.width)
        return self.strip(self._lines[y], self.size.width)

    def render(self) -> Any:
        """Unused: `render_line` draws; Textual asks only whether there is something."""
        return ""
