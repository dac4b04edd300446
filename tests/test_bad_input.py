"""Every kind of bad input that a user can come with, through the command line as a user would."""

from __future__ import annotations

import gzip
import json
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.items import assistant, user
from thresher.core.paths import sessions_dir, state_dir
from thresher.core.sessions.catalog import find, sessions
from thresher.core.sessions.session import Session

from .command_line import CODEX, Ran, codex_session, run, run_apart
from .loopback import Call, Fail, Hang, Reply, in_thread

Capture = pytest.CaptureFixture[str]


def refused(ran: Ran, title: str, *words: str) -> None:
    """Exit code 2, nothing on standard output, and one sentence that says what and where."""
    assert ran.code == 2, ran
    assert ran.out == ""
    assert ran.sentence.startswith(f"{title}: ")
    assert all(word in ran.sentence for word in words), ran.sentence


# -- files that are no session -----------------------------------------------------------------

COMMANDS = [["compactions"], ["context"], ["requests", "--json"], ["open"]]


def missing(folder: Path) -> Path:
    return folder / "missing.jsonl"


def below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("x")
    return folder / "file" / "session.jsonl"


def a_loop(folder: Path) -> Path:
    (folder / "loop.jsonl").symlink_to(folder / "loop.jsonl")
    return folder / "loop.jsonl"


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.jsonl")
    return folder / "pipe.jsonl"


def a_directory(folder: Path) -> Path:
    (folder / "folder").mkdir()
    return folder / "folder"


def empty(folder: Path) -> Path:
    (folder / "empty.jsonl").touch()
    return folder / "empty.jsonl"


def blanks(folder: Path) -> Path:
    (folder / "blanks.jsonl").write_bytes(b"\n \x00\x00\n")
    return folder / "blanks.jsonl"


def prose(folder: Path) -> Path:
    (folder / "notes.md").write_text("# Notes\n\nNothing in here is a session.\n")
    return folder / "notes.md"


def other_json(folder: Path) -> Path:
    (folder / "other.jsonl").write_text('{"type":"message","text":"hi"}\n' * 3)
    return folder / "other.jsonl"


def noise(folder: Path) -> Path:
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 64)
    return folder / "noise.bin"


def cut_gzip(folder: Path) -> Path:
    (folder / "cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03cut")
    return folder / "cut.jsonl.gz"


NO_SESSIONS: list[tuple[Callable[[Path], Path], str]] = [
    (missing, "No such file"),
    (below_a_file, "Unreadable file"),
    (a_loop, "Unreadable file"),
    (a_pipe, "Unreadable file"),
    (a_directory, "Not a file"),
    (empty, "Empty file"),
    (blanks, "Empty file"),
    (prose, "Unknown format"),
    (other_json, "Unknown format"),
    (noise, "Unknown format"),
    (cut_gzip, "Unreadable file"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("make", "title"), NO_SESSIONS, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_file_that_is_no_session_is_refused(
    make: Callable[[Path], Path], title: str, command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    path = make(tmp_path)
    refused(run(capsys, *command, path), title, str(path))


@pytest.mark.parametrize(
    ("make", "title"), NO_SESSIONS, ids=lambda each: getattr(each, "__name__", "")
)
def test_nothing_but_a_session_of_ours_can_be_resumed(
    make: Callable[[Path], Path], title: str, tmp_path: Path, capsys: Capture
) -> None:
    ran = run(capsys, "resume", make(tmp_path), "go on", "--headless")
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_codex_session_is_not_resumed_and_not_changed(tmp_path: Path, capsys: Capture) -> None:
    path = codex_session(tmp_path)
    before = path.read_bytes()
    ran = run(capsys, "resume", path, "go on", "--headless", "--wire", "offline")
    assert ran.code == 2
    assert ran.sentence.startswith("Not a session: ")
    assert path.read_bytes() == before


# -- bad lines: the rest still loads, and each is named ----------------------------------------

HUGE = 20_000_000

BAD_LINES: list[tuple[str, bytes, str]] = [
    ("a number", b"42", "a bare number"),
    ("an array", b"[1, 2]", "an array"),
    ("null", b"null", "null"),
    ("a text", b'"hello"', "a bare text"),
    ("not JSON", b'{"type": oops}', "not valid JSON"),
    ("invalid UTF-8", b'{"type": "\xff\xfe', "UTF-8"),
    ("NUL bytes", b"\x00" * 4096, "NUL"),
    ("NUL bytes in a line", b'\x00\x00{"type":', "NUL"),
    ("deep nesting", b"[" * 100_000, "JSON"),
    ("20 MB", b'{"huge": "' + b"x" * HUGE + b'" oops', "not valid JSON"),
]


@pytest.mark.parametrize(
    ("line", "told"), [each[1:] for each in BAD_LINES], ids=[each[0] for each in BAD_LINES]
)
def test_a_bad_line_of_a_codex_session_is_named_and_the_rest_loads(
    line: bytes, told: str, tmp_path: Path, capsys: Capture
) -> None:
    path = codex_session(tmp_path)
    whole = run(capsys, "compactions", path, "--json").records
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:50], line + b"\n", *lines[50:]]))
    ran = run(capsys, "compactions", path, "--json")
    assert ran.code == 0
    assert ran.records == whole
    assert ran.sentence.startswith("line #50: ")
    assert told in ran.sentence
    assert len(ran.sentence) < 500


OTHER_RECORDINGS = {
    "pi": "pi/auto_manual.jsonl.gz",
    "maf": "maf/history.jsonl.gz",
    "otlp": "otlp/python.jsonl.gz",
}


def recorded(agent: str, folder: Path) -> Path:
    path = folder / f"{agent}.jsonl"
    path.write_bytes(gzip.decompress((CODEX.parent / OTHER_RECORDINGS[agent]).read_bytes()))
    return path


@pytest.mark.parametrize("agent", OTHER_RECORDINGS)
@pytest.mark.parametrize(
    ("line", "told"), [each[1:] for each in BAD_LINES], ids=[each[0] for each in BAD_LINES]
)
def test_a_bad_line_of_another_agents_session_is_named_and_the_rest_loads(
    line: bytes, told: str, agent: str, tmp_path: Path, capsys: Capture
) -> None:
    path = recorded(agent, tmp_path)
    whole = run(capsys, "compactions", path, "--json").records
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], line + b"\n", *lines[5:]]))
    ran = run(capsys, "compactions", path, "--json")
    assert ran.code == 0
    assert [each["summary"] for each in ran.records] == [each["summary"] for each in whole]
    assert "line 6 (byte " in ran.sentence
    assert told in ran.sentence
    assert len(ran.sentence) < 500


@pytest.mark.parametrize("agent", OTHER_RECORDINGS)
def test_a_last_line_of_another_agents_session_that_is_cut_is_named_and_nothing_is_written(
    agent: str, tmp_path: Path, capsys: Capture
) -> None:
    path = recorded(agent, tmp_path)
    cut = path.read_bytes()[:-20]
    path.write_bytes(cut)
    path.chmod(0o444)
    ran = run(capsys, "context", path, "--json")
    assert ran.code == 0
    assert "the last line is cut" in ran.sentence
    assert path.read_bytes() == cut
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "line", [each[1] for each in BAD_LINES], ids=[each[0] for each in BAD_LINES]
)
def test_a_bad_line_of_our_own_journal_is_named_and_the_rest_loads(
    line: bytes, capsys: Capture
) -> None:
    path = journal("hello", "world")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], line + b"\n", *lines[2:]]))
    ran = run(capsys, "context", path, "--json")
    assert ran.code == 0
    texts = [entry["item"]["content"] for entry in ran.records[0]["entries"]]
    assert texts == ["hello", "world"]
    assert ran.sentence.startswith("line #2: ")
    assert len(ran.sentence) < 500


def test_a_huge_line_that_is_good_is_shown_in_part(capsys: Capture) -> None:
    ran = run(capsys, "context", journal("x" * HUGE))
    assert ran.code == 0
    assert len(ran.out) < 2_000


@pytest.mark.parametrize("make", ["codex", "own"])
def test_a_last_line_that_is_cut_is_named_and_the_rest_loads(
    make: str, tmp_path: Path, capsys: Capture
) -> None:
    path = codex_session(tmp_path) if make == "codex" else journal("hello", "world")
    whole = path.read_bytes()
    lines = whole.count(b"\n")
    path.write_bytes(whole[:-20])
    ran = run(capsys, "context", path, "--json")
    assert ran.code == 0
    assert ran.records[0]["entries"]
    assert ran.sentence.startswith(f"line #{lines - 1}: ")
    assert path.read_bytes() == whole[:-20]


@pytest.mark.parametrize("make", ["codex", "own"])
def test_a_record_of_an_unknown_type_is_counted_and_named(
    make: str, tmp_path: Path, capsys: Capture
) -> None:
    if make == "codex":
        path = codex_session(tmp_path)
        record = {"timestamp": "2026-11-30T04:11:34.000Z", "type": "hologram", "payload": {}}
    else:
        path = journal("hello")
        record = {"n": 50, "at": 0.0, "event": {"event": "hologram", "more": 1}}
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")
    ran = run(capsys, "context", path, "--json")
    assert ran.code == 0
    assert ran.records[0]["entries"]
    assert ran.sentence == "1 record of unknown types: hologram (1)"


def test_a_compaction_that_does_not_fit_is_told_and_the_rest_loads(capsys: Capture) -> None:
    from thresher.core.compaction.policy import Trigger
    from thresher.core.context import Kept

    started = e.SessionStarted(session_id="s-1", agent="thresher")
    with Session.create(sessions_dir(), started) as session:
        session.emit(e.ItemAppended(item=user("hello")))
        session.emit(
            e.HistoryCompacted(
                ordinal=1, pass_id="p", policy="x", stage="y", moment=None, trigger=Trigger.AUTO,
                reason="", segments=(Kept("77", "99"),), items_before=3, items_after=1, kept=1,
                removed=2, replaced=0, inserted=0,
            )
        )  # fmt: skip
        session.emit(e.ItemAppended(item=assistant("still here")))
    ran = run(capsys, "context", "s-1", "--json")
    assert ran.code == 0
    assert len(ran.records[0]["entries"]) == 2
    assert ran.sentence.startswith("line #2: compaction 1 does not fit the context")


# -- models, windows, keys, endpoints ----------------------------------------------------------


def ask(capsys: Capture, base_url: str, *flags: str) -> Ran:
    return run(capsys, "run", "Hello", "--json", "--model", "no-such-model",
               "--base-url", base_url, *flags)  # fmt: skip


def told_in(ran: Ran, kind: str) -> str:
    events = [record["event"] for record in ran.records]
    texts = [each for each in events if each["event"] == kind]
    return " ".join(each.get("message", each.get("text", "")) for each in texts)


def test_an_unknown_model_works_with_its_window_unknown(capsys: Capture) -> None:
    with in_thread([Reply("Hello.")]) as server:
        ran = ask(capsys, server.base_url)
    assert ran.code == 0
    budget = ran.records[0]["event"]["budget"]
    assert budget["window"]["value"] is None
    assert "no model 'no-such-model'" in budget["window"]["source"]
    note = told_in(ran, "note")
    assert "The context window is unknown" in note
    assert "Set the window for this model" in note


def test_a_window_too_small_for_the_system_prompt_is_told(capsys: Capture) -> None:
    with in_thread([], window=50) as server:
        ran = ask(capsys, server.base_url, "--window", "50")
    assert ran.code == 1
    assert "no compaction can make a request fit" in told_in(ran, "note")
    assert "still too long for the model" in told_in(ran, "turn_finished")


def test_a_wrong_key_is_told_at_once_without_showing_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
    with in_thread([], key="right") as server:
        ran = ask(capsys, server.base_url)
        asked = len(server.model_requests)
    assert (ran.code, asked) == (1, 1)
    ended = told_in(ran, "turn_finished")
    assert "OPENAI_API_KEY" in ended
    assert "sk-wrong-key" not in ran.out + ran.err


def test_no_key_for_a_server_elsewhere_is_told_before_anything_is_sent(capsys: Capture) -> None:
    ran = run(capsys, "run", "Hello", "--headless", "--model", "m")
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith("No API key: ")
    assert sessions(sessions_dir()) == []


def test_an_endpoint_that_is_down_is_told_and_the_session_can_be_resumed(capsys: Capture) -> None:
    with in_thread([]) as server:
        gone = server.base_url
    ran = ask(capsys, gone)
    assert ran.code == 1
    assert "cannot be reached" in told_in(ran, "turn_finished")
    assert gone in told_in(ran, "turn_finished")
    with in_thread([Reply("Hello again.")]) as server:
        again = run(capsys, "resume", "latest", "Now?", "--headless", "--base-url", server.base_url)
    assert again.code == 0


@pytest.mark.parametrize("url", ["nonsense", "ftp://host/v1", "http://", "http://[::1/v1"])
def test_an_address_that_cannot_be_one_is_refused(url: str, capsys: Capture) -> None:
    ran = ask(capsys, url)
    assert ran.code == 2
    assert url in ran.err


def test_an_answer_that_is_no_answer_is_told(capsys: Capture) -> None:
    page = Fail(502, "<html>Bad gateway</html>")
    with in_thread([page] * 9) as server:
        ran = ask(capsys, server.base_url)
    assert ran.code == 1
    assert "502" in told_in(ran, "turn_finished")


# -- disks -------------------------------------------------------------------------------------


def test_a_state_folder_that_cannot_be_used_is_refused(home: Path, capsys: Capture) -> None:
    (home / "state").write_text("in the way")
    for command in (
        ["run", "Hello", "--headless", "--wire", "offline", "--yes"], ["demo", "--headless"]
    ):  # fmt: skip
        refused(run(capsys, *command), "Folder not available", str(home / "state"))
    assert run(capsys, "sessions").code == 0
    assert run(capsys, "doctor").code == 1


def test_a_read_only_state_folder_is_refused(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # /proc refuses to be written even by root, for whom permissions mean nothing.
    monkeypatch.setenv("THRESHER_STATE_DIR", "/proc/thresher")
    refused(run(capsys, "demo", "--headless"), "Folder not available", "/proc/thresher")


def limit_files(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_ends_the_work_and_loses_nothing_that_was_recorded(capsys: Capture) -> None:
    ran = run_apart("run", "Look around", "--json", "--wire", "offline", "--yes",
                    before=limit_files(6_000))  # fmt: skip
    assert ran.code == 2
    last = ran.err.splitlines()[-1]
    assert "Traceback" not in ran.err
    assert "cannot write" in last
    assert "Raise the limit" in last
    path = find("latest", sessions_dir())
    kept = path.read_text()
    assert kept == ran.out
    again = run(capsys, "resume", path, "Go on", "--headless", "--wire", "offline")
    assert again.code == 0
    assert path.read_text().startswith(kept)


def test_a_full_disk_at_the_start_is_told(capsys: Capture) -> None:
    ran = run_apart("run", "Hi", "--headless", "--wire", "offline", before=limit_files(10))
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert sessions(sessions_dir()) == []


def test_a_full_disk_on_the_way_out_is_told() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    import subprocess

    from .command_line import environment, program

    with full.open("w") as out:
        ended = subprocess.run(
            program("models"), env=environment(), stdout=out, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("Output not written: ")
    assert len(ended.stderr.splitlines()) == 1


# -- two programs on one session ---------------------------------------------------------------


@pytest.fixture
def open_session() -> Iterator[Session]:
    with Session.create(
        sessions_dir(), e.SessionStarted(session_id="s-1", agent="thresher", wire="offline")
    ) as session:
        session.emit(e.ItemAppended(item=user("hello")))
        yield session


def test_a_second_program_may_look_but_not_write(open_session: Session) -> None:
    before = open_session.path.read_bytes()
    refused(
        run_apart("resume", "s-1", "go on", "--headless", "--yes"),
        "Session in use",
        str(open_session.folder),
    )
    looked = run_apart("context", "s-1", "--json")
    assert looked.code == 0
    assert len(looked.records[0]["entries"]) == 1
    (listed,) = run_apart("sessions", "--json").records
    assert listed["running"]
    assert open_session.path.read_bytes() == before
    open_session.emit(e.ItemAppended(item=assistant("still writing")))


def journal(*texts: str) -> Path:
    """A finished session of ours that holds these messages of the user."""
    started = e.SessionStarted(session_id="", agent="thresher", model="m", wire="chat")
    with Session.create(sessions_dir(), started) as session:
        for text in texts:
            session.emit(e.ItemAppended(item=user(text)))
    return session.path


def test_the_crash_file_finds_another_place_when_there_is_no_state_folder(
    home: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    from thresher.tui.cli import listing

    def broken() -> None:
        raise RuntimeError("broken")

    state_dir().write_text("in the way")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(listing, "own_sessions", broken)
    ran = run(capsys, "sessions")
    assert ran.code == 1
    (story,) = tmp_path.glob("crash-*.txt")
    assert str(story) in ran.sentence


def test_an_interrupt_leaves_a_session_that_can_go_on(capsys: Capture, tmp_path: Path) -> None:
    import signal
    import subprocess

    from .command_line import environment, program

    with in_thread([Reply("", calls=(Call("glob", {"pattern": "*"}),)), Hang()]) as server:
        going = subprocess.Popen(
            program("run", "Hello", "--json", "--model", "m", "--base-url", server.base_url),
            env=environment(),
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert going.stdout is not None
        seen = ""
        while seen.count('"event":"request_sent"') < 2:
            seen += going.stdout.readline()
        going.send_signal(signal.SIGINT)
        rest, err = going.communicate(timeout=30)
    assert going.returncode == 130, err
    assert "Traceback" not in err
    assert '"outcome":"interrupted"' in rest
    assert '"event":"session_finished"' in rest
    (listed,) = sessions(sessions_dir())
    assert not listed.problem
