"""Everything about one row, as lines of spans: text, arguments, output, lineage, figures.

Text is capped by lines and characters, so that a tool result of any size costs the same; the whole
text of a capped result is on disk, and its path is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from rich.cells import cell_len

from thresher.core.context import EntryId
from thresher.core.items import (
    FunctionCall,
    FunctionCallOutput,
    Kind,
    Message,
    Reasoning,
    sealed_length,
)
from thresher.core.state import SessionState
from thresher.core.text import cap_lines, clean
from thresher.core.views import Card, Fate, Row, RowKind, ToolRun, ToolStatus

from .. import figures
from ..insights import Insights
from ..spans import Line, Tone, clip, column, cut, line_of, span, spread, wrap
from ..travel import Place
from .card_lines import facts, figures_lines, summary_lines, title_line
from .overview_lines import overview_lines
from .page import Sheet
from .timeline_rows import PARSE_LIMIT, PIN, TOOL_GLYPHS, fate_line, reported_in, run_of, tokens_of
from .turn_facts import turn_facts, turn_words

HEAD_LINES = 1500
TAIL_LINES = 500
LINE_CHARACTERS = 2000
TEXT_CHARACTERS = 400_000
LISTED_ITEMS = 500
LABEL = 11


def detail_lines(state: SessionState, row: Row | None, cells: int) -> list[Line]:
    """The detail of a row, without what has to be worked out."""
    return detail_sheet(state, row, cells).lines


def detail_sheet(
    state: SessionState, row: Row | None, cells: int, insights: Insights | None = None,
    meant: EntryId | None = None,
) -> Sheet:  # fmt: skip
    """The detail of a row; with no row, a sentence that says what would be here. On a card, `meant`
    is the one of its new entries that is to be read there, since it has no row of its own."""
    sheet = Sheet()
    if row is None:
        sheet.add([span("Select a row to see all of it here.", Tone.MUTED)])
        return sheet
    match row.kind:
        case RowKind.COMPACTION:
            _card(sheet, state, state.cards[row.card], cells, insights, meant)
        case RowKind.TOOL:
            _tool(sheet, state, row, cells, insights)
        case RowKind.TURN | RowKind.TURN_END | RowKind.ROUND:
            _boundary(sheet, state, row, cells, insights)
        case _:
            _entry(sheet, state, row, cells, insights)
    return sheet


def _life(
    sheet: Sheet, state: SessionState, id: EntryId | None, cells: int, insights: Insights | None
) -> None:
    """The life of an entry, and what it speaks for."""
    life = insights.life(id) if insights is not None and id is not None else None
    if insights is None or life is None or id is None:
        return
    # Imported here: nothing of it is needed before the first picture.
    from .life_lines import life_lines, standing_lines

    life_lines(sheet, insights.history.state, life, cells, state.position)
    standing_lines(sheet, insights.history.state, id, insights.stands_for(id), cells)


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC") if at else ""


def _heading(title: str, right: str, cells: int) -> Line:
    return spread([span(title, Tone.STRONG)], [span(right, Tone.MUTED)], cells)


def _fact(name: str, text: str, cells: int, tone: Tone = Tone.PLAIN) -> list[Line]:
    parts = wrap(clean(text[:4000], keep_newlines=False), cells - LABEL)
    return [
        [column("" if at else name, LABEL, Tone.MUTED), span(part, tone)]
        for at, part in enumerate(parts)
    ]


def _section(title: str, remark: str = "") -> list[Line]:
    return [[], [span(title, Tone.MUTED), span(f"   {remark}" if remark else "", Tone.FAINT)]]


def _text(text: str, cells: int) -> list[Line]:
    if not text:
        return [[span("empty", Tone.FAINT)]]
    capped = cap_lines(text, HEAD_LINES, TAIL_LINES, LINE_CHARACTERS)
    more = len(capped) - TEXT_CHARACTERS
    lines: list[Line] = [[span(line)] for line in wrap(capped[:TEXT_CHARACTERS], cells)]
    if more > 0:
        lines.append([span(f"… {more:,} more characters", Tone.MUTED)])
    return lines


def _fate(name: str, fate: Fate, cells: int) -> list[Line]:
    ((told, tone),) = fate_line(fate, LINE_CHARACTERS)
    return _fact(name, told, cells, tone)


def _lineage(state: SessionState, id: EntryId, cells: int, name: str = "fate") -> list[Line]:
    lines = _fate(name, state.fate(id), cells)
    if id in state.pins:
        lines += _fact("pinned", f"{PIN} survives every compaction", cells, Tone.ACCENT)
    entry = state.known.get(id)
    if entry is None:
        return lines
    if entry.made_by:
        told = f"written by compaction {entry.made_by}"
        if entry.origin:
            told += (
                f", stands for {figures.count(len(entry.origin), 'item')}: {_list(entry.origin)}"
            )
        lines += _fact("origin", told, cells, Tone.INSERTED)
    return lines


def _list(ids: Sequence[EntryId], most: int = 12) -> str:
    told = " ".join(str(id) for id in ids[:most])
    return told + (f" … {len(ids) - most:,} more" if len(ids) > most else "")


def _tokens(state: SessionState, *ids: EntryId | None) -> str:
    told = tokens_of(state, *ids)
    return f"{told} tokens {state.basis}" if told else ""


def _entry(
    sheet: Sheet, state: SessionState, row: Row, cells: int, insights: Insights | None
) -> None:
    entry = state.known.get(row.id) if row.id is not None else None
    if entry is None or row.id is None:
        sheet.add(_heading(row.kind.value, _when(row.at), cells))
        sheet.add(*_fact("line", f"{row.n}", cells))
        sheet.add(*_section("Text"), *_text(row.text, cells))
        if row.kind is RowKind.NOTE:
            overview_lines(sheet, _until(state, row), cells)
        return
    sheet.add(_heading(f"{row.kind.value}  {row.id}", _tokens(state, row.id), cells))
    sheet.add(*_lineage(state, row.id, cells))
    sheet.add(*_fact("line", f"{row.n}", cells), *_fact("time", _when(row.at), cells))
    match entry.item:
        case Message(synthetic=True):
            sheet.add(*_fact("by", "the harness, nobody typed it", cells))
        case Reasoning(encrypted=sealed) if sealed:
            size = sealed_length(entry.item)
            sheet.add(*_fact("sealed", f"{size:,} characters, not readable", cells))
        case FunctionCallOutput(call_id=call_id):
            sheet.add(*_fact("call", call_id, cells))
        case FunctionCall(call_id=call_id):
            sheet.add(*_fact("call", call_id, cells))
        case _:
            pass
    _life(sheet, state, row.id, cells, insights)
    text = state.text(entry.item)
    sheet.add(*_section("Text", f"{len(text):,} characters"), *_text(text, cells))


def _tool(
    sheet: Sheet, state: SessionState, row: Row, cells: int, insights: Insights | None
) -> None:
    run = run_of(state, row)
    name = cut(run.name, 40)
    sheet.add(_heading(name, _tokens(state, run.call, run.output), cells))
    failed = run.status is ToolStatus.FAILED
    sheet.add(*_fact("status", _status(run), cells, Tone.REMOVED if failed else Tone.PLAIN))
    if run.call is not None:
        sheet.add(*_lineage(state, run.call, cells, f"call {run.call}"[: LABEL - 1]))
    if run.output is not None:
        sheet.add(*_lineage(state, run.output, cells, f"out {run.output}"[: LABEL - 1]))
    sheet.add(*_fact("call id", run.call_id, cells), *_fact("time", _when(row.at), cells))
    if run.saved:
        sheet.add(*_fact("saved", run.saved, cells))
    _life(sheet, state, run.output or run.call, cells, insights)
    arguments = _whole_arguments(state, run)
    sheet.add(*_section("Arguments", f"{len(arguments):,} characters"))
    sheet.add(*_arguments(arguments, cells))
    entry = state.known.get(run.output) if run.output is not None else None
    if entry is not None:
        text = state.text(entry.item)
        remark = f"{len(text):,} characters"
        if run.size > len(text):
            remark += f" of {run.size:,}"
        sheet.add(*_section("Output", remark), *_text(text, cells))
        return
    sheet.add(*_section("Output so far"))
    sheet.add(*(_text(run.live, cells) if run.live else [[span("none yet", Tone.FAINT)]]))


def _status(run: ToolRun) -> str:
    told = [f"{TOOL_GLYPHS[run.status][0]} {run.status}"]
    if run.exit_code is not None:
        told.append(f"exit code {run.exit_code}")
    if run.seconds:
        told.append(figures.seconds(run.seconds))
    return ", ".join(told)


def _whole_arguments(state: SessionState, run: ToolRun) -> str:
    entry = state.known.get(run.call) if run.call is not None else None
    if entry is None or entry.item.body is None:
        return run.arguments
    return state.text(entry.item).removeprefix(f"{run.name} ")


def _arguments(arguments: str, cells: int) -> list[Line]:
    """One argument after the other, long texts as they read rather than as JSON escapes."""
    parsed: object = None
    if len(arguments) <= PARSE_LIMIT * 10:
        try:
            parsed = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            parsed = None
    if not isinstance(parsed, dict):
        return _text(arguments, cells)
    lines: list[Line] = []
    for name, value in parsed.items():
        told = value if isinstance(value, str) else _json(value)
        label = cut(str(name), 30)
        short = line_of(told, cells)
        if "\n" not in told and cell_len(short) + cell_len(label) + 2 <= cells:
            lines.append([span(f"{label}  ", Tone.MUTED), span(short)])
        else:
            lines.append([span(label, Tone.MUTED)])
            lines += [clip([span("  "), *line], cells) for line in _text(told, cells - 2)]
    return lines or [[span("none", Tone.FAINT)]]


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _boundary(
    sheet: Sheet, state: SessionState, row: Row, cells: int, insights: Insights | None
) -> None:
    name = "turn" if row.kind is not RowKind.ROUND else "round"
    sheet.add(_heading(f"{name} {row.number}", _when(row.at), cells))
    sheet.add(*_fact("line", f"{row.n}", cells))
    if row.kind is RowKind.ROUND:
        told = reported_in(state, row.number)
        told = f"{told}, whole request" if told else "not reported yet"
        sheet.add(*_fact("request", told, cells))
    if row.text:
        sheet.add(*_fact("outcome", row.text, cells))
    if row.kind is not RowKind.ROUND:
        for name, words in turn_words(state, turn_facts(state, row)):
            sheet.add(*_fact(name, words, cells))
        if row.kind is RowKind.TURN_END:
            overview_lines(sheet, _until(state, row), cells)
        return
    if row.number == state.rounds:
        for channel, text in state.streams.items():
            if text:
                remark = f"{len(text):,} characters so far"
                sheet.add(*_section(cut(channel, 20), remark), *_text(text, cells))
    why = insights.why_not(row) if insights is not None else None
    if why is not None:
        from .why_lines import why_not_lines

        sheet.add(*why_not_lines(why, cells))


def _until(state: SessionState, row: Row) -> list[Card]:
    """The compactions up to a row."""
    return [card for card in state.cards if card.n <= row.n]


def _card(
    sheet: Sheet, state: SessionState, card: Card, cells: int, insights: Insights | None,
    meant: EntryId | None = None,
) -> None:  # fmt: skip
    sheet.add(clip(title_line(card, cells, open=True)[1:], cells), *figures_lines(card, cells), [])
    for name, text, tone in facts(card):
        sheet.add(*_fact(name, text, cells, tone))
    sheet.add(*_fact("line", f"{card.n}", cells))
    why = insights.why_now(card) if insights is not None else None
    if why is not None:
        from .why_lines import why_now_lines

        sheet.add(*why_now_lines(why, cells))
    sheet.add([])
    made = {*card.inserted_ids, *(new for _, new in card.replaced_ids)}
    new = state.known.get(meant) if meant is not None and meant in made else None
    if new is not None and new.kind is Kind.SUMMARY:
        sheet.meant = len(sheet.lines)
    sheet.add(*(_outdented(line) for line in summary_lines(card, cells + 4, TEXT_CHARACTERS)))
    if new is not None and new.kind is not Kind.SUMMARY:
        sheet.meant = len(sheet.lines) + 1
        sheet.add(*_section(f"{new.id}  {new.kind.value}", "written by this compaction"))
        sheet.add(*_text(state.text(new.item), cells))
    for title, glyph, ids, tone in (
        ("Inserted", "+", card.inserted_ids, Tone.INSERTED),
        ("Rewritten", "~", tuple(old for old, _ in card.replaced_ids), Tone.REWRITTEN),
        ("Removed", "-", card.removed_ids, Tone.REMOVED),
        ("Kept", "=", card.kept_ids, Tone.KEPT),
    ):
        if ids:
            sheet.add(*_section(title, figures.count(len(ids), "item")))
            _items(sheet, state, glyph, ids, tone, cells)
    if insights is not None:
        from .life_lines import standing_lines

        for id in card.inserted_ids:
            standing_lines(sheet, insights.history.state, id, insights.stands_for(id), cells)


def _items(
    sheet: Sheet, state: SessionState, glyph: str, ids: Sequence[EntryId], tone: Tone, cells: int
) -> None:
    for id in ids[:LISTED_ITEMS]:
        entry = state.known.get(id)
        kind = entry.kind.value if entry is not None else "?"
        text = line_of(entry.item.text, cells) if entry is not None else ""
        left: Line = [
            span(f"{glyph} ", tone),
            column(str(id), 7, Tone.FAINT),
            column(kind, 10, Tone.MUTED),
            span(text, Tone.PLAIN),
        ]
        right: Line = [column(tokens_of(state, id), 8, Tone.MUTED, right=True)]
        # What the compaction made has no row of its own: its row is this one.
        to = Place(id.line, id) if glyph != "+" else None
        sheet.add(spread(left, right, cells), to=to)
    if len(ids) > LISTED_ITEMS:
        sheet.add([span(f"… {len(ids) - LISTED_ITEMS:,} more", Tone.MUTED)])


def _outdented(line: Line) -> Line:
    return line[1:] if line and not line[0][0].strip() else line
