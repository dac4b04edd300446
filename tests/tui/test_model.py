from __future__ import annotations

from thresher.tui.model import ConsoleModel

from . import build


def test_rewinding_shows_everything_as_it_was() -> None:
    script = build.long_session()
    model = ConsoleModel(script.history, marks_of=build.threshold_marks)
    assert not model.rewound
    assert model.previous_compaction()
    assert model.state.compactions == 2
    assert model.state.position == model.state.cards[-1].n
    assert model.previous_compaction()
    assert model.state.compactions == 1
    assert model.state.usage is None
    assert not model.previous_compaction()
    model.step(-1)
    assert model.state.compactions == 0
    assert model.state.cards[-1].status == "running"


def test_going_on_ends_live() -> None:
    model = ConsoleModel(build.long_session().history)
    model.rewind(3)
    assert model.next_compaction()
    assert model.next_compaction()
    assert model.state.compactions == 2
    assert model.next_compaction()
    assert not model.rewound
    assert model.state is model.history.state
    assert not model.next_compaction()


def test_live_news_leave_a_rewound_view_alone() -> None:
    script = build.long_session()
    model = ConsoleModel(script.history)
    model.rewind(10)
    rows = len(model.state.rows)
    script.user("more")
    assert len(model.state.rows) == rows
    model.rewind(None)
    assert model.state.rows[-1].n == script.n - 1


def test_steps_stop_at_both_ends() -> None:
    model = ConsoleModel(build.near_threshold().history)
    model.step(-10_000)
    assert model.position == 0
    assert model.state.rows == []
    model.step(10_000)
    assert model.position is None
