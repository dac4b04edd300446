from __future__ import annotations

import pytest

from thresher.core import events as e
from thresher.core.agent.loop import TurnOutcome
from thresher.core.compaction.policy import Trigger

from .demo_run import demo, told


async def test_v1_shows_all_its_stages_in_the_demo() -> None:
    session, outcomes = await demo("opencode-v1")
    assert outcomes == (TurnOutcome.COMPLETED,) * 3
    cards = told(session, e.HistoryCompacted)
    assert {card.stage for card in cards} == {"compaction", "prune"}
    assert {card.trigger for card in cards} == {Trigger.AUTO, Trigger.OVERFLOW, Trigger.MANUAL}
    assert any("tool output" in note.text for note in told(session, e.Note))
    assert all(card.after.value < card.before.value for card in cards)
    assert not session.state.problems


@pytest.mark.parametrize("manual", [False, True])
async def test_v2_shows_its_checkpoint_in_the_demo(manual: bool) -> None:
    session, outcomes = await demo("opencode-v2", manual=manual)
    assert outcomes == (TurnOutcome.COMPLETED,) * 3
    cards = told(session, e.HistoryCompacted)
    assert {card.stage for card in cards} == {"compaction"}
    assert {Trigger.AUTO, Trigger.OVERFLOW} <= {card.trigger for card in cards}
    refused = [skip for skip in told(session, e.CompactionSkipped) if "by hand" in skip.reason]
    assert bool(refused) is not manual
    assert not session.state.problems
