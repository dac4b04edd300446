from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.context import EntryId, Kept
from thresher.core.history import History
from thresher.core.insight import find
from thresher.core.insight.find import Index, Query, What, parse, snippet
from thresher.core.items import system, user

from .sessions import RANDOM, Writer, random_history


def _naive(history: History, words: list[str]) -> list[EntryId]:
    """Every entry that holds all words, by looking at each item, in the order of the journal."""
    return sorted(
        id
        for id, entry in history.state.known.items()
        if all(
            word.lower() in f"{entry.item.text}\n{getattr(entry.item, 'name', '')}".lower()
            for word in words
        )
    )


@given(RANDOM["steps"](most=30), st.lists(st.sampled_from("ab[x\x1bé"), max_size=2))
def test_a_search_finds_what_a_plain_scan_finds(script: list[object], words: list[str]) -> None:
    history = random_history(script)
    query = Query(words=tuple(word.lower() for word in words))
    found = [hit for hit in Index(history).find(query) if hit.what is What.ENTRY]
    ids = [hit.id for hit in found]
    assert ids == sorted(ids)
    # Tool names of outputs, call ids and entry ids are searched as well.
    assert set(_naive(history, words)) <= set(ids)
    for hit in found:
        assert hit.id is not None
        text = f"{history.state.known[hit.id].item!r} {hit.id} bash again call".lower()
        item = history.state.known[hit.id].item
        assert all(word.lower() in item.text.lower() or word.lower() in text for word in words)


@given(st.text(alphabet='ab:"-> #k10sizetolre ', max_size=40))
def test_any_text_is_a_query(text: str) -> None:
    query = parse(text)
    assert all(word == word.lower() for word in query.words)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Fix the TEST", Query(words=("fix", "the", "test"))),
        ('"three Blind mice" x', Query(words=("three blind mice", "x"))),
        ("tool:Bash role:output", Query(tools=("bash",), roles=("output",))),
        (
            "has:compaction removed:2 in:summary",
            Query(has=("compaction",), removed=(2,), places=("summary",)),
        ),
        ("removed:any -noise", Query(removed=(0,), without=("noise",))),
        ("size:>10k size:<=2.5m", Query(least=10_001, most=2_500_000)),
        ("size:<500", Query(most=499)),
        ("size:12", Query(least=12)),
        ("id:#42.1", Query(ids=(EntryId(42, 1),))),
        ("http://x size:big", Query(words=("http://x", "size:big"), faults=("size:big",))),
        ('""', Query()),
    ],
)
def test_queries_are_read(text: str, query: Query) -> None:
    assert parse(text) == query


def _session() -> tuple[Writer, dict[str, EntryId]]:
    w = Writer()
    ids = {"head": w.item(system("rules"))}
    ids["user"] = w.item(user("Find the Outage"))
    ids["call"], ids["output"] = w.call("bash", '{"command": "grep ERROR"}', "outage " * 900)
    w.emit(e.ErrorRaised(kind="provider", message="the outage was ours"))
    w.summarise([ids["head"]], "The outage began at ten.")
    ids["summary"] = w.history.state.context.ids[0]
    return w, ids


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("outage", ["user", "output", "summary"]),
        ("outage tool:bash", ["output"]),
        ("tool:bash", ["call", "output"]),
        ("role:user", ["user"]),
        ("removed:1", ["user", "call", "output"]),
        ("removed:any role:output", ["output"]),
        ("removed:2", []),
        ("in:summary", ["summary"]),
        ("in:context", ["head", "summary"]),
        ("size:>500", ["output"]),
        ("outage -ten role:summary", []),
        ("grep", ["call"]),
    ],
)
def test_filters_narrow_the_entries(text: str, names: list[str]) -> None:
    w, ids = _session()
    hits = Index(w.history).find(parse(text))
    assert [hit.id for hit in hits if hit.what is What.ENTRY] == [ids[name] for name in names]


def test_compactions_and_errors_are_found_at_their_lines() -> None:
    w, ids = _session()
    index = Index(w.history)
    (card,) = index.find(parse("has:compaction threshold"))
    assert (card.what, card.line, card.id) == (What.COMPACTION, ids["summary"].line, None)
    (error,) = index.find(parse("has:error"))
    assert error.what is What.ERROR
    lines = [hit.line for hit in index.find(parse("outage"))]
    assert lines == sorted(lines)
    assert len(lines) == 4


def test_the_index_grows_with_the_session_and_narrowing_looks_only_at_the_hits() -> None:
    w, _ = _session()
    index = Index(w.history)
    before = index.find(parse("out"))
    w.item(user("another outage"))
    assert not index.complete
    wider, narrower = parse("out"), parse("outage tool:bash")
    assert not narrower.narrows(wider)
    assert parse("outag").narrows(wider)
    assert len(index.find(wider)) == len(before) + 1
    within = [
        hit for hits in index.search(parse("outag"), within=index.find(wider)) for hit in hits
    ]
    assert within == index.find(parse("outag"))


def test_a_search_can_be_stopped_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "SLICE", 10)
    monkeypatch.setattr(find, "BUILD_SLICE", 10)
    w = Writer()
    for number in range(95):
        w.item(user(f"message {number}"))
    index = Index(w.history)
    sizes = list(index.build())
    assert len(sizes) == 10
    assert sizes == sorted(sizes)
    search = index.search(parse("message"))
    first = next(search)
    search.close()
    assert len(first) == 9  # the first document is the session itself


def test_a_snippet_shows_the_word_in_its_place() -> None:
    text = "x" * 200 + " the Outage began " + "y" * 200
    before, word, after = snippet(text, parse("outage"), room=60)
    assert word == "Outage"
    assert before.endswith("the ")
    assert after.startswith(" began")
    assert snippet("nothing here", parse("outage"))[1] == ""


def test_what_left_without_a_compaction_is_found_as_removed() -> None:
    w = Writer()
    first, second = w.item(user("first")), w.item(user("second"))
    w.emit(
        e.HistoryRolledBack(
            turns=1,
            segments=(Kept(first.bare, first.bare),),
            items_before=2,
            items_after=1,
            removed=1,
        )
    )
    index = Index(w.history)
    assert [hit.id for hit in index.find(parse("removed:any"))] == [second]
    assert index.find(parse("removed:1")) == []
