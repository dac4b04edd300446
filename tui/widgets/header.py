"""The first line: which session, which model with whose window, which policy, and what it does."""

from __future__ import annotations

from rich.cells import cell_len

from thresher.core.models import Origin
from thresher.core.state import SessionState, Status

from ..figures import count
from ..spans import Line, Tone, cut, span, spread
from ..spans import width as spans_width
from .lines import Lines

_GLYPHS: dict[Status, tuple[str, Tone]] = {
    Status.IDLE: ("○", Tone.MUTED),
    Status.THINKING: ("●", Tone.ACCENT),
    Status.TOOL: ("▸", Tone.ACCENT),
    Status.COMPACTING: ("Σ", Tone.SUMMARY),
    Status.APPROVAL: ("?", Tone.THRESHOLD),
    Status.STOPPED: ("‖", Tone.THRESHOLD),
    Status.FINISHED: ("■", Tone.MUTED),
    Status.FAILED: ("✗", Tone.FAILED),
}


def window_words(state: SessionState, cells: int) -> str:
    """The window with its source in about `cells`, or that it is unknown and why.

    Where the source's own sentence has no room, one word says who states the number.
    """
    budget = state.budget
    with_source = cells > 0
    if budget is not None and budget.window.value is not None:
        told = budget.window.source
        if len(told) > cells and budget.window.origin is not Origin.UNKNOWN:
            told = str(budget.window.origin)
        source = f" ({cut(told, max(10, cells))})" if with_source else ""
        return f"window {budget.window.value:,}{source}"
    if state.window is not None:
        return f"window {state.window:,}" + (" (session)" if with_source else "")
    if not with_source or not state.session_id:
        return "window unknown"
    why = budget.window.source if budget is not None else "not in the session"
    return f"window unknown ({cut(why, 40)})"


def header_line(
    state: SessionState, width: int, behind: int = 0, indexed: int | None = None
) -> Line:
    """The line for this width: what matters least leaves it first."""
    dot = span("  ", Tone.FAINT)
    glyph, tone = _GLYPHS[state.status]
    status: Line = [span(f"{glyph} ", tone), span(str(state.status), tone)]
    if behind:
        status = [span(f"{count(behind, 'event')} behind", Tone.THRESHOLD), dot, *status]
    if indexed is not None:
        status = [span(f"indexing {indexed} %", Tone.THRESHOLD), dot, *status]
    if state.out_of_touch:
        # What it does now is what it did when it was last heard of.
        status = [span("! not followed", Tone.FAILED)]
    if state.breaker_open:
        status = [span("! breaker open", Tone.FAILED), dot, *status]
    facts: Line = []
    if state.model:
        facts += [span(cut(state.model, 28)), dot]
    facts += [span(window_words(state, max(0, width - 92) if width >= 110 else 0), Tone.MUTED), dot]
    if state.policy:
        facts += [span("policy ", Tone.MUTED), span(cut(state.policy, 20)), dot]
    right: Line = [*(facts if width >= 60 else []), *status]
    known: list[str] = []
    if width >= 100:
        named = state.title and (width >= 140 or len(state.session_id) <= 12)
        known += [cut(state.session_id, 26)] if named else []
        known += [cut(state.agent, 20)] if state.agent else []
    names = "".join(f"  {name}" for name in known)
    # The title gives way before the program's name does.
    room = width - spans_width(right) - cell_len(names) - 2
    title = cut(state.title or state.session_id or "no session yet", max(12, min(60, room)))
    left: Line = [span(title, Tone.STRONG), span(names, Tone.MUTED)]
    return spread(left, right, width)


def header_tip(state: SessionState) -> str:
    """What the line has no room for: who states the window, and what a sign in it means."""
    if not state.session_id:
        return ""
    told = [f"session {cut(state.session_id, 60)}", window_words(state, 200)]
    if state.policy:
        told.append(f"policy {cut(state.policy, 60)}")
    if state.breaker_open:
        told.append("the breaker is open: no compaction runs by itself")
    return "; ".join(told)


class SessionHeader(Lines):
    """One line over the console."""

    DEFAULT_CSS = """
    SessionHeader { padding: 0 1; background: $raised; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state = SessionState()
        self._behind = 0
        self._indexed: int | None = None

    def show_state(self, state: SessionState, behind: int, indexed: int | None = None) -> None:
        """Show this state; `behind` counts events that still wait, `indexed` is how much of a file
        has been read, in per cent, while it is not all."""
        self._state, self._behind, self._indexed = state, behind, indexed
        self.show()

    def tip_at(self, x: int, y: int) -> str:
        """More about the session."""
        return header_tip(self._state)

    def draw(self, width: int, height: int) -> list[Line]:
        return [header_line(self._state, width, self._behind, self._indexed)]
