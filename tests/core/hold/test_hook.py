from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.hold import past, place
from thresher.core.hold.desk import Desk
from thresher.core.hold.programs import CLAUDE_CODE, CODEX
from thresher.core.paths import state_dir

from ...command_line import environment
from .hooks import Waiting, about, run_hook, until

FREE = (0, "", "")


def test_without_a_console_the_program_goes_on_at_once_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    assert run_hook(about(tmp_path / "a.jsonl")).ended() == FREE
    assert not state_dir().exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no JSON object"),
        (b"{", "no JSON object"),
        (b"[1]", "no JSON object"),
        (b"[" * 100_000, "no JSON object"),
        (b"\xff\xfe\x00", "no JSON object"),
        (json.dumps({"hook_event_name": "Stop"}).encode(), "is for PreCompact, not for 'Stop'"),
        (b'{"hook_event_name": "PreCompact"}', "no transcript_path"),
        (b'{"hook_event_name": "PreCompact", "transcript_path": 7}', "no transcript_path"),
        (b'{"hook_event_name": "PreCompact", "transcript_path": "a\\u0000b"}', "went wrong"),
        (b'{"hook_event_name": "\\u001b[31m\\nx"}', "is for PreCompact"),
    ],
)
def test_what_is_not_understood_lets_the_program_go_on_with_one_line(
    data: bytes, said: str
) -> None:
    ran = run_hook(data).ended()
    assert (ran.code, ran.out) == (0, "")
    assert said in ran.sentence
    assert ran.sentence.isprintable()


@pytest.mark.parametrize("arguments", [("--bogus",), ("--timeout", "soon"), ("x", "y", "z")])
def test_arguments_that_are_not_understood_are_no_error(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript), *arguments)
    until(waiting.held)
    waiting.desk.go_on()
    ran = hook.ended()
    assert (ran.code, ran.out) == (0, "")
    assert "takes --timeout SECONDS" in ran.sentence
    waiting.desk.close()


def test_without_standard_input_the_program_goes_on() -> None:
    ended = subprocess.run(
        ["sh", "-c", f'exec {sys.executable} -m thresher.tui hook <&-'],
        env=environment(), capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "standard input" in ended.stderr


def test_a_hook_loads_neither_a_screen_nor_the_command_line() -> None:
    code = (
        "import sys; sys.argv = ['thresher', 'hook']; from thresher.tui.entry import main; main();"
        "print(sorted({'textual', 'rich', 'cyclopts', 'msgspec', 'asyncio', 'filelock'} & "
        "sys.modules.keys()))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], input=about(Path("a.jsonl")), env=environment(),
        capture_output=True, timeout=30,
    )  # fmt: skip
    assert ended.stdout.decode().strip() == "[]"


def test_going_on_says_nothing_to_the_program(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    assert hook.waits
    waiting.desk.go_on()
    assert hook.ended() == FREE
    assert waiting.ends == [past.GO_ON]
    waiting.desk.close()


def test_a_focus_is_printed_for_claude_code_in_any_locale(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "C")
        patch.setenv("PYTHONIOENCODING", "ascii")
        hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    waiting.desk.go_on("  Preise in Cent – immer  ")
    assert hook.ended() == (0, "Preise in Cent – immer", "")
    choices = [each for each in waiting.events if isinstance(each, e.CompactionDecided)]
    assert [(each.choice, each.text) for each in choices] == [
        (e.Choice.FOCUS, "Preise in Cent – immer"), (e.Choice.APPLY, ""),
    ]  # fmt: skip
    waiting.desk.close()


def test_claude_code_is_told_to_skip_by_the_exit_code_and_codex_by_json(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    waiting.desk.skip()
    ran = hook.ended()
    assert (ran.code, ran.out) == (2, "")
    assert "skipped by the user" in ran.sentence
    assert waiting.ends == [past.SKIPPED]
    waiting.desk.close()

    waiting = Waiting(tmp_path, CODEX, "0.171.0")
    waiting.desk.clear_break("compaction")
    waiting.desk.set_break("compaction")
    hook = run_hook(about(waiting.transcript, turn_id="t1"))
    until(waiting.held)
    waiting.desk.skip()
    ran = hook.ended()
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["continue"] is False
    waiting.desk.close()


def test_codex_is_never_told_a_focus(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, CODEX, "0.171.0")
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    waiting.desk.go_on("keep it")
    assert hook.ended() == FREE
    waiting.desk.close()


@pytest.mark.parametrize("version", ["2.1.70", "1.0.128", "", "dev"])
def test_a_version_that_compacts_all_the_same_cannot_be_skipped(
    tmp_path: Path, version: str
) -> None:
    waiting = Waiting(tmp_path, version=version)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    with pytest.raises(ThresherError, match="compacts whatever its hook says"):
        waiting.desk.skip()
    assert hook.waits
    waiting.desk.go_on()
    assert hook.ended() == FREE
    waiting.desk.close()


def test_a_console_that_is_closed_lets_the_program_go_on(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    waiting.desk.close()
    assert hook.ended() == FREE
    assert waiting.ends == [past.CLOSED]
    assert run_hook(about(waiting.transcript)).ended() == FREE


def test_clearing_the_breakpoint_lets_the_program_go_on(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    waiting.desk.clear_break("compaction")
    assert hook.ended() == FREE
    assert not waiting.desk.watching
    assert run_hook(about(waiting.transcript)).ended() == FREE


CONSOLE = """
import sys, pathlib
from thresher.core.hold.desk import Desk
from thresher.core.hold.programs import CLAUDE_CODE
desk = Desk(pathlib.Path(sys.argv[1]), CLAUDE_CODE)
desk.set_break("compaction")
print("ready", flush=True)
while not desk.held:
    desk.look()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_console_that_is_killed_lets_the_program_go_on_and_says_so(tmp_path: Path) -> None:
    transcript = tmp_path / "a.jsonl"
    console = subprocess.Popen(
        [sys.executable, "-c", CONSOLE, str(transcript)],
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with console:
        assert console.stdout is not None
        assert console.stdout.readline() == "ready\n"
        hook = run_hook(about(transcript))
        assert console.stdout.readline() == "held\n"
        console.kill()
        ran = hook.ended()
    assert (ran.code, ran.out) == (0, "")
    assert "the console is gone" in ran.sentence
    # What it left behind holds nobody: neither a program, nor the next console.
    assert (place.folder_of(str(transcript)) / place.WATCH).exists()
    assert run_hook(about(transcript)).ended() == FREE
    desk = Desk(transcript, CLAUDE_CODE)
    assert [str(point) for point in desk.breakpoints] == ["compaction"]
    desk.watch()
    desk.close()


def test_a_hook_whose_time_is_over_lets_the_program_go_on_and_says_so(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript), "--timeout", "1")
    until(waiting.held)
    ran = hook.ended()
    assert (ran.code, ran.out) == (0, "")
    assert "its time is over" in ran.sentence
    until(lambda: not waiting.held())
    assert waiting.ends in ([past.TIME_OVER], [past.GONE])
    waiting.desk.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_hook_that_its_program_ends_is_noticed(tmp_path: Path, number: int) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    hook.process.send_signal(number)
    hook.ended()
    until(lambda: not waiting.held())
    assert waiting.ends == [past.GONE]
    folder = place.folder_of(str(waiting.transcript))
    until(lambda: not waiting.held() and not list(folder.glob("request-*")))
    waiting.desk.close()


def test_two_hooks_of_one_program_are_one_hold_and_only_one_is_told(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hooks = [run_hook(about(waiting.transcript)) for _ in range(2)]
    until(lambda: waiting.held() and waiting.desk.held and len(waiting.desk.held.requests) == 2)
    waiting.desk.go_on("the rules")
    assert sorted(hook.ended().out for hook in hooks) == ["", "the rules"]
    until(lambda: not waiting.held())
    assert waiting.ends == [past.GO_ON]
    waiting.desk.close()


def test_an_answered_request_is_not_held_again_while_its_hook_takes_its_time(
    tmp_path: Path,
) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    os.kill(hook.process.pid, signal.SIGSTOP)
    waiting.desk.go_on()
    assert not waiting.held()
    os.kill(hook.process.pid, signal.SIGCONT)
    assert hook.ended() == FREE
    assert waiting.ends == [past.GO_ON]
    waiting.desk.close()


def test_only_the_transcript_that_is_watched_is_held_by_whatever_path(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    link = tmp_path / "link.jsonl"
    link.symlink_to(waiting.transcript)
    other = tmp_path / "other.jsonl"
    assert run_hook(about(other)).ended() == FREE
    hook = run_hook(about(link))
    until(waiting.held)
    waiting.desk.go_on()
    assert hook.ended() == FREE
    waiting.desk.close()


def test_everything_is_for_this_user_alone(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    hook = run_hook(about(waiting.transcript))
    until(waiting.held)
    folder = place.folder_of(str(waiting.transcript))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    ran = run_hook(about(waiting.transcript)).ended()
    assert (ran.code, ran.out) == (0, "")
    assert "others can write there" in ran.sentence
    waiting.desk.go_on()
    assert hook.ended() == FREE
    waiting.desk.close()


@pytest.mark.parametrize(
    "name", ["../../up.jsonl", "a b\n;rm -rf ~.jsonl", "x" * 200 + ".jsonl", ".jsonl", "ä€.jsonl"]
)
def test_a_name_from_outside_stays_one_plain_folder_of_ours(tmp_path: Path, name: str) -> None:
    folder = place.folder_of(str(tmp_path / name))
    assert folder.parent == state_dir() / "holds"
    assert folder.name.isascii()
    assert len(folder.name) < 100
    assert set(folder.name) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
    )


def test_a_request_that_no_hook_keeps_locked_is_swept_away(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    folder = place.folder_of(str(waiting.transcript))
    left = place.request_file(folder, "abc123")
    left.write_text('{"id":"abc123","at":0,"until":9e12,"trigger":"auto"}')
    (folder / "request-..json").write_text("{}")
    assert not waiting.held()
    assert not left.exists()
    waiting.desk.close()


def test_a_session_is_held_by_one_console_only(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path)
    second = Desk(waiting.transcript, CLAUDE_CODE)
    with pytest.raises(ThresherError, match="another console is there"):
        second.set_break("compaction")
    waiting.desk.close()
    second.set_break("compaction")
    second.close()


@pytest.mark.parametrize("text", ["overflow", "tokens:100", "stage:compact", "policy:claude-code"])
def test_what_a_hook_knows_nothing_of_is_no_breakpoint_here(tmp_path: Path, text: str) -> None:
    waiting = Waiting(tmp_path)
    with pytest.raises(ThresherError, match="before a compaction and nowhere else"):
        waiting.desk.set_break(text)
    waiting.desk.close()
