from __future__ import annotations

import pytest

from thresher.core import events as e
from thresher.core.compaction.policies.registry import names
from thresher.core.compaction.policy import Trigger
from thresher.core.history import History
from thresher.core.sessions.resume import read
from thresher.core.validate import Dialect, validate

from .demo_run import demo, told

STAGES = {
    "teaching": {
        ("compaction", Trigger.AUTO),
        ("compaction", Trigger.MANUAL),
        ("compaction", Trigger.OVERFLOW),
    },
    "keep-all": set(),
    "codex": {("local", Trigger.AUTO), ("local", Trigger.MANUAL)},
    "codex-remote": {("remote", Trigger.AUTO), ("remote", Trigger.MANUAL)},
    "codex-token-budget": {("token-budget", Trigger.AUTO), ("token-budget", Trigger.MANUAL)},
    "harnessx": {
        ("snip", Trigger.AUTO),
        ("micro", Trigger.AUTO),
        ("history", Trigger.AUTO),
        ("history", Trigger.MANUAL),
    },
    "claude-code": {
        ("microcompact", Trigger.AUTO),
        ("compact", Trigger.AUTO),
        ("compact", Trigger.MANUAL),
    },
    "maf-dotnet": {
        ("ToolResultCompaction", Trigger.AUTO),
        ("SummarizationCompaction", Trigger.AUTO),
        ("TruncationCompaction", Trigger.AUTO),
    },
    "maf-python": {
        ("tool_result_compaction", Trigger.AUTO),
        ("summarized", Trigger.AUTO),
        ("token_budget_fallback", Trigger.AUTO),
    },
    "opencode-v1": {
        ("compaction", Trigger.AUTO),
        ("compaction", Trigger.MANUAL),
        ("compaction", Trigger.OVERFLOW),
        ("prune", Trigger.AUTO),
    },
    "opencode-v2": {("compaction", Trigger.AUTO), ("compaction", Trigger.OVERFLOW)},
}
"""What each system's documentation promises, and the demo's script brings about."""


def test_the_table_names_every_policy() -> None:
    assert set(STAGES) == set(names())


@pytest.mark.parametrize("policy", names())
async def test_every_policy_shows_its_stages_in_the_demo(policy: str) -> None:
    session, outcomes = await demo(policy)
    done = told(session, e.HistoryCompacted)
    assert STAGES[policy] <= {(event.stage, event.trigger) for event in done}
    assert len(outcomes) == 3
    assert all(event.policy == policy and event.reason for event in done)
    assert not validate(session.state.context.items, Dialect.CHAT)
    again = History()
    again.extend(read(session.path).records)
    assert again.state.context == session.state.context
    assert [card.status for card in again.state.cards] == [c.status for c in session.state.cards]
