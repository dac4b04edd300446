"""The program as it is started by a user: in a pseudo-terminal, with a shell around it."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from thresher.core.paths import sessions_dir
from thresher.core.sessions.catalog import sessions

from ..command_line import codex_session, environment, program, run
from ..loopback import Call, Hang, Reply, in_thread

DEADLINE = 60.0
MUST_BE_OFF = {
    "1000": "mouse clicks",
    "1002": "mouse drags",
    "1003": "mouse moves",
    "1004": "focus reports",
    "1006": "mouse coordinates",
    "1015": "mouse coordinates",
    "1016": "mouse pixels",
    "1049": "alternate screen",
    "2004": "bracketed paste",
    "2026": "synchronised output",
}


class Terminal:
    """A shell in a pseudo-terminal that runs one command line and then tells how it left things."""

    def __init__(self, *arguments: str | Path, columns: int = 120, rows: int = 40) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        script = f"{shlex.join(program(*arguments))}; echo; echo LEFT $?; stty -a"
        self.process = pexpect.spawn(
            "/bin/sh",
            ["-c", script],
            dimensions=(rows, columns),
            env=environment(TERM="xterm-256color", COLORTERM="truecolor"),
        )

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def wait_for(self, *words: str) -> None:
        """Return when all of these are on the screen."""
        until = time.monotonic() + DEADLINE
        while not all(word in self.text for word in words):
            assert time.monotonic() < until, f"never saw {words} on:\n{self.text}"
            assert self._read(), f"ended without {words} on:\n{self.text}"

    def send(self, keys: str) -> None:
        self.process.send(keys)

    def end(self) -> int:
        """Wait for the end; returns the exit code, after a look at what was left behind."""
        until = time.monotonic() + DEADLINE
        while self._read():
            assert time.monotonic() < until, f"does not end:\n{self.text}"
        left = re.search(rb"LEFT (\d+)\r\n(.*)", self.raw, re.DOTALL)
        assert left is not None, self.text
        self._require_clean(left[2].decode())
        return int(left[1])

    def _require_clean(self, stty: str) -> None:
        modes: dict[str, bytes] = {}
        for numbers, state in re.findall(rb"\x1b\[\?([\d;]+)([hl])", self.raw):
            for number in numbers.decode().split(";"):
                modes[number] = state
        left_on = [MUST_BE_OFF[each] for each in MUST_BE_OFF if modes.get(each, b"l") == b"h"]
        assert left_on == []
        assert modes.get("25", b"h") == b"h", "the cursor is hidden"
        assert modes.get("7", b"h") == b"h" or b"\x1b[?7l" not in self.raw
        pushed, popped = self.raw.count(b"\x1b[>1u"), self.raw.count(b"\x1b[<u")
        assert pushed <= popped, "the keyboard protocol is still on"
        words = stty.replace(";", " ").split()
        assert {"echo", "icanon", "isig", "icrnl", "opost"} <= set(words)
        assert self.raw.rstrip().endswith(stty.rstrip().encode())

    def _read(self) -> bool:
        try:
            data: bytes = self.process.read_nonblocking(1 << 16, timeout=0.05)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.process.close(force=True)


@pytest.fixture
def start(terminals: list[Terminal]) -> Any:
    def started(*arguments: str | Path, **size: int) -> Terminal:
        terminals.append(Terminal(*arguments, **size))
        return terminals[-1]

    return started


CTRL_Q = "\x11"


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (160, 50)])
def test_a_codex_session_opens_and_is_left_clean(
    columns: int, rows: int, start: Any, tmp_path: Path
) -> None:
    terminal = start("open", codex_session(tmp_path), columns=columns, rows=rows)
    terminal.wait_for("Read the whole log", "compaction 2")
    terminal.send(CTRL_Q)
    assert terminal.end() == 0


def test_the_demo_works_until_its_context_is_compacted_and_is_left_clean(start: Any) -> None:
    terminal = start("demo", "--fast")
    terminal.wait_for("compaction 1", "offline-stand-in")
    terminal.send(CTRL_Q)
    assert terminal.end() == 0
    assert b"goes on from here" in terminal.raw
    (session,) = sessions(sessions_dir())
    assert session.compactions >= 1
    assert (session.problem, session.running) == ("", False)


def test_a_signal_to_end_puts_everything_in_order(start: Any) -> None:
    terminal = start("demo", "--fast")
    terminal.wait_for("compaction 1")
    (session,) = sessions(sessions_dir())
    assert session.running
    child = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(terminal.process.pid)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    subprocess.run(["kill", "-TERM", child.split()[0]], check=True)
    assert terminal.end() == 128 + signal.SIGTERM
    (session,) = sessions(sessions_dir())
    assert not session.running
    assert '"event":"session_finished"' in session.path.read_text().splitlines()[-1]


def test_the_picker_opens_what_is_chosen(start: Any, home: Path) -> None:
    folder = home / ".codex" / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    name = "rollout-2026-11-30T04-11-33-01a22aa6-a14c-7473-aaad-216c4322fd2a.jsonl"
    codex_session(folder).rename(folder / name)
    terminal = start()
    terminal.wait_for("Read the whole log", "1 session")
    terminal.send("\r")
    terminal.wait_for("compaction 2")
    terminal.send(CTRL_Q)
    assert terminal.end() == 0


def test_what_cannot_be_opened_is_told_where_the_user_then_is(start: Any, home: Path) -> None:
    (home / "state").write_text("in the way")
    terminal = start("demo", "--fast")
    assert terminal.end() == 2
    assert b"Folder not available: " in terminal.raw
    assert b"Traceback" not in terminal.raw


def test_a_killed_agent_goes_on_from_the_identical_context(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = (Call("glob", {"pattern": "*"}), Call("bash", {"command": "echo hello"}))
    script = [Reply("Looking.", calls=calls), Hang(), Reply("Back again.")]
    with in_thread(script) as server:
        flags = ["--model", "m", "--base-url", server.base_url, "--yes"]
        going = subprocess.Popen(
            program("run", "Hello", "--json", *flags),
            env=environment(), cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert going.stdout is not None
        seen = ""
        while seen.count('"event":"request_sent"') < 2:
            seen += going.stdout.readline()
        going.kill()
        going.communicate(timeout=DEADLINE)
        (killed,) = run(capsys, "context", "latest", "--json").records
        ran = run(capsys, "resume", "latest", "Go on", "--headless", *flags)
        assert ran.code == 0
        (resumed,) = run(capsys, "context", "latest", "--json").records
    entries = killed["entries"]
    assert resumed["entries"][: len(entries)] == entries
    assert [entry["kind"] for entry in resumed["entries"][len(entries) :]] == ["user", "assistant"]
