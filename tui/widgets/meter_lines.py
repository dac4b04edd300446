"""The context meter: how full the context is, with what, and when the next compaction is due.

The bar is as long as the next request is expected to be (what the provider reported for the last
one, and an estimate of what came since), on the scale of the window. Its split by kind is that of
the items' own counts. Without a limit there is no scale and no percentage, and it says why.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from thresher.core.compaction.policy import Mark
from thresher.core.items import Kind
from thresher.core.state import SessionState

from ..figures import figure, mark, percent, scope
from ..spans import Line, Tone, clip, cut, pad, span, spread, width

Part = tuple[str, str, tuple[Kind, ...], Tone, Tone]

PARTS: tuple[Part, ...] = (
    ("system", "S", (Kind.SYSTEM,), Tone.FILL_SYSTEM, Tone.PART_SYSTEM),
    ("summary", "Σ", (Kind.SUMMARY,), Tone.FILL_SUMMARY, Tone.PART_SUMMARY),
    ("user", "U", (Kind.USER,), Tone.FILL_USER, Tone.PART_USER),
    ("assistant", "A", (Kind.ASSISTANT,), Tone.FILL_ASSISTANT, Tone.PART_ASSISTANT),
    ("reasoning", "R", (Kind.REASONING,), Tone.FILL_REASONING, Tone.PART_REASONING),
    ("tools", "T", (Kind.CALL, Kind.OUTPUT), Tone.FILL_OUTPUT, Tone.PART_OUTPUT),
    ("other", "O", (Kind.OTHER,), Tone.FILL_OTHER, Tone.PART_OTHER),
)
"""Name, letter, kinds, tone inside the bar, tone in the legend; in the order of the bar."""

ALWAYS = ("system", "user", "assistant", "tools", "summary")


def expected(state: SessionState) -> tuple[int, bool]:
    """The size of the next request in tokens, and whether it is wholly a provider's report."""
    reported = state.reported
    if reported is None:
        return state.messages_tokens.value, False
    return reported.value + state.since_usage, not state.since_usage and not state.usage_estimated


def shares(values: Sequence[int], cells: int) -> list[int]:
    """Whole cells for values in proportion, largest remainder first; what is there gets a cell."""
    total = sum(values)
    if total <= 0 or cells <= 0:
        return [0] * len(values)
    exact = [value * cells / total for value in values]
    given = [max(int(x), 1 if value else 0) for x, value in zip(exact, values, strict=True)]
    while sum(given) > cells:
        largest = max(range(len(given)), key=lambda k: given[k])
        given[largest] -= 1
    order = sorted(range(len(given)), key=lambda k: given[k] - exact[k])
    for k in order[: cells - sum(given)]:
        given[k] += 1
    return given


def scale_of(state: SessionState) -> tuple[int | None, int | None]:
    """The limit, and the full width of the bar: limit and reserve. None where it is not known."""
    limit = state.budget.limit if state.budget is not None else None
    if limit is None or limit <= 0:
        return None, None
    window = state.budget.window.value if state.budget is not None else None
    return limit, max(limit, window or 0)


UNRECORDED = "not recorded"
"""The part of a reported size of which a program records nothing: system prompt and tools."""
_WORTH_SHOWING = 2
"""Cells from which on it is a part of the bar: below, it is the error of the estimates."""


def bar_parts(state: SessionState, cells: int) -> list[tuple[str, str, Tone, int]]:
    """The filled part of a bar of this many cells: name, letter, tone and cells of each part.

    The parts share what the next request is expected to have. Where a program does not record its
    system prompt, they are drawn by their own estimates, and what the report has beyond them
    stands at the head without a figure: to count it would be to subtract an estimate of messages
    from a report of a whole request.
    """
    values = [sum(state.parts.get(kind, 0) for kind in part[2]) for part in PARTS]
    size, _ = expected(state)
    _, scale = scale_of(state)
    filled = cells if scale is None else min(cells, round(size * cells / scale))
    if scale is not None and size and not filled:
        filled = 1
    beyond = 0
    if scale is not None and state.reported is not None and not state.system_recorded:
        own = max(sum(1 for value in values if value), round(sum(values) * cells / scale))
        beyond = filled - own if filled - own >= _WORTH_SHOWING else 0
    found = [(UNRECORDED, "?", Tone.FILL_SYSTEM, beyond)]
    for part, share in zip(PARTS, shares(values, filled - beyond), strict=True):
        found.append((part[0], part[1], part[3], share))
    return found


def bar_line(state: SessionState, marks: Sequence[Mark], cells: int) -> Line:
    """The bar: parts, free, reserve, with a mark for each threshold."""
    limit, scale = scale_of(state)
    chars: list[str] = []
    tones: list[Tone] = []
    for name, letter, tone, share in bar_parts(state, cells):
        chars.extend(_label(name, letter, share))
        tones.extend([tone] * share)
    filled = len(chars)
    if scale is not None and limit is not None:
        free_until = max(len(chars), min(cells, round(limit * cells / scale)))
        free = free_until - len(chars)
        chars.extend(_label("free", "", free))
        tones.extend([Tone.FILL_FREE] * free)
        chars.extend("╱" * (cells - len(chars)))
        tones.extend([Tone.FILL_RESERVE] * (cells - len(tones)))
        for item in marks:
            at = min(cells - 1, round(item.tokens * cells / scale))
            chars[at] = "┃"
            if at >= filled:
                tones[at] = Tone.FILL_THRESHOLD
    elif not chars:
        chars, tones = [" "] * cells, [Tone.FILL_FREE] * cells
    return _joined(chars, tones)


def _label(name: str, letter: str, cells: int) -> str:
    for text in (name, letter):
        if len(text) + 2 <= cells:
            return f" {text}".ljust(cells)
    return " " * cells


def _joined(chars: Sequence[str], tones: Sequence[Tone]) -> Line:
    line: Line = []
    for char, tone in zip(chars, tones, strict=True):
        if line and line[-1][1] is tone:
            line[-1] = (line[-1][0] + char, tone)
        else:
            line.append((char, tone))
    return line


def figure_line(
    state: SessionState, marks: Sequence[Mark], forecast: Sequence[str], cells: int
) -> Line:
    """Share of the limit, the figure with basis and scope, and what comes next."""
    size, sure = expected(state)
    limit, _ = scale_of(state)
    gap = span("   ")
    left: Line = []
    if limit is not None:
        over = any(size >= item.tokens for item in marks) or size > limit
        share = ("" if sure else "~") + percent(size, limit)
        left += [span(share, Tone.THRESHOLD if over else Tone.STRONG)]
        left += [span(f" of the limit {limit:,}", Tone.MUTED), gap]
    reported = state.reported
    shown = reported if reported is not None else state.messages_tokens
    left += [span(figure(shown), Tone.STRONG), span(f" {shown.basis}", Tone.MUTED)]
    if reported is not None and state.since_usage:
        since = f" + {mark(state.basis)}{state.since_usage:,} since"
        left.append(span(since, Tone.MUTED))
    without_scope = left.copy()
    if cells >= 90 and limit is not None:
        left.append(span(f", {scope(shown)}", Tone.MUTED))
    right: Line = []
    if state.overflow is not None and (limit is None or size > limit):
        used, most = state.overflow.used, state.overflow.limit
        at = f" at {used:,}" if used else ""
        told = f"! refused by the provider{at}" + (f", its limit is {most:,}" if most else "")
        if cell_len(told) > cells - width(left) - 2:
            left = without_scope
        if cell_len(told) > cells - width(left) - 2:
            told = f"! refused{at}" + (f", limit {most:,}" if most else "")
        right = [span(told, Tone.FAILED)]
    elif state.breaker_open:
        right = [span("! automatic compaction is off", Tone.FAILED)]
    elif limit is None:
        why = state.budget.window.source if state.budget is not None else "not in the session"
        short = "no share, no threshold: window unknown"
        long = f"{short}, {cut(why, 60)}"
        told = long if cell_len(long) <= cells - width(left) - 2 else short
        right = [span(told, Tone.THRESHOLD)] if state.session_id else []
    else:
        room = cells - width(left) - 2
        told = next((text for text in forecast if len(text) <= room), "")
        right = [span(told, Tone.MUTED)] if told else []
    return spread(left, right, cells)


def ruler_line(state: SessionState, marks: Sequence[Mark], cells: int) -> Line:
    """Where each threshold and the limit lie, under the bar."""
    limit, scale = scale_of(state)
    if limit is None or scale is None:
        return []
    labels = [(item.tokens, cut(item.name, 20), item.source, Tone.THRESHOLD) for item in marks]
    if scale > limit:
        labels.append((limit, "limit", "", Tone.MUTED))
    line: Line = []
    used = 0
    for place, name, source, tone in sorted(labels):
        text = f"{name} {place:,}"
        at = min(cells - 1, round(place * cells / scale))
        long = f"{text} ({cut(source, 40)})" if source not in ("", name) and cells >= 100 else text
        for told in dict.fromkeys((long, text)):
            label: Line = [span("▲ ", tone), span(told, Tone.MUTED)]
            size = width(label)
            if at >= used and at + size <= cells:
                line += [span(" " * (at - used)), *label]
                used = at + size
                break
            back: Line = [span(told, Tone.MUTED), span(" ▲", tone)]
            if at + 1 - size >= used + (2 if used else 0):
                line += [span(" " * (at + 1 - size - used)), *back]
                used = at + 1
                break
    return pad(line, cells)


def legend_line(state: SessionState, cells: int) -> Line:
    """Tokens by kind; the least important leave first when there is no room."""
    basis = mark(state.basis)
    line: Line = []
    names = []
    for name, letter, kinds, _, tone in PARTS:
        value = sum(state.parts.get(kind, 0) for kind in kinds)
        if value or name in ALWAYS:
            names.append((name, letter, value, tone))
    for short in (False, True):
        line = []
        for name, letter, value, tone in names:
            line += [span("   ")] if line else []
            line += [span(f"{letter} ", tone)]
            line += [] if short else [span(f"{name} ", Tone.MUTED)]
            unknown = not value and name == "system" and not state.system_recorded
            line += [span("?" if unknown else f"{basis}{value:,}")]
        if width(line) <= cells:
            break
    limit, scale = scale_of(state)
    right: Line = []
    if limit is not None and scale is not None:
        size, sure = expected(state)
        free = max(0, limit - size)
        right = [span("free ", Tone.MUTED), span(f"{'' if sure else '~'}{free:,}")]
        if scale > limit:
            right += [span("   ╱ ", Tone.FAINT), span("reserve ", Tone.MUTED)]
            right += [span(f"{scale - limit:,}")]
        if width(line) + width(right) + 3 > cells:
            right = []
    return spread(clip(line, cells), right, cells)


def legend_at(state: SessionState, x: int, cells: int) -> str:
    """The name of the part whose legend stands at a cell, or an empty text."""
    at, name = 0, ""
    letters = {part[1]: part[0] for part in PARTS}
    for text, _ in legend_line(state, cells):
        name = letters.get(text.rstrip(), name)
        if text.strip() in ("free", "╱"):
            return ""
        at += cell_len(text)
        if x < at:
            return name if text.strip() else ""
    return ""
