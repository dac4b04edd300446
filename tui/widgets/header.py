"""The first line: which session, which model with whose window, which policy, and what it does."""

from __future__ import annotations

from thresher.core.state import SessionState, Status
from thresher.core.text import clean_line

from ..figures import count, thousands
from ..spans import Line, Tone, span, spread
from .lines import Lines

_GLYPHS: dict[Status, tuple[str, Tone]] = {
    Status.IDLE: ("○", Tone.MUTED),
    Status.THINKING: ("●", Tone.ACCENT),
    Status.TOOL: ("▸", Tone.ACCENT),
    Status.COMPACTING: ("Σ", Tone.SUMMARY),
    Status.APPROVAL: ("?", Tone.THRESHOLD),
    Status.FINISHED: ("■", Tone.MUTED),
    Status.FAILED: ("✗", Tone.FAILED),
}


def window_words(state: SessionState, *, with_source: bool) -> str:
    """The window with its source, or that it is unknown and why."""
    budget = state.budget
    if budget is not None and budget.window.value is not None:
        source = f" ({clean_line(budget.window.source, 28)})" if with_source else ""
        return f"window {budget.window.value:,}{source}"
    if state.window is not None:
        return f"window {state.window:,}" + (" (session)" if with_source else "")
    if not with_source or not state.session_id:
        return "window unknown"
    why = budget.window.source if budget is not None else "not in the session"
    return f"window unknown ({clean_line(why, 40)})"


def header_line(state: SessionState, width: int, behind: int = 0) -> Line:
    """The line for this width: what matters least leaves it first."""
    dot = span("  ", Tone.FAINT)
    glyph, tone = _GLYPHS[state.status]
    status: Line = [span(f"{glyph} ", tone), span(str(state.status), tone)]
    if behind:
        status = [span(f"{count(behind, 'event')} behind", Tone.THRESHOLD), dot, *status]
    if state.breaker_open:
        status = [span("! breaker open", Tone.FAILED), dot, *status]
    facts: Line = []
    if state.model:
        facts += [span(clean_line(state.model, 28)), dot]
    facts += [span(window_words(state, with_source=width >= 110), Tone.MUTED), dot]
    if state.policy:
        facts += [span("policy ", Tone.MUTED), span(clean_line(state.policy, 20)), dot]
    title = clean_line(state.title or state.session_id or "no session yet", 60)
    left: Line = [span(title, Tone.STRONG)]
    if width >= 100:
        known = [clean_line(state.session_id, 20)] if state.title else []
        known += [clean_line(state.agent, 20)] if state.agent else []
        left.append(span("  " + "  ".join(known), Tone.MUTED))
    return spread(left, [*(facts if width >= 60 else []), *status], width)


def turn_words(state: SessionState) -> str:
    """Where the session stands, for titles of exports and the like."""
    return f"turn {thousands(state.turn)}, round {thousands(state.rounds)}"


class SessionHeader(Lines):
    """One line over the console."""

    DEFAULT_CSS = """
    SessionHeader { padding: 0 1; background: $raised; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._behind = 0

    def show_state(self, state: SessionState, behind: int) -> None:
        """Show this state; `behind` counts events that still wait."""
        self._state, self._behind = state, behind
        self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        return [header_line(self._state, width, self._behind)]
