from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.compaction.rig import WORK
from tests.strategies import histories
from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.compaction.recorder import MemoryRecorder
from thresher.core.context import Context, EntryId, Inserted, Replaced, Segment
from thresher.core.debug.restore import last_compaction, preview_restore, preview_undo
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    assistant,
    user,
)
from thresher.core.validate import Dialect, groups, validate


def session(items: tuple[Item, ...]) -> MemoryRecorder:
    to = MemoryRecorder()
    to.emit(e.SessionStarted(session_id="s", agent="thresher", policy="p"))
    for item in items:
        to.emit(e.ItemAppended(item=item))
    return to


def compact(
    to: MemoryRecorder, segments: list[Segment], memory: dict[str, object] | None = None
) -> None:
    state = to.state
    ordinal = state.compactions + 1
    change = state.context.apply(segments, to.next_line, ordinal)
    to.emit(
        e.HistoryCompacted(
            ordinal=ordinal, pass_id=f"p{ordinal}", policy="p", stage="s", moment=Moment.MANUAL,
            trigger=Trigger.MANUAL, reason="r", segments=tuple(segments),
            items_before=len(state.context), items_after=len(change.after), kept=len(change.kept),
            removed=len(change.removed), replaced=len(change.replaced),
            inserted=len(change.inserted), digest=change.after.digest(), memory=memory or {},
        )
    )  # fmt: skip


def summarise(to: MemoryRecorder, keep: list[int]) -> None:
    context = to.state.context
    gone = [id for at, id in enumerate(context.ids) if at not in keep]
    head = [at for at in keep if at == 0]
    compact(
        to,
        [
            *context.keep(head),
            Inserted(CompactionSummary("short"), context.span(gone)),
            *context.keep([at for at in keep if at]),
        ],
    )


def replays(to: MemoryRecorder) -> bool:
    again = History()
    again.extend(e.decode(e.encode(record)) for record in to.history.records)
    assert again.state.problems == to.state.problems == []
    return (
        again.state.context == to.state.context
        and again.state.fates == to.state.fates
        and again.state.cards == to.state.cards
        and again.state.memory == to.state.memory
    )


def test_undo_brings_back_what_was_and_puts_what_came_since_behind_it() -> None:
    to = session(WORK)
    before = to.state.context
    summarise(to, [0, 1])
    to.emit(e.ItemAppended(item=user("since")))
    preview = preview_undo(to.state)
    assert (preview.undone, len(preview.restored), len(preview.removed)) == (1, 3, 1)
    assert preview.tokens == preview.after.value - to.state.messages_tokens.value > 0
    to.emit(preview.event())
    assert to.state.context.ids == (*before.ids, to.state.context.ids[-1])
    assert to.state.context.entries[:-1] == before.entries
    assert to.state.messages_tokens == preview.after
    assert to.state.usage is None
    assert [to.state.fate(id).words() for id in before.ids] == ["in context"] * 5
    assert to.state.fate(preview.removed[0]).words() == "gone since compaction 1 was undone"
    assert to.state.cards[-1].undone == to.history.records[-1].n
    assert replays(to)


def test_undone_is_the_newest_that_still_holds_and_then_the_one_before() -> None:
    to = session(WORK)
    first = to.state.context
    compact(to, [*first.keep(range(4)), Replaced("5", FunctionCallOutput("c1", "(cleared)"))])
    second = to.state.context
    summarise(to, [0, 1])
    to.emit(preview_undo(to.state).event())
    assert to.state.context == second
    to.emit(preview_undo(to.state).event())
    assert to.state.context == first
    assert last_compaction(to.state) is None
    with pytest.raises(ThresherError, match="Nothing to undo"):
        preview_undo(to.state)
    assert replays(to)


def test_undo_brings_back_what_the_policy_knew() -> None:
    to = session(WORK)
    compact(to, list(to.state.context.keep([0, 1])), {"window": 1})
    compact(to, list(to.state.context.keep([1])), {"window": 2, "more": True})
    to.emit(preview_undo(to.state).event())
    assert to.state.memory == {"window": 1}
    assert replays(to)


def test_undo_leaves_the_memory_of_another_policy_alone() -> None:
    to = session(WORK)
    compact(to, list(to.state.context.keep([0, 1])), {"window": 1})
    to.emit(e.PolicyChanged(policy="q"))
    assert preview_undo(to.state).memory is None


def test_a_removed_output_comes_back_to_its_place_with_its_call() -> None:
    to = session((*WORK, user("next"), assistant("Yes.")))
    output = to.state.context.ids[4]
    summarise(to, [0, 1, 5, 6])
    preview = preview_restore(to.state, output)
    assert [str(id) for id in preview.restored] == ["#4", "#5"]
    to.emit(preview.event())
    kinds = [entry.kind.value for entry in to.state.context]
    assert kinds == ["system", "summary", "user", "call", "output", "user", "assistant"]
    assert to.state.fate(output).words() == "in context"
    assert to.state.messages_tokens == preview.after
    assert replays(to)


def test_a_rewritten_entry_takes_the_place_of_its_rewritten_form_and_back() -> None:
    to = session(WORK)
    whole = to.state.context.ids[4]
    compact(
        to,
        [*to.state.context.keep(range(4)), Replaced(whole.bare, FunctionCallOutput("c1", "(…)"))],
    )
    short = to.state.context.ids[4]
    to.emit(preview_restore(to.state, whole).event())
    assert to.state.context.ids[4] == whole
    assert to.state.fate(short).words() == f"gave way to {whole}, which was restored"
    to.emit(preview_restore(to.state, short).event())
    assert to.state.context.ids[4] == short
    assert to.state.fate(whole).words() == f"gave way to {short}, which was restored"
    assert replays(to)


def test_what_is_there_or_never_was_is_not_restored() -> None:
    to = session(WORK)
    to.emit(e.ItemAppended(item=user("aside"), in_context=False))
    for id, why in (
        (to.state.context.ids[1], "it is in the context"),
        (EntryId(999), "never in the context"),
        (EntryId(to.history.records[-1].n), "never in the context"),
    ):
        with pytest.raises(ThresherError, match=why):
            preview_restore(to.state, id)


def test_a_restore_that_does_not_fit_is_a_problem_and_changes_nothing() -> None:
    to = session(WORK)
    before = to.state.context
    summarise(to, [0, 1])
    event = preview_undo(to.state).event()
    to.emit(event)
    to.emit(event)
    assert to.state.context == before
    assert "do not fit the context" in to.state.problems[-1].message


def played(data: st.DataObject, items: tuple[Item, ...]) -> tuple[MemoryRecorder, list[Context]]:
    """Random compactions, with rounds in between, and the contexts before each of them."""
    to = session(items)
    befores: list[Context] = []
    for number in range(data.draw(st.integers(1, 3))):
        context = to.state.context
        befores.append(context)
        segments: list[Segment] = []
        gone: list[EntryId] = []
        for group in groups(context.items):
            if data.draw(st.booleans()):
                gone += [context.ids[at] for at in group.places]
                continue
            for at in group.places:
                item = context.entries[at].item
                if isinstance(item, FunctionCallOutput) and data.draw(st.booleans()):
                    short = FunctionCallOutput(item.call_id, "(cleared)")
                    segments.append(Replaced(context.ids[at].bare, short))
                else:
                    segments += context.keep([at])
        if data.draw(st.booleans()):
            segments.insert(0, Inserted(CompactionSummary("short"), context.span(gone)))
        compact(to, segments, {"n": number})
        if data.draw(st.booleans()):
            to.emit(e.ItemAppended(item=FunctionCall(f"n{number}", "bash", "{}")))
            to.emit(e.ItemAppended(item=FunctionCallOutput(f"n{number}", "out")))
        if data.draw(st.booleans()):
            to.emit(e.ItemAppended(item=user("more")))
    return to, befores


@given(items=histories(), data=st.data())
def test_undo_gives_exactly_what_was_and_what_came_after(
    items: tuple[Item, ...], data: st.DataObject
) -> None:
    to, befores = played(data, items)
    for before in reversed(befores):
        card = last_compaction(to.state)
        assert card is not None
        since = [
            record.n
            for record in to.history.records
            if isinstance(record.event, e.ItemAppended) and record.n > card.n
        ]
        preview = preview_undo(to.state)
        to.emit(preview.event())
        ids = to.state.context.ids
        assert ids[: len(before)] == before.ids
        assert to.state.context.entries[: len(before)] == before.entries
        assert [id.line for id in ids[len(before) :]] == since
        assert to.state.messages_tokens == preview.after
    assert replays(to)


@given(
    items=histories(), data=st.data(), dialect=st.sampled_from([Dialect.CHAT, Dialect.RESPONSES])
)
def test_a_restore_keeps_the_context_legal_and_everything_else_in_its_order(
    items: tuple[Item, ...], data: st.DataObject, dialect: Dialect
) -> None:
    to, _ = played(data, items)
    for _ in range(3):
        gone = [id for id in to.state.known if to.state.context.place(id) is None]
        if not gone:
            break
        id = data.draw(st.sampled_from(gone))
        before = to.state.context
        known = {(v.kind, v.call_id) for v in validate(before.items, dialect)}
        preview = preview_restore(to.state, id, dialect)
        to.emit(preview.event())
        after = to.state.context
        assert after.place(id) is not None
        assert {(v.kind, v.call_id) for v in validate(after.items, dialect)} <= known
        came = set(preview.restored)
        left = [each for each in before.ids if each not in preview.removed]
        assert [each for each in after.ids if each not in came] == left
        assert to.state.messages_tokens == preview.after
    assert replays(to)
