from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.items import CompactionSummary, FunctionCall, FunctionCallOutput, Message
from thresher.core.sources.base import encode_request
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.opening import open_source
from thresher.core.sources.pi import PiSource, PiTail
from thresher.core.sources.pi_discover import FINDER
from thresher.core.sources.pi_overflow import overflow_of
from thresher.core.sources.report import compaction_records, context_at, state_at
from thresher.core.tokens import Basis

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pi"
NAMES = ("auto_manual", "branches", "overflow")
every_session = pytest.mark.parametrize("name", NAMES)


def source(name: str) -> PiSource:
    return PiSource(FIXTURES / f"{name}.jsonl.gz")


def lines(name: str) -> list[bytes]:
    return gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes()).splitlines(keepends=True)


def sent(name: str) -> list[list[dict[str, Any]]]:
    with gzip.open(FIXTURES / f"{name}.requests.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line)["request"]["messages"] for line in file]


def events(records: list[e.Record], kind: type[e.Event]) -> list[Any]:
    return [each.event for each in records if isinstance(each.event, kind)]


def written(path: Path, *entries: dict[str, Any]) -> PiSource:
    head = {"type": "session", "version": 3, "id": "s", "timestamp": "", "cwd": "/p"}
    path.write_text("".join(json.dumps(each) + "\n" for each in (head, *entries)))
    return PiSource(path)


def said(id: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return {"type": "message", "id": id, "parentId": parent, "message": message}


@every_session
def test_every_request_of_a_turn_is_rebuilt_exactly_and_every_summary_but_its_prompt(
    name: str,
) -> None:
    rebuilt, recorded = list(source(name).requests()), sent(name)
    assert len(rebuilt) == len(recorded)
    for request, messages in zip(rebuilt, recorded, strict=True):
        encode_request(request)
        if request.kind is e.Purpose.TURN:
            assert request.input == messages
            assert not request.missing
        else:
            (mine,), (theirs,) = request.input, messages
            text = mine["content"][0]["text"]
            assert theirs["content"][0]["text"].startswith(text)
            assert text.startswith("<conversation>\n")
            assert "not in the file" in request.missing


@every_session
def test_the_context_before_an_answer_is_what_its_request_carried(name: str) -> None:
    for request in source(name).requests():
        if request.kind is e.Purpose.TURN:
            raw = source(name).context_raw(request.position)
            calls = sum(len(each.get("tool_calls", ())) for each in raw)
            shown = context_at(source(name).read(), request.position)
            assert calls == sum(isinstance(item, FunctionCall) for item in shown.items)
            outputs = sum(each["role"] == "tool" for each in raw)
            assert outputs == sum(isinstance(item, FunctionCallOutput) for item in shown.items)


@every_session
def test_a_recording_is_recognised_and_reads_without_problems(name: str) -> None:
    path = FIXTURES / f"{name}.jsonl.gz"
    assert detect(path).format is Format.PI
    records = list(open_source(path).read())
    state = state_at(records)
    assert (state.agent, state.cwd, state.wire) == ("pi", "/home/user/project", "chat")
    assert state.title == "Read log 1 and say what failed."
    assert not [problem for problem in state.problems if problem.kind != "provider"]
    assert not state.unknown


def test_an_automatic_and_a_manual_compaction_are_told_apart_by_what_passed_before() -> None:
    first, second = compaction_records(source("auto_manual").read())
    assert (first.line, second.line) == (38, 41)
    assert first.reason_evidence == "unknown"
    assert second.trigger is Trigger.MANUAL
    assert second.reason_evidence == "inferred from two signals"
    assert first.tokens_before is not None
    assert (first.tokens_before.value, first.tokens_before.basis) == (22404, Basis.REPORTED)
    counts = [
        (c.items.before, c.items.removed, c.items.inserted) for c in (first, second) if c.items
    ]
    assert counts == [(50, 42, 1), (11, 1, 1)]
    assert first.evidence == "recorded"
    assert first.summary is not None
    assert "**Turn Context (split turn):**" in first.summary
    assert first.tokens_after is None


def test_a_compaction_after_a_refused_request_is_an_overflow_and_pi_asks_again() -> None:
    records = list(source("overflow").read())
    (report,) = compaction_records(records)
    assert report.trigger is Trigger.OVERFLOW
    (overflow,) = events(records, e.ContextOverflowed)
    assert (overflow.used, overflow.limit) == (24310, 24000)
    assert [each.model for each in events(records, e.ModelChanged)] == ["large"]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("prompt is too long: 212846 tokens > 200000 maximum", (212846, 200000)),
        (
            (
                "400 This model's maximum context length is 8,192 tokens. However, you requested "
                "9,001 tokens"
            ),
            (9001, 8192),
        ),
        ("Your input exceeds the context window of this model", (None, None)),
        ("The input token count exceeds the maximum number of tokens allowed", (None, None)),
        ("429 rate limit: the request is too large for your tokens per minute", None),
        ("529 overloaded", None),
        ("fetch failed", None),
    ],
)
def test_an_error_is_an_overflow_by_its_words(
    message: str, told: tuple[int | None, int | None] | None
) -> None:
    assert overflow_of(message) == told


def test_going_to_another_branch_takes_back_and_brings_back() -> None:
    records = list(source("branches").read())
    left, back = events(records, e.HistoryRolledBack)
    assert (left.turns, left.inserted) == (2, 0)
    assert back.removed
    assert back.inserted
    assert back.undone == (1,)
    state = state_at(records)
    texts = [item.text for item in state.context.items if isinstance(item, Message)]
    assert "Now fix it with plan A." in texts
    assert "Fix it with plan B instead." not in texts
    (grew,) = compaction_records(records)
    assert grew.items is not None
    assert (grew.items.removed, grew.items.inserted) == (0, 1)
    assert "nothing left: the context grew by the summary" in grew.marks


def test_a_summary_speaks_for_what_left_and_a_branch_summary_is_one_too() -> None:
    state = state_at(source("auto_manual").read())
    card = state.cards[0]
    assert {state.fate(id).summary for id in card.removed_ids} == {card.inserted_ids[0]}
    shown = context_at(source("branches").read(), 15)
    assert isinstance(shown.items[-1], CompactionSummary)
    assert "came back from" in shown.items[-1].text


def test_files_of_version_1_have_no_ids_and_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    entries = [
        {"type": "session", "id": "s", "timestamp": "", "cwd": "/p"},
        {"type": "message", "message": {"role": "user", "content": "one"}},
        {"type": "message", "message": {"role": "user", "content": "two"}},
        {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 9},
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    assert [item.text for item in context_at(PiSource(path).read()).items][-1] == "two"
    assert len(PiSource(path).context_raw()) == 2


def test_commands_extension_texts_pictures_and_open_calls_are_sent_as_pi_sends_them(
    tmp_path: Path,
) -> None:
    command = {"role": "bashExecution", "command": "ls", "output": "a\n", "exitCode": 2}
    hidden = {**command, "excludeFromContext": True}
    call = {"type": "toolCall", "id": "c|1", "name": "read", "arguments": {"p": 1}}
    thought = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "reasoning"}
    answer = {"role": "assistant", "content": [thought, call], "api": "openai-responses",
              "provider": "p", "model": "a", "stopReason": "toolUse"}  # fmt: skip
    picture = {"type": "image", "mimeType": "image/png", "data": "AA=="}
    last = {**answer, "content": [], "model": "b", "api": "openai-completions"}
    found = written(
        tmp_path / "own.jsonl",
        {"type": "message", "id": "1", "parentId": None, "message": command},
        {"type": "message", "id": "2", "parentId": "1", "message": hidden},
        {"type": "custom_message", "id": "3", "parentId": "2", "content": [picture]},
        {"type": "message", "id": "4", "parentId": "3", "message": answer},
        said("5", "4", "and?"),
        {"type": "message", "id": "6", "parentId": "5", "message": last},
    )
    request = list(found.requests())[-1]
    told = "Ran `ls`\n```\na\n\n```\n\nCommand exited with code 2"
    function = {"name": "read", "arguments": '{"p":1}'}
    assert request.input == [
        {"role": "user", "content": [{"type": "text", "text": told}]},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
        },
        {
            "role": "assistant",
            "content": "Hm.",
            "tool_calls": [{"id": "c", "type": "function", "function": function}],
        },
        {"role": "tool", "content": "No result provided", "tool_call_id": "c"},
        {"role": "user", "content": [{"type": "text", "text": "and?"}]},
    ]
    state = state_at(found.read())
    hidden_ids = [id for id in state.known if state.fate(id).outside]
    assert [state.known[id].item.text[:8] for id in hidden_ids] == ["Ran `ls`"]


def test_a_missing_parent_is_told_and_nothing_after_it_is_lost(tmp_path: Path) -> None:
    found = written(tmp_path / "gap.jsonl", said("1", None, "one"), said("9", "8", "nine"))
    state = state_at(found.read())
    assert [item.text for item in state.context.items] == ["one", "nine"]
    (problem,) = state.problems
    assert problem.line == 2
    assert "parent is not in the file" in problem.message


async def test_a_followed_session_gives_the_same_records_however_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "grows.jsonl"
    whole = b"".join(lines("branches"))
    path.write_bytes(b"")
    tail, found = PiTail(path), list[e.Record]()
    for end in (1, 1000, 1001, len(whole) // 2, len(whole)):
        path.write_bytes(whole[:end])
        found += tail.more()
    found += tail.more()
    # What is asked for early is told before the model is known, so the heads may differ.
    assert [each for each in found if each.n > 10] == [
        each for each in source("branches").read() if each.n > 10
    ]
    assert state_at(found).context == state_at(source("branches").read()).context


def test_sessions_are_found_in_their_default_place_and_where_a_variable_says(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / ".pi" / "agent" / "sessions" / "--home-user-project--"
    folder.mkdir(parents=True)
    (folder / "2026-11-30T06-35-07-194Z_01a2.jsonl").write_bytes(b"".join(lines("auto_manual")))
    (folder / "notes.jsonl").write_text('{"type":"x"}\n')
    by_id = {each.id: each for each in FINDER.sessions()}
    (found,) = [each for each in by_id.values() if not each.problem]
    assert (found.agent, found.cwd, found.model) == ("pi", "/home/user/project", "small")
    assert (found.title, found.compactions) == ("Read log 1 and say what failed.", 2)
    assert len(by_id) == 2
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "t_1.jsonl").write_bytes(b"".join(lines("overflow")))
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(elsewhere))
    assert [path.name for path in FINDER.files(None)] == ["t_1.jsonl"]
