"""When the next compaction is due, for the policy in force and for the thresholds of the others."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from thresher.core.insight.explain import Outlook, outlooks
from thresher.core.state import SessionState

from .. import figures
from ..plain import PlainStatic
from ..spans import Line, Tone, clip, column, cut, span
from ..theme import key_words
from ..widgets.choices import Choice, Choices
from ..widgets.page import Page
from .dialog import Dialog

_POLICY, _THRESHOLD, _TO_GO, _ROUNDS, _SPAN = 20, 10, 9, 8, 16
_NAMED = 80
"""Cells from which there is room for the name of the threshold."""


class ForecastScreen(Dialog[None]):
    """A table; it is made once, for the state it was opened at."""

    def __init__(self, state: SessionState) -> None:
        super().__init__()
        self._state = state
        self._page = Page()

    def compose(self) -> ComposeResult:
        """The table, and what it stands on."""
        with Vertical(classes="dialog list wide"):
            yield PlainStatic("forecast of all policies", classes="dialog-title")
            yield self._page
            yield PlainStatic(
                "Rounds at the median growth of the last ones; soonest and latest at the largest "
                "and the smallest. Other policies with their usual constants.",
                classes="hint",
            )
            yield Choices([Choice(key_words(self.app, "modal.close"), "closes", "close")])

    def on_mount(self) -> None:
        """Reckon, and show it."""
        self._found = outlooks(self._state)
        self._page.styles.height = min(22, len(self._found) + 3)
        self._page.focus()
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Other columns."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        if self._page.cells > 0:
            self._page.fill(forecast_lines(self._state, self._found, self._page.cells))


def forecast_lines(state: SessionState, found: tuple[Outlook, ...], cells: int) -> list[Line]:
    """One line for each policy, the one in force first."""
    used = state.reported
    samples = state.last_growth
    grown = ", ".join(f"{sample:+,}" for sample in samples) or "not known yet"
    lines: list[Line] = [
        clip(
            [
                span("now ", Tone.MUTED),
                span(figures.with_basis(used), Tone.STRONG),
                span(f"   growth of the last rounds: {grown}", Tone.MUTED),
            ],
            cells,
        ),
        [],
        clip(
            [
                span("  "),
                column("policy", _POLICY, Tone.MUTED),
                column("threshold", _THRESHOLD, Tone.MUTED, right=True),
                column("to go", _TO_GO, Tone.MUTED, right=True),
                column("rounds", _ROUNDS, Tone.MUTED, right=True),
                column("soonest-latest", _SPAN, Tone.MUTED, right=True),
                *([span("   by", Tone.MUTED)] if cells >= _NAMED else []),
            ],
            cells,
        ),
    ]
    lines += [_line(outlook, cells) for outlook in found]
    return lines


def _line(outlook: Outlook, cells: int) -> Line:
    forecast = outlook.forecast
    mark, used = forecast.mark, forecast.used
    strong = Tone.STRONG if outlook.in_force else Tone.PLAIN
    sign = span("● " if outlook.in_force else "  ", Tone.ACCENT)
    name = column(cut(outlook.policy, _POLICY - 1), _POLICY, strong)
    if mark is None:
        return clip([sign, name, span("   no threshold", Tone.FAINT)], cells)
    to_go = "" if used is None else f"{max(0, mark.tokens - used.value):,}"
    due = forecast.rounds == 0
    rounds = "due" if due else "?" if forecast.rounds is None else f"~{forecast.rounds:,}"
    span_told = ""
    if forecast.rounds and forecast.soonest is not None:
        latest = "?" if forecast.latest is None else f"{forecast.latest:,}"
        span_told = f"{forecast.soonest:,}-{latest}"
    return clip(
        [
            sign,
            name,
            column(f"{mark.tokens:,}", _THRESHOLD, strong, right=True),
            column(to_go, _TO_GO, Tone.MUTED, right=True),
            column(rounds, _ROUNDS, Tone.THRESHOLD if due else strong, right=True),
            column(span_told, _SPAN, Tone.MUTED, right=True),
            *([span(f"   {cut(mark.name, 24)}", Tone.MUTED)] if cells >= _NAMED else []),
        ],
        cells,
    )
