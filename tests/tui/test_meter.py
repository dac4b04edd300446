from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.items import Message, Role
from thresher.core.state import SessionState
from thresher.core.tokens import Usage
from thresher.tui.outlook import outlook
from thresher.tui.spans import Tone, text_of, width
from thresher.tui.widgets.meter_lines import (
    bar_line,
    bar_parts,
    figure_line,
    legend_line,
    ruler_line,
    shares,
)
from thresher.tui.widgets.meter_tips import bar_tip, part_tip

from . import build


def line_texts(state: SessionState, cells: int) -> list[str]:
    marks = build.threshold_marks(state)
    lines = [
        figure_line(state, marks, outlook(state, marks), cells),
        bar_line(state, marks, cells),
        ruler_line(state, marks, cells),
        legend_line(state, cells),
    ]
    assert all(width(line) <= cells for line in lines)
    return [text_of(line) for line in lines]


def test_the_meter_tells_share_figure_basis_scope_and_forecast() -> None:
    figures, bar, ruler, legend = line_texts(build.near_threshold().state, 118)
    assert figures.startswith("~82 % of the limit 20,000   14,970 reported + ~1,385 since")
    assert "whole request" in figures
    assert figures.rstrip().endswith("a round")
    assert " tools " in bar
    assert bar.endswith("╱" * 19)
    assert "▲ threshold 16,000 (80 % of the limit)" in ruler
    assert legend.startswith("S system ~291   Σ summary ~0   U user ~17")
    assert legend.rstrip().endswith("╱ reserve 4,096")


def test_the_threshold_is_drawn_over_its_place_on_the_ruler() -> None:
    state = build.near_threshold().state
    _, bar, ruler, _ = line_texts(state, 118)
    assert bar.index("┃") == ruler.index("▲") == round(16_000 * 118 / 24_096)


def test_only_a_provider_s_own_figure_has_an_exact_share() -> None:
    script = build.near_threshold()
    assert line_texts(script.state, 118)[0].startswith("~")
    script.round()
    assert line_texts(script.state, 118)[0].startswith(
        "82 % of the limit 20,000   16,355 reported,"
    )


def test_after_a_compaction_the_figure_is_an_estimate_of_the_messages() -> None:
    script = build.near_threshold().round()
    script.compacted(script.compaction_starts(script.reason()))
    figures = line_texts(script.state, 118)[0]
    held = sum(script.state.parts.values())
    assert f"~{held:,} estimated, messages only" in figures
    assert " reported" not in figures.partition("next compaction")[0]


def test_an_unknown_window_has_no_percentage_and_says_why() -> None:
    figures, bar, ruler, legend = line_texts(build.unknown_window().state, 118)
    assert "%" not in figures
    assert "window unknown, the table has no model 'local-7b'" in figures
    assert "╱" not in bar
    assert ruler == ""
    assert "free" not in legend


def test_a_refused_request_is_told_with_its_numbers() -> None:
    figures = line_texts(build.overflow().state, 118)[0]
    assert "refused by the provider at 31,207, its limit is 24,096" in figures


def test_an_open_breaker_is_told() -> None:
    assert "automatic compaction is off" in line_texts(build.breaker_open().state, 118)[0]


def test_a_figure_past_the_threshold_takes_its_tone() -> None:
    state = build.compacting().state
    line = figure_line(state, build.threshold_marks(state), (), 100)
    assert line[0] == ("82 %", Tone.THRESHOLD)


def test_narrow_lines_drop_the_least_important_first() -> None:
    figures, _, _, legend = line_texts(build.near_threshold().state, 60)
    assert "14,970 reported" in figures
    assert "tools" not in legend
    assert "T ~14,858" in legend


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8), st.integers(8, 200))
def test_shares_fill_the_bar_and_hide_nothing(values: list[int], cells: int) -> None:
    given_cells = shares(values, cells)
    assert sum(given_cells) == (cells if sum(values) else 0)
    assert all(share > 0 for share, value in zip(given_cells, values, strict=True) if value)


STATES = [
    script.state for script in (build.near_threshold(), build.overflow(), build.unknown_window())
]


@given(st.integers(10, 250))
def test_the_bar_has_exactly_its_width(cells: int) -> None:
    for state in STATES:
        assert width(bar_line(state, build.threshold_marks(state), cells)) == cells


def test_what_a_program_does_not_record_is_a_part_of_the_bar_and_of_nothing_else() -> None:
    script = build.near_threshold()
    recorded, state = script.state, script.state.copy()
    state.system_recorded = False
    assert "not recorded" not in text_of(bar_line(recorded, (), 118))
    drawn = []
    for reported in (100, 17_000, 18_000):
        state.usage = Usage(reported, 10)
        drawn.append({name: cells for name, _, _, cells in bar_parts(state, 118)})
    small, large, larger = drawn
    assert small["not recorded"] == 0
    assert 0 < large["not recorded"] < larger["not recorded"]
    assert large["tools"] == larger["tools"]
    assert "not recorded" in text_of(bar_line(state, (), 118))
    assert "not recorded" not in text_of(legend_line(state, 118))
    assert "cannot be said exactly" in bar_tip(state, (), 0, 118)


def test_a_system_prompt_that_the_program_does_not_record_has_no_figure() -> None:
    state = SessionState()
    started = e.SessionStarted(session_id="s", agent="claude-code", system_recorded=False)
    state.apply(e.Record(0, 0.0, started))
    assert text_of(legend_line(state, 118)).startswith("S system ?")
    assert "does not record its system prompt" in part_tip(state, "system")
    message = Message(Role.SYSTEM, "Be brief. " * 20)
    state.apply(e.Record(1, 0.0, e.ItemAppended(item=message)))
    assert text_of(legend_line(state, 118)).startswith("S system ~")
