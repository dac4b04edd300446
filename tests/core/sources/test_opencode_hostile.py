from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.sources.base import encode_request
from thresher.core.sources.lines import parse
from thresher.core.sources.opencode import OpenCodeSource
from thresher.core.sources.opencode_changes import BAD, Change, change_of
from thresher.core.sources.opencode_events import Translator
from thresher.core.sources.opencode_fold import SessionInfo
from thresher.core.sources.report import compaction_records, state_at

from .opencode_rig import changed, database, rows

NAMES = ("v1-one-summary", "v1-prune", "v1-overflow-failed", "v2-two-summaries")
INFO = SessionInfo("ses_x", made=1796011881.0)


@cache
def recorded(name: str) -> tuple[tuple[int, str, str, str], ...]:
    path = database(name, Path(mkdtemp()))
    return tuple(rows(path, "SELECT seq, type, data, id FROM event ORDER BY seq"))


def change(seq: int, type: str, data: bytes, id: str) -> Change:
    value, fault = parse(data)
    if value is None:
        return Change(seq, 0.0, BAD, {}, fault)
    return change_of(seq, type, value, id, INFO.made)


def read(changes: list[Change], *, collect: bool = False) -> list[e.Record]:
    translator = Translator(INFO, collect=collect)
    found = [record for each in changes for record in translator.feed(each)]
    found += translator.quiet()
    found += translator.flush()
    for request in translator.drain():
        encode_request(request)
    translator.context()
    return found


def values(depth: int = 3) -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(1 << 70), 1 << 70),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.sampled_from(
            ["assistant", "user", "completed", "tool", "compaction", "\x00", "\x1b[2J"]
        ),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
        ),
        max_leaves=depth * 3,
    )


def paths_of(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    if isinstance(value, dict):
        for key, each in value.items():
            found += paths_of(each, (*at, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            found += paths_of(each, (*at, number))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@given(st.data())
def test_mutated_sessions_end_without_an_exception_and_in_order(data: st.DataObject) -> None:
    original = list(recorded(data.draw(st.sampled_from(NAMES))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(original) - 1))
        seq, type, text, id = original[at]
        match data.draw(
            st.sampled_from(["cut", "drop", "double", "swap", "type", "value", "bytes"])
        ):
            case "cut":
                text = text[: data.draw(st.integers(0, len(text)))]
            case "drop":
                del original[at]
                continue
            case "double":
                original.insert(at, original[at])
                continue
            case "swap":
                other = data.draw(st.integers(0, len(original) - 1))
                original[at], original[other] = original[other], original[at]
                continue
            case "type":
                type = data.draw(st.sampled_from(["message.removed.1", "unheard.of.9", "", type]))
            case "value":
                value, _ = parse(text.encode())
                if not value:
                    continue
                path = data.draw(st.sampled_from(paths_of(value)))
                text = json.dumps(put(value, path, data.draw(values())))
            case "bytes":
                text = f"\x00{text}\x00"
        original[at] = (seq, type, text, id)
    changes = [
        change(seq, type, text.encode("utf-8", "surrogatepass"), id)
        for seq, type, text, id in original
    ]
    found = read(changes, collect=data.draw(st.booleans()))
    numbers = [record.n for record in found if not record.ephemeral]
    assert numbers == sorted(numbers)
    state = state_at(found)
    assert not [each for each in state.problems if each.kind == "record"]
    for record in found:
        e.encode(record)


@pytest.mark.parametrize("bad", [b"17", b"[]", b"", b"\x00\x00", b'{"info":', b"\xff\xfe{"])
def test_a_bad_change_is_named_and_all_others_are_kept(bad: bytes) -> None:
    good = [change(seq, t, d.encode(), id) for seq, t, d, id in recorded("v1-two-summaries")]
    whole = read(good)
    found = read([*good[:40], change(40, "message.updated.1", bad, "evt"), *good[40:]])
    assert compaction_records(found) == compaction_records(whole)
    (problem,) = state_at(found).problems
    assert (problem.kind, problem.line) == ("bad_line", 40)


def test_bad_rows_of_a_database_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = database("v1-two-summaries", tmp_path)
    changed(
        path,
        "UPDATE event SET data = substr(data, 1, 40) WHERE seq = 200",
        "UPDATE event SET data = x'ff00' WHERE seq = 201",
        "UPDATE event SET type = 'something.new.7' WHERE seq = 202",
    )
    state = state_at(OpenCodeSource(path).read())
    assert [each.line for each in state.problems] == [200, 201]
    assert all("change 20" in each.message for each in state.problems)
    assert state.unknown == {"something.new": 1}
    assert state.compactions == 2


def test_a_deeply_nested_value_is_told_and_does_not_stop_the_rest() -> None:
    good = [change(seq, t, d.encode(), id) for seq, t, d, id in recorded("v1-prune")]
    deep: Any = "x"
    for _ in range(3000):
        deep = [deep]
    part = {"id": "prt_a", "messageID": good[2].data.get("id", ""), "type": "odd", "deep": deep}
    nested = Change(50, 0.0, "message.part.updated", part)
    found = read([*good[:50], nested, *good[50:]])
    assert compaction_records(found) == compaction_records(read(good))


def test_hostile_text_stays_text(hostile_text: str) -> None:
    made = {"created": 1796011881000}
    text = hostile_text or "x"
    stored = [
        ("message.updated", {"info": {"id": "m1", "role": "user", "time": made}}),
        ("message.part.updated", {"part": _text("p1", "m1", text)}),
        ("message.updated", {"info": {"id": "m2", "role": "assistant", "time": made}}),
    ]
    changes = [
        change(n, type, json.dumps(data).encode(), "") for n, (type, data) in enumerate(stored)
    ]
    found = read(changes, collect=True)
    (item,) = [each.event.item for each in found if isinstance(each.event, e.ItemAppended)]
    assert item.text == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _text(id: str, message: str, text: str) -> dict[str, Any]:
    return {"id": id, "messageID": message, "type": "text", "text": text}
