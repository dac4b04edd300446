"""A stop of another program as lines of spans: what it waits with, what it would do, and the few
things that its hook lets a user decide. Pure functions of the stop and the state."""

from __future__ import annotations

from collections.abc import Sequence

from thresher.core.debug import stop as held
from thresher.core.debug.stop import Outside, Stop
from thresher.core.hold.foreseen import FORECAST
from thresher.core.state import SessionState
from thresher.core.text import clean

from ..spans import Line, Tone, clip, cut, line_of, span, spread, width, wrap
from .stop_head_lines import bar_lines, totals_line
from .stop_lines import said, text_lines

_FORECAST = "forecast "
_SHORT_FORECAST = "forecast by its specification; the summary is a stand-in"


def left_line(seconds: int, cells: int) -> Line:
    """How long it still waits."""
    words = "goes on by itself in" if cells >= 100 else "goes on in"
    told = f"{words} {max(0, seconds)} s"
    return [span(told, Tone.THRESHOLD if seconds <= 10 else Tone.MUTED)]


def head_lines(
    stop: Stop,
    state: SessionState,
    lines: Sequence[held.Line],
    cells: int,
    height: int,
    keys: tuple[str, str, str],
    seconds: int,
) -> list[Line]:
    """Which program waits and why, how long, what it would do, and what can be decided; `keys` go
    on, give a focus, skip."""
    outside = stop.outside
    assert outside is not None  # asked for only where there is one
    where: Line = [
        span("‖ ", Tone.THRESHOLD),
        span("STOPPED ", Tone.THRESHOLD),
        span(
            f"{cut(outside.program, 40)} waits before compaction {state.compactions + 1}",
            Tone.STRONG,
        ),
    ]
    found = [spread(where, left_line(seconds, cells), cells)]
    roomy = height >= 8
    reason = (
        wrap(line_of(stop.reason, 2 * cells), cells)[:2] if roomy else [cut(stop.reason, cells)]
    )
    found += [[span(line, Tone.MUTED)] for line in reason]
    if roomy:
        found.append([span(cut(f"not possible here: {outside.cannot}", cells), Tone.FAINT)])
    if stop.proposal is not None:
        totals = totals_line(stop, cells - len(_FORECAST))
        found.append([span(_FORECAST, Tone.THRESHOLD), *totals])
        found += bar_lines(lines, cells)
    left, right = remark_line(stop, cells), keys_line(outside, keys)
    if width(left) + width(right) + 2 > cells:
        # What can be decided comes before how the figures came about.
        forecast = stop.proposal is not None and not stop.told
        left = [] if forecast else clip(left, max(0, cells - width(right) - 2))
    found.append(spread(left, right, cells))
    return found


def remark_line(stop: Stop, cells: int) -> Line:
    """What was wished for, else what the figures are."""
    if stop.told:
        return [span(cut(stop.told, cells), Tone.ACCENT)]
    if stop.proposal is not None:
        return [span(_SHORT_FORECAST, Tone.MUTED)]
    if stop.unseen:
        return [span(cut(f"no forecast: {stop.unseen}", cells), Tone.THRESHOLD)]
    return [span("what it would do is being worked out", Tone.MUTED)]


def keys_line(outside: Outside, keys: tuple[str, str, str]) -> Line:
    """What can be decided, and nothing else."""
    on, focus, skip = keys
    told = [(on, "lets it compact")]
    if outside.may_focus:
        told.append((focus, "with a focus"))
    if outside.may_skip:
        told.append((skip, "not this time"))
    line: Line = []
    for key, does in told:
        line += [span("  ")] if line else []
        line += [span(f"{key} ", Tone.STRONG), span(does, Tone.MUTED)]
    return line


def request_lines(outside: Outside, cells: int) -> list[Line]:
    """What its summary request will have from here, and what cannot be had."""
    cannot = [[], *said(f"Not possible with this program: {outside.cannot}.", cells)]
    if not outside.may_focus:
        why = f"{outside.program} asks for its summary itself, and no hook can add to its request."
        return [*said(why, cells), *cannot]
    told = said(
        f"{outside.program} asks for its summary itself. What is given here stands in its request "
        "under additional instructions: a wish to its model, which nobody checks.",
        cells,
    )
    if not outside.told:
        return [*told, [], [span("nothing yet", Tone.FAINT)], *cannot]
    return [*told, *cannot, [], *text_lines(clean(outside.told), cells)]


def summary_lines(stop: Stop, cells: int) -> list[Line]:
    """The summary of the forecast, which is none of the program's."""
    edit = stop.proposal.edit if stop.proposal is not None else None
    summary = edit.summary if edit is not None else None
    if summary is None:
        return said("This forecast has no summary.", cells)
    note = [[span(line, Tone.THRESHOLD)] for line in wrap(FORECAST, cells)]
    return [*note, [], *text_lines(clean(summary.text), cells)]
