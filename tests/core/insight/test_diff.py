from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.context import Context, Entry, EntryId, Kept, Replaced
from thresher.core.insight.alignment import RowKind
from thresher.core.insight.diff import Diff, Filter, Fold, compaction_diff, position_diff
from thresher.core.insight.inline import MOST_LINES, Side, change, inline
from thresher.core.items import FunctionCallOutput, assistant, system, user
from thresher.core.state import SessionState
from thresher.core.tokens import Basis, Scope, Tokens, Usage

from .sessions import RANDOM, Writer, random_history

TEXTS = st.text(alphabet="ab \n_.1é中", max_size=60)


def _contexts() -> st.SearchStrategy[tuple[Context, Context, dict[EntryId, EntryId]]]:
    @st.composite
    def build(draw: st.DrawFn) -> tuple[Context, Context, dict[EntryId, EntryId]]:
        size = draw(st.integers(0, 12))
        before = [Entry(EntryId(at), user(f"t{at}")) for at in range(size)]
        staying = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        after: list[Entry] = []
        rewritten: dict[EntryId, EntryId] = {}
        for at, entry in enumerate(staying):
            if draw(st.integers(0, 3)) == 0:
                after.append(Entry(EntryId(500 + at), assistant("new")))
            if draw(st.integers(0, 3)) == 0:
                rewritten[entry.id] = EntryId(900 + at)
                after.append(Entry(EntryId(900 + at), user("other")))
            else:
                after.append(entry)
        return Context(before), Context(after), rewritten

    return build()


@given(_contexts())
def test_rows_hold_every_entry_of_both_contexts_exactly_once(
    drawn: tuple[Context, Context, dict[EntryId, EntryId]],
) -> None:
    before, after, rewritten = drawn
    rows = Diff(before, after, rewritten, SessionState()).rows
    assert sorted(row.before for row in rows if row.before is not None) == sorted(before.ids)
    assert [row.after for row in rows if row.after is not None] == list(after.ids)
    for row in rows:
        assert (row.before is None) is (row.kind is RowKind.INSERTED)
        assert (row.after is None) is (row.kind is RowKind.REMOVED)
        if row.kind in (RowKind.KEPT, RowKind.MOVED):
            assert row.before == row.after
        if row.kind is RowKind.REWRITTEN and row.before is not None:
            assert rewritten[row.before] == row.after


@given(_contexts())
def test_what_is_not_moved_stands_in_the_order_it_had(
    drawn: tuple[Context, Context, dict[EntryId, EntryId]],
) -> None:
    rows = Diff(*drawn, SessionState()).rows
    old = [row.before_at for row in rows if row.before_at >= 0 and not row.moved]
    assert old == sorted(old)


@given(RANDOM["steps"](most=25))
def test_the_rows_of_every_recorded_compaction_agree_with_its_card(script: list[object]) -> None:
    history = random_history(script)
    for card in history.state.cards:
        diff = compaction_diff(card, history.state)
        if diff is None:
            continue
        removed = {row.before for row in diff.rows if row.kind is RowKind.REMOVED}
        inserted = {row.after for row in diff.rows if row.kind is RowKind.INSERTED}
        assert removed == set(card.removed_ids)
        assert inserted == set(card.inserted_ids)
        assert sum(total.rows for total in diff.totals().values()) == len(diff.rows)
        assert sorted(
            (row.before, row.after) for row in diff.rows if row.kind is RowKind.REWRITTEN
        ) == sorted(card.replaced_ids)


def test_removed_entries_stand_above_what_was_inserted_in_their_place() -> None:
    w = Writer()
    head = w.item(system("rules"))
    gone = [w.item(user(f"message {n}")) for n in range(3)]
    last = w.item(user("stay"))
    w.summarise([head, last], "what was said")
    diff = compaction_diff(w.history.state.cards[0], w.history.state)
    assert diff is not None
    kinds = [row.kind for row in diff.rows]
    # The summary is the first entry after; the head came before it and has given way to it.
    assert kinds.count(RowKind.REMOVED) == 3
    assert [row.before for row in diff.rows if row.kind is RowKind.REMOVED] == gone
    assert diff.next_jump(0) is not None


def test_the_entries_of_a_compaction_are_counted_as_its_policy_counted_them() -> None:
    w = Writer()
    head = w.item(system("rules " * 50))
    for request in range(1, 5):
        estimate = Tokens(1_000, Basis.ESTIMATED, Scope.REQUEST)
        w.emit(e.RequestSent(request=request, estimate=estimate))
        w.emit(e.UsageReported(usage=Usage(1_500, 10), request=request))
    gone = [w.item(user("some words " * 80)) for _ in range(3)]
    counted = sum(w.history.state.costs.of(entry) for entry in w.history.state.context)
    w.summarise([head], "what was said")
    state = w.history.state
    assert state.correction.ratio == 1.5
    diff = compaction_diff(state.cards[0], state)
    assert diff is not None
    assert sum(total.before for total in diff.totals().values()) == counted
    shown = state.cost(gone[0])
    assert shown is not None
    assert shown > state.costs.of(state.known[gone[0]])


def test_filters_choose_by_kind_role_tool_and_size() -> None:
    w = Writer()
    w.item(user("hello"))
    _, small = w.call("bash", '{"command": "ls"}', "a b c")
    _, large = w.call("read_file", '{"path": "a.py"}', "word " * 2_000)
    w.compact([])
    diff = compaction_diff(w.history.state.cards[0], w.history.state)
    assert diff is not None

    def found(by: Filter) -> list[EntryId | None]:
        return [diff.rows[at].before for at in diff.filtered(by)]

    assert found(Filter(roles=frozenset({"output"}))) == [small, large]
    assert small in found(Filter(tools=frozenset({"bash"})))
    assert large not in found(Filter(tools=frozenset({"bash"})))
    assert found(Filter(least=500)) == [large]
    assert found(Filter(kinds=frozenset({RowKind.KEPT}))) == []
    assert diff.tools() == ("bash", "read_file")


def test_long_runs_of_kept_rows_fold_and_jumps_lead_from_change_to_change() -> None:
    w = Writer()
    ids = [w.item(user(f"message {n}")) for n in range(40)]
    context = w.history.state.context
    w.compact(context.keep([*range(20), *range(21, 40)]))
    diff = compaction_diff(w.history.state.cards[0], w.history.state)
    assert diff is not None
    assert diff.jumps() == [20]
    assert diff.rows[20].before == ids[20]
    folded = diff.folded(around=2)
    assert folded == [Fold(0, 18), 18, 19, 20, 21, 22, Fold(23, 40)]
    assert sum(each.rows if isinstance(each, Fold) else 1 for each in folded) == 40
    assert diff.next_jump(20, back=True) is None
    assert diff.next_jump(30, back=True) == 20


def test_any_two_positions_are_compared_in_both_directions() -> None:
    w = Writer()
    first = w.item(user("first"))
    _, output = w.call("bash", '{"command": "ls"}', "x" * 100)
    start = len(w.history)
    line = len(w.history)
    short = FunctionCallOutput("c2", "cleared", name="bash")
    call_at = w.history.state.context.ids[1].bare
    w.compact([Kept(first.bare, first.bare), Kept(call_at, call_at), Replaced(output.bare, short)])
    later = w.item(user("later"))
    there = position_diff(w.history, start, len(w.history))
    kinds = {row.kind: row for row in there.rows}
    assert kinds[RowKind.REWRITTEN].before == output
    assert kinds[RowKind.REWRITTEN].after == EntryId(line)
    assert kinds[RowKind.INSERTED].after == later
    back = position_diff(w.history, len(w.history), start)
    kinds = {row.kind: row for row in back.rows}
    assert kinds[RowKind.REWRITTEN].after == output
    assert kinds[RowKind.REMOVED].before == later


@given(TEXTS, TEXTS)
def test_pieces_give_both_texts_back(old: str, new: str) -> None:
    pieces = inline(old, new)
    assert "".join(p.text for p in pieces if p.side is not Side.NEW) == old
    assert "".join(p.text for p in pieces if p.side is not Side.OLD) == new
    assert all(piece.text for piece in pieces)


def test_a_changed_word_is_told_as_a_word() -> None:
    pieces = inline("prices stay integers in cents", "prices stay floats in cents")
    assert [(piece.side, piece.text) for piece in pieces] == [
        (Side.BOTH, "prices stay "),
        (Side.OLD, "integers"),
        (Side.NEW, "floats"),
        (Side.BOTH, " in cents"),
    ]


def test_texts_too_long_for_words_and_lines_are_told_as_a_whole() -> None:
    old = "".join(f"a{n}\n" for n in range(MOST_LINES + 10))
    new = "".join(f"b{n}\n" for n in range(MOST_LINES + 10))
    assert [piece.side for piece in inline(old, new)] == [Side.OLD, Side.NEW]


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_a_change_in_one_piece_leads_from_the_old_text_to_the_new(
    head: str, lost: str, came: str, tail: str
) -> None:
    old, new = head + lost + tail, head + came + tail
    found = change(old, new)
    assert (found.gone, found.came) == (len(found.lost), len(found.text))
    end = old[found.at + found.gone :]
    assert old == old[: found.at] + found.lost + end
    assert new == old[: found.at] + found.text + end


def test_a_change_begins_and_ends_between_words() -> None:
    found = change("the file is red, and old", "the file is green, and old")
    assert (found.lost.strip(" ,"), found.text.strip(" ,")) == ("red", "green")
    assert change("same", "same").gone == 0
