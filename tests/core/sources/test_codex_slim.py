from __future__ import annotations

import gzip
import json
import random
import runpy
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.bodies import text_of
from thresher.core.context import EntryId
from thresher.core.history import History
from thresher.core.insight.inspect import inspect
from thresher.core.items import FunctionCallOutput, text_length
from thresher.core.ledger import item_tokens
from thresher.core.sources import follow, longlines
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_newest import newest
from thresher.core.sources.codex_tail import CodexTail
from thresher.core.sources.cutting import KEEP, Cut
from thresher.core.sources.lines import parse
from thresher.core.state import SessionState
from thresher.core.tokens import Basis, CharClassCounter

from .slim_rig import (
    MAKE,
    NEEDLE,
    an_output,
    assert_a_needle_is_found,
    assert_bodies_are_whole,
    assert_is_the_end_of,
    assert_same,
    folded_by,
    refused,
)

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
NAMES = sorted(path.name.split(".")[0] for path in FIXTURES.glob("*.requests.jsonl.gz"))

Line = dict[str, Any]


def fixture(name: str) -> list[Line]:
    with gzip.open(FIXTURES / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def written(path: Path, lines: Iterable[Line]) -> Path:
    path.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
    return path


def folded(path: Path, *, slim: bool) -> History:
    return folded_by(CodexTail, path, slim=slim)


def both(path: Path) -> tuple[History, History]:
    return folded(path, slim=False), folded(path, slim=True)


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


# -- files written in other ways ------------------------------------------------------------------


class Writer:
    """Writes JSON in any of the ways in which it may be written, as its dice fall."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)

    def text(self, value: object) -> str:
        """A value as JSON."""
        gap, dice = self._gap, self._dice
        match value:
            case dict():
                fields = list(value.items())
                if dice.random() < 0.5:
                    dice.shuffle(fields)
                inside = ",".join(
                    f"{gap()}{self.text(key)}{gap()}:{gap()}{self.text(each)}{gap()}"
                    for key, each in fields
                )
                return f"{{{inside}}}"
            case list():
                return f"[{','.join(f'{gap()}{self.text(each)}{gap()}' for each in value)}]"
            case str():
                rarely = 0.02 if len(value) < 300 else 0.001
                signs = (self._escaped(sign) if dice.random() < rarely else sign for sign in value)
                plain = dice.random() < 0.5
                whole = json.dumps("".join(value), ensure_ascii=plain)
                return whole if plain else f'"{"".join(map(self._sign, signs))}"'
            case _:
                return json.dumps(value)

    def _sign(self, sign: str) -> str:
        return sign if len(sign) > 1 else json.dumps(sign, ensure_ascii=False)[1:-1]

    def _escaped(self, sign: str) -> str:
        if sign == "/":
            return "\\/"
        units = sign.encode("utf-16-be", "surrogatepass").hex()
        units = units.upper() if self._dice.random() < 0.5 else units
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

    def _gap(self) -> str:
        return self._dice.choice((" ", "\t", "  ", " \r ")) if self._dice.random() < 0.05 else ""


TROUBLE = [b"\xff", b"\x00", b"\x01", b"\n", b'"', b"\\", b"\\q", b"{", b"\xed\xa0\x80", b"\xc3"]


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(["two_mid_turn", "pre_turn_twice", "remote_v2", "token_budget"]),
    seed=st.integers(0, 1 << 32),
    end=st.sampled_from(["\n", "\r\n", " \n"]),
    chunk=st.sampled_from([61, 1000, 4096, 1 << 20]),
    said=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    times=st.integers(1, 300),
    trouble=st.lists(st.tuples(st.integers(0, 1 << 20), st.sampled_from(TROUBLE)), max_size=6),
)
def test_however_a_file_is_written_a_slim_reading_tells_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    seed: int,
    end: str,
    chunk: int,
    said: str,
    times: int,
    trouble: list[tuple[int, bytes]],
) -> None:
    lines, writer = fixture(name), Writer(seed)
    for line in lines[seed % 7 :: 7]:
        payload = line["payload"]
        if isinstance(payload.get("output"), str):
            payload["output"] = f"{payload['output'][: seed % 900]}{said * times}"
        if isinstance(payload.get("content"), list):
            payload["content"][0]["text"] = said * times
    data = "".join(f"{writer.text(line)}{end}" for line in lines).encode()
    for at, bad in trouble:
        at %= len(data)
        data = data[:at] + bad + data[at:]
    path = tmp_path_factory.mktemp("written") / "rollout.jsonl"
    path.write_bytes(data)
    small = pytest.MonkeyPatch()
    with small.context() as patch:
        patch.setattr(follow, "CHUNK", chunk)
        whole, slim = both(path)
    assert_same(whole, slim)
    assert_bodies_are_whole(whole.state, slim.state)


def test_invalid_utf8_in_a_field_that_nobody_reads_is_named_too(tmp_path: Path) -> None:
    lines = [json.dumps(line).encode() for line in fixture("mid_turn")]
    at = next(n for n, line in enumerate(lines) if b"world_state" in line[:100])
    lines[at] = lines[at].replace(b"/home/user", b"/home/\xfff\xfcser", 1)
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n".join(lines))
    whole, slim = both(path)
    assert [problem.line for problem in slim.state.problems] == [at]
    assert_same(whole, slim)


# -- a single very long line ----------------------------------------------------------------------


def with_output(lines: list[Line], text: str) -> list[Line]:
    for line in lines:
        if line["payload"].get("type") == "function_call_output":
            line["payload"]["output"] = text
            return lines
    raise AssertionError("no output")


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
        assert about == pytest.approx(exact, rel=0.2, abs=20)
        counted = item_tokens(counter, slim.state.known[id].item)
        assert counted == pytest.approx(item_tokens(counter, entry.item), rel=0.2, abs=20)
    id = next(id for id, entry in whole.state.known.items() if "some words some" in entry.item.text)
    assert slim.state.cost(id) == pytest.approx(whole.state.cost(id), rel=0.05)


@pytest.mark.parametrize("size", [5_000, 3_000_000])
def test_a_text_that_goes_on_otherwise_than_it_begins_is_estimated_by_how_it_goes_on(
    size: int, tmp_path: Path
) -> None:
    text = f"{'=' * 300}{'the same few words again ' * (size // 25)}"
    path = written(tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), text))
    whole, slim = both(path)
    id = next(id for id, entry in whole.state.known.items() if "few words" in entry.item.text)
    assert slim.state.cost(id) == pytest.approx(whole.state.cost(id), rel=0.1)
    assert slim.state.basis is Basis.ESTIMATED


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
    runpy.run_path(str(MAKE))["make"]("codex", path, 12_000_000)
    return path


def shape(lines: Iterable[bytes]) -> tuple[float, float, dict[str, float]]:
    sizes: dict[str, list[int]] = {}
    escapes = 0
    for raw in lines:
        line = json.loads(raw)
        kind = f"{line['type']} {line['payload'].get('type', '')}"
        sizes.setdefault(kind, []).append(len(raw))
        escapes += raw.count(b"\\")
    all_sizes = [size for each in sizes.values() for size in each]
    means = {kind: fmean(each) for kind, each in sizes.items()}
    return fmean(all_sizes), escapes / sum(all_sizes), means


def test_the_file_of_the_benchmark_is_like_the_recordings(large: Path) -> None:
    recorded: list[bytes] = []
    for name in NAMES:
        with gzip.open(FIXTURES / f"{name}.jsonl.gz") as file:
            recorded += file
    with large.open("rb") as file:
        made = shape(file)
    like = shape(recorded)
    assert made[0] == pytest.approx(like[0], rel=0.15)
    assert made[1] == pytest.approx(like[1], rel=0.1)
    alike = ("event_msg token_count", "event_msg item_completed", "response_item function_call")
    for kind in (*alike, "response_item function_call_output", "token_usage_record "):
        assert made[2][kind] == pytest.approx(like[2][kind], rel=0.15), kind


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
    assert_is_the_end_of(whole, early)
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
    path = written(tmp_path / "rollout.jsonl", with_output(fixture("mid_turn"), NEEDLE))
    whole, slim = both(path)
    assert_a_needle_is_found(whole, slim)


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
