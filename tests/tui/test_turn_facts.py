from __future__ import annotations

from thresher.core.views import Row, RowKind
from thresher.tui.spans import text_of
from thresher.tui.widgets.detail_lines import detail_lines, detail_sheet
from thresher.tui.widgets.turn_facts import turn_facts

from . import build


def rows_of(script: build.Script, kind: RowKind) -> list[Row]:
    return [row for row in script.state.rows if row.kind is kind]


def two_turns() -> build.Script:
    script = build.empty().user("Which dates fail?").round()
    script.tool("read_file", {"path": "core/when.py"}, "def parse_when() -> None: ...\n")
    script.tool("bash", {"command": "pytest"}, "boom", exit_code=1, ok=False)
    script.round().says("Those without a year.").ends()
    return script.user("Mend it.").round().says("Done.")


def test_a_turn_tells_its_rounds_calls_reports_and_how_long_it_took() -> None:
    script = two_turns()
    facts = turn_facts(script.state, rows_of(script, RowKind.TURN)[0])
    reports = [point.total for point in script.state.points]
    assert (facts.rounds, facts.calls, facts.failed) == (2, 2, 1)
    assert (facts.first, facts.last) == (reports[0], reports[1])
    assert facts.seconds is not None
    assert facts.seconds > 0
    assert facts == turn_facts(script.state, rows_of(script, RowKind.TURN_END)[0])


def test_a_turn_that_still_runs_has_no_duration_and_nothing_of_the_one_before() -> None:
    script = two_turns()
    facts = turn_facts(script.state, rows_of(script, RowKind.TURN)[1])
    assert (facts.rounds, facts.calls, facts.failed, facts.seconds) == (1, 0, 0, None)


def test_the_detail_of_a_turn_names_its_compactions() -> None:
    script = build.long_session()
    told = ""
    for row in rows_of(script, RowKind.TURN):
        lines = detail_lines(script.state, row, 50)
        told += "\n".join(text_of(line) for line in lines)
    assert "compacted" in told
    for card in script.state.cards:
        assert f"{card.ordinal}" in told
    assert "reported, whole request" in told


def test_where_a_turn_ends_every_compaction_so_far_is_named_with_its_place() -> None:
    script = build.long_session()
    state = script.state
    ended = rows_of(script, RowKind.TURN_END)
    sheet = detail_sheet(state, ended[-1], 44)
    places = [place.line for place in sheet.links.values()]
    cards = [card.n for card in state.cards if card.n <= ended[-1].n]
    assert cards
    assert places == cards
    told = [text_of(line) for line in sheet.lines]
    named = [line for line in told if line.rstrip().endswith(tuple(f"#{n}" for n in cards))]
    assert len(named) == len(cards)
    assert len({len(line) for line in named}) == 1
