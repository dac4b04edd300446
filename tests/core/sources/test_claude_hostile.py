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
from thresher.core.sources.report import compaction_records, state_at

from .claude_made import Made, read, text
from .claude_rig import AGENT, FIXTURES

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


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=8)
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, each in value.items():
            found += places(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            found += places(each, (*path, at))
    return found


class Transcript(bytes):
    # Shown by its size: a whole recording is too long to print.

    def __repr__(self) -> str:
        return f"Transcript of {len(self):,} bytes"


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    lines = list(recorded(draw(st.sampled_from(NAMES))))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        what = draw(
            st.sampled_from(["drop", "double", "swap", "cut", "bytes", "value", "value", "key"])
        )
        match what:
            case "drop":
                lines[at] = b""
            case "double":
                lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "bytes":
                place = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:place] + draw(st.binary(max_size=6)) + lines[at][place:]
            case _:
                lines[at] = changed(draw, lines[at], what)
    return Transcript(b"".join(lines))


def changed(draw: st.DrawFn, line: bytes, what: str) -> bytes:
    try:
        value = json.loads(line)
    except ValueError:
        return line
    found = places(value) if isinstance(value, dict) else []
    if not found:
        return line
    *way, last = draw(st.sampled_from(found))
    parent = value
    for step in way:
        parent = parent[step]
    if what == "key" and isinstance(parent, dict):
        del parent[last]
    else:
        parent[last] = draw(JUNK)
    return json.dumps(value).encode() + b"\n"


@given(mutated())
def test_no_mutation_of_a_recording_stops_the_reader(data: bytes) -> None:
    records = read(data)
    state = state_at(records)
    assert not [problem for problem in state.problems if problem.kind == "record"]
    numbers = [record.n for record in records]
    assert numbers == sorted(numbers)
    for record in records:
        assert e.decode(e.encode(record)).event == record.event


@given(mutated())
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
