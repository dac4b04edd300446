from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.gateways.base import ModelReply, ModelRequest, StopReason, StreamPart, TextDelta
from thresher.core.gateways.offline import OfflineGateway
from thresher.core.items import FunctionCall, assistant
from thresher.core.sessions.resume import read
from thresher.core.state import Status
from thresher.core.tokens import Usage
from thresher.tui.live import AgentActor
from thresher.tui.opening import Opened

from .opened import opened_live, until

Step = ModelReply | asyncio.Event


def says(text: str) -> ModelReply:
    return ModelReply((assistant(text),), Usage(100, 5), StopReason.STOP)


def calls(name: str, arguments: str) -> ModelReply:
    return ModelReply((FunctionCall("c1", name, arguments),), Usage(100, 5), StopReason.TOOL_CALLS)


class Scripted(OfflineGateway):
    """Answers from a list; an event in it is waited for."""

    def __init__(self, workspace: Path, steps: list[Step]) -> None:
        super().__init__(workspace)
        self.steps = steps

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        step = self.steps.pop(0)
        while isinstance(step, asyncio.Event):
            yield TextDelta("let me think")
            await step.wait()
            step = self.steps.pop(0)
        yield step


def live(tmp_path: Path, *steps: Step) -> tuple[Opened, AgentActor]:
    return opened_live(tmp_path, lambda workspace: Scripted(workspace, list(steps)))


def said(opened: Opened) -> list[str]:
    return [entry.item.text for entry in opened.model.state.context][1:]


async def test_a_turn_runs_and_the_screen_sees_what_the_journal_holds(tmp_path: Path) -> None:
    opened, actor = live(tmp_path, says("Hello."))
    actor.send("Hi")
    await until(opened, lambda: not actor.busy)
    await until(opened, lambda: len(opened.model.history) == len(actor.agent.session.history))
    assert said(opened) == ["Hi", "Hello."]
    assert opened.model.history.records == actor.agent.session.history.records
    assert opened.live
    await opened.close()


async def test_a_message_in_the_middle_of_a_turn_begins_the_next_one(tmp_path: Path) -> None:
    gate = asyncio.Event()
    opened, actor = live(tmp_path, gate, says("One."), says("Two."))
    actor.send("first")
    await until(opened, lambda: bool(opened.model.state.streams.get("assistant")))
    actor.send("second")
    gate.set()
    await until(opened, lambda: not actor.busy and "Two." in said(opened))
    assert said(opened) == ["first", "One.", "second", "Two."]
    await opened.close()


async def test_interrupting_ends_the_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    opened, actor = live(tmp_path, asyncio.Event())
    actor.send("first")
    await until(opened, lambda: bool(opened.model.state.streams.get("assistant")))
    actor.interrupt()
    await until(opened, lambda: not actor.busy and opened.model.state.status is Status.IDLE)
    assert said(opened) == ["first", "let me think"]
    await opened.close()


async def test_interrupting_what_has_not_begun_leaves_nothing_behind(tmp_path: Path) -> None:
    opened, actor = live(tmp_path, says("never"))
    actor.send("first")
    actor.interrupt()
    await until(opened, lambda: not actor.busy)
    assert "never" not in said(opened)
    await opened.close()


@pytest.mark.parametrize(("word", "ran"), [("once", True), ("never", False)])
async def test_the_users_word_decides_whether_a_tool_runs(
    tmp_path: Path, word: str, ran: bool
) -> None:
    arguments = '{"path": "note.txt", "content": "x"}'
    opened, actor = live(tmp_path, calls("write_file", arguments), says("Done."))
    actor.send("write it")
    await until(opened, lambda: opened.model.state.approval is not None)
    actor.answer(word)
    await until(opened, lambda: "Done." in said(opened))
    assert (tmp_path / "project" / "note.txt").exists() is ran
    assert opened.model.state.approval is None
    actor.answer("once")
    await opened.close()


async def test_closing_while_the_user_is_asked_leaves_a_session_that_can_go_on(
    tmp_path: Path,
) -> None:
    arguments = '{"path": "note.txt", "content": "x"}'
    opened, actor = live(tmp_path, calls("write_file", arguments))
    actor.send("write it")
    await until(opened, lambda: opened.model.state.approval is not None)
    await opened.close()
    await opened.close()
    records = read(actor.agent.session.path).records
    assert isinstance(records[-1].event, e.SessionFinished)
    outcomes = [r.event.outcome for r in records if isinstance(r.event, e.TurnFinished)]
    assert outcomes == ["interrupted"]


async def test_a_manual_compaction_is_on_record_with_its_focus(tmp_path: Path) -> None:
    opened, actor = live(tmp_path, says("One."), says("Two."), says("Three."), says("a summary"))
    for text in ("a", "b", "c"):
        actor.send(text)
        await until(opened, lambda: not actor.busy)
    actor.compact("the rule about dates")
    await until(opened, lambda: not actor.busy and bool(opened.model.state.cards))
    assert opened.model.state.cards[-1].focus == "the rule about dates"
    await opened.close()


async def test_an_error_of_the_agent_is_told_to_whoever_shows_it(tmp_path: Path) -> None:
    opened, actor = live(tmp_path)
    told: list[BaseException] = []
    opened.failed = told.append

    async def faulty() -> None:
        raise ThresherError("Disk full", "nothing can be written")

    actor.play(faulty())
    await until(opened, lambda: bool(told))
    assert [str(error) for error in told] == ["Disk full: nothing can be written"]
    await opened.close()


async def test_closing_stops_a_script_that_goes_on_after_an_interrupted_step(
    tmp_path: Path,
) -> None:
    opened, actor = live(tmp_path, asyncio.Event(), asyncio.Event())

    async def script() -> None:
        await actor.agent.run_turn("one")
        await actor.agent.run_turn("two")

    actor.play(script())
    await until(opened, lambda: bool(opened.model.state.streams.get("assistant")))
    await opened.close()
    assert not actor.busy
