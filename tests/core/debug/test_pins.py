from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.compaction.rig import Rig, Scripted
from tests.policies.test_maf_properties import POLICIES as MAF
from tests.strategies import context_of, contexts, histories
from thresher.core import events as e
from thresher.core.compaction.pins import hold, without
from thresher.core.compaction.placing import faults
from thresher.core.compaction.policies import registry
from thresher.core.compaction.policy import (
    CompactRemotely,
    FailureKind,
    Files,
    Moment,
    Reread,
    Summary,
)
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.context import Context, EntryId, Inserted, Replaced
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Reasoning,
    assistant,
    system,
    user,
)
from thresher.core.models import Budget, Fact
from thresher.core.validate import Dialect, groups, validate

ITEMS = (
    system("rules"),
    user("go"),
    assistant("Looking."),
    FunctionCall("a", "read_file", "{}"),
    FunctionCall("b", "read_file", "{}"),
    FunctionCallOutput("a", "the rule"),
    FunctionCallOutput("b", "other"),
    user("on"),
)
SUMMARY = CompactionSummary("short", "Earlier: ")


def pinned(context: Context, segments: Any, *places: int) -> list[str]:
    ids = [context.ids[at] for at in places]
    held = hold(context, segments, ids, Dialect.CHAT)
    return [entry.item.text for entry in context.apply(held.segments, 99, 1).after]


def test_an_output_stays_with_its_call_and_without_its_neighbours() -> None:
    context = context_of(ITEMS)
    segments = (
        *context.keep([0]),
        Inserted(SUMMARY, context.span(context.ids[1:7])),
        *context.keep([7]),
    )
    assert pinned(context, segments, 5) == [
        "rules", "Earlier: short", "read_file {}", "the rule", "on",
    ]  # fmt: skip


def test_what_a_policy_rewrites_stays_as_it_was() -> None:
    context = context_of(ITEMS)
    cleared = FunctionCallOutput("a", "(cleared)")
    segments = (*context.keep(range(5)), Replaced("5", cleared), *context.keep([6, 7]))
    held = hold(context, segments, [EntryId(5)], Dialect.CHAT)
    assert held.segments == tuple(context.keep(range(8)))
    assert held.saved == (EntryId(5),)
    assert held.mark() == "kept 1 pinned entry"


def test_a_summary_does_not_speak_for_what_was_saved() -> None:
    context = context_of(ITEMS)
    segments = (
        *context.keep([0]),
        Inserted(SUMMARY, context.span(context.ids[1:7])),
        *context.keep([7]),
    )
    held = hold(context, segments, [EntryId(1)], Dialect.CHAT)
    change = context.apply(held.segments, 99, 1)
    assert [str(id) for id in change.after.entries[1].origin] == ["#2", "#3", "#4", "#5", "#6"]


def test_an_empty_new_list_still_holds_what_is_pinned() -> None:
    context = context_of(ITEMS)
    assert pinned(context, (Inserted(user("fresh")),), 1, 6) == [
        "fresh", "go", "read_file {}", "other",
    ]  # fmt: skip


def test_reasoning_brings_all_that_it_led_to() -> None:
    items = (user("go"), Reasoning(encrypted="c2Vh"), *ITEMS[2:])
    context = context_of(items)
    assert len(pinned(context, (), 1)) == 6


def test_a_drop_takes_the_pair_along() -> None:
    context = context_of(ITEMS)
    segments = without(context, tuple(context.keep(range(8))), [EntryId(3)])
    assert [str(id) for id in context.apply(segments, 99, 1).removed] == ["#3", "#5"]


@given(context=contexts(), data=st.data())
def test_whatever_an_edit_removes_the_pins_stay_in_legal_order(
    context: Context, data: st.DataObject
) -> None:
    places = st.sets(st.integers(0, len(context) - 1)) if len(context) else st.just(set())
    kept, pins = data.draw(places), data.draw(places)
    # What a policy may do: whole groups stay or go.
    stays = sorted(
        at for group in groups(context.items) if kept & set(group.places) for at in group.places
    )
    segments = (
        (*context.keep(stays), Inserted(SUMMARY))
        if data.draw(st.booleans())
        else tuple(context.keep(stays))
    )
    ids = [context.ids[at] for at in pins]
    change = context.apply(hold(context, segments, ids, Dialect.CHAT).segments, 999, 1)
    after = [id for id in change.after.ids if id.line != 999]
    assert set(ids) <= set(after)
    known = {(v.kind, v.call_id) for v in validate(context.items, Dialect.CHAT)}
    found = {(v.kind, v.call_id) for v in validate(change.after.items, Dialect.CHAT)}
    assert found <= known | {k for k in found if k[0].value == "nothing_to_answer"}
    if pins:
        again = hold(
            context, hold(context, segments, ids, Dialect.CHAT).segments, ids, Dialect.CHAT
        )
        assert again.saved == ()


QUICK: dict[str, dict[str, Any]] = {
    "teaching": {"threshold": 1, "user_budget": 0},
    "codex-token-budget": {"fallback_buffer": 0, "reminder": 0},
    "harnessx": {"snip_above": 6, "snip_head": 1, "snip_tail": 2},
    "opencode-v2": {"buffer": 100, "keep": 50, "manual": True},
}
"""Constants that make it due in a small session; to the others 1,950 of 2,000 tokens will do."""
EVERY = st.sampled_from([(name, QUICK.get(name, {})) for name in registry.names()])
MOMENTS = st.sampled_from([moment for moment in Moment if moment is not Moment.TOOL_OUTPUT])


async def sealed(ask: CompactRemotely, pass_id: str) -> Summary:
    return Summary("", "remote", encrypted="c2VhbGVk")


async def reread(ask: Reread) -> Files:
    return Files(())


@settings(deadline=None, max_examples=150)
@given(
    items=histories(summaries=False),
    policy=EVERY | st.builds(lambda each: (each[0], {"strategies": each[1]}), MAF),
    moments=st.lists(MOMENTS, min_size=1, max_size=3),
    dialect=st.sampled_from(Dialect),
    forced=st.booleans(),
    failing=st.booleans(),
    data=st.data(),
)
def test_no_policy_takes_a_pinned_entry_away_however_it_comes_to_compact(
    items: tuple[Item, ...],
    policy: tuple[str, Any],
    moments: list[Moment],
    dialect: Dialect,
    forced: bool,
    failing: bool,
    data: st.DataObject,
) -> None:
    broken = Scripted(SummaryFailed(FailureKind.PROVIDER, "gone"))
    rig = Rig(
        items,
        registry.make(*policy),
        summarisers=[broken, Scripted("S")] if failing else [Scripted("S")],
        retries=0,
        dialect=dialect,
        remote=sealed,
        reread=reread,
        also_at=frozenset({Moment.TURN_START, Moment.OVERFLOW}),
        threshold_share=0.5 if forced else None,
    )
    window = Fact(2_000, "test")
    rig.to.emit(
        e.ModelChanged(
            model="m", budget=Budget(window, Fact(100, "t"), Fact(0, "t"), Fact(1_900, "t"))
        )
    )
    context = rig.state.context
    pins = data.draw(st.lists(st.sampled_from(context.ids), min_size=1, max_size=4, unique=True))
    wanted = [context.get(id) for id in pins]
    rig.to.emit(e.EntriesPinned(entries=context.span(pins)))
    before: dict[int, Counter[tuple[str, str]]] = {}

    async def play() -> None:
        for number, moment in enumerate(moments):
            rig.work(100 + number, 400)
            rig.say(user("go on"))
            rig.report(1_950)
            before[rig.to.next_line] = faults(rig.state.context.items, dialect)
            await rig.offer(moment)
            rig.work(number, 3)
            rig.say(user(f"and {number}"))
            rig.engine.new_turn()

    asyncio.run(play())
    history = History()
    for record in rig.to.history.records:
        history.append(e.decode(e.encode(record)))
        if isinstance(record.event, e.HistoryCompacted):
            after = history.state.context
            assert [after.get(id) for id in pins] == wanted
            known = before[max(line for line in before if line <= record.n)]
            kinds = {kind for kind, _ in known}
            assert {kind for kind, _ in faults(after.items, dialect)} <= kinds
    assert history.state.context == rig.state.context
    assert history.state.problems == rig.state.problems == []
