"""The tour: five steps over the console, each beside the part that it speaks of."""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from ..keys import Where, bindings
from ..spans import Line, Tone, span, wrap
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from ..widgets.lines import Lines


class Step(NamedTuple):
    """One step. `lit` are the parts that it shows, `side` where its words stand; `<id>` in them is
    the key of that id, `<id,2>` the second one."""

    title: str
    words: str
    lit: tuple[str, ...]
    side: str


STEPS: tuple[Step, ...] = (
    Step(
        "What the model is about to see",
        "The bar is the context by kind, against the model's limit. ┃ is where the policy compacts "
        "it; hatched is the room kept free for the answer.\n"
        "1,234 is reported or counted, ~1,234 is an estimate, ? is not known.",
        ("ContextMeter", "SessionHeader"),
        "middle",
    ),
    Step(
        "What happened",
        "Every message, tool call and compaction, in order. A card says why a compaction ran, and "
        "what it did:\n  - removed   = kept   ~ rewritten   + inserted\n"
        "<list.open> opens a card. <console.previous> and <console.next> go from one compaction to "
        "the next; everything on the screen is then as it was there.",
        ("#timeline-pane",),
        "top",
    ),
    Step(
        "One thing in full",
        "All of the selected row: its text, its tokens, where it came from and what became of it. "
        "<console.detail> shows it where there is no room beside the timeline.\n"
        "<console.diff> shows a compaction before and after, <console.context> the exact list that "
        "the model sees.",
        ("#detail-pane", "#timeline-pane"),
        "top",
    ),
    Step(
        "Stop before it is gone",
        "In the timeline (<app.focus> goes there) <console.breakpoints> sets a breakpoint: the "
        "agent then stops before a compaction and shows what would be removed. <stop.pin> pins "
        "what must survive, <stop.edit> changes the summary, <stop.apply> applies it.\n"
        "<console.undo> takes the last compaction back.",
        ("SessionHeader", "#timeline-pane"),
        "top",
    ),
    Step(
        "Never stuck",
        "<app.help> lists the keys of the screen you are on (<app.help,2> while you write). "
        "<app.palette> finds every command by its name, this tour too: App: Take the tour.",
        ("KeyFooter",),
        "middle",
    ),
)


class TourBody(Lines):
    """Title and words."""

    DEFAULT_CSS = """
    TourBody { height: auto; background: $raised; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.at = 0

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """All lines."""
        return len(self.draw(width, 0))

    def turn(self, at: int) -> None:
        """Show another step."""
        self.at = at
        self._lines = None
        self.refresh(layout=True)

    def draw(self, width: int, height: int) -> list[Line]:
        """The step for this width."""
        step = STEPS[self.at]
        # Control characters, which take no cell, hold a key together while the words are wrapped.
        words = re.sub(
            r"<([a-z_.]+)(?:,(\d))?>",
            lambda found: f"\x02{key_words(self.app, found[1], int(found[2] or 1))}\x03",
            step.words,
        )
        text = [_keyed(line) for line in wrap(words, width)]
        return [[span(step.title, Tone.STRONG)], [], *text, []]


def _keyed(text: str) -> Line:
    """A line with its keys lit."""
    pieces = re.split("[\x02\x03]", text)
    return [span(piece, Tone.KEY if at % 2 else Tone.PLAIN) for at, piece in enumerate(pieces)]


class TourScreen(ModalScreen[None]):
    """The steps over a console. It ends with the last one, or when it is skipped."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.TOUR)

    DEFAULT_CSS = """
    TourScreen {
        background: transparent;
        align: center middle;
        &.top { align: center top; }
        & > Vertical {
            width: 66;
            max-width: 96%;
            height: auto;
            margin: 1 0;
            padding: 1 2;
            background: $raised;
            border-left: outer $primary;
        }
    }
    """

    def __init__(self, over: Screen[Any]) -> None:
        super().__init__()
        self._over = over

    def compose(self) -> ComposeResult:
        """The words of the step."""
        with Vertical():
            yield TourBody()
            yield Choices([], classes="")

    def _ways(self, at: int) -> tuple[list[Choice], Line]:
        """How to go on, behind how far it is."""
        dots = " ".join("●" if each == at else "○" for each in range(len(STEPS)))
        on, back = key_words(self.app, "tour.next"), key_words(self.app, "tour.back")
        ways = [
            Choice(on, "next" if at < len(STEPS) - 1 else "begin", "next"),
            Choice(back, "back", "back"),
            Choice(key_words(self.app, "tour.skip"), "skip the tour", "skip"),
        ]
        return ways, [span(f"{dots}   ", Tone.ACCENT)]

    def on_mount(self) -> None:
        """Begin."""
        self._show(0)

    def on_unmount(self) -> None:
        """Nothing is dimmed any more."""
        self._over.remove_class("touring")
        self._over.query(".lit").remove_class("lit")

    def _show(self, at: int) -> None:
        step = STEPS[at]
        self._over.add_class("touring")
        self._over.query(".lit").remove_class("lit")
        for part in self._parts(step):
            part.add_class("lit")
        self.set_class(step.side == "top", "top")
        self.query_one(TourBody).turn(at)
        self.query_one(Choices).set(*self._ways(at))

    def _parts(self, step: Step) -> list[Widget]:
        found = [part for name in step.lit for part in self._over.query(name) if part.display]
        # In one column the detail is away: then the timeline is what there is to see.
        return found[:1] if "#detail-pane" in step.lit else found

    def action_next(self) -> None:
        """The next step; after the last one it is over."""
        at = self.query_one(TourBody).at + 1
        if at < len(STEPS):
            self._show(at)
        else:
            self.dismiss()

    def action_back(self) -> None:
        """The step before."""
        self._show(max(0, self.query_one(TourBody).at - 1))

    def action_skip(self) -> None:
        """Enough."""
        self.dismiss()
