"""Running `thresher` in a test: in this process, or in one of its own.

Tests import it by its place: `from ..command_line import run`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from thresher.tui.cli import main

ROOT = Path(__file__).parent.parent
CODEX = Path(__file__).parent / "fixtures" / "codex"


class Ran(NamedTuple):
    """What came of a command line."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """The JSON lines of its output."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def sentence(self) -> str:
        """The one line that it said on standard error."""
        (line,) = self.err.splitlines()
        return line


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Ran:
    """One command line in this process."""
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


def program(*arguments: str | Path) -> list[str]:
    """The command line that starts it in a process of its own."""
    return [sys.executable, "-m", "thresher.tui", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    """The environment for such a process."""
    return {**os.environ, "PYTHONPATH": str(ROOT / ".dev"), **more}


def run_apart(
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Ran:
    """One command line in a process of its own; `before` runs in it first."""
    ended = subprocess.run(
        program(*arguments),
        env=environment(**(env or {})),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        preexec_fn=before,
        timeout=60,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)


def codex_session(folder: Path, name: str = "two_mid_turn") -> Path:
    """A recorded Codex session as a plain file."""
    path = folder / f"{name}.jsonl"
    path.write_bytes(gzip.decompress((CODEX / f"{name}.jsonl.gz").read_bytes()))
    return path
