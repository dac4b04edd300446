"""The tiles: what the session did so far, in five figures."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from thresher.core.models import ModelLimits, resolve
from thresher.core.state import SessionState
from thresher.core.tokens import Usage
from thresher.core.views import CardStatus

from .. import figures
from ..spans import Line, Tone, clip, column, cut, span, width
from .lines import Lines


class Tile(NamedTuple):
    """A figure with its name and a remark."""

    name: str
    value: str
    note: str = ""
    tone: Tone = Tone.STRONG
    note_tone: Tone = Tone.MUTED


@lru_cache(maxsize=64)
def _limits(model: str) -> ModelLimits:
    return resolve(model)


def price_of(model: str, usage: Usage) -> float | None:
    """US dollars for this usage, or None when a price that is needed is unknown.

    Input that the provider did not report as cached is charged in full: at most what it cost.
    """
    prices = _limits(model)
    cached = usage.cached_tokens or 0
    buckets = (
        (usage.input_tokens - cached, prices.price_input.value),
        (cached, prices.price_cached_input.value),
        (usage.output_tokens, prices.price_output.value),
    )
    total = 0.0
    for tokens, price in buckets:
        if tokens and price is None:
            return None
        total += tokens * (price or 0.0) / 1_000_000
    return total


def summariser_price(state: SessionState) -> float | None:
    """What the summaries cost, or None as soon as one of the calls has no known price."""
    written = [card.summariser for card in state.cards if card.summariser is not None]
    used = [(one.model, one.usage) for one in written if one.usage is not None]
    if not used or len(used) < state.summariser_calls:
        return None
    total = 0.0
    for model, usage in used:
        price = price_of(model, usage)
        if price is None:
            return None
        total += price
    return total


def tiles_of(state: SessionState) -> list[Tile]:
    """The tiles of a state, in their fixed order."""
    running = (CardStatus.RUNNING, CardStatus.PROPOSED, CardStatus.DONE)
    others: dict[str, int] = {}
    for card in state.cards:
        if card.status not in running:
            others[card.status] = others.get(card.status, 0) + 1
    ended = ", ".join(f"{number} {status}" for status, number in others.items())
    tiles = [
        Tile("turns", figures.thousands(state.turn)),
        Tile("rounds", figures.thousands(state.rounds)),
        Tile(
            "tool calls",
            figures.thousands(state.tool_calls),
            f"{state.tool_failures:,} failed" if state.tool_failures else "",
        ),
        Tile("compactions", figures.thousands(state.compactions), ended, note_tone=Tone.FAILED),
    ]
    if not state.removed_tokens:
        tiles.append(Tile("tokens removed", "0" if not state.compactions else figures.UNKNOWN))
    for at, ((basis, scope), gone) in enumerate(state.removed_tokens.items()):
        name = "tokens removed" if not at else ""
        value = f"{figures.mark(basis)}{gone:,}"
        tiles.append(Tile(name, value, f"{basis}, {scope}"))
    tiles.append(_summariser(state))
    return tiles


def _summariser(state: SessionState) -> Tile:
    usage = state.summariser_usage
    if usage is None:
        offline = [card.summariser for card in state.cards if card.summariser is not None]
        note = cut(offline[-1].model, 24) if offline else ""
        return Tile("summariser", "0" if not state.compactions or offline else "?", note)
    price = summariser_price(state)
    told = figures.dollars(price) if price is not None else f"price {figures.UNKNOWN}"
    return Tile("summariser", figures.thousands(usage.total), f"tokens, {told}")


def table_lines(state: SessionState, cells: int) -> list[Line]:
    """The tiles as a table: names, right-aligned figures, remarks."""
    tiles = tiles_of(state)
    names = max(len(tile.name) for tile in tiles)
    values = max(8, *(len(tile.value) for tile in tiles))
    return [
        clip(
            [
                column(tile.name, names, Tone.MUTED),
                span("  "),
                column(tile.value, values, tile.tone, right=True),
                span(f"  {tile.note}", tile.note_tone),
            ],
            cells,
        )
        for tile in tiles
    ]


def one_line(state: SessionState, cells: int) -> Line:
    """The tiles side by side, as many as there is room for."""
    line: Line = []
    for tile in tiles_of(state):
        if tile.name == "turns":
            continue
        name = _SHORT.get(tile.name, tile.name)
        piece: Line = [span(f"{name} ", Tone.MUTED) if name else span("")]
        piece += [span(tile.value, tile.tone)]
        if tile.note_tone is Tone.FAILED and tile.note:
            piece.append(span(f" {tile.note}", Tone.FAILED))
        if width(line) + width(piece) + 3 > cells:
            break
        line += [*([span("   ")] if line else []), *piece]
    return line


_SHORT = {"tool calls": "tools", "tokens removed": "removed"}


TIPS = {
    "turns": "messages of the user that were worked on",
    "rounds": "requests to the model, each with the tool calls of its answer",
    "tool calls": "calls that the model made; failed ones are counted beside",
    "compactions": "those that changed the context; others are counted by how they ended",
    "tokens removed": "the sizes before less those after, of figures of one basis and scope",
    "summariser": "tokens that writing the summaries took, and their price where it is known",
}
"""What each tile counts."""


def tile_at(state: SessionState, x: int, y: int, size: tuple[int, int]) -> str:
    """The name of the tile at a cell of a widget of this size, or an empty text."""
    cells, height = size
    tiles = tiles_of(state)
    if height >= 5:
        # A figure of another basis stands below its like and has no name of its own.
        return next((tile.name for tile in reversed(tiles[: y + 1]) if tile.name), "")
    at = 0
    long = {short: name for name, short in _SHORT.items()}
    found = ""
    for text, tone in one_line(state, cells):
        if tone is Tone.MUTED and text.strip():
            found = long.get(text.strip(), text.strip())
        at += width([(text, tone)])
        if x < at:
            return found if text.strip() else ""
    return ""


class Tiles(Lines):
    """A table where there is height for it, else one line."""

    DEFAULT_CSS = """
    Tiles { height: 8; padding: 0 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()

    def show_state(self, state: SessionState) -> None:
        """Show this state."""
        self._state = state
        self.show()

    def tip_at(self, x: int, y: int) -> str:
        """What the tile under the pointer counts."""
        name = tile_at(self._state, x, y, (self.size.width, self.size.height))
        return f"{name}: {TIPS[name]}" if name in TIPS else ""

    def draw(self, width: int, height: int) -> list[Line]:
        if height < 5:
            return [one_line(self._state, width)]
        return table_lines(self._state, width)[:height]
