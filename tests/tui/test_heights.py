from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.tui.widgets.heights import Heights


@given(
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=30),
    st.integers(0, 50),
)
def test_heights_agree_with_a_plain_list(
    grown: int, changes: list[tuple[int, int]], last: int
) -> None:
    heights = Heights()
    heights.grow(grown)
    plain = [1] * grown
    for row, height in changes:
        heights.set(row, height)
        plain.extend([1] * (row + 1 - len(plain)))
        plain[row] = height
    heights.grow(last)
    plain.extend([1] * (last - len(plain)))

    assert heights.rows == len(plain)
    assert heights.total == sum(plain)
    cover = [(row, inside) for row, height in enumerate(plain) for inside in range(height)]
    assert [heights.find(line) for line in range(len(cover))] == cover
    for row, height in enumerate(plain):
        assert heights.height(row) == height
        assert heights.top(row) == sum(plain[:row])
