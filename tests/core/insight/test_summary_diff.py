from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.context import Kept, Restored
from thresher.core.insight.summary_diff import FactKind, compare_all, summary_diff
from thresher.core.insight.summary_parts import sections
from thresher.core.items import system, user

from .sessions import Writer

ONE = """\
## Goal
Fix the outage. Prices stay integers in cents.

## Files
- src/a.py: defines checkout
- src/b.py
"""
TWO = """\
## 1. Goal
Fix the outage.

## Files
- `src/a.py`: defines checkout and refund
- src/b.py
- src/c.py
"""


def test_facts_are_kept_reworded_added_and_vanish() -> None:
    diff = compare_all([(1, ONE), (2, TWO)])[1]
    told = {fact.text: fact for section in diff.sections for fact in section.facts}
    assert told["Fix the outage."].kind is FactKind.KEPT
    assert told["Prices stay integers in cents."].kind is FactKind.VANISHED
    reworded = told["`src/a.py`: defines checkout and refund"]
    assert (reworded.kind, reworded.before) == (FactKind.REWORDED, "src/a.py: defines checkout")
    assert told["src/c.py"].kind is FactKind.ADDED
    assert [section.title for section in diff.sections] == ["1. Goal", "Files"]


def test_a_fact_grows_older_with_every_summary_it_comes_through() -> None:
    texts = [(3, "- a b c\n- x"), (5, "- a b c"), (8, "- a b c!\n- x"), (9, "- x")]
    ages = [
        {fact.text: (fact.kind, fact.age, fact.since) for s in diff.sections for fact in s.facts}
        for diff in compare_all(texts)
    ]
    assert ages[0]["a b c"] == (FactKind.ADDED, 0, 3)
    assert ages[1]["a b c"] == (FactKind.KEPT, 1, 3)
    assert ages[2]["a b c!"] == (FactKind.KEPT, 2, 3)
    assert ages[2]["x"] == (FactKind.ADDED, 0, 8)
    assert ages[3]["a b c!"] == (FactKind.VANISHED, 2, 3)


def test_sections_are_found_in_every_usual_form() -> None:
    text = (
        "lead in\n# One\n- a\n**Two**\nb\n3. Three:\n- c\n<next_steps>\nd\n</next_steps>\n"
        "Current work:\ne\n```\n# no heading\n```\n"
    )
    assert [section.title for section in sections(text)] == [
        "", "One", "Two", "3. Three", "next_steps", "Current work",
    ]  # fmt: skip
    assert sections(text)[-1].facts[-1].text == "# no heading"


@given(st.lists(st.text(alphabet="ab #-*.\n123", max_size=80), max_size=4))
def test_the_facts_of_a_diff_are_those_of_the_new_summary_and_what_the_old_one_lost(
    texts: list[str],
) -> None:
    before = 0
    for ordinal, (text, diff) in enumerate(
        zip(texts, compare_all(enumerate(texts, 1)), strict=True), 1
    ):
        facts = [fact for section in sections(text) for fact in section.facts]
        rows = [fact for section in diff.sections for fact in section.facts]
        now = [row for row in rows if row.kind is not FactKind.VANISHED]
        assert sorted(row.text for row in now) == sorted(fact.text for fact in facts)
        survived = sum(row.kind in (FactKind.KEPT, FactKind.REWORDED) for row in now)
        assert survived + diff.count(FactKind.VANISHED) == before
        assert all(0 <= row.age < ordinal for row in rows)
        before = len(facts)


def test_an_undone_summary_is_no_predecessor() -> None:
    w = Writer()
    head = w.item(system("rules"))
    gone = w.item(user("x"))
    w.summarise([head], "- one")
    w.emit(
        e.HistoryRestored(
            segments=(Kept(head.bare, head.bare), Restored(gone.bare)),
            items_before=2, items_after=2, restored=1, removed=1, undone=1,
        )
    )  # fmt: skip
    w.summarise([head], "- two")
    diff = summary_diff(w.history.state, 2)
    assert diff is not None
    assert diff.previous == 0
    assert summary_diff(w.history.state, 1) is None
