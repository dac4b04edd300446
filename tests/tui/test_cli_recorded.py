from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.digest import wire_digests
from thresher.core.items import (
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    Role,
    TextPart,
    assistant,
    system,
    user,
)
from thresher.core.paths import sessions_dir
from thresher.core.sessions.requests import wire_form
from thresher.core.sessions.session import Session

from ..command_line import CODEX, codex_session, run

Capture = pytest.CaptureFixture[str]

ITEMS: tuple[Item, ...] = (
    system("Be brief."),
    user("数一数 the lines of\nevery file"),
    FunctionCall("c1", "grep", '{"pattern":"."}'),
    FunctionCallOutput("c1", "a.py:1:x\x1b[2J\nb.py:2:y", name="grep"),
    assistant("Two."),
)


@pytest.fixture
def record() -> Callable[..., Session]:
    def recorded(id: str, *items: Item, wire: str = "chat", agent: str = "thresher") -> Session:
        started = e.SessionStarted(session_id=id, agent=agent, model="m", wire=wire, policy="p")
        with Session.create(sessions_dir(), started) as session:
            for item in items:
                session.emit(e.ItemAppended(item=item))
            messages = wire_form(session.state.context.items, wire)
            digests, digest = wire_digests(messages)
            session.emit(e.RequestSent(request=1, digests=digests, digest=digest))
        return session

    return recorded


# -- the commands over Codex's sessions --------------------------------------------------------


def test_each_compaction_is_one_json_line(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "compactions", codex_session(tmp_path), "--json")
    assert (ran.code, ran.err) == (0, "")
    assert [each["ordinal"] for each in ran.records] == [1, 2]
    first = ran.records[0]
    assert first["summary"].startswith("Summary 1:")
    assert first["items"] == {
        "before": 7, "after": 4, "kept": 1, "removed": 6, "replaced": 0, "inserted": 3,
    }  # fmt: skip
    assert first["tokens_before"] == {"value": 5414, "basis": "estimated", "scope": "request"}


def test_a_packed_session_is_read_as_it_is(capsys: Capture) -> None:
    ran = run(capsys, "compactions", CODEX / "two_mid_turn.jsonl.gz", "--json")
    assert len(ran.records) == 2


def test_compactions_are_told_for_people(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "compactions", codex_session(tmp_path))
    assert ran.code == 0
    assert "items       7 → 4  (1 kept, 6 removed, 3 inserted)" in ran.out
    assert "summary     Summary 1:" in ran.out
    assert "2 compactions in 69 lines" in ran.out


def test_compactions_that_failed_are_counted_and_told_on_request(
    tmp_path: Path, capsys: Capture
) -> None:
    path = codex_session(tmp_path, "compact_overflow_all")
    assert "No compaction in " in run(capsys, "compactions", path).out
    assert run(capsys, "compactions", path, "--json").records == []
    failed = run(capsys, "compactions", path, "--json", "--all").records
    assert failed
    assert {each["outcome"] for each in failed} == {"failed"}
    assert " failed " in run(capsys, "compactions", path, "--all").out


def test_the_context_at_a_line_is_what_the_model_saw_there(tmp_path: Path, capsys: Capture) -> None:
    path = codex_session(tmp_path)
    (before,) = run(capsys, "context", path, "--at", "22", "--json").records
    (after,) = run(capsys, "context", path, "--at", "#23", "--json").records
    assert [entry["id"] for entry in before["entries"]] == [
        "#2", "#3", "#7", "#9", "#12", "#14", "#17",
    ]  # fmt: skip
    assert before["tokens"]["scope"] == "messages"
    assert [entry["made_by"] for entry in after["entries"]] == [1, 1, 0, 1]
    told = run(capsys, "context", path, "--at", "22").out
    assert told.startswith("After line #22: 7 entries, ~")


@pytest.mark.parametrize("at", ["-1", "69", "1000000", "x", "1.5"])
def test_a_line_that_is_not_in_the_session_is_refused(
    at: str, tmp_path: Path, capsys: Capture
) -> None:
    ran = run(capsys, "context", codex_session(tmp_path), f"--at={at}")
    assert ran.code == 2
    assert ran.sentence.startswith("No such place: ")


def test_requests_are_those_that_were_really_sent(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "requests", codex_session(tmp_path), "--json")
    log = gzip.decompress((CODEX / "two_mid_turn.requests.jsonl.gz").read_bytes())
    recorded = [json.loads(line) for line in log.splitlines()]
    rebuilt = ran.records
    assert {"position", "kind", "input"} <= rebuilt[0].keys()
    turns = [each["input"] for each in recorded if each["kind"] == "turn" and "input" in each]
    assert turns
    assert all(input in [each["input"] for each in rebuilt] for input in turns)


def test_the_raw_context_is_in_the_agents_own_form(tmp_path: Path, capsys: Capture) -> None:
    (raw,) = run(capsys, "context", codex_session(tmp_path), "--at", "22", "--raw").records
    assert [item["type"] for item in raw] == [
        "message", "message", "message", "function_call", "function_call_output",
        "function_call", "function_call_output", "message",
    ]  # fmt: skip


def test_requests_are_listed_for_people(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "requests", codex_session(tmp_path))
    assert "missing: the compaction prompt" in ran.out
    assert ran.out.endswith("9 requests can be rebuilt. --json prints them.\n")


# -- and over our own --------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["chat", "responses", "offline"])
def test_our_own_requests_are_rebuilt_and_held_against_their_digests(
    wire: str, record: Callable[..., Session], capsys: Capture
) -> None:
    session = record("s-1", *ITEMS, wire=wire)
    (request,) = run(capsys, "requests", "s-1", "--json").records
    assert (request["position"], request["kind"]) == (6, "turn")
    assert "missing" not in request
    assert request["input"] == wire_form(session.state.context.items, wire)
    (raw,) = run(capsys, "context", "s-1", "--raw").records
    assert raw == request["input"]


def test_a_request_that_was_another_one_says_so(capsys: Capture) -> None:
    started = e.SessionStarted(session_id="s-1", agent="thresher", wire="chat")
    with Session.create(sessions_dir(), started) as session:
        session.emit(e.ItemAppended(item=user("hello")))
        session.emit(e.RequestSent(request=1, digests=("000000000000",)))
    (request,) = run(capsys, "requests", "s-1", "--json").records
    assert request["missing"].startswith("0 of the 1 messages that went out are rebuilt exactly")


def test_hostile_text_reaches_no_terminal(
    hostile_text: str, record: Callable[..., Session], capsys: Capture
) -> None:
    record("s-1", user(hostile_text), assistant(f"x{hostile_text}"))
    forbidden = {"\x1b", "\x9b", "\u202e", "\u2066", "\x07", "\x00", "\x7f"}
    for command in (
        ["sessions"], ["context", "s-1"], ["context", "s-1", "--json"], ["sessions", "--json"],
        ["context", "s-1", "--raw"], ["compactions", "s-1"], ["requests", "s-1", "--json"],
    ):  # fmt: skip
        ran = run(capsys, *command)
        assert ran.code == 0, ran.err
        assert not forbidden & set(ran.out), command


def test_json_keeps_hostile_text_as_it_is(record: Callable[..., Session], capsys: Capture) -> None:
    text = "a\x1b[2J\u202eb\x9b\U000e0041c\x7f 中文"
    record("s-1", user(text))
    (context,) = run(capsys, "context", "s-1", "--json").records
    assert context["entries"][0]["item"]["content"] == text


def test_chinese_columns_stay_aligned(
    record: Callable[..., Session], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", "60")
    record("s-1", user("统计每个文件的行数" * 20), assistant("x" * 200))
    lines = run(capsys, "context", "s-1").out.splitlines()
    rows = [line for line in lines if line.startswith("#")]
    assert [cell_len(row) for row in rows] == pytest.approx([60, 60], abs=1)


def test_verify_with_the_log_of_another_session_asks_whether_it_is_one_of_this(
    tmp_path: Path, capsys: Capture
) -> None:
    packed = Path(__file__).parents[1] / "fixtures" / "pi" / "overflow.requests.jsonl.gz"
    ran = run(capsys, "verify", codex_session(tmp_path), "--requests", packed)
    assert ran.code == 1
    assert " 0 exact, 0 in structure, " in ran.out
    assert ran.out.endswith("not in the log. Is the log one of this session?\n")


# -- which session is meant --------------------------------------------------------------------


def test_a_session_is_found_by_id_by_its_beginning_by_path_and_as_the_latest(
    record: Callable[..., Session], capsys: Capture
) -> None:
    record("20260101-000000000-aaaaaa", user("old"))
    session = record("20260102-000000000-bbbbbb", *ITEMS)
    for name in (session.id, "20260102", "bbb", session.path, session.folder, "latest",
                 "latest:thresher"):  # fmt: skip
        (found,) = run(capsys, "context", name, "--json").records
        assert found["session_id"] == session.id, name


@pytest.fixture
def codex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "codex-home"
    folder = home / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    name = "rollout-2026-11-30T04-11-33-01a22aa6-a14c-7473-aaad-216c4322fd2a.jsonl"
    codex_session(tmp_path).rename(folder / name)
    monkeypatch.setenv("CODEX_HOME", str(home))
    return home


def test_codex_sessions_are_found_too(codex_home: Path, capsys: Capture) -> None:
    for name in ("latest:codex", "latest", "01a22aa6"):
        assert len(run(capsys, "compactions", name, "--json").records) == 2, name


def test_a_narrow_list_of_sessions_has_their_titles(
    codex_home: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    head, row, *_ = run(capsys, "sessions").out.splitlines()
    assert head.split() == ["id", "agent", "title"]
    assert row.startswith("01a22aa6-a0dc-7")
    assert "Read" in row
    assert max(map(len, (head, row))) <= 40


def test_the_latest_of_another_agent_is_refused_as_such_by_resume(
    codex_home: Path, capsys: Capture
) -> None:
    ran = run(capsys, "resume", "latest:codex")
    assert ran.code == 2
    assert ran.sentence.startswith("Not a session: ")
    assert "rollout-2026-11-30T04-11-33" in ran.sentence


def test_a_beginning_that_sessions_of_two_agents_share_is_told_with_both(
    codex_home: Path, record: Callable[..., Session], capsys: Capture
) -> None:
    record("01a22aa6-own", *ITEMS)
    ran = run(capsys, "compactions", "01a22")
    told = " ".join(ran.sentence.split())
    assert ran.code == 2
    assert told.startswith("Which session: '01a22' is the beginning of 2 sessions")
    assert "01a22aa6-own (thresher)" in told
    assert "01a22aa6-a14c-7473-aaad-216c4322fd2a (codex)" in told
    assert run(capsys, "context", "01a22aa6-own", "--json").records


def test_a_session_is_found_by_its_id_whatever_its_file_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    folder = tmp_path / "pi" / "sessions" / "--w--"
    folder.mkdir(parents=True)
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi"))
    packed = Path(__file__).parents[1] / "fixtures" / "pi" / "auto_manual.jsonl.gz"
    (folder / "kept.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
    (listed,) = run(capsys, "sessions", "--json").records
    assert run(capsys, "compactions", str(listed["id"])[:8], "--json").records


def test_sessions_lists_every_agents_newest_first(
    codex_home: Path, record: Callable[..., Session], capsys: Capture
) -> None:
    record("20260101-000000000-aaaaaa", *ITEMS)
    listed = run(capsys, "sessions", "--json").records
    assert {each["agent"] for each in listed} == {"thresher", "codex"}
    assert [each["last"] for each in listed] == sorted(
        (each["last"] for each in listed), reverse=True
    )
    codex = next(each for each in listed if each["agent"] == "codex")
    assert (codex["compactions"], codex["model"]) == (2, "toy-medium")
    told = run(capsys, "sessions").out
    assert "数一数 the lines of⏎every file" in told
    assert told.endswith("2 sessions. `thresher open ID` shows one.\n")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("latest", "No session"),
        ("latest:codex", "No sessions"),
        ("latest:nobody", "Unknown agent"),
        ("zzz", "No such session"),
        ("", "No file named"),
        ("a\0b", "No such file"),
        pytest.param("x" * 5_000, "No such file", id="long name"),
        pytest.param(f"/{'x' * 5_000}", "No such file", id="long path"),
    ],
)
def test_a_session_that_is_not_there_is_told(name: str, title: str, capsys: Capture) -> None:
    ran = run(capsys, "context", name)
    assert ran.code == 2
    assert ran.sentence.startswith(f"{title}: ")


def test_an_id_that_begins_two_sessions_is_refused(
    record: Callable[..., Session], capsys: Capture
) -> None:
    record("20260101-000000000-aaaaaa", *ITEMS)
    record("20260101-000000000-aaaaab", *ITEMS)
    ran = run(capsys, "context", "20260101")
    assert ran.code == 2
    assert ran.sentence.startswith("Which session: ")


def test_a_message_of_parts_is_shown_by_its_text(
    record: Callable[..., Session], capsys: Capture
) -> None:
    picture = ImagePart("data:image/png;base64,AAAA")
    record("s-1", Message(Role.USER, (TextPart("look at this"), picture)))
    assert "look at this" in run(capsys, "context", "s-1").out
