from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import (
    CompactRemotely,
    Failure,
    FailureKind,
    Moment,
    Summary,
)
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.history import History
from thresher.core.items import Item, Message, Role
from thresher.core.validate import Dialect, validate

from ..core.compaction.rig import Rig, Scripted
from ..strategies import histories
from .codex_situations import budget, harness

NAMES = st.sampled_from(["codex", "codex-remote", "codex-token-budget"])
MOMENTS = st.sampled_from(
    [Moment.TURN_START, Moment.AFTER_ROUND, Moment.TURN_END, Moment.MANUAL, Moment.MODEL_CHANGE]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "auto_limit": st.sampled_from([1, 100, 2_000]),
        "scope": st.sampled_from(["total", "body_after_prefix"]),
        "post_turn_percent": st.sampled_from([0, 1, 100]),
        "estimate_when_unreported": st.booleans(),
    },
)
SMALL = {
    "codex": st.fixed_dictionaries({"user_budget": st.sampled_from([1, 8, 900])}),
    "codex-remote": st.fixed_dictionaries({"message_budget": st.sampled_from([1, 8, 900])}),
    "codex-token-budget": st.fixed_dictionaries({"fallback_buffer": st.sampled_from([0, 50])}),
}
FRESH = st.sampled_from(
    [
        (),
        (harness("<environment_context>here</environment_context>"),),
        (harness("rules", Role.DEVELOPER), harness("<environment_context>")),
    ]
)
ANSWERS = st.sampled_from(
    [
        ["A short summary."],
        [SummaryFailed(FailureKind.OVERFLOW, "too long")] * 2 + ["After two."],
        [SummaryFailed(FailureKind.OVERFLOW, "too long")],
        [SummaryFailed(FailureKind.EMPTY, "nothing")],
        [SummaryFailed(FailureKind.PROVIDER, "broken")],
    ]
)


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(NAMES)
    return {
        "name": name,
        "params": {**draw(PARAMS), **draw(SMALL[name])},
        "items": draw(histories()),
        "moment": draw(MOMENTS),
        "answers": draw(ANSWERS),
        "fresh": draw(FRESH),
        "used": draw(st.sampled_from([10, 400, 19_500])),
    }


async def played(case: dict[str, Any], guard: Guard = Guard.ENFORCE) -> Rig:
    answers = case["answers"]

    async def remote(ask: CompactRemotely, pass_id: str) -> Summary | Failure:
        if isinstance(answers[-1], SummaryFailed):
            return Failure(answers[-1].kind, answers[-1].message)
        return Summary("", "m", encrypted="c2VhbGVk")

    rig = Rig(
        case["items"],
        make(case["name"], case["params"]),
        summarisers=[Scripted(*answers)],
        remote=remote,
        guard=guard,
        retries=0,
        dialect=Dialect.RESPONSES,
    )
    rig.to.emit(e.ModelChanged(model="m", budget=budget(20_000)))
    rig.report(case["used"])
    await rig.offer(
        case["moment"],
        fresh=case["fresh"],
        previous_model="large",
        previous_budget=budget(64_000),
    )
    return rig


def newest_user(items: tuple[Item, ...]) -> Message | None:
    said = (i for i in reversed(items) if isinstance(i, Message) and i.role is Role.USER)
    return next((item for item in said if not item.synthetic), None)


@given(cases())
def test_in_enforce_mode_every_new_history_is_sound(case: dict[str, Any]) -> None:
    rig = asyncio.run(played(case))
    before, after = case["items"], rig.state.context.items
    for event in rig.told(e.HistoryCompacted):
        assert event.after.value < event.before.value
        assert not event.marks
        assert not validate(after, Dialect.RESPONSES)
    if before and isinstance(before[0], Message) and before[0].role is Role.SYSTEM:
        assert after[0] == before[0]
    if case["name"] != "codex-token-budget":
        assert (newest_user(before) is None) is (newest_user(after) is None)
    if not rig.told(e.HistoryCompacted):
        assert after[: len(before)] == before


@given(cases())
def test_the_same_history_gives_the_same_record_and_its_replay_the_same_context(
    case: dict[str, Any],
) -> None:
    first, second = asyncio.run(played(case)), asyncio.run(played(case))
    assert first.events == second.events
    replayed = History()
    for record in first.to.history.records:
        replayed.append(record)
    assert replayed.state.context == first.state.context
    assert replayed.state.memory == first.state.memory
    assert not replayed.state.problems


@given(cases())
def test_in_report_mode_what_enforcing_refuses_happens_and_is_marked(case: dict[str, Any]) -> None:
    enforced = asyncio.run(played(case))
    reported = asyncio.run(played(case, Guard.REPORT))
    for event in reported.told(e.HistoryCompacted):
        assert bool(event.marks) is not bool(enforced.told(e.HistoryCompacted))


@given(cases())
def test_no_half_of_a_pair_stays(case: dict[str, Any]) -> None:
    rig = asyncio.run(played(case, Guard.REPORT))
    if rig.told(e.HistoryCompacted):
        kinds = {type(item).__name__ for item in rig.state.context.items}
        assert not kinds & {"FunctionCall", "FunctionCallOutput", "Reasoning"}


@pytest.mark.parametrize("name", ["codex", "codex-remote", "codex-token-budget"])
async def test_a_history_with_orphans_can_still_be_compacted(name: str) -> None:
    from thresher.core.items import FunctionCall, FunctionCallOutput, user

    items = (user("u " * 900), FunctionCallOutput("x", "lost" * 900), FunctionCall("y", "t", "{}"))
    case = {
        "name": name,
        "params": {},
        "items": items,
        "moment": Moment.MANUAL,
        "answers": ["s"],
        "fresh": (),
        "used": 10,
    }
    rig = await played(case)
    assert rig.told(e.HistoryCompacted)
    assert not validate(rig.state.context.items, Dialect.RESPONSES)
