from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.compaction.rig import Rig, Scripted
from tests.strategies import histories
from thresher.core import events as e
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import FailureKind, Files, Moment, Reread
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.history import History
from thresher.core.items import Item, Message, Role
from thresher.core.jsontext import encode
from thresher.core.ledger import Ledger
from thresher.core.tokens import CharClassCounter
from thresher.core.validate import Dialect, validate

SMALL = st.integers(0, 8)
SIZES = st.sampled_from([0, 1, 40, 200, 4_000])
HARNESSX = st.fixed_dictionaries(
    {
        "large_result": SIZES,
        "batch_budget": SIZES,
        "preview": st.sampled_from([0, 30]),
        "snip_above": SMALL,
        "snip_head": SMALL,
        "snip_tail": SMALL,
        "keep_results": SMALL,
        "micro_above": SIZES,
        "threshold": st.sampled_from([1, 400, 10**6]),
        "reactive_tail": SMALL,
        "repeat_request": st.booleans(),
    }
)
CLAUDE_CODE = st.fixed_dictionaries(
    {
        "auto_compact_window": st.sampled_from([50, 1_000, 10**6]),
        "summary_reserve": st.just(0),
        "buffer": st.just(0),
        "warning_margin": st.sampled_from([0, 10**6]),
        "count_after": st.sampled_from(["first", "last", "none"]),
        "micro": st.booleans(),
        "micro_keep": SIZES,
        "micro_min_saving": SIZES,
        "keep_last_turn": st.booleans(),
        "files_first": st.booleans(),
        "transcript": st.booleans(),
        "restore_file_tokens": SIZES,
        "persist_above": SIZES,
    }
)
POLICIES = st.tuples(st.just("harnessx"), HARNESSX) | st.tuples(st.just("claude-code"), CLAUDE_CODE)
OVERFLOW = SummaryFailed(FailureKind.OVERFLOW, "too long", used=1_100, limit=1_000)
WRITERS = st.sampled_from(
    [
        ("S",),
        ("<analysis>a</analysis><summary>b</summary>",),
        ("a summary " * 90,),
        (OVERFLOW,),
        (OVERFLOW, "S"),
        (SummaryFailed(FailureKind.EMPTY, "empty"),),
    ]
)
MOMENTS = st.lists(
    st.sampled_from([Moment.BEFORE_REQUEST, Moment.OVERFLOW, Moment.MANUAL, Moment.TURN_START]),
    min_size=1,
    max_size=3,
)


class Kept:
    """A store without a disk."""

    def save(self, name: str, text: str) -> str:
        return f"/kept/{name}"


async def reread(ask: Reread) -> Files:
    return Files(tuple((path, "what is in it\n" * 5) for path in ask.paths))


def played(
    items: tuple[Item, ...],
    policy: tuple[str, Any],
    writer: tuple[Any, ...],
    moments: list[Moment],
    **settings: Any,
) -> Rig:
    """A pass at each of the moments, with a report and a round in between."""

    async def play() -> Rig:
        rig = Rig(
            items,
            make(*policy),
            summarisers=[Scripted(*writer)],
            store=Kept(),
            reread=reread,
            retries=0,
            **settings,
        )
        for number, moment in enumerate(moments):
            rig.report(2_000)
            await rig.offer(moment)
            rig.work(number, 3)
            rig.engine.new_turn()
        return rig

    return asyncio.run(play())


def typed(items: tuple[Item, ...]) -> list[Item]:
    return [i for i in items if isinstance(i, Message) and i.role is Role.USER and not i.synthetic]


@given(items=histories(), policy=POLICIES, writer=WRITERS, moments=MOMENTS)
def test_enforced_a_compaction_keeps_what_must_be_kept(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: tuple[Any, ...], moments: list[Moment]
) -> None:
    rig = played(items, policy, writer, moments)
    assert "policy" not in [event.kind for event in rig.told(e.CompactionFailed)]
    measure = Ledger(CharClassCounter())
    history = History()
    for record in rig.to.history.records:
        before = history.state.context
        history.extend([record])
        if not isinstance(record.event, e.HistoryCompacted):
            continue
        after = history.state.context.items
        assert validate(after, Dialect.CHAT) == []
        if isinstance(items[0], Message) and items[0].role is Role.SYSTEM:
            assert after[0] == items[0]
        assert measure.context(history.state.context) - measure.context(before) < 0
        if record.event.stage in ("micro", "microcompact", "tool result budget"):
            assert typed(before.items) == typed(after)
        if record.event.stage == "snip" and typed(before.items)[-1:] != typed(after)[-1:]:
            assert "the user's newest message" in record.event.reason
    assert history.state.context == rig.state.context


@given(items=histories(), params=CLAUDE_CODE, moments=MOMENTS)
def test_claude_code_keeps_what_was_typed_after_the_last_answer(
    items: tuple[Item, ...], params: dict[str, Any], moments: list[Moment]
) -> None:
    policy = ("claude-code", {**params, "keep_last_turn": True})
    rig = played(items, policy, ("S",), moments[:1])
    last = typed(items)[-1:] if typed(items[-1:]) else []
    events = rig.told(e.HistoryCompacted)
    if last and not any(event.trigger == "overflow" for event in events):
        assert last[0] in rig.state.context.items


@given(items=histories(orphans=True), policy=POLICIES, writer=WRITERS, moments=MOMENTS)
def test_a_history_with_orphans_gets_no_worse(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: tuple[Any, ...], moments: list[Moment]
) -> None:
    known = {(v.kind, v.call_id) for v in validate(items, Dialect.CHAT)}
    rig = played(items, policy, writer, moments)
    found = {(v.kind, v.call_id) for v in validate(rig.state.context.items, Dialect.CHAT)}
    assert found <= known


@given(items=histories(orphans=True), policy=POLICIES, writer=WRITERS, moments=MOMENTS)
def test_the_same_history_gives_the_same_record_and_a_replay_the_same_context(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: tuple[Any, ...], moments: list[Moment]
) -> None:
    one, other = (played(items, policy, writer, moments) for _ in range(2))
    assert [encode(event) for event in one.events] == [encode(event) for event in other.events]
    again = History()
    again.extend(one.to.history.records)
    assert again.state.context.digest() == one.state.context.digest()


@given(items=histories(), policy=POLICIES, writer=WRITERS, moments=MOMENTS)
def test_reported_no_edit_is_refused_and_no_policy_raises(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: tuple[Any, ...], moments: list[Moment]
) -> None:
    rig = played(items, policy, writer, moments, guard=Guard.REPORT)
    failed = rig.told(e.CompactionFailed)
    assert [event.kind for event in failed if event.kind in ("refused", "policy")] == []
    for event in rig.told(e.HistoryCompacted):
        assert not any("pair" in mark or "call" in mark for mark in event.marks)


@pytest.mark.parametrize("name", ["harnessx", "claude-code"])
async def test_no_moment_raises_on_an_empty_history(name: str) -> None:
    for moment in Moment:
        rig = Rig([], make(name), store=Kept(), reread=reread, also_at=frozenset(Moment))
        await rig.offer(moment)
        assert not rig.told(e.CompactionFailed)
