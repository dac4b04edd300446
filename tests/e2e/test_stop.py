"""Stopping, changing and taking back in a real terminal, on the demo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from thresher.core import events as e
from thresher.core.paths import sessions_dir
from thresher.core.sessions.catalog import sessions
from thresher.core.sessions.resume import read

from .test_terminal import CTRL_Q, Terminal

ESC, CTRL_S = "\x1b", "\x13"


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal("demo", "--fast", "--break", "compaction")
    yield opened
    opened.process.close(force=True)


def records() -> list[e.Event]:
    (session,) = sessions(sessions_dir())
    return [record.event for record in read(session.path).records]


def test_stop_pin_edit_the_summary_and_continue(terminal: Terminal) -> None:
    terminal.wait_for("STOPPED before the summary of compaction 1")
    terminal.send("n")
    terminal.send("n")
    terminal.send("n")
    terminal.wait_for("would be removed")
    terminal.send("p")
    terminal.wait_for("pinned 1 by the user")
    terminal.send("a")
    terminal.wait_for("STOPPED before compaction 1", "## Goal")
    terminal.send("e")
    terminal.wait_for("Ctrl+S uses it")
    terminal.send("Never suggest floats! ")
    terminal.wait_for("Never suggest floats! ## Goal")
    terminal.send(CTRL_S)
    terminal.wait_for("summary edited by the user", "STOPPED before compaction 1")
    terminal.send("a")
    terminal.wait_for("STOPPED before the summary of compaction 2")
    terminal.send(CTRL_Q)
    assert terminal.end() == 0
    done = [event for event in records() if isinstance(event, e.HistoryCompacted)]
    assert done[0].summary is not None
    assert done[0].summary.startswith("Never suggest floats! ## Goal")
    assert any("pinned 1" in mark and "summary edited" in mark for mark in done[0].marks)


def test_stop_apply_and_undo(terminal: Terminal) -> None:
    terminal.wait_for("STOPPED before the summary of compaction 1")
    terminal.send("a")
    terminal.wait_for("STOPPED before compaction 1", "## Goal")
    terminal.send("a")
    terminal.wait_for("STOPPED before the summary of compaction 2")
    terminal.send("u")
    terminal.wait_for("undo compaction 1", "come back")
    terminal.send("\r")
    terminal.wait_for("Compaction 1 undone")
    terminal.send(CTRL_Q)
    assert terminal.end() == 0
    undone = [event for event in records() if isinstance(event, e.HistoryRestored)]
    assert [event.undone for event in undone] == [1]


def test_the_first_start_shows_the_tour_which_can_be_skipped() -> None:
    terminal = Terminal("demo", "--fast", tour=True)
    try:
        terminal.wait_for("What the model is about to see", "skip the tour")
        terminal.send("\r")
        terminal.wait_for("What happened")
        terminal.send("q")
        terminal.wait_for("compaction 1")
        terminal.send(CTRL_Q)
        assert terminal.end() == 0
    finally:
        terminal.process.close(force=True)
