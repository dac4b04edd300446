from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.agent.assemble import build_agent, new_session, prepare_setup
from thresher.core.config import load
from thresher.core.gateways.offline import OfflineGateway
from thresher.core.items import user
from thresher.core.paths import sessions_dir
from thresher.core.sessions.catalog import sessions

from ..command_line import run

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("without", ["--headless", "--json"])
@pytest.mark.parametrize("command", [("demo",), ("run", "do it"), ("resume", "latest", "go on")])
def test_a_breakpoint_without_a_screen_is_an_error_at_start(
    command: tuple[str, ...], without: str, capsys: Capture
) -> None:
    ran = run(capsys, *command, without, "--break", "compaction")
    assert ran.code == 2
    assert "--break compaction waits for you" in ran.sentence
    assert ran.out == ""
    assert list(sessions(sessions_dir())) == []


def test_what_is_no_breakpoint_is_an_error_at_start(capsys: Capture) -> None:
    ran = run(capsys, "demo", "--headless", "--break", "tokens:many")
    assert ran.code == 2
    assert "'tokens:many' needs a whole number above 0" in ran.sentence
    assert "percent:P" in ran.sentence


def test_recorded_breakpoints_stop_nothing_without_a_screen_and_that_is_said(
    tmp_path: Path, capsys: Capture
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    settings = load(environ={}, flags={"model.wire": "offline"})
    setup = prepare_setup(settings, workspace, gateway=OfflineGateway(workspace))
    session = new_session(setup)
    agent = build_agent(setup, session)
    assert agent.debugger is not None
    agent.debugger.set_break("compaction")
    agent.debugger.set_break("tokens:1")
    session.emit(e.ItemAppended(item=user("hello")))
    session.close()
    ran = run(capsys, "resume", session.id, "look around", "--headless", "--yes")
    assert ran.code == 0
    assert "Breakpoints of this session (compaction, tokens:1) stop nothing here" in ran.err
