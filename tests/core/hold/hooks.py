"""Hooks as another program runs them, in processes of their own, and a desk that waits for them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from thresher.core import events as e
from thresher.core.hold.desk import Desk
from thresher.core.hold.programs import CLAUDE_CODE, Program

from ...command_line import Ran, environment, program

PATIENCE = 20.0


class Hook:
    """One that is running; `ended` waits for its end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    @property
    def waits(self) -> bool:
        return self.process.poll() is None

    def ended(self) -> Ran:
        out, err = self.process.communicate(timeout=PATIENCE)
        return Ran(self.process.returncode, out.decode(), err.decode())


def run_hook(data: bytes, *arguments: str) -> Hook:
    """Start one with these bytes on its standard input."""
    process = subprocess.Popen(
        program("hook", *arguments), env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.close()
    process.stdin = None
    return Hook(process)


def about(transcript: Path, trigger: str = "auto", **more: Any) -> bytes:
    """What Claude Code says to its hook."""
    said = {
        "session_id": "s1", "transcript_path": str(transcript), "cwd": "/home/user",
        "hook_event_name": "PreCompact", "trigger": trigger, "custom_instructions": None,
    }  # fmt: skip
    return json.dumps({**said, **more}).encode()


def until(told: Callable[[], object]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + PATIENCE
    while not told():
        assert time.monotonic() < end, "never came"
        time.sleep(0.005)


class Waiting:
    """A desk over a transcript with its breakpoint set, and everything that it published."""

    def __init__(
        self, folder: Path, program: Program = CLAUDE_CODE, version: str = "2.1.197"
    ) -> None:
        self.transcript = folder / "0b1c-session.jsonl"
        self.transcript.write_text("")
        self.events: list[e.Event] = []
        self.desk = Desk(
            self.transcript, program, version=version, session="s1",
            publish=lambda record: self.events.append(record.event),
        )  # fmt: skip
        self.desk.set_break("compaction")

    def held(self) -> bool:
        self.desk.look()
        return self.desk.held is not None

    @property
    def ends(self) -> list[str]:
        """How each hold ended."""
        return [event.how for event in self.events if isinstance(event, e.DebuggerContinued)]
