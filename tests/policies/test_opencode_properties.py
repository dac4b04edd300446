from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.compaction.policies.opencode.messages import completed, view
from thresher.core.compaction.policies.opencode_v1 import OpenCodeV1, OpenCodeV1Params
from thresher.core.compaction.policies.opencode_v2 import OpenCodeV2, OpenCodeV2Params
from thresher.core.compaction.policy import FailureKind, Moment, Policy
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.history import History
from thresher.core.items import Item, Message, Role
from thresher.core.jsontext import encode
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact
from thresher.core.tokens import CharClassCounter, Usage
from thresher.core.validate import Dialect, validate

from ..strategies import context_of, histories
from .opencode_drive import Driven, step

BUDGET = Budget(Fact(20_000, "test"), Fact(None, "test"), Fact(2_000, "test"), Fact(None, "test"))
POLICIES = st.builds(
    lambda turns, budget, prune, refused: OpenCodeV1(
        OpenCodeV1Params(
            tail_turns=turns,
            preserve_recent_tokens=budget,
            prune=prune,
            prune_protect=100,
            prune_minimum=10,
            keep_refused_turn=refused,
        )
    ),
    st.none() | st.integers(0, 3),
    st.sampled_from([0, 50, 400, 2_000]),
    st.booleans(),
    st.booleans(),
) | st.builds(
    lambda keep, buffer: OpenCodeV2(OpenCodeV2Params(keep=keep, buffer=buffer, manual=True)),
    st.sampled_from([0, 50, 400, 2_000]),
    st.sampled_from([0, 19_900, 20_000]),
)
MOMENTS = st.lists(
    st.sampled_from(
        [Moment.BEFORE_REQUEST, Moment.AFTER_ROUND, Moment.TURN_END, Moment.OVERFLOW, Moment.MANUAL]
    ),
    min_size=1,
    max_size=4,
)
WRITERS = st.sampled_from(
    ["S", "a summary " * 90, SummaryFailed(FailureKind.OVERFLOW, "too long"),
     SummaryFailed(FailureKind.PROVIDER, "down")]
)  # fmt: skip


def played(
    items: tuple[Item, ...],
    policy: Policy,
    moments: list[Moment],
    writer: Any,
    guard: Guard = Guard.ENFORCE,
) -> Driven:
    """Compactions at these moments, with a round and a new message between each two."""

    async def play() -> Driven:
        driven = Driven(policy, BUDGET, writer, guard=guard, lead=())
        driven.say("", *items)
        for number, moment in enumerate(moments):
            driven.engine.new_turn()
            driven.report(Usage(19_000))
            await driven.offer(moment)
            driven.say("", *step(f"between{number}", 300), Message(Role.USER, f"go on {number}"))
        return driven

    return asyncio.run(play())


def typed(items: tuple[Item, ...]) -> list[str]:
    return [
        i.text for i in items if isinstance(i, Message) and i.role is Role.USER and not i.synthetic
    ]


@given(items=histories(), policy=POLICIES, moments=MOMENTS, writer=WRITERS)
def test_enforced_a_compaction_keeps_what_must_be_kept(
    items: tuple[Item, ...], policy: Policy, moments: list[Moment], writer: Any
) -> None:
    driven = played(items, policy, moments, writer)
    measure = Ledger(CharClassCounter())
    history = History()
    for record in driven.to.history.records:
        before = history.state.context
        history.extend([record])
        after = history.state.context
        if not isinstance(record.event, e.HistoryCompacted):
            continue
        assert validate(after.items, Dialect.CHAT) == []
        if isinstance(items[0], Message) and items[0].role is Role.SYSTEM:
            assert after.items[0] == items[0]
        assert measure.context(after) - measure.context(before) < 0
        newest = typed(before.items)[-1:]
        if isinstance(policy, OpenCodeV1) and typed(after.items)[-1:] != newest:
            told = "The newest user message is among what went." in record.event.reason
            assert told or "[Attached image/png: file]" in typed(after.items)[-1]
        assert "fault of the system" not in " ".join(record.event.marks)
    assert history.state.context == driven.state.context


@given(items=histories(orphans=True), policy=POLICIES, moments=MOMENTS, writer=WRITERS)
def test_a_history_with_orphans_gets_no_worse(
    items: tuple[Item, ...], policy: Policy, moments: list[Moment], writer: Any
) -> None:
    known = {(v.kind, v.call_id) for v in validate(items, Dialect.CHAT)}
    driven = played(items, policy, moments, writer)
    found = {(v.kind, v.call_id) for v in validate(driven.state.context.items, Dialect.CHAT)}
    assert found <= known


@given(items=histories(orphans=True), policy=POLICIES, moments=MOMENTS, writer=WRITERS)
def test_the_same_history_gives_the_same_record(
    items: tuple[Item, ...], policy: Policy, moments: list[Moment], writer: Any
) -> None:
    one, other = (
        [encode(record.event) for record in played(*given_, writer).to.history.records]
        for given_ in [(items, policy, moments)] * 2
    )
    assert one == other


@given(items=histories(orphans=True), policy=POLICIES, moments=MOMENTS, writer=WRITERS)
def test_reported_nothing_is_refused_and_a_replay_is_equal(
    items: tuple[Item, ...], policy: Policy, moments: list[Moment], writer: Any
) -> None:
    driven = played(items, policy, moments, writer, Guard.REPORT)
    assert [event for event in driven.told(e.CompactionFailed) if event.kind == "refused"] == []
    again = History()
    again.extend(driven.to.history.records)
    assert again.state.context == driven.state.context


@given(items=histories(orphans=True), recap=st.sampled_from(["?", "Never touch the tests."]))
def test_every_entry_is_in_exactly_one_message_and_storage_only_moves_them(
    items: tuple[Item, ...], recap: str
) -> None:
    seen = view(context_of(items), recap, {"tail": 2, "window": 0})
    places = [at for piece in seen.pieces for at in piece.places]
    assert sorted([*range(seen.lead), *places]) == list(range(len(items)))
    assert sorted(piece.places for piece in seen.stored) == [p.places for p in seen.pieces]
    assert completed(seen.pieces) <= set(range(len(seen.pieces)))
