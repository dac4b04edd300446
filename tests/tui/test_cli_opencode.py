from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thresher.tui.opening import open_file

from ..command_line import CODEX, codex_session, run
from ..core.sources.opencode_rig import FIXTURES, database

Capture = pytest.CaptureFixture[str]


def log(name: str, folder: Path) -> Path:
    path = folder / f"{name}.requests.jsonl"
    path.write_bytes(gzip.decompress((FIXTURES / name / "requests.jsonl.gz").read_bytes()))
    return path


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path, other = (database(name, tmp_path) for name in ("v1-prune", "v2-two-summaries"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("ATTACH ? AS other", (str(other),))
        for table in ("session", "session_message", "event_sequence", "event"):
            db.execute(f"INSERT INTO {table} SELECT * FROM other.{table}")
        db.commit()
    return path


def ids(path: Path) -> tuple[str, str]:
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT id FROM session ORDER BY title").fetchall()
    return found[0][0], found[1][0]


def test_the_newest_session_is_taken_and_the_others_are_named(two: Path, capsys: Capture) -> None:
    pruned, summarised = ids(two)
    ran = run(capsys, "compactions", two, "--json")
    assert [each["policy"] for each in ran.records] == ["opencode-v2", "opencode-v2"]
    assert f"holds 2 sessions, and this is {summarised}" in ran.sentence
    assert pruned in ran.sentence


@pytest.mark.parametrize("command", ["compactions", "context", "requests"])
def test_a_session_is_chosen_by_its_id(two: Path, command: str, capsys: Capture) -> None:
    pruned, _ = ids(two)
    asked = run(capsys, command, two, "--session", pruned, "--json")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out == run(capsys, command, two / pruned, "--json").out


@pytest.mark.parametrize("command", ["compactions", "context", "requests", "open"])
def test_a_session_that_is_not_there_is_told(two: Path, command: str, capsys: Capture) -> None:
    ran = run(capsys, command, two, "--session", "ses_none")
    assert ran.code == 2
    assert "is no session of" in ran.sentence
    assert all(id in ran.sentence for id in ids(two))


def test_a_file_of_one_session_has_none_to_choose(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "compactions", codex_session(tmp_path), "--session", "x")
    assert (ran.code, "leave --session out" in ran.sentence) == (2, True)


def test_requests_are_lines_with_position_kind_and_input(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "requests", database("v1-overflow-recovered", tmp_path), "--json")
    kinds = [each["kind"] for each in ran.records]
    assert kinds.count("compaction") == 1
    assert all(each["input"] and each["position"] >= 0 for each in ran.records)


def test_what_is_only_rewritten_tells_no_change_of_numbers(tmp_path: Path, capsys: Capture) -> None:
    ran = run(capsys, "compactions", database("v1-prune", tmp_path))
    told = " ".join(ran.out.split())
    assert "items 27 (23 kept, 4 rewritten)" in told
    assert "still 24 messages" in told


def test_sessions_of_opencode_are_listed_and_opened_by_id(
    two: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENCODE_DB", str(two))
    pruned, summarised = ids(two)
    listed = {each["id"]: each for each in run(capsys, "sessions", "--json").records}
    assert {pruned, summarised} <= set(listed)
    assert listed[summarised]["compactions"] == 2
    assert listed[summarised]["agent"] == "opencode"
    assert run(capsys, "compactions", summarised, "--json").records
    assert run(capsys, "compactions", "latest:opencode", "--json").code == 0


def test_a_server_is_only_for_opencode_and_only_on_this_machine(
    two: Path, tmp_path: Path, capsys: Capture
) -> None:
    pruned, _ = ids(two)
    codex = run(capsys, "open", codex_session(tmp_path), "--server", "127.0.0.1:4096")
    assert (codex.code, "only OpenCode's have a server" in codex.sentence) == (2, True)
    far = run(capsys, "open", two / pruned, "--server", "http://192.0.2.1:4096")
    assert (far.code, "--remote" in far.sentence) == (2, True)


# -- verify ------------------------------------------------------------------------------------


def test_a_capture_of_opencode_is_rebuilt_exactly(tmp_path: Path, capsys: Capture) -> None:
    path, sent = database("v2-never-compacts", tmp_path), log("v2-never-compacts", tmp_path)
    ran = run(capsys, "verify", path, "--requests", sent)
    assert ran.code == 0
    assert "exact: of 2 logged requests 2 exact, 0 in structure, 0 different" in ran.out


def test_the_residue_of_a_summary_request_is_told(tmp_path: Path, capsys: Capture) -> None:
    path, sent = database("v1-two-summaries", tmp_path), log("v1-two-summaries", tmp_path)
    ran = run(capsys, "verify", path, "--requests", sent, "--json")
    (verdict,) = ran.records
    assert (ran.code, verdict["grade"]) == (0, "structure")
    assert (verdict["exact"], verdict["structure"], verdict["differs"]) == (7, 2, 0)


def test_a_capture_of_codex_is_verified_too(tmp_path: Path, capsys: Capture) -> None:
    sent = CODEX / "pre_turn_twice.requests.jsonl.gz"
    ran = run(capsys, "verify", codex_session(tmp_path, "pre_turn_twice"), "--requests", sent)
    assert ran.code == 0
    assert "0 different" in ran.out


def test_a_request_that_differs_is_exit_code_1(tmp_path: Path, capsys: Capture) -> None:
    path, sent = database("v2-never-compacts", tmp_path), log("v2-never-compacts", tmp_path)
    rows = [json.loads(line) for line in sent.read_text().splitlines()]
    rows[1]["request"]["messages"].pop(3)
    sent.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = run(capsys, "verify", path, "--requests", sent)
    assert ran.code == 1
    assert "differs: of 2 logged requests 1 exact" in ran.out


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"", "holds no request"), (b"hello\n", "holds no request")],
)
def test_a_log_that_is_none_is_told(
    content: bytes | None, words: str, tmp_path: Path, capsys: Capture
) -> None:
    sent = tmp_path / "sent.jsonl"
    if content is not None:
        sent.write_bytes(content)
    ran = run(capsys, "verify", codex_session(tmp_path), "--requests", sent)
    assert (ran.code, words in ran.sentence) == (2, True)


# -- bad input ---------------------------------------------------------------------------------


def test_a_database_of_another_program_and_a_cut_one_are_told(
    tmp_path: Path, capsys: Capture
) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE things (id)")
        db.commit()
    ran = run(capsys, "compactions", other)
    assert (ran.code, "not OpenCode's" in ran.sentence) == (2, True)
    cut = tmp_path / "cut.db"
    cut.write_bytes(database("v1-prune", tmp_path).read_bytes()[:9000])
    ran = run(capsys, "compactions", cut)
    assert (ran.code, "cannot be read as an OpenCode database" in ran.sentence) == (2, True)


async def test_one_of_several_sessions_is_shown_in_the_console(two: Path) -> None:
    pruned, _ = ids(two)
    opened = await open_file(two / pruned, count=False)
    state = opened.model.history.state
    assert (state.session_id, state.compactions, state.agent) == (pruned, 1, "opencode")
    assert opened.title == "Log error rates"
