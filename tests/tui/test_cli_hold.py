from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib

import pytest

from ..command_line import environment, run, run_apart

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_hold_prints_settings_to_paste_and_one_paragraph(
    agent: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", "/home/me/my state")
    ran = run(capsys, "hold", agent)
    assert (ran.code, ran.err) == (0, "")
    snippet, _, told = ran.out.partition("\n\n")
    settings = json.loads(snippet) if agent == "claude-code" else tomllib.loads(snippet)
    (group,) = settings["hooks"]["PreCompact"]
    (hook,) = group["hooks"]
    assert hook["timeout"] == 600
    assert hook["command"].startswith("THRESHER_STATE_DIR='/home/me/my state' ")
    assert hook["command"].endswith(" hook --timeout 600")
    paragraph = " ".join(told.split())
    assert "--break compaction" in paragraph
    assert f"thresher open latest:{'claude' if agent == 'claude-code' else agent}" in paragraph
    assert "\n\n" not in told.strip()


def test_an_agent_that_cannot_be_held_is_one_sentence(capsys: Capture) -> None:
    ran = run(capsys, "hold", "opencode")
    assert (ran.code, ran.out) == (2, "")
    assert "'opencode' cannot be held: there are claude-code, codex" in ran.sentence


@pytest.mark.parametrize("arguments", [(), ("--bogus",), ("a", "b"), ("--timeout",)])
def test_the_hook_never_ends_with_an_error_whatever_its_arguments(
    arguments: tuple[str, ...],
) -> None:
    ran = run_apart("hook", *arguments)
    assert (ran.code, ran.out) == (0, "")
    assert "got no JSON object" in ran.sentence


def test_the_hook_of_the_whole_command_line_is_the_same() -> None:
    code = "import sys; from thresher.tui.cli import main; sys.exit(main(['hook', '--bogus']))"
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment(), input="{", capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "got no JSON object" in ended.stderr


def test_the_hook_has_a_help_text(capsys: Capture) -> None:
    ran = run(capsys, "hook", "--help")
    assert ran.code == 0
    assert re.search(r"lets it go on whatever goes\s+wrong", ran.out)
