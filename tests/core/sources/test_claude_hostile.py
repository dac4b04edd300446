from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.sources.base import encode_request
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.claude_newest import newest
from thresher.core.sources.claude_tail import ClaudeTail
from thresher.core.sources.report import compaction_records, state_at

from .claude_made import Made, read, text
from .claude_rig import AGENT, FIXTURES
from .mutations import mutated, sound

NAMES = ("v2_1_197_auto_thrash", "v2_1_197_manual_hooks", "v1_0_128_auto_manual", AGENT)


@cache
def recorded(name: str) -> tuple[bytes, ...]:
    data = gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())
    return tuple(data.splitlines(keepends=True))


def items(records: list[e.Record]) -> list[Any]:
    return [each.event.item for each in records if isinstance(each.event, e.ItemAppended)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"17\n", "a bare number"),
        (b"[]\n", "an array"),
        (b"\x00" * 512 + b"\n", "512 NUL bytes"),
        (b'{"type":"user","uu\n', "not valid JSON"),
        (b"\xff\xfe{\n", "not valid JSON"),
    ],
)
def test_a_bad_line_is_named_and_all_others_are_kept(bad: bytes, reason: str) -> None:
    lines = recorded("v2_1_197_auto_thrash")
    whole = read(b"".join(lines))
    found = read(b"".join([*lines[:24], bad, *lines[24:]]))
    assert items(found) == items(whole)
    assert [r.line for r in compaction_records(found)] == [
        r.line + (r.line >= 24) for r in compaction_records(whole)
    ]
    (problem,) = state_at(found).problems
    assert (problem.kind, problem.line) == ("bad_line", 24)
    assert reason in problem.message


def test_a_cut_last_line_leaves_everything_before_it() -> None:
    lines = recorded("v2_0_76_microcompact")[:35]
    found = read(b"".join(lines)[:-40])
    assert items(found)[:-1] == items(read(b"".join(lines[:-1])))[:-1]
    (problem,) = state_at(found).problems
    assert "the last line is cut" in problem.message


def test_unknown_records_fields_and_blocks_are_kept_counted_and_listed() -> None:
    made = Made()
    made.user("hello", mood="curious")
    made.user("again", mood="bored")
    made.says("m1", text("hi"), {"type": "hologram", "text": "a wave", "depth": 3})
    made.add("system", subtype="weather")
    made.add("telepathy")
    made.lines.append({"type": "aura", "colour": "blue"})
    state = made.state()
    assert state.unknown == {
        "field user.mood": 1,
        "block hologram": 1,
        "system/weather": 1,
        "telepathy": 1,
        "aura": 1,
    }
    assert [item.text for item in state.context.items] == ["hello", "again", "hi", "a wave"]


def test_a_conversation_of_a_subagent_inside_its_parent_is_kept_apart() -> None:
    made = Made()
    made.user("go")
    made.says("m1", text("I ask a helper"), input=100)
    main = made.last
    made.user("task of the helper", parent=None, isSidechain=True)
    made.says("m2", text("done"), input=7)
    made.lines[-1]["isSidechain"] = True
    made.user("and now?", parent=main)
    state = made.state()
    assert [item.text for item in state.context.items] == ["go", "I ask a helper", "and now?"]
    outside = [state.known[id].item.text for id, fate in state.fates.items() if fate.outside]
    assert outside == ["task of the helper", "done"]
    assert state.turns_total == 110
    assert not state.problems


def test_a_line_of_20_megabytes_is_an_item_like_any_other() -> None:
    made = Made()
    made.user("x" * 20_000_000)
    assert len(items(made.records())[0].text) == 20_000_000


def test_a_deeply_nested_line_is_told_and_passed_over() -> None:
    good = recorded("v2_1_197_auto_twice")[2]
    for depth in range(100, 1000, 100):
        deep = b'{"type":"odd","uuid":"x","parentUuid":null,"x":' + b"[" * depth + b"]" * depth
        found = read(deep + b"}\n" + good)
        assert items(found)[-1].text.startswith("Read log1.txt")


def test_numbers_beyond_64_bits_can_be_read_and_exported(tmp_path: Path) -> None:
    made = Made()
    made.user("go")
    made.says("m1", {"type": "tool_use", "id": "c", "name": "n", "input": {"n": 10**40}})
    made.lines[-1]["message"]["usage"] = {"input_tokens": 10**40, "output_tokens": -(10**40)}
    made.result("c", "out")
    made.says("m2", text("done"), input=5)
    path = made.write(tmp_path / "big.jsonl")
    _, second = ClaudeSource(path).requests()
    assert json.loads(encode_request(second))["input"][1]["content"][0]["input"]["n"] == 10**40
    assert not state_at(ClaudeSource(path).read()).problems


def test_hostile_texts_pass_through_unchanged(hostile_text: str) -> None:
    made = Made()
    made.user(hostile_text)
    shown = items(made.records())
    wanted = hostile_text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert "".join(item.text for item in shown) == wanted


DAMAGED = mutated([recorded(name) for name in NAMES])


@given(DAMAGED)
def test_no_mutation_of_a_recording_stops_the_reader(data: bytes) -> None:
    sound(read(data))


@given(DAMAGED)
def test_no_mutation_stops_the_slim_reading_of_large_files(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated-large-claude.jsonl"
    path.write_bytes(data)
    state = state_at(list(ClaudeTail(path, slim=True).more()))
    assert not [problem for problem in state.problems if problem.kind == "record"]
    early = state_at(list(newest(path) or ()))
    assert not [problem for problem in early.problems if problem.kind == "record"]


@given(DAMAGED)
def test_no_mutation_stops_the_rebuilding_of_requests(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated-claude.jsonl"
    path.write_bytes(data)
    source = ClaudeSource(path)
    for request in source.requests():
        encode_request(request)
    source.context_raw()


@given(
    st.sampled_from(NAMES),
    st.lists(st.integers(0, 60), max_size=5, unique=True),
    st.binary(max_size=40),
)
def test_good_lines_survive_whatever_stands_between_them(
    name: str, at: list[int], junk: bytes
) -> None:
    junk = b"#" + junk.replace(b"\n", b" ") + b"\n"
    lines = list(recorded(name))
    whole = items(read(b"".join(lines)))
    for place in sorted(at, reverse=True):
        lines.insert(min(place, len(lines)), junk)
    assert items(read(b"".join(lines))) == whole
