from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from thresher.core.context import Context, Entry, EntryId
from thresher.core.insight.alignment import RowKind, Rows
from thresher.core.items import user

KEPT, REMOVED, INSERTED = RowKind.KEPT, RowKind.REMOVED, RowKind.INSERTED


def _context(*lines: int) -> Context:
    return Context(Entry(EntryId(line), user(f"t{line}")) for line in lines)


@st.composite
def _aligned(draw: st.DrawFn) -> Rows:
    """Some of the entries before stay, some under another id, in another order, among new ones."""
    size = draw(st.integers(0, 15))
    stay = sorted(draw(st.permutations(range(size)))[:12])
    for at in draw(st.lists(st.integers(0, max(0, len(stay) - 1)), max_size=3)):
        if stay:
            stay.append(stay.pop(min(at, len(stay) - 1)))
    after: list[int] = []
    rewritten: dict[EntryId, EntryId] = {}
    for line in stay:
        what = draw(st.sampled_from(["kept"] * 4 + ["gone", "new", "rewritten"]))
        if what == "new":
            after.append(500 + line)
        if what == "rewritten":
            rewritten[EntryId(line)] = EntryId(900 + line)
        if what != "gone":
            after.append(900 + line if what == "rewritten" else line)
    return Rows(_context(*range(size)), _context(*after), rewritten)


@given(_aligned())
def test_a_row_is_the_same_by_its_index_in_a_slice_and_in_turn(rows: Rows) -> None:
    told = list(rows)
    assert len(told) == len(rows)
    assert [rows[at] for at in range(len(rows))] == told
    assert [rows[at - len(rows)] for at in range(len(rows))] == told
    assert rows[1:-1] == told[1:-1]
    assert rows[::-2] == told[::-2]
    assert [rows.kind(at) for at in range(len(rows))] == [row.kind for row in told]
    assert rows.counts() == Counter(row.kind for row in told)


@given(_aligned())
def test_stretches_are_the_rows_of_one_kind_that_stand_together(rows: Rows) -> None:
    stretches = rows.stretches()
    assert [at for _, start, end in stretches for at in range(start, end)] == list(range(len(rows)))
    kinds = [kind for kind, _, _ in stretches]
    assert all(a is not b for a, b in pairwise(kinds))
    for kind, start, end in stretches:
        assert {row.kind for row in rows[start:end]} == {kind}


def test_the_rows_of_a_long_context_are_as_many_runs_as_there_are_changes() -> None:
    before = _context(*range(5_000))
    after = _context(*range(2_000), 9_000, *range(3_000, 5_000))
    rows = Rows(before, after, {})
    assert [(run.kind, run.size) for run in rows.runs] == [
        (KEPT, 2_000),
        (REMOVED, 1_000),
        (INSERTED, 1),
        (KEPT, 2_000),
    ]
    assert (rows[2_500].before_at, rows[2_500].after_at) == (2_500, -1)
    assert (rows[3_001].before_at, rows[3_001].after_at) == (3_000, 2_001)


def test_an_entry_that_stays_is_no_other_one_rewritten() -> None:
    # The record says that #1 became #9, and yet #1 is there after as well.
    rows = Rows(_context(0, 1), _context(0, 1, 9), {EntryId(1): EntryId(9)})
    assert [row.kind for row in rows] == [KEPT, KEPT, INSERTED]


def test_two_empty_contexts_have_no_rows() -> None:
    rows = Rows(_context(), _context(), {})
    assert list(rows) == rows.stretches() == [] == rows[0:]
    assert not rows.counts()
