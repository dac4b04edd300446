"""Ready-made lines that scroll, with links among them.

A link is a line that leads somewhere else in the session. Moving down takes the next link that is
in view, and scrolls where there is none: one pair of keys for reading and for choosing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..keys import Where, bindings
from ..spans import Line, Tone, span
from ..travel import Place
from .lines import Toned


class Sheet:
    """Lines while they are put together, and which of them are links."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.links: dict[int, Place] = {}
        self.meant = 0
        """The line from which on the reader wants to look."""

    def add(self, *lines: Line, to: Place | None = None) -> None:
        """More lines; with `to`, each of them leads there."""
        if to is not None:
            self.links |= dict.fromkeys(range(len(self.lines), len(self.lines) + len(lines)), to)
        self.lines += lines


class Page(Toned, ScrollView, can_focus=True, inherit_bindings=False):
    """Lines for the present width; `fill` exchanges them."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.ROWS, Where.LIST)

    DEFAULT_CSS = """
    Page {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        padding: 0 0 0 1;
    }
    """

    class FocusMoved(Message):
        """The page got or lost the focus."""

    class Followed(Message):
        """A link is to be followed."""

        def __init__(self, place: Place) -> None:
            super().__init__()
            self.place = place

    class JumpWanted(Message):
        """The next or the previous place of interest is wanted (`step` 1 or -1)."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._links: Mapping[int, Place] = {}
        self._link = -1

    @property
    def cells(self) -> int:
        """The width that lines are to be made for."""
        return self.scrollable_content_region.width - 1

    def cells_in(self, room: int) -> int:
        """The same; before it is laid out, what it will be in this room."""
        # The bar of the scrollbar, the padding, and the cell that stays free.
        return self.cells if self.size else room - 3

    @property
    def link(self) -> Place | None:
        """The selected link."""
        return self._links.get(self._link)

    def fill(
        self, lines: list[Line], links: Mapping[int, Place] | None = None, *, keep: bool = False
    ) -> None:
        """Show these lines, from the top unless the place is to be kept."""
        self._lines, self._links = lines, links or {}
        self._measure()
        if not keep:
            self._link = -1
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        elif self._link not in self._links:
            self._link = -1
        self.refresh()

    def _measure(self) -> None:
        height, room = len(self._lines), self.styles.height
        if room is None or not room.is_auto:
            # As long as all of it is in view, another number of lines is no other layout.
            height = max(height, self.scrollable_content_region.height)
        self.virtual_size = Size(self.cells, height)

    def on_resize(self) -> None:
        """What is in view is another part of it."""
        self._measure()

    def render_line(self, y: int) -> Strip:
        """One visible line."""
        at, width = y + int(self.scroll_offset.y), self.scrollable_content_region.width
        if at >= len(self._lines):
            return self.strip([], width)
        line = self._lines[at]
        chosen = self.has_focus and self._chosen(at)
        under = self.behind("cursor-row") if chosen else None
        if chosen and line and line[0][0].startswith(" "):
            line = [span("›", Tone.ACCENT), (line[0][0][1:], line[0][1]), *line[1:]]
        return self.strip(line, width, under)

    def render(self) -> Any:
        """Unused: `render_line` draws."""
        return ""

    def _chosen(self, at: int) -> bool:
        """Whether a line belongs to the selected link, which may take several."""
        if self._link < 0 or at < self._link or at not in self._links:
            return False
        place = self._links[self._link]
        return all(self._links.get(line) is place for line in range(self._link, at + 1))

    def _heads(self) -> list[int]:
        """The first line of every link."""
        return [at for at, to in self._links.items() if self._links.get(at - 1) is not to]

    def _view(self) -> range:
        top = int(self.scroll_offset.y)
        return range(top, top + max(1, self.scrollable_content_region.height))

    def _move(self, step: int) -> None:
        view = self._view()
        heads = [at for at in self._heads() if at in view]
        if step > 0:
            found = next((at for at in heads if at > self._link or self._link not in view), None)
        else:
            back = reversed(heads)
            found = next((at for at in back if at < self._link or self._link not in view), None)
        if found is None:
            self.scroll_relative(y=step, animate=False)
            return
        self._link = found
        self.refresh()

    def action_cursor_up(self) -> None:
        """To the link above, else scroll by a line."""
        self._move(-1)

    def action_cursor_down(self) -> None:
        """To the link below, else scroll by a line."""
        self._move(1)

    def action_page_up(self) -> None:
        """Scroll by a screen."""
        self.scroll_relative(y=1 - self.scrollable_content_region.height, animate=False)

    def action_page_down(self) -> None:
        """Scroll by a screen."""
        self.scroll_relative(y=self.scrollable_content_region.height - 1, animate=False)

    def action_scroll_home(self) -> None:
        """Go to the top."""
        self.scroll_to(y=0, animate=False)

    def action_scroll_end(self) -> None:
        """Go to the end."""
        self.scroll_to(y=len(self._lines), animate=False)

    def action_select(self) -> None:
        """Follow the selected link."""
        if self.link is not None:
            self.post_message(self.Followed(self.link))

    def action_jump(self, step: int) -> None:
        """To the next place of interest, or the one before."""
        self.post_message(self.JumpWanted(step))

    def on_click(self, event: events.Click) -> None:
        """A click on a link follows it."""
        at = int(event.y + self.scroll_offset.y)
        if at in self._links:
            self._link = at
            self.post_message(self.Followed(self._links[at]))

    def watch_has_focus(self, _has_focus: bool) -> None:
        """No rule asks for the focus of a page: it has no other styles."""

    def on_focus(self, event: events.Focus) -> None:
        """The first link in view is selected; whoever draws the title is told."""
        if self._link < 0:
            self._link = next((at for at in self._heads() if at in self._view()), -1)
        self.refresh()
        self.post_message(self.FocusMoved())

    def on_blur(self, event: events.Blur) -> None:
        """Tell who draws the title."""
        self.refresh()
        self.post_message(self.FocusMoved())
