"""A picture of every policy at work: its cards, one for each stage and cause, from its demo."""

from __future__ import annotations

import gzip
from pathlib import Path

from textual.app import ComposeResult

from thresher.core.compaction.policies.registry import policies
from thresher.core.events import decode
from thresher.core.history import History
from thresher.core.text import clean_line
from thresher.core.views import Card, CardStatus

from .spans import Line, Tone, span
from .theme import ThemedApp
from .widgets.card_lines import folded_lines
from .widgets.lines import Lines

CELLS = 120
MOST = 4
"""Cards of one policy."""


def gallery_lines(folder: Path, cells: int = CELLS) -> list[Line]:
    """The cards of every policy whose demo was recorded in `folder` (NAME.jsonl.gz)."""
    lines: list[Line] = []
    for name, policy in policies().items():
        path = folder / f"{name}.jsonl.gz"
        if not path.is_file():
            continue
        history = History()
        history.extend(map(decode, gzip.decompress(path.read_bytes()).splitlines()))
        head = [
            span(f" {name}", Tone.STRONG),
            span(f"  {clean_line(policy.title, 60)} ", Tone.MUTED),
        ]
        used = sum(len(text) for text, _ in head)
        lines += [[], [*head, span("─" * (cells - used - 1), Tone.RULE)], []]
        for card in chosen(history.state.cards):
            for line in folded_lines(card, cells - 4):
                lines.append([span("  "), *line])
            lines.append([])
    return lines


def chosen(cards: list[Card]) -> list[Card]:
    """The first card of each stage and cause, those that changed something before the others."""
    first: dict[tuple[str, str, str], Card] = {}
    for card in cards:
        first.setdefault((card.stage, card.trigger.value, card.status.value), card)
    done = [card for card in first.values() if card.status is CardStatus.DONE]
    others = [card for card in first.values() if card.status is not CardStatus.DONE]
    return [*done, *others][:MOST]


class _Page(Lines):
    DEFAULT_CSS = """
    _Page { height: 1fr; }
    """

    def __init__(self, lines: list[Line]) -> None:
        super().__init__()
        self._page = lines

    def draw(self, width: int, height: int) -> list[Line]:
        """All of them."""
        return self._page


class GalleryApp(ThemedApp):
    """The page alone."""

    def __init__(self, lines: list[Line], theme: str = "") -> None:
        super().__init__()
        self.lines = lines
        self.animation_level = "none"
        if theme:
            self.theme = theme

    def compose(self) -> ComposeResult:
        """One widget as large as the page."""
        yield _Page(self.lines)


async def draw_gallery(folder: Path) -> str:
    """The page as SVG, not yet stable."""
    lines = gallery_lines(folder)
    app = GalleryApp(lines)
    async with app.run_test(size=(CELLS, len(lines) + 1)) as pilot:
        await pilot.pause()
        return app.export_screenshot(title="thresher: every policy in the demo")
