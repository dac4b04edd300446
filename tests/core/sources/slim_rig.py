"""A slim reading of a large session beside a whole one: what both have to tell alike.

Tests import it by its place: `from .slim_rig import assert_same`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from thresher.core import events as e
from thresher.core.bodies import Bodies, text_of
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.insight import find
from thresher.core.items import FunctionCallOutput, Item, text_length
from thresher.core.state import SessionState
from thresher.core.views import Card

MAKE = Path(__file__).parents[2] / "benchmarks" / "make_large.py"
UNLIKE = ("kept_ids", "removed_ids", "inserted_ids", "replaced_ids")


class Tail(Protocol):
    bodies: Bodies

    def __init__(self, path: Path, *, slim: bool = False) -> None: ...

    def more(self) -> Iterator[e.Record]: ...


def folded_by(kind: type[Tail], path: Path, *, slim: bool) -> History:
    tail, history = kind(path, slim=slim), History()
    history.read_from(tail.bodies)
    history.extend(tail.more())
    return history


def bare_event(record: e.Record) -> tuple[Any, ...]:
    fields = {
        name: getattr(record.event, name)
        for name in record.event.__struct_fields__
        if name not in ("item", "segments")
    }
    return record.n, record.at, type(record.event), fields


def bare_card(card: Card) -> Card:
    return msgspec.structs.replace(card, context_before=None, context_after=None)


def assert_same(whole: History, slim: History) -> None:
    one, other = whole.state, slim.state
    assert [bare_event(each) for each in slim.records] == [bare_event(e) for e in whole.records]
    assert other.rows == one.rows
    assert other.problems == one.problems
    assert other.unknown == one.unknown
    assert list(map(bare_card, other.cards)) == list(map(bare_card, one.cards))
    for card, twin in zip(one.cards, other.cards, strict=True):
        if card.context_before is not None and card.context_after is not None:
            assert twin.context_before is not None
            assert twin.context_after is not None
            assert twin.context_before.ids == card.context_before.ids
            assert twin.context_after.ids == card.context_after.ids
    assert other.fates == one.fates
    assert other.context.ids == one.context.ids
    assert [entry.kind for entry in other.context] == [entry.kind for entry in one.context]
    assert {id: entry.origin for id, entry in other.known.items()} == {
        id: entry.origin for id, entry in one.known.items()
    }
    assert list(other.tools) == list(one.tools)
    for run, twin_run in zip(one.tools.values(), other.tools.values(), strict=True):
        assert run.arguments.startswith(twin_run.arguments)
        assert msgspec.structs.replace(twin_run, arguments=run.arguments) == run


def assert_bodies_are_whole(whole: SessionState, slim: SessionState) -> None:
    for id, entry in whole.known.items():
        short = slim.known[id].item
        assert slim.bodies.whole(short) == entry.item
        assert text_length(short) == len(entry.item.text)
        assert slim.text(short) == entry.item.text


def assert_is_the_end_of(whole: History, early: History) -> None:
    """What was read ahead is, at the last card and behind it, what the whole file tells."""
    changed: dict[str, Any] = dict.fromkeys(UNLIKE, ())
    ours, theirs = early.state.cards[-1], whole.state.cards[-1]
    assert msgspec.structs.replace(bare_card(ours), **changed) == msgspec.structs.replace(
        bare_card(theirs), **changed
    )
    assert early.state.turn == whole.state.turn
    assert early.state.title == whole.state.title
    assert early.state.session_id == whole.state.session_id
    assert early.state.model == whole.state.model
    assert early.state.reported == whole.state.reported
    assert not early.state.problems
    bodies = whole.state.bodies
    assert [text_of(entry.item, bodies) for entry in early.state.context] == [
        text_of(entry.item, bodies) for entry in whole.state.context
    ]


def assert_a_needle_is_found(whole: History, slim: History) -> None:
    """NEEDLE is in an output of both."""
    for words in ("needle_in_the_middle", "beginning needle_in -nothing", "beginning -needle_in"):
        query = find.parse(words)
        assert find.Index(slim).find(query) == find.Index(whole).find(query)
    assert find.Index(slim).find(find.parse("needle_in_the_middle"))


NEEDLE = f"{'beginning ' * 300} needle_in_the_middle {'end ' * 300}"


def an_output(state: SessionState, at_least: int) -> Item:
    return next(
        entry.item
        for entry in state.known.values()
        if isinstance(entry.item, FunctionCallOutput) and text_length(entry.item) >= at_least
    )


def refused(state: SessionState, item: Item) -> str:
    with pytest.raises(ThresherError) as caught:
        state.bodies.whole(item)
    return caught.value.msg
