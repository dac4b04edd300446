"""A report as Markdown that any renderer shows as it is meant.

Foreign text stands in code spans and fences that are longer than any run of backticks in it, or has
its special characters escaped: it can neither break out nor bring HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..text import clean
from . import wording as w
from .alignment import RowKind
from .inline import Piece, Side
from .report import CompactionPart, EntryPart, Report
from .summary_diff import FactKind, SummaryDiff

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+|~$^!&-])")
_TICKS = re.compile(r"`+")


def markdown(report: Report) -> str:
    """The whole report."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    session = report.session
    yield f"# {_text(session.title or 'Session ' + session.id)}"
    yield ""
    facts = [
        ("session", session.id),
        ("agent", session.agent),
        ("model", session.model),
        ("policy", session.policy),
        ("folder", session.cwd),
        ("began", w.when(session.started_at)),
    ]
    yield from (f"- {name}: {_code(value)}" for name, value in facts if value)
    yield (
        f"- {w.count(session.compactions, 'compaction')}, {w.count(session.turns, 'turn')}, "
        f"{w.count(session.rounds, 'round')}, {w.count(session.calls, 'tool call')}"
    )
    if report.rewound is not None:
        yield f"- {_text(w.as_it_was(report.rewound))}"
    for figure, basis in session.removed:
        yield f"- {figure.value:,} tokens removed by compactions ({basis})"
    yield f"- {_text(w.taken_out(report.redacted))}"
    yield ""
    if report.phases:
        yield from _phases(report)
    for part in report.compactions:
        yield from _compaction(part)
    if report.nothing:
        yield from ("## Compactions that changed nothing", "")
        for each in report.nothing:
            name = _text(f"{each.policy} {each.stage}".strip())
            yield f"- #{each.line} {each.outcome}: {name} · {_text(each.reason)}"
        yield ""
    if report.context:
        yield from _context(report)
    if report.problems:
        yield from ("## Problems of the record", "")
        yield from (f"- {_text(problem)}" for problem in report.problems)


def _phases(report: Report) -> Iterator[str]:
    yield from ("## Phases", "")
    rows = [
        (
            str(phase.number),
            f"#{phase.first}–#{phase.last}",
            str(phase.rounds),
            str(phase.calls),
            f"{_number(phase.start)} → {_number(phase.end)}",
            _text("; ".join(turn.title for turn in phase.turns)),
            ", ".join(f"compaction {ordinal}" for ordinal in phase.ended_by) or "the end",
        )
        for phase in report.phases
    ]
    head = ("", "lines", "rounds", "calls", "tokens", "turns", "ended by")
    yield from _table(head, rows, right=(0, 2, 3, 4))


def _compaction(part: CompactionPart) -> Iterator[str]:
    yield f"## Compaction {part.ordinal}: {_text(part.why.rule)}"
    yield ""
    yield f"**Why now.** {_text(part.why.words)}" + _evidence(part.why.evidence)
    yield ""
    yield f"- at #{part.line}, {w.when(part.at)}, {part.why.trigger.value}"
    yield f"- tokens: {_text(w.change(part.tokens_before, part.tokens_after))}"
    yield f"- entries: {w.items(part)}"
    if part.focus:
        yield f"- focus: {_text(part.focus)}"
    if part.summariser is not None:
        yield f"- summary by {_code(part.summariser.model)}"
    yield from (f"- mark: {_text(mark)}" for mark in part.marks)
    yield ""
    numbers = [(_text(n.name), _number(n.value), _text(n.source)) for n in part.why.numbers]
    yield from _table(("number", "tokens", "who says so"), numbers, right=(1,))
    rules = [(_text(r.stage), "not due", _text(r.reason)) for r in part.why.stages] + [
        (_text(other.title), "due" if other.due else "not due", _text(w.other_says(other)))
        for other in part.why.others
    ]
    if rules:
        yield from ("**Other rules**", "")
        yield from _table(("rule", "", "what it says of the same moment"), rules)
    yield from _entries(part.entries)
    yield from _summary(part)


def _entries(entries: Sequence[EntryPart]) -> Iterator[str]:
    if not entries:
        return
    yield from ("### What changed", "")
    for run in w.runs(entries):
        first = run[0]
        glyph = w.GLYPHS[first.change]
        if first.change is RowKind.KEPT:
            yield from _details(
                f"= {w.count(len(run), 'entry', 'entries')} kept",
                "\n".join(f"{w.ids(each)}  {w.line_of(each.title)}" for each in run),
            )
            continue
        head = f"{glyph} {first.change.value} {w.ids(first)} · {w.tokens(first)} tokens · "
        text = _unified(first.pieces) if first.pieces else first.text
        yield from _details(head + w.line_of(first.title), text)


def _summary(part: CompactionPart) -> Iterator[str]:
    if part.opaque:
        yield from ("### Summary", "", "Sealed by the provider: it cannot be read.", "")
    if part.summary:
        yield from ("### Summary", "")
        yield from _fenced(part.summary, most=10 * w.LONGEST)
    if part.summary_diff is not None and part.summary_diff.previous:
        yield from _facts(part.summary_diff)


def _facts(diff: SummaryDiff) -> Iterator[str]:
    yield f"### Against the summary of compaction {diff.previous}"
    yield ""
    told = ", ".join(f"{diff.count(kind):,} {kind.value}" for kind in FactKind)
    yield f"{told}; the oldest fact is {w.count(diff.oldest, 'compaction')} old."
    yield ""
    for section in diff.sections:
        changed = [fact for fact in section.facts if fact.kind is not FactKind.KEPT]
        if not changed:
            continue
        yield f"- **{_text(section.title or 'without a title')}**"
        for fact in changed:
            was = f" (was: {_text(fact.before)})" if fact.before else ""
            yield f"  - {fact.kind.value}: {_text(fact.text)}{was}"
    yield ""


def _context(report: Report) -> Iterator[str]:
    session = report.session
    yield from ("## What the model sees at the end", "")
    yield f"{w.count(session.entries, 'entry', 'entries')}, {w.figure(session.context)} tokens."
    yield ""
    rows = [
        (
            row.id,
            row.role,
            f"{row.tokens:,}",
            f"{row.share:.0%}",
            f"{row.cumulative:.0%}",
            _text(row.title),
        )
        for row in report.context
    ]
    head = ("id", "role", "tokens", "share", "up to here", "")
    yield from _table(head, rows, right=(2, 3, 4))


# The small parts --------------------------------------------------------------------------------


def _details(title: str, text: str) -> Iterator[str]:
    """A block that renderers fold; the title is escaped for HTML, since it stands in a tag."""
    yield f"<details><summary>{_html(title)}</summary>"
    yield ""
    yield from _fenced(text)
    yield from ("</details>", "")


def _fenced(text: str, most: int = w.LONGEST) -> Iterator[str]:
    shown, more = w.block(text, most)
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield shown.rstrip("\n")
    yield fence
    if more:
        yield f"… {more:,} more characters"
    yield ""


def _unified(pieces: Iterable[Piece]) -> str:
    """A word diff in plain text: [-old-]{+new+}, as git writes it."""
    marks = {Side.BOTH: ("", ""), Side.OLD: ("[-", "-]"), Side.NEW: ("{+", "+}")}
    return "".join(piece.text.join(marks[piece.side]) for piece in pieces)


def _table(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---:" if at in right else "---" for at in range(len(head))) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def _text(text: str) -> str:
    """Clean, on one line, nothing in it that Markdown or HTML would read."""
    return _SPECIAL.sub(r"\\\1", w.line_of(text)).replace("\\<", "&lt;").replace("\\&", "&amp;")


def _code(text: str) -> str:
    line = w.line_of(text)
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _html(text: str) -> str:
    line = clean(text, keep_newlines=False)
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        line = line.replace(character, written)
    return _SPECIAL_IN_HTML.sub(lambda match: f"&#{ord(match[0])};", line)


_SPECIAL_IN_HTML = re.compile(r"[\\`*_\[\]!~]")


def _evidence(evidence: str) -> str:
    return f" ({_text(evidence)})" if evidence != "recorded" else ""


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"
