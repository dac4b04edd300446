from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.sources.base import Source, encode_request
from thresher.core.sources.maf import MafSource
from thresher.core.sources.otlp import OtlpSource
from thresher.core.sources.pi import PiSource
from thresher.core.sources.report import state_at

from .mutations import mutated, mutated_value, recording, sound

FIXTURES = Path(__file__).parents[2] / "fixtures"


def lines(name: str) -> tuple[bytes, ...]:
    return tuple(gzip.decompress((FIXTURES / name).read_bytes()).splitlines(keepends=True))


def thinned(name: str) -> tuple[bytes, ...]:
    # The same session with short texts: what is tested is the form.
    def short(value: object) -> object:
        if isinstance(value, str):
            return value[:40]
        if isinstance(value, dict):
            return {key: short(each) for key, each in value.items()}
        return [short(each) for each in value] if isinstance(value, list) else value

    return tuple(json.dumps(short(json.loads(line))).encode() + b"\n" for line in lines(name))


PI = [thinned(f"pi/{name}.jsonl.gz") for name in ("auto_manual", "branches", "overflow")]
HISTORY = [lines("maf/history.jsonl.gz")]
EXPORTS = [lines("otlp/python.jsonl.gz"), ((FIXTURES / "otlp/dotnet_by_hand.json").read_bytes(),)]
SESSIONS = [
    json.loads(thinned(f"maf/{name}.json.gz")[0])
    for name in ("summarised", "tool_results", "sliding")
]


@st.composite
def damaged_sessions(draw: st.DrawFn) -> bytes:
    value = draw(st.sampled_from(SESSIONS))
    for _ in range(draw(st.integers(0, 4))):
        value = draw(mutated_value(value))
    data = json.dumps(value).encode()
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 200)) :]
    return recording(data)


def survives(source: Source) -> list[e.Record]:
    records = list(source.read())
    sound(records)
    for request in source.requests():
        encode_request(request)
    source.context_raw()
    source.context_raw(3)
    return records


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[bytes], Path]:
    path = tmp_path_factory.mktemp("hostile") / "file"

    def put(data: bytes) -> Path:
        path.write_bytes(data)
        return path

    return put


@given(data=mutated(PI))
def test_no_mutation_of_a_session_of_pi_stops_the_reader(
    write: Callable[[bytes], Path], data: bytes
) -> None:
    survives(PiSource(write(data)))


@given(data=mutated(HISTORY) | damaged_sessions())
def test_no_mutation_of_an_agent_framework_session_stops_the_reader(
    write: Callable[[bytes], Path], data: bytes
) -> None:
    survives(MafSource(write(data)))


@given(data=mutated(EXPORTS))
def test_no_mutation_of_an_export_stops_the_reader(
    write: Callable[[bytes], Path], data: bytes
) -> None:
    survives(OtlpSource(write(data)))


BAD = st.sampled_from(
    [b"17\n", b"null\n", b"{oops\n", b"\xff\xfe{\n", b"\x00" * 99 + b"\n", b"[]\n"]
)


@given(
    recording=st.sampled_from(PI),
    bad=st.lists(st.tuples(st.integers(0, 20), BAD), min_size=1, max_size=4),
)
def test_bad_lines_of_pi_cost_nothing_but_themselves(
    write: Callable[[bytes], Path],
    recording: tuple[bytes, ...],
    bad: list[tuple[int, bytes]],
) -> None:
    def said(data: bytes) -> list[object]:
        records = PiSource(write(data)).read()
        return [each.event.item for each in records if isinstance(each.event, e.ItemAppended)]

    whole = list(recording)
    for at, line in bad:
        whole.insert(at, line)
    assert said(b"".join(whole)) == said(b"".join(recording))
    problems = state_at(PiSource(write(b"".join(whole))).read()).problems
    assert sum(problem.kind == "bad_line" for problem in problems) == len(bad)


def test_hostile_texts_pass_through_unchanged(hostile_text: str, tmp_path: Path) -> None:
    safe = hostile_text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    pi = tmp_path / "pi.jsonl"
    message = {"role": "user", "content": hostile_text}
    entry = {"type": "message", "id": "1", "parentId": None, "message": message}
    pi.write_text(json.dumps(entry) + "\n")
    maf = tmp_path / "maf.jsonl"
    contents = [{"type": "text", "text": hostile_text}]
    maf.write_text(json.dumps({"type": "message", "role": "user", "contents": contents}) + "\n")
    for source in (PiSource(pi), MafSource(maf)):
        (item,) = state_at(source.read()).context.items
        assert item.text == safe
