from __future__ import annotations

import gzip
import json
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.bodies import text_of
from thresher.core.context import EntryId
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.insight import find
from thresher.core.insight.inspect import inspect
from thresher.core.items import FunctionCallOutput, Item, text_length
from thresher.core.ledger import item_tokens
from thresher.core.sources import longlines
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_newest import newest
from thresher.core.sources.codex_tail import CodexTail
from thresher.core.sources.cutting import KEEP, Cut
from thresher.core.sources.lines import parse
from thresher.core.state import SessionState
from thresher.core.tokens import CharClassCounter
from thresher.core.views import Card

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
NAMES = sorted(path.name.split(".")[0] for path in FIXTURES.glob("*.requests.jsonl.gz"))
MAKE = Path(__file__).parents[2] / "benchmarks" / "make_large.py"
UNLIKE = {"kept_ids", "removed_ids", "inserted_ids", "replaced_ids"}

Line = dict[str, Any]


def fixture(name: str) -> list[Line]:
    with gzip.open(FIXTURES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def written(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
    return path


def folded(path: Path, *, slim: bool) -> History:
    tail, history = CodexTail(path, slim=slim), History()
    history.read_from(tail.bodies)
    history.extend(tail.more())
    return history


def both(path: Path) -> tuple[History, History]:
    return folded(path, slim=False), folded(path, slim=True)


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


@pytest.mark.parametrize("name", NAMES)
def test_a_slim_reading_tells_the_same_as_a_whole_one(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "rollout.jsonl", fixture(name))
    whole, slim = both(path)
    assert_same(whole, slim)
    assert_bodies_are_whole(whole.state, slim.state)


@pytest.mark.parametrize("name", NAMES)
def test_at_every_compaction_a_slim_session_is_where_a_whole_one_is(
    name: str, tmp_path: Path
) -> None:
    whole, slim = both(written(tmp_path / "rollout.jsonl", fixture(name)))
    for card in whole.state.cards:
        at = whole.position_of(card.n)
        assert slim.at(at).context.ids == whole.at(at).context.ids
        assert slim.at(at).bodies is slim.state.bodies


def test_long_texts_are_held_by_their_heads_only(tmp_path: Path) -> None:
    slim = folded(written(tmp_path / "rollout.jsonl", fixture("two_mid_turn")), slim=True)
    longest = max(len(entry.item.text) for entry in slim.state.known.values())
    cut = [entry.item for entry in slim.state.known.values() if entry.item.body is not None]
    assert cut
    assert longest <= KEEP + 400  # a summary's fixed prefix comes on top


@pytest.mark.parametrize("turns", [1, 2, 9])
def test_a_rollback_over_a_compaction_reads_again_what_was_not_kept(
    turns: int, tmp_path: Path
) -> None:
    lines = fixture("pre_turn_twice")
    back = {"type": "thread_rolled_back", "num_turns": turns}
    lines.append({**lines[-1], "type": "event_msg", "payload": back})
    said = next(line for line in lines if line["type"] == "response_item")
    whole, slim = both(written(tmp_path / "rollout.jsonl", [*lines, said]))
    assert any(isinstance(each.event, e.HistoryRolledBack) for each in slim.records)
    assert_same(whole, slim)
    assert_bodies_are_whole(whole.state, slim.state)


def test_old_compacted_lines_without_their_history_keep_what_the_user_said_in_full(
    tmp_path: Path,
) -> None:
    lines = fixture("two_mid_turn")
    for line in lines:
        if line["type"] == "response_item" and line["payload"].get("role") == "user":
            for part in line["payload"]["content"]:
                part["text"] = f"{part['text']} {'and more of it ' * 700}"
        if line["type"] == "compacted":
            del line["payload"]["replacement_history"]
    whole, slim = both(written(tmp_path / "rollout.jsonl", lines))
    assert_same(whole, slim)
    assert_bodies_are_whole(whole.state, slim.state)


def test_lines_that_are_not_quite_as_usual_are_read_as_in_a_whole_reading(tmp_path: Path) -> None:
    odd: list[Line] = []
    for line in fixture("two_mid_turn"):
        odd.append(line)
        payload = line["payload"]
        for key in payload:
            for value in (None, 7, True, -1.5, "x" * 500, ["a"], {"b": {}}, 1 << 70):
                odd.append({**line, "payload": {**payload, key: value}})
        odd.append({**line, "timestamp": "2026-11-30T04:11:33"})
        odd.append({**line, "metadata": {"compaction_output": True}})
        odd.append({**line, "payload": {**payload, "new": {"deep": [1, {"x": "y"}]}}})
    whole, slim = both(written(tmp_path / "rollout.jsonl", odd))
    assert_same(whole, slim)


def test_a_file_may_begin_with_blank_lines_and_an_item(tmp_path: Path) -> None:
    lines = fixture("mid_turn")
    call = next(line for line in lines if line["payload"].get("type") == "function_call")
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n\n" + "".join(f"{json.dumps(line)}\n" for line in [call, *lines]))
    whole, slim = both(path)
    assert_same(whole, slim)
    assert len(slim.state.known) == len(whole.state.known)


def test_bad_lines_are_named_in_a_slim_reading_too(tmp_path: Path) -> None:
    lines = [json.dumps(line).encode() for line in fixture("mid_turn")]
    lines[7:7] = [b'{"type": "response_item", "payload": {"type": "function_ca', b"\x00\x00", b"[]"]
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n".join(lines))
    whole, slim = both(path)
    assert len(slim.state.problems) == 3
    assert slim.state.problems == whole.state.problems
    assert_same(whole, slim)


# -- a single very long line ----------------------------------------------------------------------


def with_output(lines: list[Line], text: str) -> list[Line]:
    for line in lines:
        if line["payload"].get("type") == "function_call_output":
            line["payload"]["output"] = text
            return lines
    raise AssertionError("no output")


def an_output(state: SessionState, at_least: int) -> Item:
    return next(
        entry.item
        for entry in state.known.values()
        if isinstance(entry.item, FunctionCallOutput) and text_length(entry.item) >= at_least
    )


def test_a_line_of_twenty_megabytes_is_measured_without_being_held(tmp_path: Path) -> None:
    piece = 'é "quoted" \\ line\n\t\x1b[31m😀 '
    text = piece * (20_000_000 // len(piece.encode()))
    path = written(tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), text))
    slim = folded(path, slim=True).state
    item = an_output(slim, 1_000_000)
    assert isinstance(item, FunctionCallOutput)
    assert item.output == text[: len(item.output)]
    assert len(item.output) <= KEEP
    assert text_length(item) == len(text)
    assert slim.text(item) == text


def test_the_rows_around_a_very_long_line_are_the_same(tmp_path: Path) -> None:
    path = written(tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), "ab\n" * 1_000_000))
    assert_same(*both(path))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4),
    st.integers(1, 400),
    st.booleans(),
)
def test_a_long_line_is_cut_where_a_whole_decoding_has_the_text(
    pieces: list[str], times: int, ascii: bool
) -> None:
    # What UTF-8 cannot hold never is in a file.
    texts = [each.encode("utf-8", "replace").decode() * times for each in pieces]
    raw = json.dumps({"payload": {"texts": texts, "n": [1, "x"]}}, ensure_ascii=ascii).encode()
    whole, _ = parse(raw)
    small = pytest.MonkeyPatch()
    with small.context() as patch:
        patch.setattr(longlines, "WHOLE", 3000)
        patch.setattr(longlines, "PIECE", 700)
        value, fault, check = longlines.parse_long(raw)
    assert not fault
    assert check == longlines.checked(raw)
    assert value is not None
    assert whole is not None
    for found, text in zip(value["payload"]["texts"], whole["payload"]["texts"], strict=True):
        if isinstance(found, Cut):
            assert str.__eq__(found, text[: len(found)])
            assert (found.chars, found.bytes) == (len(text), len(text.encode()))
        else:
            assert found == text
    assert value["payload"]["n"] == [1, "x"]


@pytest.mark.parametrize("cut_at", [10, 5000, -3])
def test_a_torn_long_line_is_named_like_any_other(cut_at: int) -> None:
    raw = json.dumps({"payload": "a\\n" * 4000}).encode()[:cut_at]
    assert longlines.parse_long(raw)[:2] == parse(raw)


# -- the file changes underneath ------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Path, SessionState]:
    path = written(tmp_path / "rollout.jsonl", fixture("two_mid_turn"))
    return path, folded(path, slim=True).state


def refused(state: SessionState, item: Item) -> str:
    with pytest.raises(ThresherError) as caught:
        state.bodies.whole(item)
    return caught.value.msg


def test_a_text_that_was_changed_in_place_is_not_shown_as_the_old_one(
    opened: tuple[Path, SessionState],
) -> None:
    path, state = opened
    item = an_output(state, 3000)
    data = path.read_bytes()
    assert item.body is not None
    middle = item.body.offset + item.body.size // 2
    path.write_bytes(data[:middle] + b"#" + data[middle + 1 :])
    assert "no longer holds" in refused(state, item)
    assert state.text(item).startswith(item.text)
    assert "no longer holds" in state.text(item)


def test_a_very_long_text_that_was_changed_in_place_is_noticed_too(tmp_path: Path) -> None:
    path = written(tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), "ab" * 500_000))
    state = folded(path, slim=True).state
    item = an_output(state, 1_000_000)
    assert len(state.text(item)) == 1_000_000
    data = path.read_bytes()
    path.write_bytes(data.replace(b"abab", b"abba", 1))
    assert "no longer holds" in refused(state, item)


def test_a_file_that_got_shorter_or_went_away_is_said(opened: tuple[Path, SessionState]) -> None:
    path, state = opened
    item = an_output(state, 3000)
    path.write_bytes(path.read_bytes()[:100])
    assert "no longer holds" in refused(state, item)
    path.unlink()
    assert "cannot be read" in refused(state, item)
    assert "cannot be read" in text_of(item, state.bodies)


def test_what_is_appended_later_changes_nothing_of_what_was_read(
    opened: tuple[Path, SessionState],
) -> None:
    path, state = opened
    item = an_output(state, 3000)
    before = state.text(item)
    with path.open("ab") as file:
        file.write(b'{"type": "world_state", "payload": {}}\n')
    assert state.text(item) == before


# -- figures --------------------------------------------------------------------------------------


def test_the_cost_of_a_cut_item_is_estimated_for_all_of_it(tmp_path: Path) -> None:
    path = written(
        tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), "some words " * 900)
    )
    whole, slim = both(path)
    counter = CharClassCounter()
    for id, entry in whole.state.known.items():
        exact, about = whole.state.cost(id), slim.state.cost(id)
        assert exact is not None
        assert about is not None
        assert about == pytest.approx(exact, rel=0.6, abs=40)
        counted = item_tokens(counter, slim.state.known[id].item)
        assert counted == pytest.approx(item_tokens(counter, entry.item), rel=0.6, abs=40)
    id = next(id for id, entry in whole.state.known.items() if "some words some" in entry.item.text)
    assert slim.state.cost(id) == pytest.approx(whole.state.cost(id), rel=0.05)


# -- when a file is large -------------------------------------------------------------------------


def test_small_files_are_read_whole(tmp_path: Path) -> None:
    source = CodexSource(written(tmp_path / "rollout.jsonl", fixture("two_mid_turn")))
    history = History()
    history.extend(source.tail().more())
    assert all(entry.item.body is None for entry in history.state.known.values())
    assert source.newest() is None


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "rollout.jsonl"
    runpy.run_path(str(MAKE))["make"]("codex", path, 9_000_000)
    return path


def test_large_files_are_read_the_slim_way_and_tell_the_same(large: Path) -> None:
    whole = folded(large, slim=False)
    slim = History()
    tail = CodexSource(large).tail()
    slim.extend(tail.more())
    assert any(entry.item.body is not None for entry in slim.state.known.values())
    assert tail.read == large.stat().st_size
    assert_same(whole, slim)


def test_the_newest_card_is_known_before_the_whole_file(large: Path) -> None:
    records = newest(large)
    assert records is not None
    early = History()
    early.extend(records)
    whole = folded(large, slim=True)
    ours, theirs = early.state.cards[-1], whole.state.cards[-1]
    changed: dict[str, Any] = dict.fromkeys(UNLIKE, ())
    assert msgspec.structs.replace(bare_card(ours), **changed) == msgspec.structs.replace(
        bare_card(theirs), **changed
    )
    assert early.state.turn == whole.state.turn
    assert early.state.title == whole.state.title
    assert early.state.model == whole.state.model
    assert early.state.reported == whole.state.reported
    assert len(early.state.context) == len(whole.state.context)
    bodies = whole.state.bodies
    assert [text_of(entry.item, bodies) for entry in early.state.context] == [
        text_of(entry.item, bodies) for entry in whole.state.context
    ]
    assert len(early) < len(whole) / 2


def test_a_history_that_becomes_another_is_that_one(large: Path) -> None:
    early, whole = History(), folded(large, slim=True)
    records = newest(large)
    assert records is not None
    early.extend(records)
    count = len(whole)
    early.become(whole)
    assert len(early) == count
    assert early.state is whole.state
    assert early.at(count // 2).context.ids == folded(large, slim=True).at(count // 2).context.ids


def test_entries_made_by_a_compaction_are_read_from_its_line(tmp_path: Path) -> None:
    path = written(tmp_path / "rollout.jsonl", fixture("mid_turn"))
    whole, slim = both(path)
    card = whole.state.cards[-1]
    made = [id for id in card.inserted_ids if slim.state.known[id].item.body is not None]
    assert isinstance(card.inserted_ids[0], EntryId)
    for id in made:
        body = slim.state.known[id].item.body
        assert body is not None
        assert slim.state.bodies.whole(slim.state.known[id].item) == whole.state.known[id].item


def test_search_finds_what_only_the_file_holds(tmp_path: Path) -> None:
    text = f"{'beginning ' * 300} needle_in_the_middle {'end ' * 300}"
    path = written(tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), text))
    whole, slim = both(path)
    for words in ("needle_in_the_middle", "beginning needle_in -nothing", "beginning -needle_in"):
        query = find.parse(words)
        assert find.Index(slim).find(query) == find.Index(whole).find(query)
    assert find.Index(slim).find(find.parse("needle_in_the_middle"))


def test_outputs_that_only_begin_alike_are_no_duplicates(tmp_path: Path) -> None:
    lines = fixture("two_mid_turn")
    outputs = [
        line["payload"] for line in lines if line["payload"].get("type") == "function_call_output"
    ]
    for number, payload in enumerate(outputs):
        payload["output"] = f"{'the same start ' * 100}{number // 2}"
    whole, slim = both(written(tmp_path / "rollout.jsonl", lines))
    for at in range(0, len(whole), 5):
        assert [each.ids for each in inspect(slim.at(at)).duplicates()] == [
            each.ids for each in inspect(whole.at(at)).duplicates()
        ]
