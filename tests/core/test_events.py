from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given

from thresher.core import events as e
from thresher.core import jsontext
from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import FunctionCallOutput, user

RANDOM = runpy.run_path(str(Path(__file__).with_name("random_sessions.py")))
steps, play, begin, TEXTS = (RANDOM[name] for name in ("steps", "play", "begin", "TEXTS"))
InMemory = RANDOM["InMemory"]


@given(steps())
def test_every_record_is_one_line_that_reads_back_as_itself(script: list[Any]) -> None:
    to = InMemory()
    begin(to)
    play(to, script)
    for record in to.said:
        line = e.encode(record)
        assert b"\n" not in line
        assert e.decode(line) == record
        assert e.encode(e.decode(line)) == line


def test_every_event_has_a_name_of_its_own_and_all_but_deltas_are_kept() -> None:
    kinds = get_args(e.Event)
    tags = [kind.__struct_config__.tag for kind in kinds]
    assert len(set(tags)) == len(tags)
    assert [kind for kind in kinds if issubclass(kind, e.EPHEMERAL)] == list(e.EPHEMERAL)
    assert e.event_name(e.Note(kind="a", text="b")) == "note"


def test_the_event_name_is_the_first_word_of_the_event() -> None:
    line = e.encode(e.Record(7, 1.5, e.TurnStarted(turn=2)))
    assert line == b'{"n":7,"at":1.5,"event":{"event":"turn_started","turn":2}}'


@given(TEXTS)
def test_text_that_utf8_can_hold_is_kept_exactly(text: str) -> None:
    record = e.Record(0, 0.0, e.ItemAppended(item=user(text)))
    kept = e.decode(e.encode(record))
    try:
        text.encode()
    except UnicodeEncodeError:
        assert kept != record
    else:
        assert kept == record
    assert e.decode(e.encode(kept)) == kept


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("plain \U0001f600", "plain \U0001f600"),
        ("a\ud83d\ude00b", "a\U0001f600b"),
        ("name-\udcff", "name-\\udcff"),
        ("\ude00\ud83d", "\\ude00\\ud83d"),
    ],
)
def test_halves_are_joined_and_a_lone_half_becomes_its_escape(text: str, stored: str) -> None:
    assert jsontext.storable(text) == stored
    record = e.decode(e.encode(e.Record(0, 0.0, e.Note(kind=text, text=text))))
    assert record.event == e.Note(kind=stored, text=stored)


def test_the_escape_of_a_lone_half_means_the_same_inside_a_json_text() -> None:
    arguments = json.dumps({"path": "a\udcff"}, ensure_ascii=False)
    assert json.loads(jsontext.storable(arguments)) == {"path": "a\udcff"}


def test_a_lone_half_is_stored_in_keys_and_nested_values_too() -> None:
    event = e.PolicyChanged(policy="p", policy_params={"k\ud800": [{"x": ("\udfff",)}]})
    stored = e.decode(e.encode(e.Record(0, 0.0, event))).event
    assert stored == e.PolicyChanged(policy="p", policy_params={"k\\ud800": [{"x": ["\\udfff"]}]})


def test_the_digest_of_a_context_is_that_of_its_stored_form() -> None:
    def digest(text: str) -> str:
        return Context([Entry(EntryId(1), FunctionCallOutput("c", text))]).digest()

    assert digest("a\ud800") == digest("a\\ud800")
    assert digest("a") != digest("b")


@pytest.mark.parametrize(
    "line",
    [
        b"", b"null", b"3", b"[]", b'"x"', b"{}", b'{"n":0,"at":0}', b"\x00\x00", b"\xff\xfe",
        b'{"n":0,"at":0.0,"event":{"event":"nothing_known"}}',
        b'{"n":0,"at":0.0,"event":{"event":"note","kind":"a","text":"\xff"}}',
        b'{"n":0,"at":0.0,"event":{"event":"policy_changed","policy":"","policy_params":'
        + b'{"a":' * 50_000 + b"0" + b"}" * 50_002,
    ],
)  # fmt: skip
def test_a_bad_line_is_one_kind_of_error(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        e.decode(line)
