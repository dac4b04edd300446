"""A report as one HTML file: no script, nothing fetched, light or dark as the reader's system is.

All foreign text goes through `_esc`. The page's own policy forbids scripts and requests too, so
even a mistake here could not make the page do anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template

from .. import __version__
from ..text import clean
from . import wording as w
from .alignment import RowKind
from .chart import chart
from .inline import Piece, Side
from .report import CompactionPart, EntryPart, Report
from .summary_diff import FactKind, SummaryDiff

_TEMPLATES = Path(__file__).parent / "templates"
_BEFORE = (RowKind.KEPT, RowKind.MOVED, RowKind.REWRITTEN, RowKind.REMOVED)
_AFTER = (RowKind.KEPT, RowKind.MOVED, RowKind.REWRITTEN, RowKind.INSERTED)


def html(report: Report) -> str:
    """The whole page."""
    return Template(_template("report.html")).substitute(
        title=_esc(f"{_name(report)} · thresher"),
        style=_template("report.css"),
        body="\n".join(_body(report)),
    )


@cache
def _template(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _name(report: Report) -> str:
    name = report.session.title or f"Session {report.session.id}"
    return f"Compaction {report.only} of {name}" if report.only else name


def _body(report: Report) -> Iterator[str]:
    yield from _head(report)
    drawn = chart(report.chart, report.thresholds)
    if drawn:
        yield f"<figure>{drawn}<figcaption>Reported tokens of each request, in order; numbered "
        yield "lines are compactions, dashed lines thresholds.</figcaption></figure>"
    if report.phases:
        yield from _phases(report)
    for part in report.compactions:
        yield from _compaction(part)
    if report.nothing:
        yield from _nothing(report)
    if report.context:
        yield from _context(report)
    if report.problems:
        yield _section("Problems of the record", "problems")
        yield from (f"<p>{_esc(problem)}</p>" for problem in report.problems)
        yield "</section>"
    yield from _footer(report)


# The head ---------------------------------------------------------------------------------------


def _head(report: Report) -> Iterator[str]:
    session = report.session
    yield '<p class="eyebrow">Context compaction report</p>'
    yield f"<h1>{_esc(_name(report))}</h1>"
    facts = (
        ("agent", session.agent),
        ("model", session.model),
        ("policy", session.policy),
        ("folder", session.cwd),
        ("began", w.when(session.started_at)),
        ("took", w.duration(max(0.0, session.last_at - session.started_at))),
        ("session", session.id),
        ("shown", "" if report.rewound is None else w.as_it_was(report.rewound)),
    )
    yield '<dl class="meta">'
    yield from (
        f"<div><dt>{name}</dt><dd>{_esc(value)}</dd></div>" for name, value in facts if value
    )
    yield "</dl>"
    figures = [
        (f"{session.compactions:,}", "compactions"),
        *((f"{gone.value:,}", f"tokens removed ({words})") for gone, words in session.removed),
        (f"{session.turns:,}", "turns"),
        (f"{session.rounds:,}", "rounds"),
        (f"{session.calls:,}", f"tool calls, {session.failures:,} failed"),
        (f"{session.context.value:,}", f"tokens at the end ({session.context.basis})"),
    ]
    yield '<div class="figures">'
    yield from (f"<div><b>{value}</b><span>{_esc(name)}</span></div>" for value, name in figures)
    yield "</div>"


def _phases(report: Report) -> Iterator[str]:
    yield _section("Phases", "phases", "what was worked on between the compactions")
    yield "<table class='phases'><thead><tr><th></th><th>turns</th><th class='wide'>files</th>"
    yield "<th class='num wide'>rounds</th><th class='num wide'>calls</th>"
    yield "<th class='num'>tokens</th><th>ended by</th></tr></thead><tbody>"
    for phase in report.phases:
        turns = "".join(
            f"<p{' class=muted' if turn.continued else ''}>"
            f"{_esc(turn.title or f'turn {turn.turn}')}{' (goes on)' if turn.continued else ''}</p>"
            for turn in phase.turns
        )
        files = [_esc(file.path) for file in phase.files[:4]]
        if len(phase.files) > 4:
            files.append(f"<span class='muted'>and {len(phase.files) - 4:,} more</span>")
        ends = ", ".join(f"<a href='#c{n}'>compaction {n}</a>" for n in phase.ended_by)
        tokens = f"{_number(phase.start)} → {_number(phase.end)}"
        yield (
            f"<tr><td class='num'>{phase.number}</td><td>{turns}</td>"
            f"<td class='wide'>{'<br>'.join(files)}</td><td class='num wide'>{phase.rounds:,}</td>"
            f"<td class='num wide'>{phase.calls:,}</td><td class='num'>{tokens}</td>"
            f"<td>{ends or 'the end'}</td></tr>"
        )
    yield "</tbody></table></section>"


# A compaction -----------------------------------------------------------------------------------


def _compaction(part: CompactionPart) -> Iterator[str]:
    at = " · ".join(filter(None, (f"#{part.line}", w.when(part.at))))
    yield (
        f'<section id="c{part.ordinal}"><header><h2><span class="ordinal">'
        f"Compaction {part.ordinal}</span> {_esc(part.why.rule)}</h2>"
        f'<span class="at">{_esc(at)}</span></header>'
    )
    evidence = part.why.evidence
    how = f' <span class="muted">({_esc(evidence)})</span>' if evidence != "recorded" else ""
    yield f'<p class="why">{_esc(part.why.words)}{how}</p>'
    yield f'<p class="facts">{" · ".join(_facts(part))}</p>'
    yield from (f'<p class="mark">! {_esc(mark)}</p>' for mark in part.marks)
    yield from _balance(part)
    yield from _numbers(part)
    yield from _rules(part)
    if part.entries:
        yield "<h3>What changed</h3>"
        yield '<div class="rows">'
        for run in w.runs(part.entries):
            yield _kept(run) if run[0].change is RowKind.KEPT else _row(run[0])
        yield "</div>"
    yield from _summary(part)
    yield "</section>"


def _facts(part: CompactionPart) -> Iterator[str]:
    yield _esc(part.why.trigger.value)
    yield f"<b>{_esc(w.change(part.tokens_before, part.tokens_after))}</b>"
    yield _esc(w.items(part))
    if part.seconds:
        yield w.duration(part.seconds)
    if part.summariser is not None:
        yield f"summary by {_esc(part.summariser.model)}"
    if part.focus:
        yield f"focus: {_esc(part.focus)}"


def _balance(part: CompactionPart) -> Iterator[str]:
    """Both contexts as bars to one scale."""
    before = [(kind, part.counts[kind].before) for kind in _BEFORE if kind in part.counts]
    after = [(kind, part.counts[kind].after) for kind in _AFTER if kind in part.counts]
    most = max(sum(n for _, n in before), sum(n for _, n in after))
    if not most:
        return
    yield '<div class="balance">'
    for name, parts in (("before", before), ("after", after)):
        total = sum(tokens for _, tokens in parts)
        pieces = "".join(
            f'<i class="fill-{kind.value}" style="flex:{tokens}" '
            f'title="{kind.value}: {tokens:,} tokens"></i>'
            for kind, tokens in parts
            if tokens
        )
        rest = f'<i class="rest" style="flex:{most - total}"></i>' if most > total else ""
        yield f'<span class="name">{name}</span><span class="bar">{pieces}{rest}</span>'
        yield f'<span class="num sum">{total:,}</span>'
    yield "</div>"
    told = [(kind, part.counts[kind]) for kind in RowKind if part.counts[kind].rows]
    yield '<ul class="legend">'
    for kind, sums in told:
        tokens = sums.after if kind is RowKind.INSERTED else sums.before
        now = f" → {sums.after:,}" if kind is RowKind.REWRITTEN else ""
        yield (
            f'<li><i class="fill-{kind.value}"></i>{w.GLYPHS[kind]} {kind.value} '
            f"<b>{sums.rows:,}</b> ({tokens:,}{now} tokens)</li>"
        )
    yield f"<li>by thresher's own figures, {_esc(part.basis)}, messages only</li></ul>"


def _numbers(part: CompactionPart) -> Iterator[str]:
    yield "<h3>The numbers of the decision</h3><table><tbody>"
    for number in part.why.numbers:
        yield (
            f"<tr><td>{_esc(number.name)}</td><td class='num'>{_number(number.value)}</td>"
            f"<td class='muted'>{_esc(number.source)}</td></tr>"
        )
    yield "</tbody></table>"


def _rules(part: CompactionPart) -> Iterator[str]:
    rows = [(rule.stage or rule.policy, False, rule.reason) for rule in part.why.stages]
    rows += [(other.title, other.due, w.other_says(other)) for other in part.why.others]
    if not rows:
        return
    yield f'<details class="more"><summary>What {w.count(len(rows), "other rule")} would have said'
    yield "</summary><table><tbody>"
    for name, due, words in rows:
        fired = '<td class="due">due</td>' if due else '<td class="not-due">not due</td>'
        yield f"<tr><td>{_esc(name)}</td>{fired}<td class='muted'>{_esc(words)}</td></tr>"
    yield "</tbody></table></details>"


def _kept(run: Sequence[EntryPart]) -> str:
    tokens = sum(entry.tokens_before or 0 for entry in run)
    listed = "".join(
        f'<li><span class="id">{_esc(w.ids(entry))}</span><span class="role">{_esc(entry.role)}'
        f"</span><span>{_esc(entry.title)}</span>"
        f'<span class="num">{w.tokens(entry)}</span></li>'
        for entry in run
    )
    span = w.ids(run[0]) if len(run) == 1 else f"{w.ids(run[0])}–{w.ids(run[-1]).lstrip('#')}"
    title = run[0].title if len(run) == 1 else f"{len(run):,} entries kept"
    role = run[0].role if len(run) == 1 else ""
    head = _columns(RowKind.KEPT, span, role, title, f"{tokens:,}")
    if len(run) == 1:
        return f'<div class="row kept"><div class="head">{head}</div></div>'
    return f'<details class="row kept"><summary>{head}</summary><ol>{listed}</ol></details>'


def _row(entry: EntryPart) -> str:
    kind = entry.change
    head = _columns(kind, w.ids(entry), entry.role, entry.title, w.tokens(entry))
    if not (entry.text or entry.pieces):
        return f'<div class="row {kind.value}"><div class="head">{head}</div></div>'
    if entry.pieces:
        text, more = _pieces(entry.pieces)
    else:
        shown, more = w.block(entry.text)
        text = escape(shown)
    return (
        f'<details class="row {kind.value}"><summary>{head}</summary><pre>{text}</pre>'
        f"{_cut(more)}</details>"
    )


def _columns(kind: RowKind, ids: str, role: str, title: str, tokens: str) -> str:
    return (
        f'<span class="glyph" title="{kind.value}">{w.GLYPHS[kind]}</span>'
        f'<span class="id">{_esc(ids)}</span><span class="role">{_esc(role)}</span>'
        f'<span class="title">{_esc(title)}</span><span class="num">{_esc(tokens)}</span>'
    )


def _pieces(pieces: Iterable[Piece]) -> tuple[str, int]:
    """The way from the old text to the new, as far as there is room."""
    tags = {Side.BOTH: ("", ""), Side.OLD: ("<del>", "</del>"), Side.NEW: ("<ins>", "</ins>")}
    room, more = w.LONGEST, 0
    parts: list[str] = []
    for piece in pieces:
        shown = piece.text[:room]
        more += len(piece.text) - len(shown)
        room -= len(shown)
        if shown:
            parts.append(escape(clean(shown)).join(tags[piece.side]))
    return "".join(parts), more


def _summary(part: CompactionPart) -> Iterator[str]:
    if part.opaque:
        yield '<h3>Summary</h3><p class="muted">Sealed by the provider: it cannot be read.</p>'
    if part.summary:
        shown, more = w.block(part.summary, 10 * w.LONGEST)
        yield f'<h3>Summary</h3><pre class="summary-text">{escape(shown)}</pre>{_cut(more)}'
    if part.summary_diff is not None and part.summary_diff.previous:
        yield from _against(part.summary_diff)


def _against(diff: SummaryDiff) -> Iterator[str]:
    yield f"<h3>Against the summary of compaction {diff.previous}</h3>"
    told = ", ".join(f"<b>{diff.count(kind):,}</b> {kind.value}" for kind in FactKind)
    oldest = w.count(diff.oldest, "compaction")
    yield f'<p class="facts">{told}; the oldest fact is {oldest} old</p>'
    yield '<ul class="facts-list">'
    for section in diff.sections:
        kept = sum(fact.kind is FactKind.KEPT for fact in section.facts)
        changed = [fact for fact in section.facts if fact.kind is not FactKind.KEPT]
        if not changed:
            continue
        same = f' <span class="muted">{kept:,} unchanged</span>' if kept else ""
        yield f"<li><h4>{_esc(section.title or 'Without a title')}{same}</h4><ul>"
        for fact in changed:
            was = f' <span class="muted">(was: {_esc(fact.before)})</span>' if fact.before else ""
            yield (
                f'<li class="fact-{fact.kind.value}"><span class="glyph">'
                f'{w.FACT_GLYPHS[fact.kind]}</span><span><span class="said">{_esc(fact.text)}'
                f'</span>{was}</span><span class="age">{_esc(w.aged(fact))}</span></li>'
            )
        yield "</ul></li>"
    yield "</ul>"


# The rest ---------------------------------------------------------------------------------------


def _nothing(report: Report) -> Iterator[str]:
    yield _section("Compactions that changed nothing", "nothing")
    yield "<table><tbody>"
    for each in report.nothing:
        rule = f"{each.policy} {each.stage}".strip()
        yield (
            f"<tr><td class='id'>#{each.line}</td><td>{_esc(each.outcome)}</td>"
            f"<td>{_esc(rule)}</td><td class='muted'>{_esc(each.reason)}</td></tr>"
        )
    yield "</tbody></table></section>"


def _context(report: Report) -> Iterator[str]:
    session = report.session
    note = f"{w.count(session.entries, 'entry', 'entries')}, {w.figure(session.context)} tokens"
    yield _section("What the model sees at the end", "context", note)
    bar = "".join(
        f'<i class="{tile.name}" style="flex:{tile.tokens}" '
        f'title="{tile.name}: {tile.tokens:,} tokens"></i>'
        for tile in report.tiles
        if tile.tokens
    )
    yield f'<p><span class="bar">{bar}</span></p><ul class="legend">'
    for tile in report.tiles:
        yield (
            f'<li><i class="{tile.name}"></i>{tile.name} <b>{tile.share:.0%}</b> '
            f"({tile.tokens:,})</li>"
        )
    yield "</ul>"
    yield "<table><thead><tr><th>id</th><th>role</th><th>entry</th><th class='num'>tokens</th>"
    yield "<th class='num'>up to here</th><th class='wide'>share</th></tr></thead><tbody>"
    for row in report.context:
        yield (
            f"<tr><td class='id'>{_esc(row.id)}</td><td class='role'>{_esc(row.role)}</td>"
            f"<td>{_esc(row.title)}</td><td class='num'>{row.tokens:,}</td>"
            f"<td class='num'>{row.cumulative:.0%}</td><td class='share wide'>"
            f'<span class="meter {row.role}" style="width:{row.share:.1%}"></span></td></tr>'
        )
    yield "</tbody></table></section>"


def _footer(report: Report) -> Iterator[str]:
    yield f"<footer><p>{_esc(w.taken_out(report.redacted))}</p>"
    yield f"<p>Made by thresher {_esc(__version__)} from {w.count(report.session.lines, 'line')} "
    yield "of the session's record. Figures marked estimated come from no provider.</p></footer>"


def _section(title: str, id: str, note: str = "") -> str:
    beside = f'<span class="at">{_esc(note)}</span>' if note else ""
    return f'<section id="{id}"><header><h2>{title}</h2>{beside}</header>'


def _cut(more: int) -> str:
    return f'<p class="cut-note">… {more:,} more characters</p>' if more else ""


def _number(value: int | None) -> str:
    return '<span class="muted">unknown</span>' if value is None else f"{value:,}"


def _esc(text: str) -> str:
    """The one door of foreign text into the page: clean, and nothing in it is markup."""
    return escape(clean(text, keep_newlines=False))
