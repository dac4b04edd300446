from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.core.state import SessionState
from thresher.tui.figures import percent
from thresher.tui.spans import Tone, text_of, width
from thresher.tui.widgets.chart import blocks, caption, chart_lines, chart_text, column_width

from . import build

SESSION = build.long_session().state
LONG = """\
  20k
  16k ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌▂▂╌▆▆╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
                     ██ ██                   ▃▃ ▄▄
                  ▅▅ ██ ██          ▁▁ ▅▅ ▇▇ ██ ██          ▄▄ ▅▅
         ▁▁ ▅▅ ▆▆ ██ ██ ██          ██ ██ ██ ██ ██       ██ ██ ██
         ██ ██ ██ ██ ██ ██       ▄▄ ██ ██ ██ ██ ██    ▃▃ ██ ██ ██
    0 ▄▄ ██ ██ ██ ██ ██ ██ ▃▃ ▆▆ ██ ██ ██ ██ ██ ██ ██ ██ ██ ██ ██
round 1                    ▲1                      ▲2          18"""


def text(state: SessionState, cells: int = 70, height: int = 8) -> str:
    return chart_text(state, build.threshold_marks(state), cells, height)


def test_the_chart_of_a_session_with_two_compactions() -> None:
    assert text(build.long_session().state) == LONG


def test_nothing_yet_is_said() -> None:
    assert "no request yet" in text(SessionState())


def test_every_compaction_has_its_tick_and_its_ordinal() -> None:
    axis = text(build.long_session().state).splitlines()[-1]
    assert axis.startswith("round 1")
    assert "▲1" in axis
    assert "▲2" in axis
    assert axis.endswith("18")


def test_a_figure_that_is_no_report_is_drawn_faint() -> None:
    state = build.long_session().state
    lines = chart_lines(state, build.threshold_marks(state), 70, 8)
    bottom = lines[-2]
    at = 6 + 3 * next(k for k, point in enumerate(state.points) if point.card == 0)
    cell = 0
    tones = []
    for piece, tone in bottom:
        tones += [tone] * len(piece)
        cell += len(piece)
    assert tones[at] is Tone.FAINT
    assert tones[at - 3] is Tone.THRESHOLD
    assert tones[at + 3] is Tone.PART_ASSISTANT


def test_an_unknown_limit_gets_a_scale_of_its_own() -> None:
    assert text(build.unknown_window().state).startswith("  20k")
    assert "╌" not in text(build.unknown_window().state)


def test_old_figures_leave_at_the_left_when_there_is_no_room() -> None:
    axis = text(build.long_session().state, cells=16).splitlines()[-1]
    assert axis.startswith("round ")
    assert not axis.startswith("round 1 ")


@given(st.integers(0, 3_000), st.integers(1, 12))
def test_a_column_is_as_high_as_its_value(value: int, rows: int) -> None:
    column = blocks(value, 2_000, rows)
    eighths = sum(" ▁▂▃▄▅▆▇█".index(char) for char in column)
    assert len(column) == rows
    expected = min(rows * 8, round(value * rows * 8 / 2_000))
    assert eighths == (max(1, expected) if value else 0)
    assert "".join(column).lstrip(" ").count(" ") == 0


@given(st.integers(5, 200), st.integers(2, 20))
def test_lines_never_leave_their_place(cells: int, height: int) -> None:
    lines = chart_lines(SESSION, build.threshold_marks(SESSION), cells, height)
    assert all(width(line) <= cells for line in lines)
    assert len(lines) in (0, height)


def test_columns_grow_thin_before_they_leave() -> None:
    assert [column_width(n, 60) for n in (20, 21, 30, 31, 500)] == [3, 2, 2, 1, 1]


def far_below_the_limit() -> SessionState:
    budget = build.known_budget(1_000_000, 0)
    return build.Script().start(budget=budget).user("How many lines?").round().state


def test_a_session_far_below_its_limit_has_a_scale_of_its_own() -> None:
    state = far_below_the_limit()
    most = max(point.total or 0 for point in state.points)
    assert most * 3 < 1_000_000
    shown = chart_text(state, (), 40, 6).splitlines()
    assert not shown[0].startswith("   1M")
    assert "█" in shown[-3]


def test_the_title_tells_the_highest_report_and_its_share_of_the_limit() -> None:
    state = SESSION
    most = max(p.total or 0 for p in state.points if p.card < 0 and not p.estimated)
    assert text_of(caption(state)) == f"most {most:,}, {percent(most, 20_000)} of the limit"
    assert caption(SessionState()) == []
    assert "limit" not in text_of(caption(build.unknown_window().state))
