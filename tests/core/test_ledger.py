from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
    user,
)
from thresher.core.ledger import IMAGE, SMALL_IMAGE, Ledger, item_tokens
from thresher.core.tokens import Basis, CharClassCounter, Scope, Tokens


class Letters:
    """A counter that charges one token a letter and remembers what it was asked."""

    def __init__(self) -> None:
        self.letters = 0

    @property
    def basis(self) -> Basis:
        return Basis.COUNTED

    def count_text(self, text: str) -> int:
        self.letters += len(text)
        return len(text)


def entry(line: int, text: str) -> Entry:
    return Entry(EntryId(line), user(text))


BASE64 = "QUJD" * 400


@pytest.mark.parametrize(
    ("item", "tokens"),
    [
        (user("hello"), 5),
        (user(""), 0),
        (Message(Role.USER, (TextPart("ab"), TextPart("cde"))), 5),
        (Message(Role.USER, (TextPart("ab"), ImagePart("data:image/png;base64,QUJD"))), 2 + IMAGE),
        (Message(Role.USER, (ImagePart("https://x/y.png", "low"),)), SMALL_IMAGE),
        (Message(Role.USER, (OpaquePart("audio", f'{{"data":"{BASE64}"}}'),)), 11 + IMAGE),
        (Message(Role.USER, (OpaquePart("note", '{"a":1}'),)), 7),
        (FunctionCall("c1", "read", '{"a":1}'), len('read {"a":1}')),
        (FunctionCallOutput("c1", "abc", name="read", saved="/x"), 3),
        (Reasoning(summary="think"), 5),
        (Reasoning(encrypted="A" * 2000), 213),
        (Reasoning(encrypted="A" * 100), 0),
        (Reasoning(summary="think", encrypted="A" * 2000), 218),
        (CompactionSummary("text", prefix="P: "), 7),
        (CompactionSummary(encrypted="A" * 2000), 213),
        (OtherItem("web_search_call", '{"q":"x"}'), 9),
        (OtherItem("web_search_call", '{"q":"x"}', text="x"), 1),
    ],
)
def test_what_of_an_item_is_counted(item: Item, tokens: int) -> None:
    assert item_tokens(Letters(), item) == tokens
    assert Ledger(Letters()).item(item) == tokens


def test_a_context_is_messages_only_with_the_counters_basis() -> None:
    context = Context([entry(1, "abc"), entry(2, "de")])
    assert Ledger(Letters()).context(context) == Tokens(5, Basis.COUNTED, Scope.MESSAGES)
    assert Ledger(CharClassCounter()).context(context).basis is Basis.ESTIMATED
    assert Ledger(Letters()).context(Context()).value == 0


@given(st.lists(st.text(max_size=8), max_size=12), st.data())
def test_the_sum_is_right_after_any_change_of_the_context(
    texts: list[str], data: st.DataObject
) -> None:
    ledger = Ledger(Letters())
    known = [entry(line, text) for line, text in enumerate(texts)]
    subsets = st.lists(st.sampled_from(known), unique_by=lambda e: e.id) if known else st.just([])
    for _ in range(4):
        chosen = data.draw(subsets)
        expected = sum(len(e.item.text) for e in chosen)
        assert ledger.context(Context(chosen)).value == expected


@pytest.mark.parametrize("history", [10, 100, 1000])
def test_a_round_costs_its_new_text_however_long_the_history_is(history: int) -> None:
    counter = Letters()
    ledger = Ledger(counter)
    context = Context(entry(line, "x" * 50) for line in range(history))
    ledger.context(context)
    counter.letters = 0
    for line in range(history, history + 5):
        context = context.appended(entry(line, "y" * 7))
        ledger.context(context)
    assert counter.letters == 5 * 7


def test_after_a_compaction_only_the_inserted_entries_are_counted() -> None:
    counter = Letters()
    ledger = Ledger(counter)
    before = Context(entry(line, "x" * 50) for line in range(100))
    ledger.context(before)
    counter.letters = 0
    summary = Entry(EntryId(100), CompactionSummary("in short"))
    after = Context([before.entries[0], summary, *before.entries[90:]])
    assert ledger.context(after).value == 11 * 50 + 8
    assert counter.letters == 8


def test_the_same_id_with_another_item_is_counted_anew() -> None:
    ledger = Ledger(Letters())
    assert ledger.cost(EntryId(1), user("abc")) == 3
    assert ledger.cost(EntryId(1), user("abcdef")) == 6
    assert ledger.context(Context([entry(1, "abc")])).value == 3


@pytest.mark.parametrize("make", [Letters, CharClassCounter])
def test_a_text_is_counted_as_its_counter_does(make: Callable[[], Letters]) -> None:
    assert Ledger(make()).text("some text") == make().count_text("some text")
