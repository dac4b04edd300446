"""Compaction cards as lines of spans: folded to three lines, or open with all there is to say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from thresher.core.context import Context, EntryId
from thresher.core.text import clean
from thresher.core.tokens import Usage
from thresher.core.views import Card, CardStatus

from .. import figures
from ..spans import Line, Tone, clip, column, cut, line_of, span, spread, width, wrap

FOLDED = 3
STREAM_LINES = 4
INDENT = 4
SUMMARY_LIMIT = 60_000
"""Characters of a summary that a card unfolds; the detail pane has the rest."""

_STATUS: dict[CardStatus, tuple[str, Tone]] = {
    CardStatus.RUNNING: ("◌", Tone.SUMMARY),
    CardStatus.PROPOSED: ("◌", Tone.SUMMARY),
    CardStatus.DONE: ("✓", Tone.MUTED),
    CardStatus.NO_OP: ("!", Tone.THRESHOLD),
    CardStatus.GREW: ("!", Tone.THRESHOLD),
    CardStatus.SUPERSEDED: ("!", Tone.THRESHOLD),
    CardStatus.ABORTED: ("!", Tone.THRESHOLD),
    CardStatus.EMPTY: ("✗", Tone.FAILED),
    CardStatus.FAILED: ("✗", Tone.FAILED),
    CardStatus.UNANNOUNCED: ("!", Tone.THRESHOLD),
    CardStatus.BROKEN: ("✗", Tone.FAILED),
}
_CHANGED = (CardStatus.DONE, CardStatus.BROKEN, CardStatus.UNANNOUNCED)
"""After these the context is another one."""


def running(card: Card) -> bool:
    """Whether the pass has not ended."""
    return card.status in (CardStatus.RUNNING, CardStatus.PROPOSED)


def edge(card: Card) -> Tone:
    """The tone of a card's left edge: what kind of end it came to."""
    tone = _STATUS[card.status][1]
    return Tone.SUMMARY if tone is Tone.MUTED else tone


def status_sign(card: Card) -> tuple[str, Tone]:
    """How a compaction ended, as a sign: the summary's where it changed the context."""
    return ("Σ", Tone.SUMMARY) if card.status in _CHANGED else _STATUS[card.status]


def counts(card: Card, *, words: bool) -> Line:
    """Items - removed, = kept, ~ rewritten, + inserted."""
    unannounced = card.status is CardStatus.UNANNOUNCED and card.context_before is None
    if unannounced or card.counts_unknown:
        return [span("what left is unknown" if words else "- ?", Tone.MUTED)]
    line: Line = []
    for glyph, number, word, tone in (
        ("-", card.removed, "removed", Tone.REMOVED),
        ("=", card.kept, "kept", Tone.KEPT),
        ("~", card.replaced, "rewritten", Tone.REWRITTEN),
        ("+", card.inserted, "inserted", Tone.INSERTED),
    ):
        shown = tone if number else Tone.FAINT
        line += [span("   " if line else ""), span(f"{glyph} {number:,}", shown)]
        if words:
            line.append(span(f" {word}", Tone.MUTED if number else Tone.FAINT))
    return line


def title_line(card: Card, cells: int, *, open: bool) -> Line:
    """Ordinal, trigger and stage; at the right the outcome and the time it took."""
    glyph, tone = _STATUS[card.status]
    name = f"compaction {card.ordinal}" if card.ordinal else "compaction"
    if card.status is CardStatus.UNANNOUNCED:
        name = "reduction"
    told = [str(card.trigger).replace("_", " "), cut(card.stage, 24)]
    left: Line = [
        span("▾ " if open else "▸ ", Tone.FAINT),
        span("Σ ", Tone.SUMMARY),
        span(name, Tone.STRONG),
        span("  " + ", ".join(filter(None, told)), Tone.MUTED),
    ]
    right: Line = [span(f"{glyph} {card.status}", tone)]
    took = card.ended_at - card.started_at
    if card.ended_at and card.started_at and took > 0:
        right.append(column(figures.seconds(took), 7, Tone.MUTED, right=True))
    return spread(left, right, cells)


def figures_lines(card: Card, cells: int) -> list[Line]:
    """The figures one under the other: tokens before -> after, then the counts in words."""
    if card.status not in (*_CHANGED, CardStatus.PROPOSED):
        return [figures_line(card, cells)]
    number, rest = _tokens(card)
    words = counts(card, words=True)
    told = words if width(words) <= cells else counts(card, words=False)
    return [[span(number, Tone.STRONG), span(f" {rest}", Tone.MUTED)], told]


def _tokens(card: Card) -> tuple[str, str]:
    number, _, after = figures.change(card.before, card.after).rpartition(" → ")
    head, _, rest = after.partition(" ")
    return f"{number} → {head}", rest


def figures_line(card: Card, cells: int) -> Line:
    """Tokens before -> after with their basis, and the counts of items."""
    if running(card) and not (card.removed or card.kept):
        policy = cut(card.policy, 24)
        return [span(f"{policy} decides what to keep" if policy else "deciding", Tone.MUTED)]
    if card.status not in _CHANGED and not running(card):
        left: Line = [span("the context is unchanged", Tone.MUTED)]
        if card.failures:
            told = f"{figures.count(card.failures, 'failure')} in a row"
            left.append(span(f"   {told}", Tone.REMOVED))
        if card.before is not None or card.after is not None:
            left.append(span(f"   {figures.change(card.before, card.after)}", Tone.MUTED))
        return left
    number, rest = _tokens(card)
    left = [span(number, Tone.STRONG), span(f" {rest}", Tone.MUTED)]
    full = counts(card, words=True)
    if width(left) + 4 + width(full) <= cells:
        return spread(left, full, cells)
    short = counts(card, words=False)
    if width(left) + 3 + width(short) > cells:
        left = brief_change(card)
    return spread(left, short, cells)


def brief_change(card: Card) -> Line:
    """The change in few cells: what both figures have in common is left out, what they do not have
    in common never is."""
    before, after = card.before, card.after
    if before is None or after is None or before.comparable(after):
        number, rest = _tokens(card)
        return [span(number, Tone.STRONG), span(f" {rest.partition(',')[0]}", Tone.MUTED)]
    scopes = before.scope is not after.scope
    line: Line = []
    for tokens in (before, after):
        line += [span(" → ", Tone.STRONG)] if line else []
        what = tokens.scope if scopes else tokens.basis
        line += [span(figures.figure(tokens), Tone.STRONG), span(f" {what}", Tone.MUTED)]
    return line


def folded_lines(card: Card, cells: int) -> list[Line]:
    """The card in short; while its summary is written, with the end of the summary."""
    lines = [
        title_line(card, cells, open=False),
        _indented(figures_line(card, cells - INDENT), cells),
        _indented(_reason(card, cells), cells),
    ]
    if running(card):
        tail = wrap(clean(card.streamed[-1000:]).rstrip(), cells - INDENT - 2)
        shown = [line for line in tail if line][-STREAM_LINES:] if card.streamed else []
        waiting: list[Line] = [[span("│ ", Tone.SUMMARY), span("waiting …", Tone.FAINT)]]
        body: list[Line] = [[span("│ ", Tone.SUMMARY), span(line)] for line in shown] or waiting
        lines += [_indented(line, cells) for line in body]
        lines += [[]] * (FOLDED + STREAM_LINES - len(lines))
    return lines


def _reason(card: Card, cells: int) -> Line:
    text = line_of(card.reason or "no reason recorded", cells)
    tone = Tone.MUTED
    if card.status in (CardStatus.FAILED, CardStatus.EMPTY, CardStatus.BROKEN):
        tone = Tone.REMOVED
    line: Line = []
    if card.marks:
        line = [span("! ", Tone.THRESHOLD)]
    return [*line, span(text, tone)]


def open_lines(card: Card, cells: int) -> list[Line]:
    """The card with everything: facts, ids, failed attempts, and the summary as it was sent."""
    lines = [
        title_line(card, cells, open=True),
        _indented(figures_line(card, cells - INDENT), cells),
    ]
    for name, text, tone in facts(card):
        lines += _fact(name, text, tone, cells)
    lines.append([])
    lines += summary_lines(card, cells, SUMMARY_LIMIT)
    lines.append([])
    return lines


def facts(card: Card) -> list[tuple[str, str, Tone]]:
    """What is known of a compaction beside its figures: name, text (not clean), tone."""
    moment = card.moment.words if card.moment is not None else card.phase
    found = [("reason", card.reason or "no reason recorded", Tone.PLAIN)]
    if card.reason_evidence != "recorded" or card.evidence != "recorded":
        known = f"compaction {card.evidence}, reason {card.reason_evidence}"
        found.append(("evidence", known, Tone.MUTED))
    found.append(
        ("policy", f"{card.policy}, asked {moment}" if moment else card.policy, Tone.PLAIN)
    )
    if card.focus:
        found.append(("focus", card.focus, Tone.PLAIN))
    for name, glyph, ids, tone in (
        ("removed", "-", card.removed_ids, Tone.REMOVED),
        ("kept", "=", card.kept_ids, Tone.KEPT),
    ):
        if ids:
            found.append((name, f"{glyph} {_ids(card.context_before, ids)}", tone))
    if card.replaced_ids:
        told = ", ".join(f"{old} → {new}" for old, new in card.replaced_ids[:20])
        more = len(card.replaced_ids) - 20
        found.append(
            ("rewritten", f"~ {told}" + (f" … {more:,} more" if more > 0 else ""), Tone.REWRITTEN)
        )
    if card.inserted_ids:
        found.append(
            ("inserted", f"+ {_ids(card.context_after, card.inserted_ids)}", Tone.INSERTED)
        )
    if card.usage is not None:
        found.append(("set off by", f"{_usage(card.usage)}, reported", Tone.PLAIN))
    if card.summariser is not None:
        one = card.summariser
        by = [one.model, _usage(one.usage) if one.usage is not None else "usage unknown"]
        by += [figures.count(one.attempts, "attempt"), figures.seconds(one.seconds)]
        found.append(("summariser", ", ".join(by), Tone.PLAIN))
    for attempt in card.failed_attempts:
        told_attempt = f"! {attempt.model}, {attempt.kind}: {attempt.message}"
        if attempt.next_step:
            told_attempt += f"; then {attempt.next_step}"
        found.append((f"attempt {attempt.attempt}", told_attempt, Tone.REMOVED))
    if card.failure_kind:
        found.append(("failure", card.failure_kind, Tone.REMOVED))
    if card.next_step:
        found.append(("next", card.next_step, Tone.PLAIN))
    found += [("mark", f"! {text}", Tone.THRESHOLD) for text in card.marks]
    return found


def summary_lines(card: Card, cells: int, limit: int) -> list[Line]:
    """The summary under its heading, wrapped; or what there is instead of one."""
    text = card.summary if card.summary is not None else card.streamed
    if card.opaque:
        return [_indented([span("The summary is sealed by the provider.", Tone.MUTED)], cells)]
    if not text:
        empty = "No summary yet." if running(card) else "No summary: nothing was sent instead."
        return [_indented([span(empty, Tone.MUTED)], cells)]
    heading = "Summary so far" if running(card) else "Summary sent to the model"
    lines = [
        _indented(
            [span(heading, Tone.SUMMARY), span(f"   {len(text):,} characters", Tone.MUTED)], cells
        )
    ]
    for line in wrap(clean(text[:limit]), cells - INDENT - 2):
        lines.append(_indented([span("│ ", Tone.SUMMARY), span(line)], cells))
    if len(text) > limit:
        rest = f"… {len(text) - limit:,} more characters in the detail"
        lines.append(_indented([span(rest, Tone.MUTED)], cells))
    return lines


def _fact(name: str, text: str, tone: Tone, cells: int) -> list[Line]:
    label = 11
    told = wrap(clean(text[:4000], keep_newlines=False), cells - INDENT - label)
    lines = []
    for at, part in enumerate(told):
        shown = name if not at else ""
        lines.append(_indented([column(shown, label, Tone.MUTED), span(part, tone)], cells))
    return lines


def _ids(context: Context | None, ids: tuple[EntryId, ...]) -> str:
    if context is None:
        return figures.count(len(ids), "item")
    told: list[str] = []
    length = 0
    for first, last in _runs(context, ids):
        told.append(str(first) if first == last else f"{first}-{last}")
        length += len(told[-1])
        if length > _IDS_LENGTH:
            told.append("…")
            break
    return " ".join(told)


_IDS_LENGTH = 400


def _runs(context: Context, ids: Iterable[EntryId]) -> Iterator[tuple[EntryId, EntryId]]:
    """First and last of each run of neighbours in the context. A summary stands before what is
    older than it, so a run ends where the numbers fall: "#29-#23" would be read as a mistake."""
    places = sorted(place for id in ids if (place := context.place(id)) is not None)
    entries = context.entries
    first = last = -1
    for place in places:
        if last >= 0 and place == last + 1 and entries[last].id < entries[place].id:
            last = place
            continue
        if last >= 0:
            yield entries[first].id, entries[last].id
        first = last = place
    if last >= 0:
        yield entries[first].id, entries[last].id


def _usage(usage: Usage) -> str:
    cached = f", {usage.cached_tokens:,} cached" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"


def _indented(line: Line, cells: int) -> Line:
    return clip([span(" " * INDENT), *line], cells)
