"""The head of a stop as lines of spans: where the agent stands still and why, what the edit comes
to, what speaks against it, and the one line on the console below. Pure functions of the stop and
the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Point, Stop
from thresher.core.insight.naming import first_line
from thresher.core.state import SessionState

from .. import figures
from ..spans import Line, Tone, clip, cut, line_of, span, spread, width, wrap
from .meter_lines import shares
from .timeline_rows import PIN

_BARS: dict[Fate, tuple[str, Tone]] = {
    Fate.KEEP: ("█", Tone.KEPT),
    Fate.REMOVE: ("░", Tone.REMOVED),
    Fate.REPLACE: ("▒", Tone.REWRITTEN),
    Fate.REPLACEMENT: ("▒", Tone.REWRITTEN),
    Fate.INSERT: ("▓", Tone.INSERTED),
}


_GOES_ON = "going on"


def title_of(stop: Stop | None, state: SessionState) -> str:
    """Where it stands still, in words."""
    if stop is None:
        return _GOES_ON
    number = state.compactions + 1
    match stop.point:
        case Point.SUMMARY:
            return f"before the summary of compaction {number}"
        case Point.EDIT:
            return f"before compaction {number} is applied"
        case Point.ROUND:
            return f"after round {state.rounds}"
        case Point.OUTPUT:
            return "after a tool output"
        case Point.OVERFLOW:
            return "after the provider refused the context"
        case Point.FAILURE:
            return "after a failure"
        case Point.PROGRAM:
            return "before another program compacts"


def head_lines(
    stop: Stop | None,
    state: SessionState,
    lines: Sequence[held.Line],
    cells: int,
    height: int,
    apply: str = "a",
    decided: Stop | None = None,
) -> list[Line]:
    """Where and why it stands, what the edit comes to, and what speaks against it; `apply` is the
    key that lets it happen. While the agent works on a decision, `decided` is the stop at which
    it was made: it stays in view, so that nothing jumps."""
    working = stop is None
    mark, tone = ("●", Tone.ACCENT) if working else ("‖", Tone.THRESHOLD)
    title = _works_on(decided) if working else title_of(stop, state)
    where: Line = [
        span(f"{mark} ", tone),
        span("WORKING " if working else "STOPPED ", tone),
        span(title, Tone.STRONG),
    ]
    what: Line = []
    stop = stop or decided
    if stop is not None:
        edit = stop.proposal.edit if stop.proposal is not None else None
        policy = stop.proposal.policy if stop.proposal is not None else ""
        policy = stop.pending.policy if stop.pending is not None else policy
        stage = stop.pending.stage if stop.pending is not None else edit.stage if edit else ""
        what = [span("  ".join(filter(None, (cut(policy, 24), cut(stage, 24)))), Tone.MUTED)]
    found = [spread(where, what, cells)]
    if stop is None:
        return found
    roomy = height >= 8
    reason = wrap(line_of(stop.reason, 2 * cells), cells)[: 2 if roomy else 1]
    found += [[span(line, Tone.MUTED)] for line in reason]
    if roomy:
        found.append([])
    if stop.proposal is not None:
        found.append(totals_line(stop, cells))
        found += bar_lines(lines, cells)
    if working:
        return [*found, [span(_AFTER.get(stop.point, ""), Tone.MUTED)]]
    left = remark_line(stop, cells)
    # What the key does is said in full, or in fewer words, or not at all.
    hints = (
        [hint_line(stop, apply, short) for short in (False, True)] if not stop.objections else []
    )
    room = cells - width(left) - 2
    right = next((hint for hint in hints if width(hint) <= room), None)
    found.append(spread(left, right, cells) if right else left)
    return found


def _works_on(decided: Stop | None) -> str:
    """What the agent does after a decision."""
    if decided is not None and decided.point is Point.SUMMARY:
        return "the summary is being written"
    return _GOES_ON


_AFTER = {Point.SUMMARY: "it stops again before anything is applied"}
"""What comes when the work on a decision is done."""


def hint_line(stop: Stop, apply: str, short: bool = False) -> Line:
    """What comes of the key that lets it happen."""
    does = {
        Point.SUMMARY: "asks for the summary, and stops again before anything is applied",
        Point.EDIT: "applies it as shown",
    }
    fewer = {Point.SUMMARY: "asks for the summary", Point.EDIT: "applies it"}
    told = (fewer if short else does).get(stop.point, "goes on")
    return [span(f"{apply} ", Tone.KEY), span(told, Tone.MUTED)]


def totals_line(stop: Stop, cells: int) -> Line:
    """Tokens before and after, and how many entries meet which fate."""
    proposal = stop.proposal
    assert proposal is not None  # asked for only where there is one
    before, after, change = proposal.before, proposal.after, proposal.change
    left: Line = [
        span(f"{figures.figure(before)} → {figures.figure(after)}", Tone.STRONG),
        span(f" {before.basis}, {before.scope}", Tone.MUTED),
    ]
    if before.comparable(after) and before.value:
        less = before.value - after.value
        sign = "-" if less >= 0 else "+"
        left.append(span(f"  {sign}{figures.percent(abs(less), before.value)}", Tone.MUTED))
    if stop.point is Point.SUMMARY and cells >= 100:
        left.append(span("  + the summary", Tone.MUTED))
    right: Line = []
    for sign, tone, number, name in (
        ("-", Tone.REMOVED, len(change.removed), "removed"),
        ("=", Tone.KEPT, len(change.kept), "kept"),
        ("~", Tone.REWRITTEN, len(change.replaced), "rewritten"),
        ("+", Tone.INSERTED, len(change.inserted), "inserted"),
    ):
        right += [span("   ")] if right else []
        right.append(span(f"{sign} {number:,}", tone if number else Tone.FAINT))
        if cells >= 110:
            right.append(span(f" {name}", Tone.MUTED if number else Tone.FAINT))
    return spread(left, right, cells)


def bar_lines(lines: Sequence[held.Line], cells: int) -> list[Line]:
    """The context before and after on one scale, entry by entry in its order."""
    gone = (Fate.REMOVE, Fate.KEEP, Fate.REPLACE)
    stays = (Fate.KEEP, Fate.REPLACEMENT, Fate.INSERT)
    before = [(line.fate, line.tokens) for line in lines if line.fate in gone]
    after = [(line.fate, line.tokens) for line in lines if line.fate in stays]
    most = max(sum(n for _, n in before), sum(n for _, n in after), 1)
    room = max(8, cells - 8)
    return [
        [span("before  ", Tone.MUTED), *_bar(before, most, room)],
        [span("after   ", Tone.MUTED), *_bar(after, most, room)],
    ]


def _bar(parts: Iterable[tuple[Fate, int]], most: int, room: int) -> Line:
    runs = [
        (fate, sum(tokens for _, tokens in run))
        for fate, run in groupby(parts, key=lambda part: part[0])
    ]
    total = sum(tokens for _, tokens in runs)
    cells = min(room, max(1, round(total * room / most))) if total else 0
    bar: Line = []
    for (fate, _), share in zip(runs, shares([n for _, n in runs], cells), strict=True):
        glyph, tone = _BARS[fate]
        bar.append(span(glyph * share, tone))
    return bar


def remark_line(stop: Stop, cells: int) -> Line:
    """What speaks against it, else what was decided, else what is known of a sketch."""
    if stop.objections:
        why = line_of("; ".join(stop.objections), cells)
        return clip([span("✗ cannot be applied: ", Tone.FAILED), span(why, Tone.REMOVED)], cells)
    line: Line = []
    if stop.told:
        line.append(span(f"{cut(stop.told, 100)}   ", Tone.ACCENT))
    proposal = stop.proposal
    if proposal is not None and proposal.saved:
        line.append(span(f"{PIN} {cut(proposal.saved, 60)}   ", Tone.ACCENT))
    if proposal is not None and proposal.faults:
        line.append(span(f"! {cut('; '.join(proposal.faults), 80)}   ", Tone.THRESHOLD))
    if stop.pending is not None and stop.pending.sketch is None:
        why = cut(stop.pending.unseen, 120)
        line.append(span(f"what it would remove is not known yet: {why}", Tone.THRESHOLD))
    if not line and not stop.pass_id:
        told = "no compaction is held here: pin, restore, step or go on"
        line.append(span(told, Tone.MUTED))
    return clip(line, cells)


def bar_line(stop_reason: str, breakpoint: str, keys: tuple[str, str], cells: int) -> Line:
    """The one line on the console while it stands still; `keys` look at the stop and go on."""
    look, on = keys
    right: Line = [span(f" {look} ", Tone.KEY), span("look", Tone.MUTED), *going_words(on)]
    left: Line = [
        span("‖ STOPPED ", Tone.THRESHOLD),
        span(f"{cut(breakpoint, 30)}  ", Tone.STRONG),
        span(cut(first_line(stop_reason), cells), Tone.MUTED),
    ]
    return spread(left, right, cells)


def going_words(key: str) -> Line:
    """The end of that line, which lets it go on."""
    return [span(f"  {key} ", Tone.KEY), span("go on", Tone.MUTED)]
