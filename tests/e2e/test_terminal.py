"""The program as it is started by a user: in a pseudo-terminal, with a shell around it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pyte
import pytest

from thresher.core.paths import sessions_dir
from thresher.core.sessions.catalog import sessions

from ..command_line import codex_session, environment, program

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

    def __init__(
        self,
        *arguments: str | Path,
        command: list[str] | None = None,
        columns: int = 120,
        rows: int = 40,
        tour: bool = False,
        **variables: str,
    ) -> None:
        state = Path(os.environ["THRESHER_STATE_DIR"])
        if not tour and not state.exists():
            state.mkdir()
            (state / "screen.json").write_text('{"toured": true}')
        self.screen = pyte.Screen(columns, rows)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        line = shlex.join(command or program(*arguments))
        script = f"{line}; code=$?; echo; echo LEFT $code; stty -a"
        self.process = pexpect.spawn(
            "/bin/sh",
            ["-c", script],
            dimensions=(rows, columns),
            env=environment(**{"TERM": "xterm-256color", "COLORTERM": "truecolor", **variables}),
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
        assert modes.get("7", b"h") == b"h", "long lines do not wrap"
        pushed, popped = len(re.findall(rb"\x1b\[>\d+u", self.raw)), self.raw.count(b"\x1b[<u")
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
    def started(*arguments: str | Path, **more: Any) -> Terminal:
        terminals.append(Terminal(*arguments, **more))
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
    assert b"Folder not available" in terminal.raw
    assert b"move it away" in terminal.raw
    assert b"Traceback" not in terminal.raw


def test_a_terminal_that_cannot_move_its_cursor_gets_no_screen(start: Any) -> None:
    terminal = start("demo", TERM="dumb")
    assert terminal.end() == 2
    assert b"TERM is dumb" in terminal.raw


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(
    variables: dict[str, str], coloured: bool, start: Any
) -> None:
    terminal = start("policies", "nothing-like-it", **variables)
    assert terminal.end() == 2
    assert (b"\x1b[1;31mUnknown policy:\x1b[0m" in terminal.raw) is coloured
    assert b"Unknown policy:" in terminal.raw


BROKEN = """
import sys
from thresher.tui.cli import main
from thresher.tui.widgets.header import SessionHeader

def broken(self, *_):
    secret = "a-secret-value"
    raise RuntimeError("broken while drawing")

SessionHeader.draw = broken
sys.exit(main(["open", sys.argv[1]]))
"""


def test_a_screen_that_breaks_leaves_one_sentence_and_a_clean_terminal(
    start: Any, home: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", BROKEN, str(codex_session(tmp_path))]
    terminal = start(command=command)
    assert terminal.end() == 1
    after = terminal.raw.rpartition(b"\x1b[?1049l")[2]
    assert b"Unexpected error" in after
    assert b"broken while drawing" in after
    assert b"Traceback" not in terminal.raw
    assert b"a-secret-value" not in terminal.raw
    (story,) = (home / "state").glob("crash-*.txt")
    assert "broken while drawing" in story.read_text()
