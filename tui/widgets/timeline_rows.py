"""The rows of the timeline as lines of spans: pure, and the same for live, replay and rewind.

Columns: what became of the entry (- ~ Σ), its id, a glyph, a name, the text, and at the right the
facts of a tool run and the tokens. Outside text is cleaned here and nowhere later.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import msgspec

from thresher.core.context import EntryId
from thresher.core.items import FunctionCall
from thresher.core.state import SessionState
from thresher.core.tokens import Basis
from thresher.core.views import Fate, Row, RowKind, ToolRun, ToolStatus

from .. import figures
from ..spans import Line, Tone, clip, column, cut, ending, line_of, span, spread, width

ID_CELLS = 6
NAME_CELLS = 12
TOKEN_CELLS = 8
TEXT_AT = ID_CELLS + NAME_CELLS + 6
"""The cell at which texts begin; everything that is indented, is indented to here."""

_SPEAKERS: dict[RowKind, tuple[str, Tone]] = {
    RowKind.SYSTEM: ("S", Tone.PART_SYSTEM),
    RowKind.USER: ("U", Tone.PART_USER),
    RowKind.ASSISTANT: ("A", Tone.PART_ASSISTANT),
    RowKind.REASONING: ("R", Tone.PART_REASONING),
    RowKind.OUTPUT: ("T", Tone.PART_OUTPUT),
    RowKind.SUMMARY: ("Σ", Tone.SUMMARY),
    RowKind.OTHER: ("O", Tone.PART_OTHER),
    RowKind.NOTE: ("·", Tone.MUTED),
    RowKind.ERROR: ("!", Tone.FAILED),
    RowKind.UNKNOWN: ("?", Tone.THRESHOLD),
}

TOOL_GLYPHS: dict[ToolStatus, tuple[str, Tone]] = {
    ToolStatus.WAITING: ("·", Tone.MUTED),
    ToolStatus.RUNNING: ("▸", Tone.ACCENT),
    ToolStatus.DONE: ("✓", Tone.PART_OUTPUT),
    ToolStatus.FAILED: ("✗", Tone.FAILED),
}

_TELLING = ("command", "cmd", "pattern", "query", "path", "file_path", "url", "focus", "prompt")
"""Arguments that say most about a call, in this order."""

PARSE_LIMIT = 20_000
"""Arguments longer than this are shown as they are and not parsed."""


PIN = "▣"
"""What stands beside an entry that the user pinned."""


def held_mark(state: SessionState, *ids: EntryId | None) -> tuple[str, Tone]:
    """What became of them: the first mark that one of them has (the output of a call is often
    cleared while the call stays), or that one of them is pinned."""
    marks = [fate_mark(state.fate(id)) for id in ids if id is not None]
    mark = next((each for each in marks if each[0] != " "), (" ", Tone.PLAIN))
    if mark[0] == " " and state.pins and any(id in state.pins for id in ids):
        return PIN, Tone.ACCENT
    return mark


def fate_mark(fate: Fate) -> tuple[str, Tone]:
    """One glyph for what became of an entry; nothing while the model still sees it."""
    if fate.outside:
        return "·", Tone.FAINT
    if fate.became is not None:
        return "~", Tone.REWRITTEN
    if fate.gone:
        return "-", Tone.REMOVED
    return " ", Tone.PLAIN


def fate_line(fate: Fate, cells: int) -> Line:
    """What became of an entry, in words with a glyph, on one line."""
    glyph, tone = fate_mark(fate)
    if glyph == " ":
        glyph, tone = "=", Tone.KEPT
    return [span(f"{glyph} {cut(fate.words(), cells)}", tone)]


def short_argument(arguments: str, cells: int) -> str:
    """What a call is about, on one clean line: the telling argument, else all of them."""
    parsed: Any = None
    if len(arguments) <= PARSE_LIMIT:
        try:
            parsed = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            parsed = None
    if not isinstance(parsed, dict):
        return line_of(arguments, cells)
    for name in _TELLING:
        value = parsed.get(name)
        if isinstance(value, str) and value:
            return line_of(value, cells)
        if isinstance(value, list) and value:
            return line_of(" ".join(map(str, value)), cells)
    told = "  ".join(f"{name}={value}" for name, value in parsed.items())
    return line_of(told, cells)


def tokens_of(state: SessionState, *ids: EntryId | None) -> str:
    """The tokens of entries together, with the mark of their basis."""
    known = [cost for id in ids if id is not None and (cost := state.cost(id)) is not None]
    return f"{figures.mark(state.basis)}{sum(known):,}" if known else ""


def reported_in(state: SessionState, number: int) -> str:
    """What the provider reported for a round, or nothing until it did."""
    points = state.points
    at = bisect_left(points, number, key=lambda point: point.round)
    while at < len(points) and points[at].round == number:
        point = points[at]
        if point.card < 0 and point.total is not None:
            basis = Basis.ESTIMATED if point.estimated else Basis.REPORTED
            return f"{figures.mark(basis)}{point.total:,} {basis}"
        at += 1
    return ""


def row_height(row: Row, index: int) -> int:
    """The height of a row that is not a compaction card."""
    return 2 if row.kind is RowKind.TURN and index else 1


def row_lines(state: SessionState, row: Row, index: int, cells: int) -> list[Line]:
    """The lines of a row that is not a compaction card."""
    match row.kind:
        case RowKind.TURN:
            title: Line = [span(f" turn {row.number} ", Tone.STRONG)]
            rule = "─" * max(0, cells - width(title))
            line = [*title, span(rule, Tone.RULE)]
            return [[], line] if index else [line]
        case RowKind.TURN_END:
            told = f"turn {row.number} {cut(row.text, 40)}".strip()
            return [_framed("", "", Tone.PLAIN, "", [span(told, Tone.FAINT)], [], cells)]
        case RowKind.ROUND:
            told = reported_in(state, row.number)
            text = [span(told, Tone.FAINT)]
            return [_framed("", "", Tone.PLAIN, f"round {row.number}", text, [], cells, faint=True)]
        case RowKind.TOOL:
            return [_tool_line(state, row, cells)]
        case _:
            return [_entry_line(state, row, cells)]


def _framed(
    mark: str, glyph: str, tone: Tone, name: str, text: Line, right: Line, cells: int,
    *, id: str = "", mark_tone: Tone = Tone.PLAIN, faint: bool = False,
) -> Line:  # fmt: skip
    left: Line = [
        column(mark, 1, mark_tone),
        column(id, ID_CELLS, Tone.FAINT, right=True),
        span(" "),
        column(glyph, 1, tone),
        span(" "),
        column(name, NAME_CELLS, Tone.FAINT if faint else Tone.MUTED),
        span(" "),
    ]
    return spread([*left, *text], right, cells)


def _entry_line(state: SessionState, row: Row, cells: int) -> Line:
    glyph, tone = _SPEAKERS.get(row.kind, ("·", Tone.MUTED))
    entry = state.known.get(row.id) if row.id is not None else None
    text = line_of(entry.item.text if entry is not None else row.text, cells)
    mark, mark_tone = held_mark(state, row.id)
    body = Tone.MUTED if mark not in (" ", PIN) else Tone.PLAIN
    if row.kind in (RowKind.NOTE, RowKind.REASONING, RowKind.SYSTEM):
        body = Tone.MUTED
    if row.kind is RowKind.ERROR:
        body = Tone.REMOVED
    right: Line = []
    if row.id is not None:
        right = [column(tokens_of(state, row.id), TOKEN_CELLS, Tone.MUTED, right=True)]
    return _framed(
        mark, glyph, tone, row.kind.value, [span(text, body)], right, cells,
        id=str(row.id) if row.id is not None else "", mark_tone=mark_tone,
    )  # fmt: skip


def _tool_line(state: SessionState, row: Row, cells: int) -> Line:
    run = run_of(state, row)
    glyph, tone = TOOL_GLYPHS[run.status]
    shown = row.id or run.call
    mark, mark_tone = held_mark(state, shown, run.call, run.output)
    gone = mark not in (" ", PIN)
    text = short_argument(run.arguments, cells)
    right: Line = []
    if run.exit_code:
        right.append(span(f"exit {run.exit_code}", Tone.MUTED if gone else Tone.REMOVED))
    took = figures.seconds(run.seconds) if run.seconds else ""
    right.append(column(took, 7, Tone.MUTED, right=True))
    right.append(
        column(tokens_of(state, run.call, run.output), TOKEN_CELLS, Tone.MUTED, right=True)
    )
    return _framed(
        mark, glyph, Tone.MUTED if gone else tone, cut(run.name, NAME_CELLS),
        [span(text, Tone.MUTED if gone else Tone.PLAIN)], right, cells,
        id=str(shown) if shown is not None else "", mark_tone=mark_tone,
    )  # fmt: skip


def run_of(state: SessionState, row: Row) -> ToolRun:
    """The tool run of a row; a call whose run is not known is shown from its item."""
    run = state.tools.get(row.call_id)
    if run is not None:
        return run
    entry = state.known.get(row.id) if row.id is not None else None
    if entry is not None and isinstance(entry.item, FunctionCall):
        item = entry.item
        return ToolRun(item.call_id, item.name, item.arguments, call=row.id)
    return ToolRun(row.call_id, "?")


def settled(state: SessionState, row: Row) -> bool:
    """Whether the row's own lines will stay as they are, until a compaction moves its entry."""
    if row.kind is RowKind.TOOL:
        run = run_of(state, row)
        return run.output is not None and run.status in (ToolStatus.DONE, ToolStatus.FAILED)
    if row.kind is RowKind.ROUND:
        return row.number < state.rounds
    return row.kind is not RowKind.COMPACTION


def stream_line(state: SessionState, cells: int) -> Line | None:
    """The text that is being written right now: its end, as the newest row."""
    for channel, glyph, tone in (
        ("assistant", "A", Tone.PART_ASSISTANT),
        ("reasoning", "R", Tone.PART_REASONING),
    ):
        streamed = state.streams.get(channel, "")
        if streamed:
            room = max(8, cells - TEXT_AT - 2)
            tail = ending(line_of(streamed[-2 * room :], room), room)
            body = Tone.PLAIN if channel == "assistant" else Tone.MUTED
            text: Line = [span(tail, body), span("▏", Tone.ACCENT)]
            return clip(_framed("", glyph, tone, channel, text, [], cells), cells)
    return None
