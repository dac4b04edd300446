from __future__ import annotations

import runpy
from collections.abc import Iterator
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core import history as history_module
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.items import Item, user
from thresher.core.state import Changed, SessionState
from thresher.core.tokens import Basis

RANDOM = runpy.run_path(str(Path(__file__).with_name("random_sessions.py")))
steps, play, begin, snapshot = (RANDOM[name] for name in ("steps", "play", "begin", "snapshot"))
InMemory = RANDOM["InMemory"]


def folded(records: list[e.Record]) -> SessionState:
    state = SessionState()
    for record in records:
        state.apply(record)
    return state


def played(script: list[object], every: int) -> History:
    to = InMemory()
    to.history._every = every
    begin(to)
    play(to, script)
    history: History = to.history
    return history


def with_items(count: int) -> History:
    history = History()
    history.extend(e.Record(n, float(n), e.ItemAppended(item=user(f"{n}"))) for n in range(count))
    return history


@given(steps(), st.integers(1, 9), st.data())
def test_the_state_at_any_position_is_the_fold_of_the_records_before_it(
    script: list[object], every: int, data: st.DataObject
) -> None:
    history = played(script, every)
    for _ in range(5):
        k = data.draw(st.integers(0, len(history)))
        assert snapshot(history.at(k)) == snapshot(folded(history.records[:k]))


@given(steps(), st.integers(1, 9))
def test_looking_back_changes_neither_the_present_nor_other_positions(
    script: list[object], every: int
) -> None:
    history = played(script, every)
    now = snapshot(history.state)
    past = history.at(len(history) // 2)
    then = snapshot(past)
    rewound = history.at(0)
    for record in history.records:
        rewound.apply(record)
    assert snapshot(history.state) == now
    assert snapshot(past) == then


@given(steps(), st.integers(1, 9), st.data())
def test_a_recount_reaches_every_position(
    script: list[object], every: int, data: st.DataObject
) -> None:
    def cost(item: Item) -> int:
        return 1000 + len(item.text)

    to = InMemory()
    to.history._every = every
    begin(to)
    half = len(script) // 2
    play(to, script[:half])
    to.history.recount(cost, Basis.COUNTED)
    play(to, script[half:])
    anew = SessionState(cost, Basis.COUNTED)
    k = data.draw(st.integers(0, len(to.history)))
    for record in to.history.records[:k]:
        anew.apply(record)
    assert snapshot(to.history.at(k)) == snapshot(anew)


def test_a_stream_that_runs_while_a_checkpoint_is_made_does_not_show_when_rewound() -> None:
    history = History()
    history._every = 1
    history.append(e.Record(0, 0.0, e.TurnStarted(turn=1)))
    history.append(e.Record(-1, 0.0, e.MessageDelta(text="half a wo")))
    history.append(e.Record(1, 0.0, e.Note(kind="n", text="checkpoint here")))
    assert history.state.streams == {"assistant": "half a wo"}
    assert history.at(2).streams == {}


@given(steps(), st.integers(1, 9), st.lists(st.integers(0, 7), max_size=9))
def test_records_that_come_in_batches_are_folded_as_one_by_one(
    script: list[object], every: int, sizes: list[int]
) -> None:
    streamed = e.Record(-1, 0.0, e.MessageDelta(text="streamed"))
    records = [each for record in played(script, every).records for each in (record, streamed)]
    single, batched = History(), History()
    for history in (single, batched):
        history._every = history._next = every
    touched, rest = [single.append(record) for record in records], iter(records)
    changed = [batched.extend(islice(rest, size)) for size in [*sizes, len(records)]]
    assert reduce(or_, changed) == reduce(or_, touched, Changed.NOTHING)
    assert batched.records == single.records
    assert snapshot(batched.state) == snapshot(single.state)
    assert batched.state.streams == single.state.streams
    assert [at for at, _ in batched._checkpoints] == [at for at, _ in single._checkpoints]


def test_what_came_before_a_fault_of_the_source_is_kept() -> None:
    def broken() -> Iterator[e.Record]:
        yield e.Record(0, 1.0, e.ItemAppended(item=user("first")))
        raise ThresherError("Unreadable file", "it is gone")

    history = History()
    with pytest.raises(ThresherError):
        history.extend(broken())
    assert (len(history), history.state.position, len(history.state.rows)) == (1, 0, 1)


def test_positions_outside_are_clamped() -> None:
    history = with_items(3)
    assert len(history.at(-5).context) == 0
    assert len(history.at(99).context) == 3


def test_the_number_of_checkpoints_is_bounded_and_the_first_one_stays() -> None:
    history = with_items(0)
    history._every = 1
    history.extend(e.Record(n, 0.0, e.ItemAppended(item=user("x"))) for n in range(500))
    assert len(history._checkpoints) <= history_module.MAX_CHECKPOINTS
    assert [len(history.at(k).context) for k in (0, 1, 250, 500)] == [0, 1, 250, 500]


@given(st.lists(st.integers(0, 3), max_size=30), st.integers(-2, 70))
def test_a_line_is_found_at_the_position_behind_its_last_record(gaps: list[int], line: int) -> None:
    numbers = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    history = History()
    history.extend(e.Record(n, 0.0, e.Note(kind="n", text="")) for n in numbers)
    assert history.position_of(line) == sum(n <= line for n in numbers)
