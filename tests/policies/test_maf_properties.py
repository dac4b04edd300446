from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.core.compaction.rig import Rig, Scripted
from tests.strategies import context_of, histories
from thresher.core import events as e
from thresher.core.compaction.policies.maf.bridge import Bridge
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import FailureKind, Moment
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.history import History
from thresher.core.items import Item, Message, Role
from thresher.core.jsontext import encode
from thresher.core.ledger import Ledger
from thresher.core.tokens import CharClassCounter
from thresher.core.validate import Dialect, validate

SMALL = st.integers(0, 6)
NUMBERS = st.sampled_from([0, 1, 5, 20, 80, 400])
CONDITIONS = st.recursive(
    st.sampled_from(["always", "never"])
    | st.builds(lambda n: {"tokens_exceed": n}, NUMBERS)
    | st.builds(lambda n: {"tokens_below": n}, NUMBERS)
    | st.builds(lambda n: {"messages_exceed": n}, SMALL)
    | st.builds(lambda n: {"turns_exceed": n}, SMALL)
    | st.builds(lambda n: {"groups_exceed": n}, SMALL)
    | st.builds(lambda n: {"stop_after": n}, st.integers(1, 4))
    | st.just({"has_tool_calls": True}),
    lambda inner: st.builds(
        lambda word, parts: {word: parts},
        st.sampled_from(["all", "any"]),
        st.lists(inner, max_size=2),
    ),
    max_leaves=3,
)
GROUPS = st.builds(lambda n: {"minimum_preserved_groups": n}, SMALL)


def _with(names: st.SearchStrategy[str], params: st.SearchStrategy[Any]) -> Any:
    return st.builds(
        lambda name, params, trigger, target: {
            "strategy": name,
            "params": params,
            "trigger": trigger,
            **({} if target is None else {"target": target}),
        },
        names,
        params,
        CONDITIONS,
        st.none() | CONDITIONS,
    )


DOTNET = st.lists(
    _with(st.sampled_from(["tool_result", "summarization", "truncation"]), GROUPS)
    | _with(st.just("sliding_window"), st.builds(lambda n: {"minimum_preserved_turns": n}, SMALL))
    | st.builds(
        lambda n, trigger: {
            "strategy": "chat_reducer",
            "params": {"keep_last": n},
            "trigger": trigger,
        },
        SMALL,
        CONDITIONS,
    )
    | st.builds(
        lambda n: {"strategy": "context_window", "params": {"max_context_window_tokens": n}},
        st.sampled_from([10, 100, 1000]),
    ),
    min_size=1,
    max_size=4,
)
_SIMPLE = (
    st.builds(
        lambda n, m, tokens: {
            "strategy": "truncation",
            "params": {
                "max_n": n + m,
                "compact_to": n,
                **({"tokenizer": "char_estimator"} if tokens else {}),
            },
        },
        st.integers(1, 60),
        st.integers(0, 200),
        st.booleans(),
    )
    | st.builds(
        lambda n: {"strategy": "sliding_window", "params": {"keep_last_groups": n}},
        st.integers(1, 5),
    )
    | st.builds(
        lambda name, n: {"strategy": name, "params": {"keep_last_tool_call_groups": n}},
        st.sampled_from(["selective_tool_call", "tool_result"]),
        st.integers(0, 3),
    )
    | st.builds(
        lambda n, m: {"strategy": "summarization", "params": {"target_count": n, "threshold": m}},
        st.integers(1, 5),
        st.integers(0, 2),
    )
)
PYTHON = st.lists(
    _SIMPLE
    | st.builds(
        lambda n, early, inside: {
            "strategy": "token_budget",
            "params": {"token_budget": n, "early_stop": early, "strategies": inside},
        },
        NUMBERS,
        st.booleans(),
        st.lists(_SIMPLE, max_size=2),
    )
    | st.builds(
        lambda n: {"strategy": "context_window", "params": {"max_context_window_tokens": n}},
        st.sampled_from([10, 100, 1000]),
    ),
    min_size=1,
    max_size=2,
)
POLICIES = st.tuples(st.just("maf-dotnet"), DOTNET) | st.tuples(st.just("maf-python"), PYTHON)
WRITERS = st.sampled_from(
    ["S", "a summary " * 90, SummaryFailed(FailureKind.EMPTY, "empty"),
     SummaryFailed(FailureKind.PROVIDER, "down")]
)  # fmt: skip


def played(items: tuple[Item, ...], policy: tuple[str, Any], writer: Any, **settings: Any) -> Rig:
    """Two passes over a history, with a round in between."""

    async def play() -> Rig:
        rig = Rig(
            items,
            make(policy[0], {"strategies": policy[1]}),
            summarisers=[Scripted(writer)],
            retries=0,
            **settings,
        )
        await rig.offer(Moment.BEFORE_REQUEST)
        rig.work(1, 3)
        rig.engine.new_turn()
        await rig.offer(Moment.BEFORE_REQUEST)
        return rig

    return asyncio.run(play())


def typed(items: tuple[Item, ...]) -> list[Item]:
    return [i for i in items if isinstance(i, Message) and i.role is Role.USER and not i.synthetic]


@given(items=histories(), policy=POLICIES, writer=WRITERS)
def test_enforced_a_compaction_keeps_what_must_be_kept(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: Any
) -> None:
    rig = played(items, policy, writer)
    measure = Ledger(CharClassCounter())
    after: tuple[Item, ...] = ()
    history = History()
    for record in rig.to.history.records:
        before = history.state.context
        history.extend([record])
        after = history.state.context.items
        if not isinstance(record.event, e.HistoryCompacted):
            continue
        assert validate(after, Dialect.CHAT) == []
        if (
            before.items[0] == items[0]
            and isinstance(items[0], Message)
            and (items[0].role is Role.SYSTEM)
        ):
            assert after[0] == items[0]
        assert measure.context(history.state.context) - measure.context(before) < 0
        if typed(before.items)[-1:] != typed(after)[-1:]:
            assert "The newest user message is among what went." in record.event.reason
    assert history.state.context == rig.state.context


@given(items=histories(orphans=True), policy=POLICIES, writer=WRITERS)
def test_a_history_with_orphans_gets_no_worse(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: Any
) -> None:
    known = {(v.kind, v.call_id) for v in validate(items, Dialect.CHAT)}
    rig = played(items, policy, writer)
    found = {(v.kind, v.call_id) for v in validate(rig.state.context.items, Dialect.CHAT)}
    assert found <= known


@given(items=histories(orphans=True), policy=POLICIES, writer=WRITERS)
def test_the_same_history_gives_the_same_record(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: Any
) -> None:
    one, other = (
        [encode(event) for event in played(items, policy, writer).events] for _ in range(2)
    )
    assert one == other


@given(items=histories(orphans=True), policy=POLICIES, writer=WRITERS)
def test_reported_every_fault_happens_and_is_marked(
    items: tuple[Item, ...], policy: tuple[str, Any], writer: Any
) -> None:
    rig = played(items, policy, writer, guard=Guard.REPORT)
    refused = [event for event in rig.told(e.CompactionFailed) if event.kind == "refused"]
    assert refused == []
    for event in rig.told(e.HistoryCompacted):
        grew = event.after.value >= event.before.value
        assert grew == any("would not shrink" in mark for mark in event.marks)
    again = History()
    again.extend(rig.to.history.records)
    assert again.state.context == rig.state.context


@given(items=histories(orphans=True))
def test_every_entry_is_in_exactly_one_message_and_in_order(items: tuple[Item, ...]) -> None:
    bridge = Bridge(context_of(items))
    taken = [id for message in bridge.messages for id in bridge.entries(message)]
    assert taken == list(bridge.context.ids)
    assert bridge.items(bridge.messages) == items
