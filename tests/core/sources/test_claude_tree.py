from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.items import Item, Message
from thresher.core.sources.claude_chain import Node, Tree
from thresher.core.sources.claude_events import Translator
from thresher.core.sources.lines import Line
from thresher.core.sources.report import compaction_records
from thresher.core.state import SessionState

from .claude_made import Made, call, text


def said(items: tuple[Item, ...]) -> list[str]:
    return [item.text for item in items]


def test_a_rewind_takes_turns_back_and_the_other_branch_is_what_the_model_sees() -> None:
    made = Made()
    made.user("first")
    answer = made.says("m1", text("one"))
    made.user("second")
    made.says("m2", text("two"))
    made.user("second again", parent=answer)
    state = made.state()
    assert said(state.context.items) == ["first", "one", "second again"]
    (back,) = [r.event for r in made.records() if isinstance(r.event, e.HistoryRolledBack)]
    assert (back.turns, back.removed, back.reason) == (1, 2, "")
    assert not state.problems


def test_going_back_to_a_branch_that_was_left_brings_its_items_back() -> None:
    made = Made()
    root = made.user("first")
    left = made.says("m1", text("left"), parent=root)
    made.says("m2", text("right"), parent=root)
    made.user("more", parent=left)
    assert said(made.state().context.items) == ["first", "left", "more"]


def test_an_answer_from_another_branch_has_left_before_its_request() -> None:
    made = Made()
    root = made.user("first")
    made.says("m1", text("thrown away"))
    made.says("m2", text("kept"), parent=root)
    records = made.records()
    numbers = [record.n for record in records if isinstance(record.event, e.HistoryRolledBack)]
    assert numbers == [1]
    assert said(made.state().context.items) == ["first", "kept"]


def test_a_rewind_to_before_a_compaction_undoes_it() -> None:
    made = Made()
    root = made.user("first")
    made.says("m1", text("one"))
    made.boundary()
    made.user("Summary:\nshort", isCompactSummary=True)
    made.says("m2", text("two"))
    made.user("from the start", parent=root)
    records = made.records()
    (back,) = [r.event for r in records if isinstance(r.event, e.HistoryRolledBack)]
    assert back.undone == (1,)
    assert said(made.state().context.items) == ["first", "from the start"]


def test_results_of_parallel_calls_on_side_branches_are_all_seen() -> None:
    made = Made()
    made.user("go")
    a = made.says("m1", call("c1"))
    b = made.says("m1", call("c2"))
    made.result("c2", "second", parent=b)
    made.result("c1", "first", parent=a)
    made.says("m2", text("done"))
    assert said(made.state().context.items)[3:] == ["second", "first", "done"]
    assert not [r for r in made.records() if isinstance(r.event, e.HistoryRolledBack)]


def test_a_record_that_is_appended_again_counts_once() -> None:
    made = Made()
    made.user("first")
    made.says("m1", text("one"))
    made.lines += made.lines[:]
    made.last = "u1"
    made.user("second")
    records = made.records()
    assert said(made.state().context.items) == ["first", "one", "second"]
    (note,) = [r.event for r in records if isinstance(r.event, e.Note)]
    assert note.text.startswith("lines 3 to 4: records that the file holds already")


def test_a_record_without_its_parent_follows_the_one_before_it() -> None:
    made = Made()
    made.user("first")
    made.user("second", parent="not in the file")
    assert said(made.state().context.items) == ["first", "second"]
    assert [r.event.kind for r in made.records() if isinstance(r.event, e.Note)] == ["chain"]


def test_a_boundary_without_a_summary_is_still_a_compaction() -> None:
    made = Made()
    made.user("first")
    made.boundary()
    (report,) = compaction_records(made.records())
    assert report.items is not None
    assert (report.items.before, report.items.after) == (1, 0)
    assert "the file holds no summary for this boundary" in report.marks


def test_a_recorded_microcompaction_clears_the_named_results_and_ends_nothing() -> None:
    made = Made()
    made.user("go")
    made.says("m1", call("c1"))
    made.result("c1", "a long output")
    made.says("m2", call("c2"))
    made.result("c2", "a new output")
    made.add(
        "system",
        subtype="microcompact_boundary",
        microcompactMetadata={
            "trigger": "auto",
            "preTokens": 90_000,
            "tokensSaved": 20_000,
            "compactedToolIds": ["c1"],
        },
    )
    made.says("m3", text("on"))
    records = made.records()
    (report,) = compaction_records(records)
    assert (report.stage, report.evidence, report.tokens_after) == (
        "microcompact",
        "recorded",
        None,
    )
    assert report.items is not None
    assert (report.items.replaced, report.items.removed, report.items.kept) == (1, 0, 4)
    assert said(made.state().context.items)[2] == "[Old tool result content cleared]"
    assert said(made.state().context.items)[-1] == "on"


@st.composite
def trees(draw: st.DrawFn) -> Made:
    made = Made()
    calls: list[tuple[str, str]] = []
    for n in range(draw(st.integers(1, 24))):
        uuids = [line["uuid"] for line in made.lines]
        far = bool(uuids) and draw(st.booleans())
        parent = draw(st.sampled_from(uuids)) if far else made.last
        match draw(st.sampled_from(["user", "says", "says", "result", "other", "boundary"])):
            case "user":
                made.user(f"user {n}", parent=parent)
            case "says":
                id = f"m{draw(st.integers(0, 6))}"
                calls.append((made.says(id, call(f"c{n}"), parent=parent), f"c{n}"))
            case "result" if calls:
                above, id = draw(st.sampled_from(calls[-3:]))
                made.result(id, f"result {n}", parent=above)
            case "boundary":
                boundary(draw, made, uuids, n)
            case _:
                made.add("progress", parent=parent)
    return made


def boundary(draw: st.DrawFn, made: Made, uuids: list[str], n: int) -> None:
    anchor = f"u{len(made.lines) + 1}"
    metadata: dict[str, Any] = {}
    if uuids and draw(st.booleans()):
        place = st.integers(0, len(uuids) - 1)
        ends = sorted((draw(place), draw(place)))
        head, tail = (uuids[at] for at in ends)
        metadata["preservedSegment"] = {"headUuid": head, "anchorUuid": anchor, "tailUuid": tail}
        metadata["preservedMessages"] = {"allUuids": uuids[ends[0] : ends[1] + 1]}
    made.boundary(**metadata)
    made.user(f"Summary:\nsummary {n}", isCompactSummary=True)


@st.composite
def rounds(draw: st.DrawFn, *, compacted: bool = True) -> Made:
    """Responses with parallel calls, whose results come in any order and on any of their blocks;
    now and then something else in between, a compaction, or a block that was written before."""
    made = Made()
    made.user("go")
    calls = 0
    late: list[tuple[str, str]] = []
    for n in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 4)) == 0:
            # It goes on from somewhere else.
            made.last = draw(st.sampled_from([line["uuid"] for line in made.lines[-8:]]))
        blocks = [made.says(f"m{n}", text(f"said {n}"))] if draw(st.booleans()) else []
        if late and draw(st.booleans()):
            block, id = late.pop()
            made.result(id, f"of {id}", parent=block)
        asked = []
        for _ in range(draw(st.integers(1, 4))):
            calls += 1
            asked.append((made.says(f"m{n}", call(f"c{calls}")), f"c{calls}"))
        blocks += [block for block, _ in asked]
        for at in draw(st.permutations(range(len(asked)))):
            block, id = asked[at]
            if draw(st.integers(0, 9)) == 0:
                late.append((block, id))
                continue
            elsewhere = draw(st.integers(0, 9)) == 0
            made.result(
                id, f"of {id}", parent=draw(st.sampled_from(blocks)) if elsewhere else block
            )
            match draw(st.integers(0, 19)):
                case 0:
                    made.add("progress", parent=draw(st.sampled_from([made.last, block])))
                case 1:
                    made.add("attachment", attachment={"type": "file", "content": "a file"})
                case 2:
                    made.says(f"m{n}", call(id), parent=draw(st.sampled_from(blocks)))
                case 3:
                    made.result(id, "again", parent=block)
                case 4 if compacted:
                    boundary(draw, made, [line["uuid"] for line in made.lines], n)
                case _:
                    pass
    return made


@given(trees() | rounds())
def test_however_a_tree_grows_the_folded_context_is_the_rebuilt_one(made: Made) -> None:
    translator, state = Translator(), SessionState()
    for n, value in enumerate(made.lines):
        for record in translator.feed(Line(n, 0, 0, value)):
            state.apply(record)
        for record in translator.flush():
            state.apply(record)
        view = translator.reading.view.nodes
        assert state.context.items == tuple(item for node in view for item in node.items)
        tree = translator.reading.tree
        leaf = tree.nodes[value["uuid"]]
        if tree.tip is not None and leaf in tree.way(tree.tip):
            leaf = tree.tip
        assert [node.line for node in view] == [node.line for node in tree.view(leaf)]
        assert not state.problems
    assert state.compactions == sum(1 for x in made.lines if x.get("subtype"))


@given(rounds(compacted=False))
def test_records_that_only_extend_a_tree_leave_it_as_if_all_had_been_looked_at(made: Made) -> None:
    translator, tree = Translator(), Tree()
    for n, value in enumerate(made.lines):
        translator.feed(Line(n, 0, 0, value))
        node = translator.reading.tree.nodes[value["uuid"]]
        twin = Node(node.uuid, n, node.role, node.items, node.family)
        tree.add(twin, value["parentUuid"] or "")
        for uuid, each in translator.reading.tree.nodes.items():
            # Calls that nothing ever answered are found elsewhere.
            tree.nodes[uuid].lost = each.lost
        seen = [each.line for each in translator.reading.view.nodes]
        assert seen == [each.line for each in tree.view(twin)]
        assert translator.reading.tree.doubled == tree.doubled


@given(trees() | rounds())
def test_a_tree_read_at_once_ends_where_it_ends_when_it_is_followed(made: Made) -> None:
    translator, state = Translator(), SessionState()
    for n, value in enumerate(made.lines):
        for record in (*translator.feed(Line(n, 0, 0, value)), *translator.flush()):
            state.apply(record)
    whole = made.state()
    assert said(whole.context.items) == said(state.context.items)
    assert isinstance(whole.context.items, tuple)
    assert all(isinstance(item, Message) or item.text for item in whole.context.items)
