from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.core.agent.rig import Rig, rig
from tests.loopback import Call, Fail, Reply, Request, overflow
from thresher.core import events as e
from thresher.core.agent.loop import TurnOutcome
from thresher.core.debug.debugger import Debugger
from thresher.core.debug.restore import preview_undo
from thresher.core.debug.stop import Point, Stop
from thresher.core.errors import ThresherError
from thresher.core.items import CompactionSummary, Kind
from thresher.core.sessions.resume import read, resume
from thresher.core.state import Status

from .desk import until

READ = Call("read_file", {"path": "notes.txt"})


def working(rounds: int) -> Any:
    """A model that reads so many times, then is done; summaries are told by missing tools."""
    left = [Reply("Reading.", calls=(READ,)) for _ in range(rounds)]

    def answer(request: Request) -> Reply:
        if not request.body.get("tools"):
            return Reply("Rule: prices stay in cents.")
        return left.pop(0) if left else Reply("Done.")

    return answer


class Held:
    """An agent whose turn runs in the background."""

    def __init__(self, r: Rig) -> None:
        self.r = r
        assert r.agent.debugger is not None
        self.debugger: Debugger = r.agent.debugger
        self.debugger.attended = True
        self.task: asyncio.Task[Any] | None = None

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        self.task = asyncio.ensure_future(work)

    async def stop(self) -> Stop:
        task = self.task
        assert task is not None
        await until(lambda: self.debugger.stop is not None or task.done(), tries=10**7)
        assert self.debugger.stop is not None, "it ended without a stop"
        return self.debugger.stop

    async def end(self) -> Any:
        assert self.task is not None
        return await asyncio.wait_for(self.task, 20)


@asynccontextmanager
async def held(
    tmp_path: Path, script: Any, *breaks: str, **more: Any
) -> AsyncIterator[tuple[Held, Rig]]:
    async with rig(tmp_path, script, **more) as r:
        found = Held(r)
        for text in breaks:
            found.debugger.set_break(text)
        yield found, r


def resumed_is_the_same(r: Rig) -> bool:
    live = r.session.state
    context, held, pins = live.context, live.held, live.pins
    r.session.close()
    again = resume(r.session.path)
    same = again.state.context == context and again.state.held == held and again.state.pins == pins
    assert again.state.problems == []
    again.close()
    return same


async def test_a_step_is_one_round(tmp_path: Path) -> None:
    async with held(tmp_path, working(2)) as (at, r):
        at.debugger.step()
        at.begin(r.agent.run_turn("What is the rule?"))
        stop = await at.stop()
        assert (stop.point, stop.breakpoint, stop.reason) == (
            Point.ROUND,
            "step",
            "round 1 is over",
        )
        assert r.session.state.status is Status.STOPPED
        assert r.valid()
        assert len(r.events(e.RequestSent)) == 1
        at.debugger.step()
        await at.stop()
        assert len(r.events(e.RequestSent)) == 2
        at.debugger.go_on()
        assert await at.end() is TurnOutcome.COMPLETED


async def test_a_size_stops_once_when_it_is_passed(tmp_path: Path) -> None:
    async with held(tmp_path, working(3), "tokens:10", "percent:90", window=1_000_000) as (at, r):
        at.begin(r.agent.run_turn("What is the rule?"))
        stop = await at.stop()
        assert stop.breakpoint == "tokens:10"
        assert "the request has" in stop.reason
        at.debugger.go_on()
        assert await at.end() is TurnOutcome.COMPLETED
        assert len(r.events(e.DebuggerStopped)) == 1


async def test_a_large_output_stops_when_it_has_entered(tmp_path: Path) -> None:
    async with held(tmp_path, working(1), "output:50") as (at, r):
        at.begin(r.agent.run_turn("What is the rule?"))
        stop = await at.stop()
        assert stop.point is Point.OUTPUT
        assert "read_file" in stop.reason
        assert r.valid()
        at.debugger.go_on()
        await at.end()


async def test_an_overflow_stops_before_the_compaction_that_it_sets_off(tmp_path: Path) -> None:
    left = [Reply("Reading.", calls=(READ,)), Fail(400, overflow(9000, 8192)), Reply("Done.")]

    def script(request: Request) -> Any:
        return left.pop(0) if request.body.get("tools") else Reply("Short.")

    async with held(tmp_path, script, "overflow", "compaction") as (at, r):
        at.begin(r.agent.run_turn("What is the rule?"))
        stop = await at.stop()
        assert (stop.point, stop.breakpoint) == (Point.OVERFLOW, "overflow")
        at.debugger.go_on()
        stop = await at.stop()
        assert stop.point is Point.SUMMARY
        at.debugger.go_on()
        assert await at.end() is TurnOutcome.COMPLETED
        assert r.session.state.compactions == 1


async def test_another_policy_after_an_overflow_still_lets_the_turn_go_on(tmp_path: Path) -> None:
    left = [Reply("Reading.", calls=(READ,)), Fail(400, overflow(9000, 8192)), Reply("Done.")]

    def script(request: Request) -> Any:
        return left.pop(0) if request.body.get("tools") else Reply("Short.")

    async with held(tmp_path, script, "compaction") as (at, r):
        at.begin(r.agent.run_turn("What is the rule?"))
        await at.stop()
        at.debugger.choose_policy("opencode-v1")
        await at.stop()
        at.debugger.go_on()
        assert await at.end() is TurnOutcome.COMPLETED
        assert r.session.state.cards[-1].policy == "opencode-v1"
        assert r.session.state.policy == "teaching"


async def test_a_failed_request_stops_before_the_turn_ends(tmp_path: Path) -> None:
    async with held(tmp_path, [Fail(401, "no")], "failure") as (at, r):
        at.begin(r.agent.run_turn("Hello"))
        stop = await at.stop()
        assert stop.point is Point.FAILURE
        at.debugger.go_on()
        assert await at.end() is TurnOutcome.FAILED


async def test_interrupting_a_stopped_agent_ends_its_turn(tmp_path: Path) -> None:
    async with held(tmp_path, working(2)) as (at, r):
        at.debugger.step()
        at.begin(r.agent.run_turn("What is the rule?"))
        await at.stop()
        assert r.agent.interrupt()
        assert await at.end() is TurnOutcome.INTERRUPTED
        assert r.session.state.status is Status.IDLE
        assert r.session.state.stopped is None


async def test_the_pinned_rule_is_in_the_next_request(tmp_path: Path) -> None:
    async with held(tmp_path, working(2), "compaction") as (at, r):
        await r.agent.run_turn("What is the rule?")
        output = next(x.id for x in r.session.state.context if x.kind is Kind.OUTPUT)
        at.begin(r.agent.compact())
        await at.stop()
        at.debugger.pin([output])
        at.debugger.go_on()
        assert (await at.end()).compacted
        card = r.session.state.cards[-1]
        assert "pinned 1 by the user" in card.marks
        assert r.session.state.context.place(output) is not None
        await r.agent.run_turn("And now?")
        sent = r.server.requests[-1].body["messages"]
        assert sum(m["role"] == "tool" for m in sent) == 1
        assert resumed_is_the_same(r)


async def test_undo_when_idle_and_what_comes_after_goes_out_with_the_old_context(
    tmp_path: Path,
) -> None:
    async with held(tmp_path, working(1)) as (_, r):
        await r.agent.run_turn("What is the rule?")
        before = r.session.state.context
        await r.agent.compact()
        assert r.session.state.context != before
        lines = r.session.path.read_bytes()
        done = r.agent.undo()
        assert done.undone == 1
        assert r.session.state.context == before
        assert r.session.path.read_bytes().startswith(lines)
        await r.agent.run_turn("And now?")
        sent = r.events(e.RequestSent)[-1]
        assert sent.entries.startswith(before.span(before.ids).split("-")[0])
        assert not any(isinstance(i, CompactionSummary) for i in r.session.state.context.items)
        assert resumed_is_the_same(r)


async def test_a_restored_entry_goes_out_with_the_next_request(tmp_path: Path) -> None:
    async with held(tmp_path, working(1)) as (_, r):
        await r.agent.run_turn("What is the rule?")
        output = next(x.id for x in r.session.state.context if x.kind is Kind.OUTPUT)
        await r.agent.compact()
        assert r.session.state.context.place(output) is None
        r.agent.restore(output)
        await r.agent.run_turn("And now?")
        assert r.valid()
        sent = r.server.requests[-1].body["messages"]
        assert any(m["role"] == "tool" for m in sent)
        assert resumed_is_the_same(r)


async def test_undo_at_a_stop_makes_the_held_proposal_anew(tmp_path: Path) -> None:
    async with held(tmp_path, working(1)) as (at, r):
        await r.agent.run_turn("What is the rule?")
        before = r.session.state.context
        await r.agent.compact()
        await r.agent.run_turn("And now?")
        since = r.session.state.context.ids[-2:]
        at.debugger.set_break("compaction")
        at.begin(r.agent.compact("again"))
        await at.stop()
        r.agent.undo()
        stop = await at.stop()
        assert stop.situation is not None
        assert stop.situation.context.ids == (*before.ids, *since)
        assert stop.situation.focus == "again"
        at.debugger.skip()
        await at.end()
        assert r.session.state.context.ids == (*before.ids, *since)
        assert resumed_is_the_same(r)


async def test_a_working_agent_is_not_changed_under_its_hands(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with held(tmp_path, [Reply("Slow.", gate=gate)]) as (at, r):
        at.begin(r.agent.run_turn("Hello"))
        await until(lambda: r.session.state.requests > 0)
        with pytest.raises(ThresherError, match="Agent at work"):
            r.agent.undo()
        gate.set()
        await at.end()
        with pytest.raises(ThresherError, match="Nothing to undo"):
            r.agent.undo()


async def test_another_policy_from_the_next_moment_on(tmp_path: Path) -> None:
    async with held(tmp_path, working(1)) as (_, r):
        r.agent.set_policy("teaching", {"threshold": 77})
        assert r.session.state.policy_params["threshold"] == 77
        with pytest.raises(ThresherError, match="no policy"):
            r.agent.set_policy("nobody")
        r.agent.set_policy("keep-all")
        await r.agent.run_turn("Hello")
        assert r.session.state.policy == "keep-all"
        assert [ev.policy for ev in r.events(e.PolicyChanged)] == ["teaching", "keep-all"]


async def test_a_session_cut_off_at_a_stop_goes_on_with_its_breakpoints_and_pins(
    tmp_path: Path,
) -> None:
    async with held(tmp_path, working(2), "compaction", params={"threshold": 1}) as (at, r):
        at.begin(r.agent.run_turn("What is the rule?"))
        await at.stop()
        at.debugger.pin([r.session.state.context.ids[1]])
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / r.session.path.name).write_bytes(r.session.path.read_bytes())
        at.debugger.go_on()
        r.agent.interrupt()
        await at.end()
    again = resume(copy)
    assert again.state.stopped is None
    assert again.state.status is Status.IDLE
    assert again.state.breakpoints == ("compaction",)
    assert len(again.state.pins) == 1
    assert "aborted" in [card.status.value for card in again.state.cards]
    again.close()
    assert not read(copy).problems


async def test_a_preview_changes_nothing(tmp_path: Path) -> None:
    async with held(tmp_path, working(1)) as (_, r):
        await r.agent.run_turn("What is the rule?")
        await r.agent.compact()
        lines = len(r.session.history)
        preview = preview_undo(r.session.state)
        assert preview.tokens > 0
        assert len(r.session.history) == lines
