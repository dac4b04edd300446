from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import context_of, contexts
from thresher.core.context import (
    Context,
    EntryId,
    Inserted,
    Kept,
    Replaced,
    Segment,
    SegmentError,
)
from thresher.core.items import CompactionSummary, user

LETTERS = context_of([user(letter) for letter in "abcdef"])


@st.composite
def edits(draw: st.DrawFn) -> tuple[Context, list[Segment]]:
    context = draw(contexts())
    order = draw(st.permutations(range(len(context))))
    segments: list[Segment] = []
    for at in order[: draw(st.integers(0, len(order)))]:
        bare = context.entries[at].id.bare
        segments.append(
            draw(st.sampled_from([Kept(bare, bare), Replaced(bare, user("rewritten"))]))
        )
        if draw(st.booleans()):
            stands_for = context.span(draw(st.sets(st.sampled_from(context.ids))))
            segments.append(Inserted(CompactionSummary("new"), stands_for))
    return context, segments


@given(contexts(), st.data())
def test_a_span_names_the_same_entries_when_read_back(
    context: Context, data: st.DataObject
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(context.ids)))
    assert context.unspan(context.span(chosen)) == tuple(id for id in context.ids if id in chosen)


def test_a_span_is_written_as_runs_in_the_order_of_the_context() -> None:
    twice = LETTERS.apply([Inserted(user("n")), Kept("3", "5"), Kept("0", "1")], 9, 1).after
    assert repr(twice) == "Context(#9 #3 #4 #5 #0 #1)"
    assert twice.span([EntryId(1), EntryId(0), EntryId(5), EntryId(9)]) == "9,5-1"
    assert twice.unspan("9,5-1") == (EntryId(9), EntryId(5), EntryId(0), EntryId(1))
    assert LETTERS.span([]) == ""
    assert LETTERS.unspan("") == ()


@given(st.builds(EntryId, st.integers(0, 10**9), st.integers(0, 99)))
def test_an_id_reads_back_from_both_its_forms(id: EntryId) -> None:
    assert EntryId.parse(str(id)) == EntryId.parse(id.bare) == id


@pytest.mark.parametrize("text", ["", "#", "x", "1.x", "1-"])
def test_what_is_no_id_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        EntryId.parse(text)


@given(edits())
def test_every_entry_before_is_kept_removed_or_replaced(
    edit: tuple[Context, list[Segment]],
) -> None:
    context, segments = edit
    change = context.apply(segments, 1000, 7)
    replaced = [old for old, _ in change.replaced]
    assert sorted([*change.kept, *change.removed, *replaced]) == sorted(context.ids)
    assert len(change.after) == len(change.kept) + len(replaced) + len(change.inserted)


@given(edits())
def test_the_order_after_is_that_of_the_segments(edit: tuple[Context, list[Segment]]) -> None:
    context, segments = edit
    change = context.apply(segments, 1000, 7)
    part = 0
    for segment, entry in zip(segments, change.after, strict=True):
        if isinstance(segment, Kept):
            assert entry is context.get(EntryId.parse(segment.first))
        else:
            assert (entry.id, entry.item, entry.made_by) == (EntryId(1000, part), segment.item, 7)
            part += 1
    assert len(set(change.after.ids)) == len(change.after)


@given(edits())
def test_a_change_leaves_the_context_before_as_it_was(edit: tuple[Context, list[Segment]]) -> None:
    context, segments = edit
    before = context.digest()
    after = context.apply(segments, 1000, 1).after
    assert context.digest() == before
    assert (after == context) == (after.digest() == before)


@given(contexts(), st.data())
def test_keep_gives_back_the_entries_in_the_order_asked_for(
    context: Context, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(context))))
    segments = context.keep(order)
    assert context.apply(segments, 1000, 1).after.ids == tuple(context.ids[at] for at in order)
    assert context.keep(range(len(context))) == (
        [Kept(context.ids[0].bare, context.ids[-1].bare)] if len(context) else []
    )


def test_a_new_entry_descends_from_what_it_stands_for_through_every_compaction() -> None:
    once = LETTERS.apply([Replaced("2", user("C")), Kept("3", "5")], 10, 1).after
    assert once.entries[0].origin == (EntryId(2),)
    twice = once.apply([Replaced("10", user("CC")), Inserted(user("s"), "3-4")], 11, 2).after
    assert twice.entries[0].origin == (EntryId(2),)
    assert twice.entries[1].origin == (EntryId(3), EntryId(4))


@pytest.mark.parametrize(
    "segments",
    [
        [Kept("0", "9")],
        [Kept("7", "7")],
        [Kept("3", "1")],
        [Kept("0", "2"), Kept("2", "3")],
        [Kept("0", "2"), Replaced("1", user("x"))],
        [Replaced("1", user("x")), Replaced("1", user("y"))],
        [Replaced("0.1", user("x"))],
        [Inserted(user("x"), "9")],
        [Inserted(user("x"), "4-2")],
    ],
)
def test_segments_that_do_not_fit_are_refused(segments: list[Segment]) -> None:
    with pytest.raises(SegmentError):
        LETTERS.apply(segments, 20, 1)


def test_a_span_of_an_unknown_id_is_refused() -> None:
    with pytest.raises(SegmentError, match="#42"):
        LETTERS.span([EntryId(42)])


def test_the_digest_sees_ids_order_and_contents() -> None:
    same = context_of([user(letter) for letter in "abcdef"])
    assert LETTERS.digest() == same.digest()
    others = [
        context_of([user(letter) for letter in "abcdeF"]),
        context_of([user(letter) for letter in "abcdef"], first_line=1),
        LETTERS.apply([Kept("1", "5"), Kept("0", "0")], 9, 1).after,
        LETTERS.apply([Kept("0", "4")], 9, 1).after,
    ]
    assert len({LETTERS.digest(), *(other.digest() for other in others)}) == 5


def test_appending_makes_a_new_context() -> None:
    more = context_of([user("g")], first_line=6)
    longer = LETTERS.appended(*more)
    assert (len(LETTERS), len(longer)) == (6, 7)
    assert (longer.place(EntryId(6)), LETTERS.place(EntryId(6))) == (6, None)
    assert LETTERS.get(EntryId(6)) is None
