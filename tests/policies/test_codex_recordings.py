from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thresher.core.compaction.policies.codex.entry import capped
from thresher.core.compaction.policies.codex.params import CodexParams
from thresher.core.compaction.policies.codex.truncation import Unit
from thresher.core.compaction.policy import FailureKind, Follow, Trigger
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.events import HistoryCompacted, Outcome
from thresher.core.items import Item, Message
from thresher.core.sources.codex_items import item_of

from .codex_replay import Replay, estimates, lines, replacements

FIXTURES = Path(__file__).parents[1] / "fixtures" / "codex"
TOO_LONG = SummaryFailed(FailureKind.OVERFLOW, "too long")
BROKEN = SummaryFailed(FailureKind.PROVIDER, "the server failed")

SESSIONS: dict[str, dict[str, Any]] = {
    "mid_turn": {"auto_limit": 6_000},
    "two_mid_turn": {},
    "pre_turn_twice": {"auto_limit": 6_000},
    "default_limit_90pct": {"auto_limit": None},
    "manual_appserver": {},
    "turn_overflow": {},
    "compact_overflow_trim": {"failures": [TOO_LONG] * 3},
    "compact_overflow_all": {"failures": [TOO_LONG] * 12},
    "compact_http500": {"failures": [BROKEN]},
    "empty_summary": {},
    "model_downshift": {},
    "remote_v2": {"policy": "codex-remote"},
    "token_budget": {"policy": "codex-token-budget", "reminder": 0, "fallback_buffer": 0},
    "hooks_pre_post": {},
}
"""Every recorded session in which Codex compacted or tried to, with its settings."""

every_session = pytest.mark.parametrize("name", sorted(SESSIONS))


def replay(name: str) -> Replay:
    settings = {"policy": "codex", **SESSIONS[name]}
    return Replay(FIXTURES / f"{name}.jsonl.gz", settings.pop("policy"), **settings)


def requests(name: str) -> list[dict[str, Any]]:
    return lines(FIXTURES / f"{name}.requests.jsonl.gz")


def carried(input: list[dict[str, Any]]) -> tuple[Item, ...]:
    """The history in a recorded request: without base instructions, and without its last item."""
    return tuple(item_of(raw) for raw in input[1:-1])


@every_session
async def test_the_policy_compacts_where_codex_did_and_nowhere_else(name: str) -> None:
    session = replay(name)
    pairs = await session.run()
    assert all(pair.theirs is not None for pair in pairs), [pair.ours for pair in pairs]
    recorded = list(session.compacted())
    assert len([p for p in pairs if isinstance(p.theirs, HistoryCompacted)]) == len(recorded)
    for pair in pairs:
        assert pair.ours is not None
        assert pair.ours.compacted is isinstance(pair.theirs, HistoryCompacted)
    assert session.checks or name in {"compact_overflow_all", "hooks_pre_post", "empty_summary"}


@every_session
async def test_the_new_history_is_the_recorded_one_item_for_item(name: str) -> None:
    session = replay(name)
    pairs = [p for p in await session.run() if isinstance(p.theirs, HistoryCompacted)]
    assert [pair.after for pair in pairs] == replacements(session)


@every_session
async def test_the_estimate_after_it_is_codexs_own(name: str) -> None:
    session = replay(name)
    pairs = [p for p in await session.run() if isinstance(p.theirs, HistoryCompacted)]
    assert [pair.estimate for pair in pairs] == estimates(session)


@every_session
async def test_phase_cause_count_and_window_are_those_of_the_recording(name: str) -> None:
    session = replay(name)
    await session.run()
    ours = [r.event for r in session.to.history.records if isinstance(r.event, HistoryCompacted)]
    for mine, theirs in zip(ours, session.compacted(), strict=True):
        assert mine.phase == theirs.phase
        assert (mine.trigger is Trigger.MANUAL) is (theirs.trigger is Trigger.MANUAL)
        assert mine.reason.partition(" ")[0] == theirs.reason.partition(":")[0]
        assert mine.memory["window_number"] == theirs.window
        assert theirs.before is not None
        if "new_context" not in mine.reason:
            assert f"{theirs.before.value:,} tokens" in mine.reason
        assert (mine.kept, mine.removed, mine.replaced, mine.inserted) == (
            theirs.kept,
            theirs.removed,
            theirs.replaced,
            theirs.inserted,
        )


@pytest.mark.parametrize(
    "name", [name for name, given in sorted(SESSIONS.items()) if "policy" not in given]
)
async def test_each_request_for_a_summary_carries_what_codex_sent(name: str) -> None:
    session = replay(name)
    await session.run()
    sent = [row for row in requests(name) if row["kind"] == "compaction"]
    by_number = {row["n"]: row for row in requests(name)}
    inputs = [row.get("input") or by_number[row["same_input_as"]]["input"] for row in sent]
    theirs = [carried(input) for input in inputs]
    if name == "compact_http500":
        # Codex sent the first one four times; the engine's retries are off here.
        theirs = [theirs[0], theirs[-1]]
    asked = session.answers.asked
    assert [items[:-1] for _, items in asked] == theirs
    last = [items[-1] for _, items in asked]
    assert all(isinstance(item, Message) and item.text for item in last)


async def test_the_provider_gets_what_codex_sent_to_be_compacted() -> None:
    session = replay("remote_v2")
    await session.run()
    sent = [row["input"] for row in requests("remote_v2") if row["kind"] == "compaction"]
    assert session.remote_asks == [carried(input) for input in sent]


async def test_a_smaller_window_asks_the_model_before() -> None:
    session = replay("model_downshift")
    await session.run()
    assert [model for model, _ in session.answers.asked] == ["toy-large"]


async def test_a_failed_compaction_ends_the_turn_and_changes_nothing() -> None:
    session = replay("compact_overflow_all")
    first, second = await session.run()
    for pair in (first, second):
        assert pair.ours is not None
        assert pair.ours.follow is Follow.WAIT
    assert len(session.answers.asked) == 12
    assert session.answers.asked[5].items[:-1] == ()
    assert len(first.after) == 7


async def test_in_enforce_mode_a_recorded_history_that_would_grow_is_left_alone() -> None:
    session = Replay(
        FIXTURES / "default_limit_90pct.jsonl.gz", "codex", auto_limit=None, guard=Guard.ENFORCE
    )
    (pair,) = await session.run()
    assert pair.ours is not None
    assert (pair.ours.outcome, pair.ours.compacted) == (Outcome.GREW, False)


def outputs(name: str) -> list[tuple[str, str]]:
    """(whole output, what entered the history) of each command that a session ran."""
    whole: dict[str, str] = {}
    found = []
    for line in lines(FIXTURES / f"{name}.jsonl.gz"):
        payload = line["payload"]
        if payload.get("type") == "item_completed":
            item = payload["item"]
            if item["type"] == "CommandExecution":
                whole[item["id"]] = item["aggregated_output"]
        if payload.get("type") == "function_call_output" and payload["call_id"] in whole:
            found.append((whole[payload["call_id"]], payload["output"]))
    return found


@pytest.mark.parametrize("name", ["mid_turn", "two_mid_turn", "remote_v2", "turn_overflow"])
def test_an_output_is_cut_byte_for_byte_as_recorded(name: str) -> None:
    params = CodexParams(truncation_limit=2_500, truncation_unit=Unit.TOKENS)
    checked = outputs(name)
    assert checked
    for whole, entered in checked:
        head, mark, body = entered.partition("\nOutput:\n")
        assert mark
        assert head.startswith("Chunk ID:")
        assert capped(whole, params) == body
