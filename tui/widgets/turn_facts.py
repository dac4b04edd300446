"""What happened in one turn, from the rows and figures of the state: a pure function."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from thresher.core.state import SessionState
from thresher.core.views import Row, RowKind, ToolStatus

from .. import figures


class TurnFacts(msgspec.Struct, frozen=True):
    """A turn as far as this position: `seconds` is None while it runs or no times are recorded.

    `first` and `last` are what the provider reported for the turn's first and last request, in
    tokens of the whole request; `cards` are indices into the state's cards.
    """

    rounds: int
    calls: int
    failed: int
    seconds: float | None
    first: int | None
    last: int | None
    cards: tuple[int, ...]


def turn_facts(state: SessionState, row: Row) -> TurnFacts:
    """The facts of the turn that a row begins or ends."""
    rows = _rows_of(state, row)
    begun, ended = rows[0], rows[-1]
    over = ended.kind is RowKind.TURN_END and begun.at and ended.at >= begun.at
    tools = [each for each in rows if each.kind is RowKind.TOOL]
    runs = [state.tools.get(each.call_id) for each in tools]
    reports = [
        point.total
        for point in state.points
        if begun.n <= point.n <= ended.n
        and point.card < 0
        and not point.estimated
        and point.total is not None
    ]
    return TurnFacts(
        rounds=sum(each.kind is RowKind.ROUND for each in rows),
        calls=len(tools),
        failed=sum(run is not None and run.status is ToolStatus.FAILED for run in runs),
        seconds=ended.at - begun.at if over else None,
        first=reports[0] if reports else None,
        last=reports[-1] if reports else None,
        cards=tuple(each.card for each in rows if each.kind is RowKind.COMPACTION),
    )


def turn_words(state: SessionState, facts: TurnFacts) -> list[tuple[str, str]]:
    """The facts as names and words; what is not known is left out."""
    told = [("rounds", f"{facts.rounds:,}")]
    calls = f"{facts.calls:,}"
    if facts.failed:
        calls += f", {facts.failed:,} failed"
    told.append(("tool calls", calls))
    if facts.first is not None and facts.last is not None:
        words = f"{facts.last:,}" if facts.rounds < 2 else f"{facts.first:,} → {facts.last:,}"
        told.append(("requests", f"{words} reported, whole request"))
    if facts.cards:
        ordinals = [state.cards[card].ordinal for card in facts.cards if card < len(state.cards)]
        names = [f"{ordinal}" for ordinal in ordinals if ordinal]
        told.append(("compacted", figures.count(len(facts.cards), "time")))
        if names:
            told.append(("", f"compaction {', '.join(names)}"))
    if facts.seconds is not None:
        told.append(("took", figures.seconds(facts.seconds)))
    return told


def _rows_of(state: SessionState, row: Row) -> list[Row]:
    """The rows from the beginning of the turn to its end, or to the end of the record."""
    rows = state.rows
    at = bisect_left(rows, row.n, key=lambda each: each.n)
    while at < len(rows) - 1 and rows[at] is not row and rows[at].n == row.n:
        at += 1
    first = at
    while first > 0 and rows[first].kind is not RowKind.TURN:
        first -= 1
    end = first + 1
    while end < len(rows) and rows[end].kind not in (RowKind.TURN, RowKind.TURN_END):
        end += 1
    inside = end < len(rows) and rows[end].kind is RowKind.TURN_END
    return list(rows[first : end + 1 if inside else end])
