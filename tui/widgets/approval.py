"""The approval bar: a tool waits for the user's word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.message import Message

from thresher.core.events import ApprovalRequested
from thresher.core.text import clean_line

from ..keys import Where, bindings
from ..spans import Line, Tone, clip, span, width
from ..theme import key_words
from .lines import Lines
from .timeline_rows import short_argument

ANSWERS = (("y", "once", "once"), ("a", "this session", "session"), ("n", "never", "never"))
"""Key, words, decision."""

TIPS = {
    "once": "This call runs; the next one asks again",
    "session": "This call runs, and calls like it until the session ends",
    "never": "Neither this call runs nor calls like it; the model is told so",
}
"""What each answer comes to."""

Answers = Sequence[tuple[str, str, str]]


def approval_lines(
    asked: ApprovalRequested | None, cells: int, answers: Answers = ANSWERS
) -> list[Line]:
    """What is asked for, and the three answers."""
    if asked is None:
        return []
    name = clean_line(asked.name, 30)
    question: Line = [
        span("? ", Tone.THRESHOLD),
        span(f"{name} wants to run  ", Tone.STRONG),
        span(short_argument(asked.arguments, cells)),
    ]
    return [clip(question, cells), answers_line(answers)]


def answers_line(answers: Answers = ANSWERS) -> Line:
    """The three answers with their keys."""
    line: Line = [span("  allow it  ", Tone.MUTED)]
    for key, words, _ in answers:
        line += [span(f" {key} ", Tone.KEY), span(f"{words}   ", Tone.MUTED)]
    return line


def answer_at(x: int, answers: Answers = ANSWERS) -> str | None:
    """The decision whose words stand at this cell of the answers line."""
    at = 0
    pieces = answers_line(answers)
    starts = []
    for piece in pieces:
        starts.append(at)
        at += width([piece])
    for k, (_, _, decision) in enumerate(answers):
        if starts[1 + 2 * k] <= x < starts[2 + 2 * k] + width([pieces[2 + 2 * k]]):
            return decision
    return None


class ApprovalBar(Lines, can_focus=True):
    """Visible only while a tool waits."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.APPROVAL)

    DEFAULT_CSS = """
    ApprovalBar {
        height: 2;
        padding: 0 1 0 0;
        background: $raised;
        border-left: blank;
        display: none;
        &:focus { border-left: outer $threshold; }
    }
    """

    class Answered(Message):
        """The user's word: once, session or never."""

        def __init__(self, decision: str) -> None:
            super().__init__()
            self.decision = decision

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._asked: ApprovalRequested | None = None

    def show_request(self, asked: ApprovalRequested | None) -> bool:
        """Show a request, or hide; returns True when the bar has just appeared."""
        appeared = asked is not None and self._asked is None
        self._asked = asked
        self.display = asked is not None
        self.show()
        return appeared

    def draw(self, width: int, height: int) -> list[Line]:
        return approval_lines(self._asked, width, self._answers)

    @property
    def _answers(self) -> Answers:
        """The answers with the user's own keys."""
        return [
            (key_words(self.app, f"approval.{decision}"), words, decision)
            for _, words, decision in ANSWERS
        ]

    def action_answer(self, decision: str) -> None:
        """Give the user's word."""
        if self._asked is not None:
            self.post_message(self.Answered(decision))

    def tip_at(self, x: int, y: int) -> str:
        """What the answer under the pointer comes to."""
        decision = answer_at(x, self._answers) if y == 1 else None
        return TIPS[decision] if decision is not None else ""

    def on_click(self, event: events.Click) -> None:
        """The answers are buttons, too."""
        decision = answer_at(event.x - 1, self._answers) if event.y == 1 else None
        if decision is not None:
            self.action_answer(decision)
