"""The head of the stop screen: where it stands still, and what the edit comes to."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.debug import stop as held
from thresher.core.debug.stop import Stop

from ..model import ConsoleModel
from ..spans import Line
from ..theme import key_words
from . import outside_lines
from .lines import Lines
from .stop_head_lines import head_lines


class StopHead(Lines):
    """Where it stands still, and what the edit comes to."""

    DEFAULT_CSS = """
    StopHead { height: 8; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.content: tuple[Stop | None, ConsoleModel, Sequence[held.Line]] | None = None
        self.decided: Stop | None = None
        """The newest stop there was, which stays in view while the agent works."""

    def tip_at(self, x: int, y: int) -> str:
        """What the two bars are drawn of."""
        shown = self._lines or []
        line = "".join(text for text, _ in shown[y]) if 0 <= y < len(shown) else ""
        if not line.startswith(("before  ", "after   ")):
            return ""
        return "Tokens of the entries, in their order: █ stays, ░ goes, ▒ is rewritten, ▓ is new"

    def draw(self, width: int, height: int) -> list[Line]:
        if self.content is None:
            return []
        stop, model, lines = self.content
        if stop is not None and stop.outside is not None and model.outside is not None:
            on, focus, skip = (key_words(self.app, f"stop.{k}") for k in ("go_on", "focus", "skip"))
            return outside_lines.head_lines(
                stop, model.history.state, lines, width, height, (on, focus, skip),
                model.outside.seconds_left,
            )[:height]  # fmt: skip
        apply = key_words(self.app, "stop.apply")
        state = model.history.state
        return head_lines(stop, state, lines, width, height, apply, self.decided)[:height]
