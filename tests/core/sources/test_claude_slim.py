from __future__ import annotations

import json
import random
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
from thresher.core.history import History
from thresher.core.items import FunctionCallOutput, text_length
from thresher.core.sources import claude_lines, claude_slim, longlines
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.claude_known import FIELDS
from thresher.core.sources.claude_newest import newest
from thresher.core.sources.claude_tail import ClaudeTail
from thresher.core.sources.cutting import KEEP, Cut

from .claude_made import Made, text
from .claude_rig import NAMES
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
from .test_claude_hostile import DAMAGED, recorded


def written(path: Path, data: Iterable[bytes]) -> Path:
    path.write_bytes(b"".join(data))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("claude-slim") / "session.jsonl"


def folded(path: Path, *, slim: bool) -> History:
    return folded_by(ClaudeTail, path, slim=slim)


def both(path: Path) -> tuple[History, History]:
    return folded(path, slim=False), folded(path, slim=True)


def assert_tells_the_same(path: Path) -> None:
    whole, slim = both(path)
    assert_same(whole, slim)
    assert_bodies_are_whole(whole.state, slim.state)


@pytest.mark.parametrize("name", NAMES)
def test_a_slim_reading_tells_the_same_as_a_whole_one(name: str, place: Path) -> None:
    assert_tells_the_same(written(place, recorded(name)))


@pytest.mark.parametrize("name", NAMES)
def test_at_every_compaction_a_slim_session_is_where_a_whole_one_is(name: str, place: Path) -> None:
    whole, slim = both(written(place, recorded(name)))
    for card in whole.state.cards:
        at = whole.position_of(card.n)
        assert slim.at(at).context.ids == whole.at(at).context.ids
        assert slim.at(at).bodies is slim.state.bodies


def test_nearly_all_records_are_decoded_into_forms_of_their_own() -> None:
    lines = [line for name in NAMES for line in recorded(name) if b'"parentUuid"' in line[:100]]
    fitting = 0
    for line in lines:
        try:
            claude_lines.decode_known(line)
            fitting += 1
        except msgspec.MsgspecError:
            pass
    assert fitting > 0.6 * len(lines)


WIDE = "caf\u00e9 \U0001f600" * 60


def shell_result(noted: bytes) -> bytes:
    text = f'"{WIDE}"'.encode()
    return (
        b'{"type":"user","uuid":"u1","timestamp":"2026-01-01T00:00:00.000Z","parentUuid":"u0",'
        b'"message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":'
        + text + b'}]},"toolUseResult":{"stdout":' + text + b',"stderr":""' + noted + b"}}"
    )  # fmt: skip


@pytest.mark.parametrize(
    "noted", [b"", ',"more":"\u00e9"'.encode(), b',"interrupted":false,"stdout":"other"']
)
def test_a_line_beyond_ascii_is_decoded_like_any_other(noted: bytes) -> None:
    line = shell_result(noted)
    (wide, _), (known, _) = claude_lines.decode_wide(line), claude_lines.decode_known(line)
    assert wide.message.content[0].content == known.message.content[0].content == WIDE
    told, plain = wide.toolUseResult, known.toolUseResult
    assert isinstance(told, claude_lines.Told)
    assert isinstance(plain, claude_lines.Told)
    assert told.stdout == plain.stdout == ("other" if b"other" in noted else WIDE)


LONG_TEXTS = st.text(st.sampled_from('a€😀é"\\\n\t{}:,'), min_size=1, max_size=40).map(
    lambda text: text * (600 // len(text)) + "a"
)
"""Texts of which a result would be decoded once, where its line holds them twice."""


@pytest.mark.parametrize("second", ["the same", "another end", "another", "longer", "no text"])
@given(data=st.data(), texts=st.lists(LONG_TEXTS, min_size=2, max_size=2))
def test_a_text_that_a_line_holds_twice_comes_out_as_if_both_had_been_decoded(
    data: st.DataObject, texts: list[str], second: str
) -> None:
    first, other = texts

    def written_as(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    seconds: dict[str, Any] = {
        "the same": first,
        "another end": first[:-1] + "b",
        "another": other,
        "longer": first + "x",
        "no text": {"content": first},
    }
    usual = data.draw(st.booleans())
    behind = {} if usual else data.draw(st.sampled_from([{"is_error": True}, {"content": other}]))
    more = b"" if usual else data.draw(st.sampled_from([b"", b',"content":' + written_as(other)]))
    block = {"tool_use_id": "t", "type": "tool_result", "content": first}
    inside = written_as(block)[:-1] + more + b"}"
    stderr = "" if usual else data.draw(st.sampled_from(["", "é", first]))
    told = {"stdout": seconds[second], "stderr": stderr, **behind}
    envelope = {"uuid": "u", "timestamp": "2026-01-01T00:00:00Z", "parentUuid": None}
    fields = {"type": b'"user"', "message": b'{"role":"user","content":[' + inside + b"]}"}
    fields |= {"toolUseResult": written_as(told)}
    fields |= {key: written_as(value) for key, value in envelope.items()}
    order = list(fields) if usual else data.draw(st.permutations(list(fields)))
    line = b"{" + b",".join(b'"%s":%s' % (key.encode(), fields[key]) for key in order) + b"}"
    try:
        known = claude_lines.decode_known(line)
    except msgspec.MsgspecError:
        with pytest.raises(msgspec.MsgspecError):
            claude_lines.decode_wide(line)
    else:
        assert claude_lines.decode_wide(line) == known


@pytest.mark.parametrize("noted", [b',"more":"\xff"', b',"isImage":"\xff"', b',"\xff":1'])
def test_a_line_that_is_not_utf8_where_nobody_reads_is_not_decoded(noted: bytes) -> None:
    with pytest.raises((msgspec.MsgspecError, UnicodeDecodeError)):
        claude_lines.decode_wide(shell_result(noted))


def test_the_forms_of_lines_have_exactly_the_fields_that_are_known() -> None:
    assert set(claude_lines.BlockLine.__struct_fields__) == FIELDS["assistant"]
    assert set(claude_lines.ResultLine.__struct_fields__) == FIELDS["user"]


def test_long_texts_are_held_by_their_heads_only(place: Path) -> None:
    slim = folded(written(place, recorded("v2_1_197_auto_twice")), slim=True)
    cut = [entry.item for entry in slim.state.known.values() if entry.item.body is not None]
    assert len(cut) > 20
    assert max(len(item.text) for item in cut) <= KEEP


# -- the same content, written otherwise ----------------------------------------------------------


def shuffled(value: Any, order: random.Random) -> Any:
    match value:
        case dict():
            keys = list(value)
            order.shuffle(keys)
            return {key: shuffled(value[key], order) for key in keys}
        case list():
            return [shuffled(each, order) for each in value]
        case _:
            return value


@st.composite
def rewritten(draw: st.DrawFn) -> bytes:
    name = draw(st.sampled_from(NAMES))
    order = draw(st.randoms(use_true_random=False))
    ascii, separators = draw(st.booleans()), draw(st.sampled_from([(",", ":"), (", ", " : ")]))
    end = draw(st.sampled_from(["\n", "\r\n", " \n\n"]))
    odd = draw(st.text(max_size=6).map(lambda text: text.encode("utf-8", "replace").decode()))
    out = []
    for line in recorded(name):
        value = shuffled(json.loads(line), order)
        if isinstance(value.get("message"), dict) and order.random() < 0.3:
            value = spiced(value, odd * order.randrange(200))
        out.append(json.dumps(value, ensure_ascii=ascii, separators=separators) + end)
    return "".join(out).encode()


def spiced(value: Any, odd: str) -> Any:
    match value:
        case {"type": "text", "text": str(text)}:
            return {**value, "text": text + odd}
        case {"content": str(text)}:
            return {**value, "content": text + odd}
        case {"stdout": str(text)}:
            return {**value, "stdout": text + odd}
        case dict():
            return {key: spiced(each, odd) for key, each in value.items()}
        case list():
            return [spiced(each, odd) for each in value]
        case _:
            return value


@settings(max_examples=15, deadline=None)
@given(data=rewritten())
def test_how_a_file_is_written_makes_no_difference(place: Path, data: bytes) -> None:
    assert_tells_the_same(written(place, [data]))


@settings(max_examples=40, deadline=None)
@given(data=DAMAGED)
def test_a_damaged_recording_is_told_in_the_same_way(place: Path, data: bytes) -> None:
    assert_tells_the_same(written(place, [data]))


@settings(max_examples=25, deadline=None)
@given(data=DAMAGED, long=st.integers(300, 4000))
def test_long_lines_of_a_damaged_recording_are_told_in_the_same_way(
    place: Path, data: bytes, long: int
) -> None:
    whole = folded(written(place, [data]), slim=False)
    with pytest.MonkeyPatch.context() as patch:
        # What is a long line, and a long text in it, is set so low that most of them are.
        patch.setattr(claude_slim, "LONG", long)
        patch.setattr(longlines, "SHORT", 600)
        patch.setattr(longlines, "WHOLE", 1500)
        patch.setattr(longlines, "PIECE", 700)
        assert_same(whole, folded(place, slim=True))


@settings(max_examples=8, deadline=None)
@given(size=st.integers(300, 5000))
def test_where_reads_end_makes_no_difference(place: Path, size: int) -> None:
    data = b"".join(recorded("v2_1_197_manual_hooks"))
    whole = folded(written(place, [data]), slim=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("thresher.core.sources.follow.CHUNK", size)
        assert_same(whole, folded(place, slim=True))


def test_records_that_are_not_quite_as_usual_are_read_as_in_a_whole_reading(place: Path) -> None:
    odd: list[bytes] = []
    # A prompt, thinking, a text, a call, and its result.
    for line in recorded("v2_1_197_auto_twice")[2:7]:
        odd.append(line.replace(b"status=ok value", b""))
        value = json.loads(odd[-1])
        for key in value:
            for other in (None, 7, True, "x" * 500, "", ["a"], {"b": {}}, 1 << 70):
                fresh = {"uuid": f"{len(odd)}"} if value.get("uuid") and key != "uuid" else {}
                odd.append(json.dumps({**value, key: other, **fresh}).encode() + b"\n")
        message = value.get("message")
        for key in message if isinstance(message, dict) else ():
            for other in (None, 7, True, "x" * 500, "", [], [{}, 5], {"b": {}}, 1 << 70):
                changed = {**value, "message": {**message, key: other}, "uuid": f"{len(odd)}"}
                odd.append(json.dumps(changed).encode() + b"\n")
    assert_tells_the_same(written(place, odd))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"status=ok", b"status=\xff\xfe"),
        (b"status=ok", b"status=\xc3"),
        (b"status=ok", b"status=\\ud83d"),
        (b"status=ok", b"status=\\ud83d\\ude00"),
        (b"status=ok", b"status=\\u0000\\u001b[31m"),
        (b"status=ok", b"status=\x00"),
        (b"status=ok", b'status=\\\\\\\\\\"'),
        (b'"interrupted":false', b'"interrupted":"\xff"'),
        (b'"isSidechain":false', b'"isSidechain":true'),
        (b'"isMeta":false', b'"isMeta":true'),
        (b'"sessionId"', b'"session"'),
    ],
)
def test_odd_bytes_anywhere_in_a_line_are_told_as_in_a_whole_reading(
    old: bytes, new: bytes, place: Path
) -> None:
    for only in (1, -1):
        changed = [line.replace(old, new, only) for line in recorded("v2_1_197_auto_twice")]
        assert_tells_the_same(written(place, changed))


@pytest.mark.parametrize("name", ["v2_1_197_auto_thrash", "v1_0_128_auto_manual"])
@pytest.mark.parametrize("at", [0.1, 0.3, 0.6])
def test_a_session_that_goes_on_from_before_its_compactions_is_read_again(
    name: str, at: float, place: Path
) -> None:
    lines = [json.loads(line) for line in recorded(name)]
    said = [line for line in lines if line["type"] in ("user", "assistant")]
    above = said[int(at * len(said))]
    again = {**above, "uuid": "again", "parentUuid": above["uuid"], "isCompactSummary": False}
    prompt = {"role": "user", "content": "and now from here"}
    lines.append({**again, "type": "user", "message": prompt})
    lines.append({**said[-1], "uuid": "more", "parentUuid": "again", "requestId": "r"})
    path = written(place, (json.dumps(line).encode() + b"\n" for line in lines))
    assert_tells_the_same(path)
    back = [each.event for each in folded(path, slim=True).records]
    assert any(isinstance(event, e.HistoryRolledBack) and event.inserted for event in back)


def test_a_new_beginning_after_a_compaction_may_bring_back_an_old_response(place: Path) -> None:
    made = Made()
    made.user("go")
    made.says("m1", text("I look"), input=100)
    made.says("m1", {"type": "tool_use", "id": "c", "name": "n", "input": {}}, input=100)
    made.result("c", "found " * 200)
    made.boundary()
    made.user("Summary:\nlooked", isCompactSummary=True)
    made.says("m2", text("so it is"), input=50)
    made.add("telepathy", parent=None)
    made.says("m1", text("I look again"), input=60)
    path = made.write(place)
    assert_tells_the_same(path)
    assert any("found found" in item.text for item in folded(path, slim=True).state.context.items)


def test_sidechains_duplicates_and_images_are_told_as_in_a_whole_reading(place: Path) -> None:
    made = Made()
    made.user("go " * 300)
    made.says("m1", text("I ask a helper " * 50), input=100)
    main = made.last
    made.user("task of the helper " * 50, parent=None, isSidechain=True, agentId="a")
    made.says("m2", text("done " * 200), input=7)
    made.lines[-1]["isSidechain"] = True
    call = {"type": "tool_use", "id": "c", "name": "n", "input": {"text": "x" * 900}}
    made.says("m3", call, input=120, parent=main)
    source = {"type": "base64", "media_type": "image/png", "data": "iVBOR" * 400}
    picture = {"type": "image", "source": source}
    parts = [{"type": "text", "text": "seen " * 200}, picture]
    block = {"type": "tool_result", "tool_use_id": "c", "content": parts}
    made.add("user", message={"role": "user", "content": [block]}, toolUseResult={"durationMs": 4})
    made.add("user", message={"role": "user", "content": [*parts, {"type": "hologram"}]})
    made.says("m4", {"type": "redacted_thinking", "data": "sealed" * 200}, input=150)
    made.says("m5", {"type": "thinking", "thinking": "", "signature": "sig" * 200}, input=160)
    made.lines += [made.lines[1], made.lines[4]]
    made.user("and now?")
    assert_tells_the_same(made.write(place))


# -- a single very long line ----------------------------------------------------------------------


def with_output(name: str, text: str) -> list[bytes]:
    lines = [json.loads(line) for line in recorded(name)]
    owner = next(line for line in lines if "stdout" in line.get("toolUseResult", {}))
    owner["message"]["content"][0]["content"] = owner["toolUseResult"]["stdout"] = text
    return [json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines]


def test_a_line_of_twenty_megabytes_is_measured_without_being_held(place: Path) -> None:
    piece = 'é "quoted" \\ line\n\t\x1b[31m😀 '
    whole = piece * (10_000_000 // len(piece.encode()))
    slim = folded(written(place, with_output("v2_1_197_auto_twice", whole)), slim=True).state
    item = an_output(slim, 1_000_000)
    assert isinstance(item, FunctionCallOutput)
    assert item.output == whole[: len(item.output)]
    assert len(item.output) <= KEEP
    assert not isinstance(item.output, Cut)
    assert text_length(item) == len(whole)
    assert slim.text(item) == whole


def test_the_rows_around_a_very_long_line_are_the_same(place: Path) -> None:
    assert_same(*both(written(place, with_output("v2_1_197_auto_twice", "ab\n" * 700_000))))


def test_a_long_text_of_the_user_a_file_and_a_summary_are_told_in_full(place: Path) -> None:
    made = Made()
    made.user("please " * 100_000)
    made.says("m1", text("yes " * 200_000), input=100)
    content = {"type": "text", "file": {"filePath": "/f", "content": "line\n" * 150_000}}
    made.add("attachment", attachment={"type": "file", "filename": "/f", "content": content})
    made.add("system", parent=None, subtype="compact_boundary", compactMetadata={"trigger": "auto"})
    made.user("Summary:\n" + "what was done " * 50_000, isCompactSummary=True)
    made.user("go on")
    path = made.write(place)
    assert_tells_the_same(path)
    (card,) = folded(path, slim=True).state.cards
    assert card.summary is not None
    assert len(card.summary) == 50_000 * 14


# -- the file changes underneath ------------------------------------------------------------------


def test_a_text_that_was_changed_in_place_is_not_shown_as_the_old_one(place: Path) -> None:
    state = folded(written(place, recorded("v2_1_197_auto_twice")), slim=True).state
    item = an_output(state, 3000)
    data = place.read_bytes()
    assert item.body is not None
    at = data.index(b"status=ok", item.body.offset + 2000)
    place.write_bytes(data[:at] + b"#" + data[at + 1 :])
    assert "no longer holds" in refused(state, item)
    assert state.text(item).startswith(item.text)
    place.write_bytes(data[:100])
    assert "no longer holds" in refused(state, item)
    place.unlink()
    assert "cannot be read" in text_of(item, state.bodies)


# -- when a file is large -------------------------------------------------------------------------


def test_small_files_are_read_whole(place: Path) -> None:
    source = ClaudeSource(written(place, recorded("v2_1_197_auto_twice")))
    history = History()
    history.extend(source.tail().more())
    assert all(entry.item.body is None for entry in history.state.known.values())
    assert source.newest() is None


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "session.jsonl"
    runpy.run_path(str(MAKE))["make"]("claude", path, 9_000_000)
    return path


def test_large_files_are_read_the_slim_way_and_tell_the_same(large: Path) -> None:
    whole, slim = folded(large, slim=False), History()
    tail = ClaudeSource(large).tail()
    slim.read_from(tail.bodies)
    slim.extend(tail.more())
    assert any(entry.item.body is not None for entry in slim.state.known.values())
    assert tail.read == large.stat().st_size
    assert_same(whole, slim)
    assert_bodies_are_whole(whole.state, slim.state)


def assert_newest_is_right(path: Path) -> History:
    records = newest(path)
    assert records is not None
    early = History()
    early.extend(records)
    whole = folded(path, slim=True)
    assert_is_the_end_of(whole, early)
    assert len(early) < len(whole)
    return early


def test_the_newest_card_is_known_before_the_whole_file(large: Path) -> None:
    early = assert_newest_is_right(large)
    assert len(early) < len(folded(large, slim=True)) / 2


@pytest.mark.parametrize("name", ["v2_1_197_auto_twice", "v1_0_128_auto_manual"])
def test_the_newest_card_of_a_recording_is_that_of_the_whole_file(name: str, place: Path) -> None:
    # Far from its end nothing is read ahead, so there must be enough before it.
    made = Made()
    made.user("a long beginning")
    made.says("m0", text("of another window " * 60_000), input=5)
    other = (json.dumps(line).encode() + b"\n" for line in made.lines)
    assert_newest_is_right(written(place, [*other, *recorded(name)]))


def test_a_transcript_without_two_compactions_has_nothing_to_read_ahead(place: Path) -> None:
    assert newest(written(place, recorded("v2_1_197_reactive")[:30])) is None


def test_search_finds_what_only_the_file_holds(place: Path) -> None:
    whole, slim = both(written(place, with_output("v2_1_197_auto_twice", NEEDLE)))
    assert_a_needle_is_found(whole, slim)
