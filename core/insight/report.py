"""A report as data: what is worth telling of a session or of one compaction.

`export.py` writes it as Markdown, HTML or JSON. It is redacted at its root: the records are, before
anything is derived from them, so that no cut can leave half a key behind. Token figures and reasons
are those of the records as they were.
"""

from __future__ import annotations

import json
import posixpath
from typing import TypeVar

import msgspec

from .. import events as e
from ..costs import CostTable
from ..errors import ThresherError
from ..history import History
from ..state import SessionState
from ..tokens import Basis, Tokens
from ..views import Card, CardStatus
from .alignment import RowKind
from .diff import Diff, Total, compaction_diff
from .explain import Number, WhyNow, marks_of, numbers, policy_of, why_now
from .inline import Piece
from .inspect import Inspected, Tile, inspect
from .outline import Phase, outline
from .redact import Redacted, Redactor
from .summary_diff import SummaryDiff, summary_diffs

T = TypeVar("T")

VERSION = 1
"""Of the JSON form."""
MOST_EXPLAINED = 25
"""Compactions for which all other policies are asked as well: that takes time for each."""


class Session(msgspec.Struct, frozen=True):
    """Which session it is. Times are seconds (UTC)."""

    id: str
    title: str
    agent: str
    model: str
    policy: str
    cwd: str
    started_at: float
    last_at: float
    lines: int
    turns: int
    rounds: int
    calls: int
    failures: int
    compactions: int
    entries: int
    context: Tokens
    reported: Tokens | None
    removed: tuple[tuple[Tokens, str], ...]
    """Tokens that all compactions removed, one figure for each basis and scope, in words too."""


class ChartPoint(msgspec.Struct, frozen=True):
    """A figure of the chart: reported totals, and the size after a compaction (`ordinal`)."""

    line: int
    round: int
    tokens: int | None
    ordinal: int = 0


class EntryPart(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of the diff. `text` is there unless the entry was kept; of a rewritten one it is the
    new text, and `pieces` is the way there. Ids are the journal's: #42."""

    change: RowKind
    role: str
    tool: str
    title: str
    before: str = ""
    after: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    text: str = ""
    pieces: tuple[Piece, ...] = ()


class CompactionPart(msgspec.Struct, frozen=True):
    """A compaction: why it ran, what it did, and its summary against the last."""

    ordinal: int
    line: int
    at: float
    outcome: str
    policy: str
    stage: str
    why: WhyNow
    tokens_before: Tokens | None
    tokens_after: Tokens | None
    counts: dict[RowKind, Total]
    basis: Basis
    """Of `counts` and of the entries: messages only, by thresher's own reckoning. What the session
    itself recorded is in `tokens_before` and `tokens_after`."""
    entries: tuple[EntryPart, ...]
    focus: str
    summary: str | None
    opaque: bool
    summary_diff: SummaryDiff | None
    summariser: e.Summariser | None
    seconds: float
    marks: tuple[str, ...]
    evidence: str


class ContextPart(msgspec.Struct, frozen=True):
    """An entry of the context at the end; shares lie between 0 and 1."""

    id: str
    role: str
    tool: str
    title: str
    tokens: int
    share: float
    cumulative: float
    made_by: int


class Share(msgspec.Struct, frozen=True):
    """The part of the context that one kind of entry takes."""

    name: str
    tokens: int
    share: float


class EmptyPass(msgspec.Struct, frozen=True):
    """A compaction that changed nothing."""

    line: int
    outcome: str
    policy: str
    stage: str
    reason: str


class Rewound(msgspec.Struct, frozen=True):
    """The session was looked at as it was after `line`; its last line was `last`."""

    line: int
    last: int


class Report(msgspec.Struct, frozen=True):
    """Everything. `only` is the ordinal where the report is of one compaction, else 0; then only
    that one and the session's figures are in it."""

    format: str
    version: int
    only: int
    session: Session
    numbers: tuple[Number, ...]
    thresholds: tuple[tuple[str, int], ...]
    chart: tuple[ChartPoint, ...]
    phases: tuple[Phase, ...]
    compactions: tuple[CompactionPart, ...]
    nothing: tuple[EmptyPass, ...]
    context: tuple[ContextPart, ...]
    tiles: tuple[Share, ...]
    problems: tuple[str, ...]
    redacted: tuple[Redacted, ...] | None
    """None: it was not asked for."""
    rewound: Rewound | None = None
    """None: all of the session is in it."""


def make_report(
    history: History,
    *,
    only: int | None = None,
    redactor: Redactor | None = None,
    rewound: Rewound | None = None,
) -> Report:
    """The report of a session, or of the compaction with the ordinal `only`. `rewound` says that
    the history ends before the session did.

    With a redactor everything in it is redacted. Raises ThresherError when there is no such
    compaction.
    """
    cards = [card for card in history.state.cards if card.status is CardStatus.DONE]
    if only is not None:
        cards = [card for card in cards if card.ordinal == only]
        if not cards:
            raise ThresherError(
                "No such compaction",
                f"there is no compaction {only} that happened: this session has "
                f"{history.state.compactions:,}.",
            )
    shown = history if redactor is None else redacted(history, redactor)
    found = None if redactor is None else redactor.found
    state = shown.state
    inspection = inspect(state)
    phases = () if only is not None else outline(shown)
    words = {diff.ordinal: diff for diff in summary_diffs(state)}
    mine = marks_of(history.state, policy_of(history.state))
    made = tuple(
        _compaction(history, card, shown, words.get(card.ordinal), redactor, len(cards))
        for card in cards
    )
    return Report(
        format="thresher report",
        version=VERSION,
        only=only or 0,
        session=_session(state),
        numbers=_clean(numbers(history.state), redactor, tuple[Number, ...]),
        thresholds=tuple((mark.name, mark.tokens) for mark in mine),
        chart=_chart(state),
        phases=tuple(_relative(phase, state.cwd) for phase in phases),
        compactions=made,
        nothing=() if only is not None else tuple(map(_nothing, _others(state))),
        context=() if only is not None else tuple(map(_entry, inspection.rows)),
        tiles=() if only is not None else tuple(map(_share, inspection.tiles())),
        problems=tuple(problem.message for problem in state.problems),
        redacted=found,
        rewound=rewound,
    )


def redacted(history: History, redactor: Redactor) -> History:
    """The same session without its secrets. Costs stay those of the texts as they were."""
    twin = History(history.state.costs.cost, history.state.basis)
    for record in history.records:
        twin.append(_redacted(record, redactor))
    _adopt(twin.state.costs, history.state)
    return twin


def _redacted(record: e.Record, redactor: Redactor) -> e.Record:
    event = record.event
    if isinstance(event, e.HistoryCompacted | e.HistoryRestored) and event.digest:
        # The digest is that of the unredacted context, and has been compared already.
        record = msgspec.structs.replace(record, event=msgspec.structs.replace(event, digest=""))
    line = e.encode(record).decode()
    if not redactor.suspects(line):
        return record
    plain = json.loads(line)
    clean = redactor.value(plain)
    return record if clean == plain else msgspec.convert(clean, e.Record)


def _adopt(costs: CostTable, state: SessionState) -> None:
    costs.adopt({id: state.costs.of(entry) for id, entry in state.known.items()})


def _clean(value: T, redactor: Redactor | None, kind: type[T]) -> T:
    if redactor is None:
        return value
    return msgspec.convert(redactor.value(msgspec.to_builtins(value)), kind)


# The parts --------------------------------------------------------------------------------------


def _session(state: SessionState) -> Session:
    removed = tuple(
        (Tokens(gone, basis, scope), f"{basis}, {_scope(scope)}")
        for (basis, scope), gone in state.removed_tokens.items()
    )
    return Session(
        id=state.session_id,
        title=state.title,
        agent=state.agent,
        model=state.model,
        policy=state.policy,
        cwd=state.cwd,
        started_at=state.started_at,
        last_at=state.last_at,
        lines=state.position + 1,
        turns=state.turn,
        rounds=state.rounds,
        calls=state.tool_calls,
        failures=state.tool_failures,
        compactions=state.compactions,
        entries=len(state.context),
        context=state.messages_tokens,
        reported=state.reported,
        removed=removed,
    )


def _scope(scope: str) -> str:
    return "messages only" if scope == "messages" else "whole request"


def _chart(state: SessionState) -> tuple[ChartPoint, ...]:
    """A compaction has no figure of the same scope as the reports, so it is a mark without one."""
    return tuple(
        ChartPoint(point.n, point.round, None, state.cards[point.card].ordinal)
        if point.card >= 0
        else ChartPoint(point.n, point.round, point.total)
        for point in state.points
    )


def _compaction(
    history: History,
    card: Card,
    shown: History,
    summary_diff: SummaryDiff | None,
    redactor: Redactor | None,
    of: int,
) -> CompactionPart:
    state = shown.state
    clean = state.card_of(card.ordinal) or card
    diff = compaction_diff(clean, shown.at(shown.position_of(card.n) - 1))
    why = why_now(history, card, others=of <= MOST_EXPLAINED)
    return CompactionPart(
        ordinal=card.ordinal,
        line=card.n,
        at=card.ended_at,
        outcome=card.status.value,
        policy=clean.policy,
        stage=clean.stage,
        why=_clean(why, redactor, WhyNow),
        tokens_before=card.before,
        tokens_after=card.after,
        counts=diff.totals() if diff is not None else {},
        basis=state.basis,
        entries=_entries(diff) if diff is not None else (),
        focus=clean.focus,
        summary=clean.summary,
        opaque=card.opaque,
        summary_diff=summary_diff,
        summariser=clean.summariser,
        seconds=max(0.0, card.ended_at - card.started_at),
        marks=clean.marks,
        evidence=card.evidence,
    )


def _entries(diff: Diff) -> tuple[EntryPart, ...]:
    parts: list[EntryPart] = []
    for row in diff.rows:
        before, after = diff.tokens(row)
        whole = row.kind not in (RowKind.KEPT, RowKind.MOVED)
        rewritten = row.kind is RowKind.REWRITTEN
        parts.append(
            EntryPart(
                change=row.kind,
                role=diff.role(row),
                tool=diff.tool(row),
                title=diff.title(row),
                before=str(row.before or ""),
                after=str(row.after or ""),
                tokens_before=before,
                tokens_after=after,
                text=diff.item(row).text if whole else "",
                pieces=diff.pieces(row) if rewritten else (),
            )
        )
    return tuple(parts)


def _entry(row: Inspected) -> ContextPart:
    return ContextPart(
        str(row.id),
        row.role,
        row.tool,
        row.title,
        row.tokens,
        row.share,
        row.cumulative,
        row.made_by,
    )


def _share(tile: Tile) -> Share:
    return Share(tile.name, tile.tokens, tile.share)


def _others(state: SessionState) -> list[Card]:
    running = (CardStatus.DONE, CardStatus.RUNNING, CardStatus.PROPOSED)
    return [card for card in state.cards if card.status not in running]


def _nothing(card: Card) -> EmptyPass:
    return EmptyPass(card.n, card.status.value, card.policy, card.stage, card.reason)


def _relative(phase: Phase, cwd: str) -> Phase:
    """Paths of the session's own folder as its user knows them."""
    inside = cwd.rstrip("/") + "/"
    files = tuple(
        msgspec.structs.replace(file, path=posixpath.relpath(file.path, cwd))
        if cwd and file.path.startswith(inside)
        else file
        for file in phase.files
    )
    return msgspec.structs.replace(phase, files=files)
