from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.agent.assemble import build_agent
from thresher.core.compaction.policies.codex.token_budget import (
    CodexTokenBudget,
    CodexTokenBudgetParams,
)
from thresher.core.compaction.policies.keep_all import KeepAll
from thresher.core.compaction.policy import (
    Append,
    BringsTools,
    Edit,
    Moment,
    Skip,
    Start,
    Trigger,
)
from thresher.core.compaction.settings import Guard
from thresher.core.items import (
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
    assistant,
    system,
    user,
)

from ..core.agent.rig import rig
from ..core.compaction.rig import Rig
from ..loopback import Call, Reply, Request
from .codex_situations import applied, budget, harness, run, situation, work

ITEMS: list[Item] = [system("base"), user("the task"), *work("c", "o" * 400)]
TIGHT = {"auto_limit": 1_000, "reminder": 300, "fallback_buffer": 200}


def policy(**params: Any) -> CodexTokenBudget:
    return CodexTokenBudget(CodexTokenBudgetParams(**{**TIGHT, **params}))


def at(used: int, items: list[Item] | None = None, **more: Any) -> Any:
    # Work behind the report counts as well: here an assistant's word ends the history.
    return situation([*(items or ITEMS), assistant("hm")], used=used, **more)


def test_a_new_window_holds_the_fresh_context_and_the_ids_of_the_chain() -> None:
    fresh = (harness("permissions", Role.DEVELOPER), harness("# AGENTS.md instructions"))
    where = at(1_200, fresh=fresh)
    start, edit = run(policy(agent_name="/me"), where)
    assert isinstance(start, Start)
    assert isinstance(edit, Edit)
    head, first, message, last = applied(where, edit).after.items
    assert (head, first, last) == (ITEMS[0], *fresh)
    assert isinstance(message, Message)
    assert message.role is Role.DEVELOPER
    lines = message.text.split("\n")
    assert "Agent name: /me" in lines
    assert "First context window id: w0" in lines
    assert f"Current context window id: {edit.memory['window_id']}" in lines
    assert "Previous context window id: w0" in lines
    assert edit.drops_newest_user


def test_without_a_fresh_context_the_window_is_opened_in_the_users_name() -> None:
    where = at(1_200)
    _, message = applied(where, run(policy(), where)[-1]).after.items
    assert isinstance(message, Message)
    assert (message.role, message.synthetic) == (Role.USER, True)


@pytest.mark.parametrize(
    ("used", "kinds"),
    [
        (699, [Skip]),
        (700, [Append, Skip]),
        (999, [Append, Skip]),
        (1_000, [Append, Skip]),
        (1_199, [Append, Skip]),
        (1_200, [Start, Edit]),
    ],
)
def test_reminder_fallback_and_reset_come_in_this_order(used: int, kinds: list[type]) -> None:
    steps = run(policy(), at(used))
    assert [type(step) for step in steps] == kinds
    if isinstance(steps[0], Append):
        full = used >= 1_000
        assert ("window_full" in steps[0].item.text) is full
        assert full or f"about {1_000 - used}" in steps[0].item.text


def test_the_usable_window_forces_the_reset_before_the_buffer_is_full() -> None:
    assert isinstance(run(policy(), at(1_100, window=1_150))[-1], Edit)


def test_without_a_buffer_the_limit_resets() -> None:
    assert isinstance(run(policy(fallback_buffer=0), at(1_000))[-1], Edit)


async def test_the_model_is_reminded_once_in_a_window() -> None:
    session = Rig([*ITEMS, assistant("hm")], policy(), guard=Guard.REPORT)
    session.to.emit(e.ModelChanged(model="m", budget=budget(20_000)))
    for _ in range(2):
        session.report(750)
        await session.offer()
    assert sum("reminder" in item.text for item in session.state.context.items) == 1
    for _ in range(2):
        session.report(1_001)
        await session.offer()
    assert sum("window_full" in item.text for item in session.state.context.items) == 1
    session.report(1_250)
    assert (await session.offer()).compacted
    session.work(9)
    session.report(750)
    await session.offer()
    assert sum("reminder" in item.text for item in session.state.context.items) == 1
    assert not session.told(e.CompactionSkipped)


@pytest.mark.parametrize(
    ("items", "due"),
    [
        ([user("u"), *work("c", name="new_context")], True),
        ([user("u"), *work("a"), *work("c", name="new_context")], True),
        ([user("u"), *work("c", name="new_context"), *work("d")], False),
        ([user("u"), *work("c", name="new_context"), user("v"), *work("d")], False),
        (
            [
                FunctionCall("a", "new_context", "{}"),
                FunctionCall("b", "bash", "{}"),
                FunctionCallOutput("a", "1"),
                FunctionCallOutput("b", "2"),
            ],
            True,
        ),
        ([], False),
    ],
)
def test_a_window_that_the_model_asked_for_comes_after_its_round(
    items: list[Item], due: bool
) -> None:
    steps = run(policy(), situation(items, used=10))
    assert isinstance(steps[-1], Edit) is due
    if due:
        assert isinstance(steps[0], Start)
        assert steps[0].reason.startswith("new_context in mid_turn")


def test_by_hand_a_new_window_begins_too() -> None:
    where = at(10, moment=Moment.MANUAL, trigger=Trigger.MANUAL)
    assert isinstance(run(policy(), where)[-1], Edit)


@pytest.mark.parametrize(
    ("window", "params", "said"),
    [
        (20_000, {}, "900"),
        (None, {"auto_limit": None}, "unknown"),
        (20_000, {"auto_limit": 50}, "0"),
    ],
)
def test_the_tool_says_what_is_left(window: int | None, params: Any, said: str) -> None:
    text = policy(**params).serve("get_context_remaining", at(100, window=window))
    assert text.endswith(f": {said}")


# In the agent ---------------------------------------------------------------------------------


def script(request: Request) -> Reply:
    said = [m for m in request.messages if m.get("role") == "user"]
    if "New task" in str(said[-1]):
        return Reply("Asking.", (Call("get_context_remaining", {}), Call("new_context", {})))
    return Reply("A fresh start.")


def agent(tmp_path: Path) -> Any:
    flags = {"compaction.policy": "codex-token-budget"}
    return rig(tmp_path, script, flags=flags, params={"reminder": 0}, window=20_000)


async def test_the_model_asks_how_much_is_left_and_for_a_new_window(tmp_path: Path) -> None:
    async with agent(tmp_path) as on:
        assert await on.agent.run_turn("New task. " * 40) == "completed"
        left, confirmed = on.outputs()
        assert left.output.startswith("Tokens left in this context window: 1")
        assert not left.is_error
        assert not confirmed.is_error
        (event,) = on.events(e.HistoryCompacted)
        assert event.reason.startswith("new_context")
        (_, second) = on.server.model_requests
        assert "New task" not in second.text
        assert "<context_window>" in second.text
        assert on.said()[-1] == "A fresh start."


async def test_the_tools_are_offered_while_the_policy_is_in_force(tmp_path: Path) -> None:
    async with agent(tmp_path) as on:
        assert isinstance(on.agent.engine.policy, BringsTools)
        names = [tool.name for tool in on.agent.shape.tools]
        assert names[-2:] == ["new_context", "get_context_remaining"]
        tool = on.agent.tools["get_context_remaining"]
        on.agent.engine.set_policy(KeepAll())
        assert "new_context" not in [tool.name for tool in on.agent.shape.tools]
        assert "new_context" not in on.agent.tools
        result = await tool.run({}, on.agent.batch.context)
        assert not result.ok


async def test_a_subagent_is_not_offered_them(tmp_path: Path) -> None:
    async with agent(tmp_path) as on:
        setup = on.agent.prepare.setup
        child = build_agent(setup, on.session, subagent=True)
        assert "new_context" not in [tool.name for tool in child.shape.tools]
