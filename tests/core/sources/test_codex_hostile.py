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
from thresher.core.errors import ThresherError
from thresher.core.sources.base import encode_request
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_events import Translator
from thresher.core.sources.lines import LineReader
from thresher.core.sources.report import compaction_records, state_at

from .mutations import mutated, sound

FIXTURES = Path(__file__).parents[2] / "fixtures" / "codex"
NAMES = ("mid_turn", "remote_v2", "manual_appserver", "compact_overflow_all", "token_budget")
OLDER = tuple(
    f"more/{group.name}/{path.name.removesuffix('.jsonl.gz')}"
    for group in sorted((FIXTURES / "more").iterdir())
    if group.name in ("v063", "v098", "v151_rollbacks", "turn_errors", "remote_failures", "trims")
    for path in group.glob("rollout-*")
)


@cache
def recorded(name: str) -> tuple[bytes, ...]:
    data = gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())
    return tuple(data.splitlines(keepends=True))


def read(data: bytes) -> list[e.Record]:
    translator, reader = Translator(), LineReader()
    found = [record for line in reader.feed(data) for record in translator.feed(line)]
    for line in reader.finish():
        found += translator.feed(line)
    return found + translator.flush()


def items(records: list[e.Record]) -> list[Any]:
    return [each.event.item for each in records if isinstance(each.event, e.ItemAppended)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"17\n", "a bare number"),
        (b"[]\n", "an array"),
        (b"null\n", "null"),
        (b"\x00" * 512 + b"\n", "512 NUL bytes"),
        (b'{"type":"response_item","payl\n', "not valid JSON"),
        (b"\xff\xfe{\n", "not valid JSON"),
    ],
)
def test_a_bad_line_is_named_and_all_others_are_kept(bad: bytes, reason: str) -> None:
    lines = recorded("mid_turn")
    whole = read(b"".join(lines))
    found = read(b"".join([*lines[:12], bad, *lines[12:]]))
    assert items(found) == items(whole)
    assert len(compaction_records(found)) == 1
    (problem,) = state_at(found).problems
    assert (problem.kind, problem.line) == ("bad_line", 12)
    assert problem.message.startswith("line 13 (byte ")
    assert reason in problem.message


def test_a_cut_last_line_leaves_everything_before_it() -> None:
    lines = recorded("mid_turn")
    found = read(b"".join(lines)[:-40])
    assert len(items(found)) == len(items(read(b"".join(lines))))
    (problem,) = state_at(found).problems
    assert "the last line is cut" in problem.message


def test_a_line_of_20_megabytes_is_an_item_like_any_other() -> None:
    text = "x" * 20_000_000
    payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    found = read(json.dumps({"type": "response_item", "payload": payload}).encode() + b"\n")
    assert len(items(found)[0].text) == 20_000_000


def test_a_deeply_nested_line_is_told_and_passed_over() -> None:
    for depth in range(100, 1000, 100):
        deep = b'{"type":"response_item","payload":{"type":"odd","x":' + b"[" * depth + b"]" * depth
        found = read(deep + b"}}\n" + recorded("mid_turn")[7])
        assert items(found)[-1].text.startswith("Count the ERROR")


def test_numbers_beyond_64_bits_can_be_read_and_exported(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    odd = {"type": "odd", "n": 10**40, "call_id": 10**40}
    lines = [
        {"type": "response_item", "payload": odd},
        {
            "type": "event_msg",
            "payload": {
                "type": "token_count",
                "info": {"last_token_usage": {"total_tokens": 10**40}},
            },
        },
        {"type": "response_item", "payload": {"type": "reasoning", "summary": []}},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (request,) = CodexSource(path).requests()
    assert json.loads(encode_request(request))["input"] == [odd]
    assert len(list(CodexSource(path).read())) > 2


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="cannot be read"):
        list(CodexSource(tmp_path / "none.jsonl").read())


def test_hostile_texts_pass_through_unchanged(hostile_text: str) -> None:
    payload = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": hostile_text}],
    }
    line = json.dumps({"type": "response_item", "payload": payload})
    shown = items(read(line.encode() + b"\n"))[0].text
    assert shown == hostile_text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


DAMAGED = mutated([recorded(name) for name in NAMES + OLDER])


@given(DAMAGED)
def test_no_mutation_of_a_recording_stops_the_reader(data: bytes) -> None:
    sound(read(data))


@given(DAMAGED)
def test_no_mutation_stops_the_rebuilding_of_requests(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.jsonl"
    path.write_bytes(data)
    source = CodexSource(path)
    for request in source.requests():
        encode_request(request)
    folded = state_at(source.read()).context
    assert len(folded) <= len(source.context_raw())


@given(
    st.sampled_from(NAMES + OLDER),
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
