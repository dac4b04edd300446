"""What the parts of the meter mean, for the pointer: pure functions of the state and a cell."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.compaction.policy import Mark
from thresher.core.state import SessionState

from ..figures import count, mark, percent, scope, with_basis
from ..spans import cut
from .meter_lines import PARTS, UNRECORDED, bar_parts, expected, scale_of

MEANINGS = {
    "system": "the instructions at the head of the context",
    "summary": "what compactions wrote in place of entries that left",
    "user": "what the user said",
    "assistant": "what the model answered",
    "reasoning": "the model's own thoughts, where the provider sends them back",
    "tools": "calls of tools and what they returned",
    "other": "items of a kind that is not known here",
}


def figure_tip(state: SessionState) -> str:
    """About the figures line."""
    size, sure = expected(state)
    reported = state.reported
    if reported is None:
        shown = state.messages_tokens
        return f"{with_basis(shown)}, {scope(shown)}: nothing has been reported for this window yet"
    told = f"the provider reported {reported.value:,} for the last request"
    if state.since_usage:
        told += f"; what came since is {mark(state.basis)}{state.since_usage:,}"
    return f"{told}, so the next one has about {'' if sure else '~'}{size:,} tokens"


def bar_tip(state: SessionState, marks: Sequence[Mark], x: int, cells: int) -> str:
    """About the part of the bar at a cell."""
    limit, scale = scale_of(state)
    if limit is not None and scale is not None:
        for item in marks:
            if min(cells - 1, round(item.tokens * cells / scale)) == x:
                return mark_tip(item)
    at = 0
    for name, _, _, share in bar_parts(state, cells):
        at += share
        if x < at:
            return part_tip(state, name)
    if limit is None or scale is None:
        return "the window is unknown, so there is no scale"
    if x < round(limit * cells / scale):
        size, _ = expected(state)
        return f"free: {max(0, limit - size):,} tokens up to the limit {limit:,}"
    return f"reserve: {scale - limit:,} tokens of the window are kept free for the answer"


def mark_tip(item: Mark) -> str:
    """About a threshold."""
    source = f" ({cut(item.source, 80)})" if item.source not in ("", item.name) else ""
    return f"{cut(item.name, 40)}: the policy compacts at {item.tokens:,} tokens{source}"


def part_tip(state: SessionState, name: str) -> str:
    """About a kind of entries."""
    if name == UNRECORDED:
        who = cut(state.agent, 30) or "this program"
        return (
            f"{name}: the report is of the whole request, and {who} does not record its system "
            "prompt and the descriptions of its tools; how much that is cannot be said exactly"
        )
    kinds = next(part[2] for part in PARTS if part[0] == name)
    value = sum(state.parts.get(kind, 0) for kind in kinds)
    if name == "system" and not value and not state.system_recorded:
        told = "does not record its system prompt, so its size is unknown"
        return f"system: {cut(state.agent, 30)} {told}"
    limit, _ = scale_of(state)
    share = f", {percent(value, limit)} of the limit" if limit is not None else ""
    entries = count(sum(1 for entry in state.context if entry.kind in kinds), "entry", "entries")
    told = f"{mark(state.basis)}{value:,} tokens {state.basis} in {entries}{share}"
    return f"{name}: {told}. These are {MEANINGS[name]}"


def tip(state: SessionState, marks: Sequence[Mark], x: int, y: int, size: tuple[int, int]) -> str:
    """About the cell (x, y) of a meter of this width and height; empty where there is nothing."""
    cells, height = size
    if y == 0:
        return figure_tip(state)
    if y == 1:
        return bar_tip(state, marks, x, cells)
    if height >= 4 and y == 2:
        limit, scale = scale_of(state)
        if limit is None or scale is None or not marks:
            return ""
        near = min(marks, key=lambda item: abs(round(item.tokens * cells / scale) - x))
        return mark_tip(near)
    return ""
