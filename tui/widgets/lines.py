"""The base of our widgets: lines of spans, drawn with the colours that the theme gives to tones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from ..spans import Line, Span, Tone, pad


class Toned(Widget):
    """A widget that knows the style of every tone."""

    COMPONENT_CLASSES = {f"tone--{tone}" for tone in Tone}

    DEFAULT_CSS = """
    Toned {
        & > .tone--strong { color: $foreground; text-style: bold; }
        & > .tone--muted { color: $muted; }
        & > .tone--faint { color: $faint; }
        & > .tone--rule { color: $rule; }
        & > .tone--accent { color: $primary; }
        & > .tone--removed { color: $removed; }
        & > .tone--kept { color: $kept; }
        & > .tone--rewritten { color: $rewritten; }
        & > .tone--inserted { color: $inserted; }
        & > .tone--summary { color: $summary; }
        & > .tone--threshold { color: $threshold; }
        & > .tone--failed { color: $removed; text-style: bold; }
        & > .tone--part-system { color: $part-system; }
        & > .tone--part-user { color: $part-user; }
        & > .tone--part-assistant { color: $part-assistant; }
        & > .tone--part-output { color: $part-output; }
        & > .tone--part-reasoning { color: $part-reasoning; }
        & > .tone--part-other { color: $part-other; }
        & > .tone--part-summary { color: $summary; }
        & > .tone--part-free { color: $faint; }
        & > .tone--fill-system { color: $part-ink; background: $part-system; }
        & > .tone--fill-user { color: $part-ink; background: $part-user; }
        & > .tone--fill-assistant { color: $part-ink; background: $part-assistant; }
        & > .tone--fill-output { color: $part-ink; background: $part-output; }
        & > .tone--fill-reasoning { color: $part-ink; background: $part-reasoning; }
        & > .tone--fill-other { color: $part-ink; background: $part-other; }
        & > .tone--fill-summary { color: $part-ink; background: $summary; }
        & > .tone--fill-free { color: $muted; background: $part-free; }
        & > .tone--fill-reserve { color: $faint; background: $part-free; }
        & > .tone--fill-threshold { color: $threshold; background: $part-free; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._tones: dict[Tone, Style] = {}
        self._ground: Style | None = None

    def notify_style_update(self) -> None:
        """The theme changed: every tone is looked up anew."""
        self._tones.clear()
        self._ground = None
        super().notify_style_update()

    def tone(self, tone: Tone) -> Style:
        """The style of a tone in the theme in force."""
        style = self._tones.get(tone)
        if style is None:
            style = self.get_component_rich_style(f"tone--{tone}", partial=True)
            self._tones[tone] = style
        return style

    def strip(self, line: Iterable[Span], cells: int, under: Style | None = None) -> Strip:
        """A line as a strip of exactly `cells`, on the background of `under`."""
        # A strip without a background would show the terminal's own.
        if self._ground is None:
            self._ground = self.rich_style
        ground = self._ground + under if under else self._ground
        padded = pad(list(line), cells)
        return Strip([Segment(text, ground + self.tone(tone)) for text, tone in padded], cells)


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
