from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from thresher.core.debug.stop import Point
from thresher.core.errors import ThresherError
from thresher.core.gateways.base import ModelReply, ModelRequest, StopReason, StreamPart
from thresher.core.gateways.offline import OfflineGateway
from thresher.core.items import Kind, assistant
from thresher.core.state import Status
from thresher.core.tokens import Usage
from thresher.tui.live import AgentActor
from thresher.tui.model import DebugActor
from thresher.tui.opening import Opened

from .opened import opened_live, until


class Talkative(OfflineGateway):
    """Says the same thing at length to whatever it is asked."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        reply = assistant("Prices stay in cents. " * (1 if not request.tools else 200))
        yield ModelReply((reply,), Usage(100, 5), StopReason.STOP)

    async def complete(self, request: ModelRequest) -> ModelReply:
        return ModelReply((assistant("A summary."),), Usage(100, 5), StopReason.STOP)


async def talked(tmp_path: Path) -> tuple[Opened, AgentActor]:
    opened, actor = opened_live(tmp_path, Talkative)
    for text in ("one", "two", "three"):
        actor.send(text)
        await until(opened, lambda: not actor.busy)
    return opened, actor


async def test_stop_pin_edit_and_apply_from_the_console(tmp_path: Path) -> None:
    opened, actor = await talked(tmp_path)
    assert isinstance(actor, DebugActor)
    actor.set_break("compaction")
    assert [str(each) for each in actor.breakpoints()] == ["compaction"]
    actor.compact("")
    await until(opened, lambda: opened.model.state.stopped is not None)
    stop = actor.proposal()
    assert stop is not None
    assert stop.point is Point.SUMMARY
    assert opened.model.state.status is Status.STOPPED
    said = next(x.id for x in opened.model.state.context if x.kind is Kind.ASSISTANT)
    actor.pin([said])
    actor.decide("apply")
    await until(opened, lambda: (now := actor.proposal()) is not None and now.point is Point.EDIT)
    actor.write_summary("Prices stay in cents.")
    await until(opened, lambda: actor.proposal() is not None)
    actor.decide("apply")
    await until(opened, lambda: not actor.busy and opened.model.state.compactions == 1)
    card = opened.model.state.cards[-1]
    assert card.summary == "Prices stay in cents."
    assert "pinned 1, summary edited by the user" in card.marks
    assert opened.model.state.context.place(said) is not None
    assert opened.model.state.pins == (said,)
    assert opened.model.state.stopped is None
    before = actor.preview_undo()
    assert before.tokens > 0
    actor.undo()
    await until(opened, lambda: bool(opened.model.state.cards[-1].undone))
    assert actor.agent.session.state.messages_tokens == before.after
    actor.unpin([said])
    actor.clear_break("compaction")
    await opened.close()


async def test_closing_a_stopped_console_leaves_a_session_in_order(tmp_path: Path) -> None:
    opened, actor = await talked(tmp_path)
    actor.step()
    actor.send("four")
    await until(opened, lambda: actor.proposal() is not None)
    await opened.close()
    assert not actor.busy
    assert actor.agent.session.state.finished
    assert actor.agent.session.state.stopped is None


async def test_what_cannot_be_done_is_told_in_a_sentence(tmp_path: Path) -> None:
    opened, actor = await talked(tmp_path)
    with pytest.raises(ThresherError, match="Not stopped"):
        actor.decide("skip")
    with pytest.raises(ThresherError, match="No such breakpoint"):
        actor.set_break("nowhere")
    with pytest.raises(ThresherError, match="it is in the context"):
        actor.restore(opened.model.state.context.ids[0])
    actor.set_policy("keep-all")
    await until(opened, lambda: opened.model.state.policy == "keep-all")
    await opened.close()
