"""Why now, and why not, as lines of spans: the rule, its numbers with their sources, the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from thresher.core.compaction.whatif import Ruling
from thresher.core.insight.explain import Miss, Number, Other, WhyNot, WhyNow
from thresher.core.text import clean

from .. import figures
from ..spans import Line, Tone, clip, column, cut, span, wrap

NAME = 13
FIGURE = 10
ENOUGH_OTHERS = 20


def why_now_lines(why: WhyNow, cells: int) -> list[Line]:
    """The reason with every number that was there, then what other rules said."""
    lines: list[Line] = [[], _title("Why now", why.rule, cells)]
    lines += _told(why.words, cells, "● ", Tone.SUMMARY)
    if why.evidence != "recorded":
        lines += _told(f"this reason is {why.evidence}, not recorded", cells, "  ", Tone.MUTED)
    lines += number_lines(why.numbers, cells)
    lines += _stages(why.stages, cells)
    lines += _misses(why.misses, cells)
    if why.others:
        lines += [[], _title("Other policies here", "with their usual constants", cells)]
        lines += other_lines(why.others, cells)
    return lines


def why_not_lines(whys: Sequence[WhyNot], cells: int) -> list[Line]:
    """What the policy said at each moment of a round; moments with the same words are told once."""
    if not whys:
        return [[], _title("Why not", "", cells), *_told("no moment is on record", cells)]
    lines: list[Line] = []
    told: dict[str, list[str]] = {}
    for why in whys:
        told.setdefault(why.words, []).append(why.offered.moment.words)
    compacted = any(why.offered.ordinal for why in whys)
    lines += [[], _title("Why not" if not compacted else "What was asked", "", cells)]
    for words, moments in told.items():
        lines += [[span(", ".join(dict.fromkeys(moments)), Tone.MUTED)]]
        lines += _told(words, cells)
    last = whys[-1]
    lines += _misses(last.misses, cells)
    return [*lines, *number_lines(last.numbers, cells)]


def number_lines(numbers: Iterable[Number], cells: int) -> list[Line]:
    """Name, value and who says so, in columns."""
    lines: list[Line] = []
    room = cells - NAME - FIGURE - 2
    for number in numbers:
        head: Line = [
            column(cut(number.name, NAME - 1), NAME, Tone.MUTED),
            column(figures.thousands(number.value), FIGURE, Tone.STRONG, right=True),
        ]
        source = clean(number.source, keep_newlines=False)
        first, *rest = wrap(source, room) if room >= 12 else ["", *wrap(source, cells - 2)]
        lines.append(clip([*head, span("  "), span(first, Tone.MUTED)], cells))
        indent = " " * (NAME + FIGURE + 2 if room >= 12 else 2)
        lines += [clip([span(indent), span(part, Tone.MUTED)], cells) for part in rest]
    return lines


def other_lines(others: Sequence[Other], cells: int) -> list[Line]:
    """What each other policy would have said: due or not, and by how much it missed."""
    lines: list[Line] = []
    for other in sorted(others, key=_distance)[:ENOUGH_OTHERS]:
        glyph, tone = ("●", Tone.THRESHOLD) if other.due else ("·", Tone.FAINT)
        verdict = "would compact" if other.due else _missed(other)
        # A name that is cut says nothing; it takes the room it needs.
        name = column(cut(other.policy, 20), 18, Tone.PLAIN)
        lines.append(clip([span(f"{glyph} ", tone), name, span(" "), span(verdict, tone if
                     other.due else Tone.MUTED)], cells))  # fmt: skip
        if other.due and other.rulings:
            lines += _told(other.rulings[-1].reason, cells, "  ", Tone.MUTED)
    return lines


def _distance(other: Other) -> tuple[bool, int]:
    missing = [miss.missing for miss in other.misses if miss.missing is not None]
    return (not other.due, min(missing, default=1 << 60))


def _missed(other: Other) -> str:
    ahead = [miss for miss in other.misses if miss.missing is not None and miss.missing > 0]
    if ahead:
        nearest = min(ahead, key=lambda miss: miss.missing or 0)
        mark = nearest.mark
        return f"{mark.name} {mark.tokens:,}: {nearest.missing:,} short"
    if any(miss.missing is not None for miss in other.misses):
        return "its threshold is reached, another of its rules is not"
    if other.misses:
        return "cannot be said: nothing was reported"
    return cut(other.rulings[-1].reason, 60) if other.rulings else "has no rule here"


def _stages(stages: Iterable[Ruling], cells: int) -> list[Line]:
    lines: list[Line] = []
    for ruling in stages:
        name = " ".join(part for part in (ruling.policy, ruling.stage) if part)
        lines += _told(f"{name}: {ruling.reason}", cells, "· ", Tone.MUTED)
    return lines


def _misses(misses: Iterable[Miss], cells: int) -> list[Line]:
    lines: list[Line] = []
    for miss in misses:
        reached = miss.missing is not None and miss.missing <= 0
        glyph, tone = ("● ", Tone.THRESHOLD) if reached else ("· ", Tone.MUTED)
        lines += _told(miss.words, cells, glyph, tone)
    return lines


def _title(name: str, remark: str, cells: int) -> Line:
    line: Line = [span(name, Tone.ACCENT)]
    return clip([*line, span(f"   {cut(remark, cells)}", Tone.FAINT)] if remark else line, cells)


def _told(words: str, cells: int, lead: str = "", tone: Tone = Tone.PLAIN) -> list[Line]:
    """Words under a sign."""
    text = Tone.PLAIN if tone in (Tone.SUMMARY, Tone.THRESHOLD) else tone
    parts = wrap(clean(words[:4000], keep_newlines=False), cells - len(lead))
    return [
        clip([span(" " * len(lead) if at else lead, tone), span(part, text)], cells)
        for at, part in enumerate(parts)
    ]
