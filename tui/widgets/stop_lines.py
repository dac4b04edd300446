"""A stop as lines of spans: where the agent stands still, what would happen to every entry, the
request for the summary, and the summary. Pure functions of the stop and the state.

A row has its sign first (- = ~ +), then what the user holds of it; removed ones are quiet, since
what stays is what one looks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from thresher.core.compaction.gate import Pending
from thresher.core.compaction.policy import CompactRemotely, Summarise
from thresher.core.context import EntryId
from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Point, Stop
from thresher.core.insight.naming import first_line, item_title, role_of
from thresher.core.items import Item, Kind, kind_of
from thresher.core.state import SessionState
from thresher.core.text import cap_lines, clean
from thresher.core.tokens import Basis

from .. import figures
from ..spans import Line, Tone, clip, column, cut, line_of, span, spread, width, wrap
from .meter_lines import shares
from .timeline_rows import PIN

SIGNS: dict[Fate, tuple[str, Tone]] = {
    Fate.KEEP: ("=", Tone.KEPT),
    Fate.REMOVE: ("-", Tone.REMOVED),
    Fate.REPLACE: ("~", Tone.REWRITTEN),
    Fate.REPLACEMENT: ("~", Tone.REWRITTEN),
    Fate.INSERT: ("+", Tone.INSERTED),
}
_BARS: dict[Fate, tuple[str, Tone]] = {
    Fate.KEEP: ("█", Tone.KEPT),
    Fate.REMOVE: ("░", Tone.REMOVED),
    Fate.REPLACE: ("▒", Tone.REWRITTEN),
    Fate.REPLACEMENT: ("▒", Tone.REWRITTEN),
    Fate.INSERT: ("▓", Tone.INSERTED),
}
_LETTERS: dict[Kind, tuple[str, Tone]] = {
    Kind.SYSTEM: ("S", Tone.PART_SYSTEM),
    Kind.USER: ("U", Tone.PART_USER),
    Kind.ASSISTANT: ("A", Tone.PART_ASSISTANT),
    Kind.REASONING: ("R", Tone.PART_REASONING),
    Kind.CALL: ("T", Tone.PART_OUTPUT),
    Kind.OUTPUT: ("T", Tone.PART_OUTPUT),
    Kind.SUMMARY: ("Σ", Tone.SUMMARY),
    Kind.OTHER: ("O", Tone.PART_OTHER),
}
WHY, TOKENS, WIDE = 8, 8, 50
"""Cells of the reason and of the tokens; the reason has a column from WIDE on."""

HEAD_LINES, TAIL_LINES, LINE_CHARACTERS = 1500, 300, 2000


def lines_of(stop: Stop | None, state: SessionState) -> list[held.Line]:
    """Every entry with what would happen to it; where no edit is held, the context as it is."""
    if stop is not None and stop.proposal is not None:
        return held.lines(stop.proposal, state.pins, stop.drops)
    pins = set(state.pins)
    return [
        held.Line(e, Fate.KEEP, state.cost(e.id) or 0, "pin" if e.id in pins else "policy")
        for e in state.context
    ]


# -- the head ------------------------------------------------------------------------------------


def title_of(stop: Stop | None, state: SessionState) -> str:
    """Where it stands still, in words."""
    if stop is None:
        return "going on"
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


def head_lines(
    stop: Stop | None,
    state: SessionState,
    lines: Sequence[held.Line],
    cells: int,
    height: int,
    apply: str = "a",
) -> list[Line]:
    """Where and why it stands, what the edit comes to, and what speaks against it; `apply` is the
    key that lets it happen."""
    waiting = stop is None
    mark, tone = ("●", Tone.ACCENT) if waiting else ("‖", Tone.THRESHOLD)
    where: Line = [
        span(f"{mark} ", tone),
        span("WORKING " if waiting else "STOPPED ", tone),
        span(title_of(stop, state), Tone.STRONG),
    ]
    what: Line = []
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
    left, right = remark_line(stop, cells), hint_line(stop, apply)
    # What the key does is said in full, or not at all.
    found.append(spread(left, right, cells) if width(left) + width(right) + 2 <= cells else left)
    return found


def hint_line(stop: Stop, apply: str) -> Line:
    """What comes of the key that lets it happen."""
    does = {
        Point.SUMMARY: "asks for the summary, and stops again before anything is applied",
        Point.EDIT: "applies it as shown",
    }.get(stop.point, "goes on")
    return [span(f"{apply} ", Tone.STRONG), span(does, Tone.MUTED)]


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


# -- one entry -----------------------------------------------------------------------------------


def why_of(line: held.Line, pins: Collection[EntryId], summary: bool) -> str:
    """Why it meets its fate, in two words; `summary` says that one speaks for what goes."""
    match line.fate:
        case Fate.KEEP if line.by == "pin" or line.entry.id in pins:
            return "pinned by you"
        case Fate.REMOVE if line.by == "user":
            return "dropped by you"
        case Fate.REMOVE:
            return "into summary" if summary else "removed"
        case Fate.REPLACE:
            return "gives way to ↓"
        case Fate.REPLACEMENT:
            return "in its place"
        case Fate.INSERT if line.stands_for:
            return f"for {figures.count(line.stands_for, 'entry', 'entries')}"
        case Fate.INSERT:
            return "inserted"
        case _:
            return ""


def row_line(state: SessionState, line: held.Line, why: str, basis: Basis, cells: int) -> Line:
    """A row of the list."""
    item = line.entry.item
    sign, tone = SIGNS[line.fate]
    letter, letter_tone = _LETTERS.get(kind_of(item), ("O", Tone.PART_OTHER))
    pinned = why.startswith("pinned")
    quiet = line.fate in (Fate.REMOVE, Fate.REPLACE)
    # A new entry has no number before it is in the record.
    id = "new" if line.fate in (Fate.INSERT, Fate.REPLACEMENT) else str(line.entry.id)
    left: Line = [
        span(f"{sign} ", tone),
        span(PIN if pinned else "×" if why.startswith("dropped") else " ", Tone.ACCENT),
        column(id, 6, Tone.FAINT, right=True),
        span(f" {letter} ", Tone.MUTED if quiet else letter_tone),
        span(line_of(_titled(state, item), cells), Tone.MUTED if quiet else Tone.PLAIN),
    ]
    right: Line = []
    if cells >= WIDE:
        by_user = pinned or why.startswith("dropped")
        short = _SHORT.get(why, why.removesuffix(" by you"))
        if line.stands_for:
            short = f"for {line.stands_for:,}"
        right.append(column(short, WHY, Tone.ACCENT if by_user else Tone.FAINT))
    tokens = f"{figures.mark(basis)}{line.tokens:,}"
    right.append(column(tokens, TOKENS, Tone.MUTED if quiet else Tone.PLAIN, right=True))
    return spread(left, right, cells)


_SHORT = {"into summary": "into Σ", "gives way to ↓": "↓", "in its place": "↑"}
"""The reason in the list; in full it stands beside the text."""


def _titled(state: SessionState, item: Item) -> str:
    title = item_title(state, item)
    # The letter beside it says who speaks.
    head, colon, rest = title.partition(": ")
    return (
        rest if colon and head in ("user", "assistant", "system", "summary", "reasoning") else title
    )


def entry_lines(
    state: SessionState, line: held.Line | None, why: str, basis: Basis, cells: int
) -> list[Line]:
    """All of an entry."""
    if line is None:
        return _said("Select an entry to read all of it here.", cells)
    sign, tone = SIGNS[line.fate]
    fate = {Fate.REPLACEMENT: "inserted in place of the one above"}.get(
        line.fate, _FATES[line.fate]
    )
    told = f"{fate}, {why}" if why and why not in fate else fate
    found = [
        spread(
            [span(f"{role_of(line.entry.item)}  {line.entry.id}", Tone.STRONG)],
            [span(f"{figures.mark(basis)}{line.tokens:,} tokens {basis}", Tone.MUTED)],
            cells,
        ),
        [span(f"{sign} {told}", tone)],
        [],
    ]
    return [*found, *text_lines(line.entry.item.text, cells)]


_FATES = {
    Fate.KEEP: "would stay",
    Fate.REMOVE: "would be removed",
    Fate.REPLACE: "would be rewritten",
    Fate.INSERT: "would be inserted",
}


# -- the summary ---------------------------------------------------------------------------------


def request_lines(pending: Pending | None, stop: Stop | None, cells: int) -> list[Line]:
    """The request for the summary as it would be sent."""
    if pending is None:
        return _said(_no_request(stop), cells)
    ask, measure = pending.ask, pending.situation.measure
    sizes = [measure.item(item) for item in ask.items]
    total = sum(sizes) + (measure.text(ask.instructions) if ask.instructions else 0)
    basis = figures.mark(measure.basis)
    by = cut(ask.model, 40) or "the summariser"
    kind = "the provider compacts these itself" if isinstance(ask, CompactRemotely) else f"to {by}"
    found: list[Line] = [
        spread(
            [span(f"{figures.count(len(ask.items), 'message')} {kind}", Tone.STRONG)],
            [span(f"{basis}{total:,} tokens {measure.basis}", Tone.MUTED)],
            cells,
        )
    ]
    if isinstance(ask, Summarise) and ask.max_output:
        found.append([span(f"at most {ask.max_output:,} tokens of answer", Tone.MUTED)])
    if isinstance(ask, Summarise) and ask.focus:
        found += [[span(line, Tone.ACCENT)] for line in wrap(f"focus: {clean(ask.focus)}", cells)]
    if ask.instructions:
        found += [[], *_headed("instructions", "", ask.instructions, cells)]
    for item, size in zip(ask.items, sizes, strict=True):
        found += [[], *_headed(role_of(item), f"{basis}{size:,}", item.text, cells)]
    return found


def _no_request(stop: Stop | None) -> str:
    if stop is None:
        return "It has been sent."
    if not stop.pass_id:
        return "No compaction is held here."
    edit = stop.proposal.edit if stop.proposal is not None else None
    if edit is not None and edit.summary is not None:
        return "It has been sent and answered; the summary is in the next view."
    return "This compaction asks for no summary."


def _headed(name: str, remark: str, text: str, cells: int) -> list[Line]:
    rule = "─" * max(0, cells - len(name) - len(remark) - 2)
    head: Line = [
        span(f"{name} ", Tone.MUTED),
        span(rule, Tone.RULE),
        span(f" {remark}", Tone.MUTED),
    ]
    return [head, *text_lines(text, cells)]


def summary_lines(
    stop: Stop | None, streamed: str, cells: int, keys: tuple[str, str]
) -> list[Line]:
    """The summary, or what can be done while there is none; `keys` ask for it and write one."""
    if stop is None:
        head = _said("The summary is being written.", cells)
        return [*head, [], *text_lines(streamed, cells)] if streamed else head
    if stop.pending is not None:
        ask, write = keys
        return [
            [span("It is not written yet.", Tone.STRONG)],
            *_keyed(ask, "asks for it; you see it before it is applied", cells),
            *_keyed(write, "writes it yourself, and nothing is asked", cells),
        ]
    edit = stop.proposal.edit if stop.proposal is not None else None
    summary = edit.summary if edit is not None else None
    if summary is None:
        return _said("This compaction writes no summary.", cells)
    facts = [f"by {cut(summary.model, 40)}" if summary.model else "by the user"]
    if summary.usage is not None:
        facts.append(f"{summary.usage.output_tokens:,} tokens reported")
    if summary.seconds:
        facts.append(figures.seconds(summary.seconds))
    found: list[Line] = [[span(", ".join(facts), Tone.MUTED)]]
    if summary.note:
        found += [[span(line, Tone.THRESHOLD)] for line in wrap(clean(summary.note), cells)]
    if summary.encrypted and not summary.text:
        return [*found, [], *_said("The provider sealed it: it cannot be read.", cells)]
    return [*found, [], *text_lines(summary.text, cells)]


def _said(text: str, cells: int) -> list[Line]:
    """A sentence of ours."""
    return [[span(line, Tone.MUTED)] for line in wrap(text, cells)]


def _keyed(key: str, does: str, cells: int) -> list[Line]:
    """What a key does."""
    first, *rest = wrap(does, max(8, cells - len(key) - 1))
    indent = " " * (len(key) + 1)
    return [[span(f"{key} ", Tone.ACCENT), span(first)], *([span(indent + more)] for more in rest)]


def text_lines(text: str, cells: int) -> list[Line]:
    """A whole text, wrapped and capped."""
    if not text:
        return [[span("empty", Tone.FAINT)]]
    capped = cap_lines(text, HEAD_LINES, TAIL_LINES, LINE_CHARACTERS)
    return [[span(line)] for line in wrap(capped, cells)]


def bar_line(stop_reason: str, breakpoint: str, keys: tuple[str, str], cells: int) -> Line:
    """The one line on the console while it stands still; `keys` look at the stop and go on."""
    look, on = keys
    right: Line = [
        span(f" {look} ", Tone.STRONG), span("look", Tone.MUTED),
        span(f"  {on} ", Tone.STRONG), span("go on", Tone.MUTED),
    ]  # fmt: skip
    left: Line = [
        span("‖ STOPPED ", Tone.THRESHOLD),
        span(f"{cut(breakpoint, 30)}  ", Tone.STRONG),
        span(cut(first_line(stop_reason), cells), Tone.MUTED),
    ]
    return spread(left, right, cells)


def summarised(stop: Stop | None) -> bool:
    """Whether a summary speaks for what goes."""
    if stop is None or stop.proposal is None:
        return False
    return stop.proposal.edit.summary is not None or stop.pending is not None


def basis_of(stop: Stop | None, state: SessionState) -> Basis:
    """The basis of the figures of entries."""
    return stop.proposal.before.basis if stop is not None and stop.proposal else state.basis
