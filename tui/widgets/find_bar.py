"""The line to search with, and over it a piece of what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from thresher.core.text import clean_line

from ..keys import Where, bindings, sign_of
from ..spans import Line, Tone, clip, span, spread
from .lines import Lines
from .text_line import TextLine

FORMS = 'words "a phrase" -without tool: role: has:compaction removed:2 in:summary size:>10k'


class FindInput(TextLine):
    """The line that is typed in."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.FIND)

    class Done(Message):
        """Typing is over: the list is wanted."""

    class Closed(Message):
        """The search is over."""

    class JumpWanted(Message):
        """The next or the previous match is wanted."""

        def __init__(self, step: int) -> None:
            super().__init__()
            self.step = step

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """What is typed here is no key of the screen, so the footer must not name it as one."""
        return super().check_consume_key(key, character or sign_of(key) or None)

    def action_go(self) -> None:
        """On to the list, with the matches kept."""
        self.post_message(self.Done())

    def action_close(self) -> None:
        """Close the find line."""
        self.post_message(self.Closed())

    def action_jump(self, step: int) -> None:
        """The next match, or the one before."""
        self.post_message(self.JumpWanted(step))


class FindNote(Lines):
    """One line of spans that somebody else makes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._told: Line = []
        self._right = False

    def tell(self, line: Line, *, right: bool = False) -> None:
        """Exchange the line; with `right` it ends where the widget does."""
        self._told, self._right = line, right
        self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        return [spread([], self._told, width) if self._right else clip(self._told, width)]


class FindBar(Vertical):
    """Hidden until a search begins."""

    DEFAULT_CSS = """
    FindBar {
        height: 2;
        display: none;
        #find-snippet { padding: 0 1; }
        #find-row { height: 1; background: $raised; }
        #find-sign { width: 3; padding: 0 1; background: $raised; }
        #find-count { width: 26; padding: 0 1; background: $raised; }
        FindInput {
            width: 1fr; height: 1; border: none; padding: 0; background: $raised;
            &:focus { border: none; background: $raised; background-tint: transparent; }
            & > .input--placeholder { color: $faint; }
        }
    }
    """

    class Changed(Message):
        """Another text is searched for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def compose(self) -> ComposeResult:
        """A piece of the match over the line, and the count beside it."""
        yield FindNote(id="find-snippet")
        with Horizontal(id="find-row"):
            yield FindNote(id="find-sign")
            yield FindInput(words=FORMS)
            yield FindNote(id="find-count")

    def on_mount(self) -> None:
        """The sign at the left is always the same."""
        self.query_one("#find-sign", FindNote).tell([span("/", Tone.ACCENT)])

    @property
    def text(self) -> str:
        """What is typed."""
        return self.query_one(FindInput).value

    def open(self) -> None:
        """Show the line, with what was searched for last."""
        self.display = True
        self.query_one(FindInput).focus()

    def close(self) -> None:
        """Hide it again."""
        self.display = False

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(event.value))

    def tell(
        self, at: int, count: int, *, searching: bool, faults: Sequence[str] = (),
        snippet: Line | None = None,
    ) -> None:  # fmt: skip
        """How many matches there are, which one is selected (-1: none), and a piece of it."""
        told: Line = []
        if self.text:
            place = f"{at + 1:,} of {count:,}" if at >= 0 else f"{count:,} found"
            told = [span(place if count else "nothing found", Tone.STRONG if count else Tone.MUTED)]
            if searching:
                told = [span(f"{count:,} found …", Tone.MUTED)]
        self.query_one("#find-count", FindNote).tell(told, right=True)
        under: Line = list(snippet or [])
        if faults:
            words = " ".join(clean_line(fault, 40) for fault in faults)
            under = [span(f"{words} is no filter; it is searched for as a word", Tone.THRESHOLD)]
        self.query_one("#find-snippet", FindNote).tell(under)
