from __future__ import annotations

import pytest

from thresher.core import events as e
from thresher.core.agent.assemble import build_agent, new_session
from thresher.core.agent.loop import TurnOutcome
from thresher.core.compaction.policy import Trigger
from thresher.core.config import load
from thresher.core.demo.driver import demo_setup, demo_workspace, run_demo
from thresher.core.demo.params import DEMO_PARAMS
from thresher.core.state import SessionState


async def played(policy: str) -> tuple[tuple[TurnOutcome, ...], list[e.Event], SessionState]:
    settings = load(
        environ={},
        flags={
            "model.wire": "offline",
            "agent.approval": "yes",
            "compaction.policy": policy,
            "compaction.params": dict(DEMO_PARAMS[policy]),
        },
    )
    setup = demo_setup(settings, demo_workspace(), pace=0)
    with new_session(setup, title="demo") as session:
        outcomes = await run_demo(build_agent(setup, session))
        return outcomes, [r.event for r in session.history.records], session.state


@pytest.mark.parametrize(
    ("policy", "stage"),
    [
        ("codex", "local"),
        ("codex-remote", "remote"),
        ("codex-token-budget", "token-budget"),
    ],
)
async def test_the_demo_shows_every_stage(policy: str, stage: str) -> None:
    outcomes, events, state = await played(policy)
    assert set(outcomes) == {TurnOutcome.COMPLETED}
    compacted = [event for event in events if isinstance(event, e.HistoryCompacted)]
    assert {event.stage for event in compacted} == {stage}
    assert {event.trigger for event in compacted} == {Trigger.AUTO, Trigger.MANUAL}
    assert {event.phase for event in compacted} == {"mid_turn", "standalone_turn"}
    assert not any(event.marks for event in compacted)
    caps = [n for n in events if isinstance(n, e.Note) and n.kind == "entry_cap"]
    assert caps
    assert all("truncation" in note.text for note in caps)
    assert not state.problems
    if policy == "codex":
        assert any("oldest items were left out" in event.reason for event in compacted)
    if policy == "codex-remote":
        assert all(event.opaque and event.summary is None for event in compacted)
    if policy == "codex-token-budget":
        notes = [i.item.text for i in events if isinstance(i, e.ItemAppended) and i.note]
        assert any("reminder" in text for text in notes)
        assert any("window_full" in text for text in notes)
