"""The bases of our screens: what a screen does twice on its way to the first picture is done once.

Textual matches the rules with every widget of a screen when it is mounted, and again when it comes
on top, which for a new screen is the next thing that happens. And it renders every line of the
ground of a screen for itself, under what covers it too.
"""

from __future__ import annotations

from typing import TypeVar

from textual import events
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip

from ..theme import Rules

Answer = TypeVar("Answer")


class StyledScreen(Screen[Answer]):
    """A screen that is styled once while it opens; whenever it comes on top again, as any other."""

    _styled_by = -1
    """The version of the rules it was styled by last."""
    _was_on_top = False

    def notify_style_update(self) -> None:
        """Styles are in force: these are the rules they came from."""
        super().notify_style_update()
        rules = self.app.stylesheet
        self._styled_by = rules.version if isinstance(rules, Rules) else -1

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """New, and no rule came in between: every widget has the styles that it would get."""
        rules = self.app.stylesheet
        if not self._was_on_top and isinstance(rules, Rules) and rules.version == self._styled_by:
            event.refresh_styles = False
        self._was_on_top = True


class FullScreen(StyledScreen[Answer]):
    """A screen that hides those under it. Its ground is of one colour and has no border."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """The ground: every line is the same."""
        return super().render_lines(crop._replace(height=1)) * crop.height
