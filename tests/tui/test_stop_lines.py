from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.compaction.gate import Pending, Proposal
from thresher.core.compaction.policy import (
    Edit,
    Moment,
    RequestShape,
    Situation,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.context import Entry, EntryId, Inserted
from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Point, Stop, lines
from thresher.core.items import Body, CompactionSummary, Message, Role, system, user
from thresher.core.measure import LateMeasure
from thresher.core.state import SessionState
from thresher.core.tokens import Basis
from thresher.tui.spans import Line, text_of, width
from thresher.tui.widgets.stop_head_lines import bar_line, bar_lines, head_lines
from thresher.tui.widgets.stop_lines import entry_lines, lines_of, row_line, why_of
from thresher.tui.widgets.stop_summary_lines import request_lines, summary_lines

from . import build

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def stop_of(script: build.Script, point: Point = Point.EDIT, text: str = "a summary") -> Stop:
    """All but the head and the last two entries go into a summary."""
    state = script.state
    context = state.context
    gone = context.ids[1:-2]
    segments = (
        *context.keep([0]),
        Inserted(CompactionSummary(text), context.span(gone)),
        *context.keep(range(len(context) - 2, len(context))),
    )
    edit = Edit(stage=text, reason=text, segments=segments, summary=Summary(text, text, note=text))
    measure = LateMeasure("a-model")
    assert state.budget is not None
    situation = Situation(
        moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO, context=context, shape=RequestShape(),
        budget=state.budget, measure=measure, focus=text,
    )  # fmt: skip
    change = context.apply(segments, 900, 1)
    proposal = Proposal(
        pass_id="p1", policy=text, moment=Moment.AFTER_ROUND, trigger=Trigger.AUTO,
        context=context, edit=edit, change=change, before=measure.context(context),
        after=measure.context(change.after), situation=situation, saved=text, faults=(text,),
        enforced=point is not Point.EDIT,
    )  # fmt: skip
    pending = None
    if point is Point.SUMMARY:
        ask = Summarise(items=(system(text), user(text)), instructions=text, focus=text)
        pending = Pending("p1", text, text, text, situation, ask, sketch=proposal)
    return Stop(point, text, text, pending=pending, proposal=proposal, told=text)


def everything(stop: Stop | None, script: build.Script, cells: int) -> list[Line]:
    state = script.state
    listed = lines_of(stop, state)
    found = head_lines(stop, state, listed, cells, 8)
    basis = state.basis
    for line in listed:
        why = why_of(line, state.pins, True)
        found.append(row_line(state, line, why, basis, cells))
        found += entry_lines(state, line, why, basis, cells)
    found += request_lines(stop.pending if stop else None, stop, cells)
    found += summary_lines(stop, "streamed", cells, ("a", "e"))
    return found


@pytest.mark.parametrize("point", list(Point))
@pytest.mark.parametrize("cells", [20, 62, 78, 118, 158])
def test_every_line_fits_at_every_point(point: Point, cells: int) -> None:
    script = build.near_threshold()
    stop = stop_of(script, point)
    if point not in (Point.EDIT, Point.SUMMARY):
        stop = Stop(point, "step", "round 3 is over")
    for line in everything(stop, script, cells):
        assert width(line) <= max(cells, 40), text_of(line)


def test_hostile_text_is_shown_and_never_obeyed(hostile_corpus: list[tuple[str, str]]) -> None:
    for _, text in hostile_corpus:
        script = build.hostile([text[:5000]])
        for point in (Point.EDIT, Point.SUMMARY):
            for line in everything(stop_of(script, point, text[:5000] or "x"), script, 78):
                assert not CONTROL.search(text_of(line)), text_of(line)
        assert not CONTROL.search(text_of(bar_line(text, text, ("S", "C"), 78)))


def test_every_entry_has_its_sign_its_reason_and_its_tokens() -> None:
    script = build.near_threshold()
    stop = stop_of(script)
    rows = [
        text_of(row_line(script.state, line, why_of(line, (), True), script.state.basis, 100))
        for line in lines_of(stop, script.state)
    ]
    signs = {row[0] for row in rows}
    assert signs == {"=", "-", "+"}
    assert all(re.search(r"~[\d,]+$", row.rstrip()) for row in rows)
    assert all("into Σ" in row for row in rows if row.startswith("-"))
    assert sum("for " in row for row in rows if row.startswith("+")) == 1


@given(st.integers(9, 200), st.data())
def test_the_bars_are_on_one_scale(cells: int, data: Any) -> None:
    script = build.near_threshold()
    stop = stop_of(script, text="x" * data.draw(st.integers(1, 400)))
    assert stop.proposal is not None
    listed = lines(stop.proposal, (), ())
    before, after = bar_lines(listed, cells)
    assert width(before) <= max(cells, 16)
    assert width(after) <= width(before) or stop.proposal.after.value > stop.proposal.before.value
    assert {text[0] for text, _ in before[1:] if text} <= set("█░▒")
    assert {text[0] for text, _ in after[1:] if text} <= set("█▒▓")


def test_the_figures_stay_where_they_are_while_the_summary_is_written() -> None:
    script = build.near_threshold()
    stop = stop_of(script, Point.SUMMARY)
    state, listed = script.state, lines_of(stop, script.state)
    held_there = [text_of(line) for line in head_lines(stop, state, listed, 118, 8)]
    working = [text_of(line) for line in head_lines(None, state, listed, 118, 8, "a", stop)]
    assert "the summary is being written" in working[0]
    assert working[1:-1] == held_there[1:-1]
    assert "stops again before anything is applied" in working[-1]


def test_objections_are_said_before_anything_else() -> None:
    stop = stop_of(build.near_threshold())
    proposal = stop.proposal
    assert proposal is not None
    proposal = msgspec.structs.replace(
        proposal, faults=("call c1 loses its output",), enforced=True
    )
    script = build.near_threshold()
    stop = msgspec.structs.replace(stop, proposal=proposal)
    told = [text_of(line) for line in head_lines(stop, script.state, (), 118, 8)]
    assert not any("applies it as shown" in line for line in told)
    assert any("cannot be applied: call c1 loses its output" in line for line in told)


def test_a_context_without_an_edit_is_listed_as_it_is() -> None:
    script = build.near_threshold()
    stop = Stop(Point.ROUND, "step", "round 3 is over")
    listed = lines_of(stop, script.state)
    assert [line.entry for line in listed] == list(script.state.context)
    assert {line.fate for line in listed} == {Fate.KEEP}


def test_of_a_text_that_lies_elsewhere_it_is_said_how_much_is_here_and_how_to_read_it() -> None:
    entry = Entry(EntryId(7), Message(Role.USER, "the head", body=Body(0, 9, chars=12_345)))
    line = held.Line(entry, Fate.KEEP, 3)
    lines = entry_lines(SessionState(), line, "", Basis.ESTIMATED, 60, "ж")
    told = [text_of(each) for each in lines]
    assert "8 of 12,345 characters are here: ж reads all" in told
