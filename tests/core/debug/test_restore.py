from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.compaction.rig import WORK
from tests.strategies import histories
from thresher.core import events as e
from thresher.core.compaction.placing import faults
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.compaction.recorder import MemoryRecorder
from thresher.core.context import Context, EntryId, Inserted, Replaced, Segment
from thresher.core.debug.restore import Preview, last_compaction, preview_restore, preview_undo
from thresher.core.errors import ThresherError
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Role,
    assistant,
    system,
    user,
)
from thresher.core.validate import Dialect, groups, validate

CALL = (FunctionCall("c", "bash", "{}"), FunctionCallOutput("c", "out"))


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


def test_a_rewritten_form_that_went_later_takes_the_place_of_the_whole_that_came_back() -> None:
    to = session(WORK)
    whole = to.state.context.ids[4]
    short = FunctionCallOutput("c1", "(cleared)")
    compact(to, [*to.state.context.keep(range(4)), Replaced(whole.bare, short)])
    written = to.state.context.ids[4]
    compact(to, list(to.state.context.keep([0, 1])))
    to.emit(preview_restore(to.state, whole).event())
    preview = preview_restore(to.state, written)
    assert (preview.restored, preview.removed) == ((written,), (whole,))
    to.emit(preview.event())
    assert [entry.item for entry in to.state.context][2:] == [WORK[3], short]
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


@given(items=histories(), data=st.data(), dialect=st.sampled_from(Dialect))
def test_undo_gives_exactly_what_was_and_what_came_after_or_says_why_not(
    items: tuple[Item, ...], data: st.DataObject, dialect: Dialect
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
        now = to.state.context
        preview, refused = tried(lambda: preview_undo(to.state, dialect))
        if preview is None:
            # Who must alternate may not be able to go on from there; all others always can.
            assert dialect is Dialect.STRICT
            assert refused.startswith(f"what came after compaction {card.ordinal} cannot follow ")
            assert f"({dialect} protocol: " in refused
            assert to.state.context == now
            break
        to.emit(preview.event())
        ids = to.state.context.ids
        assert ids[: len(before)] == before.ids
        assert to.state.context.entries[: len(before)] == before.entries
        assert [id.line for id in ids[len(before) :]] == since
        assert to.state.messages_tokens == preview.after
        known = faults(before.items, dialect) | faults(now.items, dialect)
        assert faults(to.state.context.items, dialect) <= known
    assert replays(to)


def tried(work: Callable[[], Preview]) -> tuple[Preview | None, str]:
    try:
        return work(), ""
    except ThresherError as error:
        return None, error.msg


def restored_or_refused(to: MemoryRecorder, id: EntryId, dialect: Dialect) -> bool:
    """Restores an entry and looks at what came of it; False where that is refused."""
    before = to.state.context
    preview, refused = tried(lambda: preview_restore(to.state, id, dialect))
    if preview is None:
        assert refused == (
            f"{id} cannot be restored: the rules of the {dialect} protocol leave no place for it."
        )
        assert to.state.context == before
        return False
    to.emit(preview.event())
    after = to.state.context
    assert after.place(id) is not None
    assert faults(after.items, dialect) <= faults(before.items, dialect)
    came = set(preview.restored)
    left = [each for each in before.ids if each not in preview.removed]
    assert [each for each in after.ids if each not in came] == left
    assert to.state.messages_tokens == preview.after
    return True


@given(items=histories(), data=st.data(), dialect=st.sampled_from(Dialect))
def test_a_restore_keeps_the_context_legal_and_everything_else_in_its_order(
    items: tuple[Item, ...], data: st.DataObject, dialect: Dialect
) -> None:
    to, _ = played(data, items)
    for _ in range(3):
        gone = [id for id in to.state.known if to.state.context.place(id) is None]
        if not gone:
            break
        done = restored_or_refused(to, data.draw(st.sampled_from(gone)), dialect)
        assert done or dialect is Dialect.STRICT
    assert replays(to)


@st.composite
def exchanges(draw: st.DrawFn, number: int) -> list[Item]:
    """A question, rounds of calls and an answer: turns that alternate."""
    calls: list[Item] = []
    for round in range(draw(st.integers(0, 2))):
        ids = [f"c{number}-{round}-{n}" for n in range(draw(st.integers(1, 2)))]
        calls += [FunctionCall(id, "bash", "{}") for id in ids]
        calls += [FunctionCallOutput(id, f"out of {id}") for id in draw(st.permutations(ids))]
    return [user(f"question {number}"), *calls, assistant(f"answer {number}")]


@given(data=st.data())
def test_where_turns_alternate_whatever_went_comes_back_legally(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 5))
    turns = [data.draw(exchanges(number)) for number in range(count)]
    to = session((system("rules"), *(item for turn in turns for item in turn)))
    context = to.state.context
    assert validate(context.items, Dialect.STRICT) == []
    ends = list(accumulate((len(turn) for turn in turns), initial=1))
    gone = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count - 1))
    places = [at for number in gone for at in range(ends[number], ends[number + 1])]
    compact(to, list(context.keep(at for at in range(len(context)) if at not in places)))
    assert validate(to.state.context.items, Dialect.STRICT) == []
    first, *others = data.draw(st.permutations([context.ids[at] for at in places]))
    assert restored_or_refused(to, first, Dialect.STRICT)
    for id in others:
        if to.state.context.place(id) is None:
            restored_or_refused(to, id, Dialect.STRICT)
        assert validate(to.state.context.items, Dialect.STRICT) == []
        # All of it in the order it had, but that parallel calls may come back one by one.
        came = [
            entry.id for entry in to.state.context if not isinstance(entry.item, FunctionCallOutput)
        ]
        assert [id for id in context.ids if id in came] == came
    assert replays(to)


def test_where_turns_alternate_a_question_brings_its_answer_and_a_call_comes_alone() -> None:
    to = session((system("rules"), user("a"), assistant("b"), user("c"), *CALL, assistant("d")))
    context = to.state.context
    compact(to, list(context.keep([0, 3, 6])))
    alone = preview_restore(to.state, context.ids[1], Dialect.CHAT)
    assert alone.restored == context.ids[1:2]
    together = preview_restore(to.state, context.ids[1], Dialect.STRICT)
    assert together.restored == context.ids[1:3]
    assert len(preview_restore(to.state, context.ids[5], Dialect.STRICT).restored) == 2


def test_undo_says_why_what_came_since_cannot_follow() -> None:
    to = session((user("a"), assistant("b"), user("c")))
    compact(to, [Inserted(CompactionSummary("short", role=Role.ASSISTANT), "1-3")])
    to.emit(e.ItemAppended(item=user("d")))
    with pytest.raises(ThresherError) as refused:
        preview_undo(to.state, Dialect.STRICT)
    assert refused.value.msg == (
        "what came after compaction 1 cannot follow what was before it (strict "
        "protocol: item 4 is a second turn of the user in a row); restore single entries instead."
    )
    assert preview_undo(to.state, Dialect.CHAT).undone == 1
