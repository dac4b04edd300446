from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given

from thresher.core import events as e
from thresher.core.context import EntryId, Inserted, Kept, Replaced, Restored
from thresher.core.history import History
from thresher.core.insight import lineage
from thresher.core.insight.find import Index, parse
from thresher.core.insight.lineage import Lineage, StepKind
from thresher.core.items import (
    CompactionSummary,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
    Role,
    system,
    user,
)
from thresher.core.sources.codex_tail import CodexTail
from thresher.core.sources.opening import open_source
from thresher.core.state import SessionState
from thresher.core.tokens import Basis, Scope, Tokens

from .sessions import RANDOM, Writer, random_history

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODEX = FIXTURES / "codex"
LEFT = (StepKind.REMOVED, StepKind.ABSORBED, StepKind.REWRITTEN, StepKind.ROLLED_BACK)


@given(RANDOM["steps"](most=30))
def test_every_life_ends_as_the_state_says(script: list[object]) -> None:
    history = random_history(script)
    lives = Lineage(history)
    state = history.state
    for id in state.known:
        life = lives.life(id)
        assert id in life.forms
        assert life.fate == state.fate(life.forms[-1])
        own = [step for step in life.steps if step.id == life.forms[-1]]
        last, fate = own[-1], life.fate
        here = state.context.place(life.forms[-1]) is not None
        assert (last.kind is StepKind.IN_CONTEXT) is here
        assert (last.kind is StepKind.OUTSIDE) is fate.outside
        assert (last.kind is StepKind.ABSORBED) is (fate.summary is not None)
        assert last.other == (fate.summary or fate.became or fate.gave_way)
        assert last.ordinal == (fate.removed_by or fate.undone)
        lines = [step.line for step in life.steps if step.id == id]
        assert lines == sorted(lines)


@given(RANDOM["steps"](most=30))
def test_what_a_summary_absorbed_is_among_what_it_stands_for(script: list[object]) -> None:
    history = random_history(script)
    lives = Lineage(history)
    for id, fate in history.state.fates.items():
        if fate.summary is not None:
            assert id in {each.id for each in lives.stands_for(fate.summary)}


def test_a_life_is_told_from_its_creation_to_the_summary_that_speaks_for_it() -> None:
    w = Writer()
    head = w.item(system("rules"))
    call, output = w.call("read_file", '{"path": "src/a.py"}', "text " * 50)
    placeholder = FunctionCallOutput("c2", "[cleared]", name="read_file")
    line = len(w.history)
    w.compact([Kept(head.bare, call.bare), Replaced(output.bare, placeholder)], stage="micro")
    cleared = EntryId(line)
    w.summarise([head], "a was read")
    summary = EntryId(line + 1)
    life = Lineage(w.history).life(output)
    assert life.forms == (output, cleared)
    assert life.summaries == (summary,)
    assert [(step.kind, step.line) for step in life.steps] == [
        (StepKind.CREATED, output.line),
        (StepKind.REWRITTEN, line),
        (StepKind.ABSORBED, line + 1),
        (StepKind.CREATED, line + 1),
        (StepKind.IN_CONTEXT, line + 1),
    ]
    assert life.steps[0].words == f"created at {output} by read_file → src/a.py"
    assert life.steps[1].words == f"rewritten by compaction 1 (teaching micro) into {cleared}"
    assert life.seen == f"the model sees only summary {summary}, which speaks for it"
    assert Lineage(w.history).life(cleared).forms == (output, cleared)
    stands_for = {each.id: each for each in Lineage(w.history).stands_for(summary)}
    assert stands_for.keys() == {call, cleared, output}


def test_a_summary_of_a_summary_stands_for_what_the_first_did() -> None:
    w = Writer()
    head = w.item(system("rules"))
    early = w.item(user("early"))
    w.summarise([head], "one")
    first = w.history.state.context.ids[0]
    late = w.item(user("late"))
    w.summarise([head], "two")
    second = w.history.state.context.ids[0]
    found = {each.id: (each.depth, each.via) for each in Lineage(w.history).stands_for(second)}
    assert found == {first: (1, None), late: (1, None), early: (2, first)}


def test_an_output_that_was_cut_at_entry_says_so() -> None:
    w = Writer()
    w.emit(e.ToolFinished(call_id="c9", name="bash", size=9_000, saved="outputs/c9.txt"))
    output = w.item(FunctionCallOutput("c9", "short", saved="outputs/c9.txt"))
    w.emit(e.Note(kind="entry_cap", text="harnessx, persist: 60000 > 50000"))
    other = w.item(FunctionCallOutput("c10", "preview"))
    lineage = Lineage(w.history)
    capped = lineage.life(output).steps[1]
    assert capped.kind is StepKind.CAPPED
    assert "5 of 9,000 characters" in capped.words
    assert "harnessx, persist" in lineage.life(other).steps[1].words


def test_what_was_rolled_back_and_came_back_under_another_id_is_found_again() -> None:
    w = Writer()
    first = w.item(user("first"))
    second = w.item(user("second"))
    w.summarise([], "both")
    line = len(w.history)
    w.emit(
        e.HistoryRolledBack(
            turns=1, segments=(Inserted(user("first")),), items_before=1, items_after=1, removed=1
        )
    )
    lineage = Lineage(w.history)
    life = lineage.life(first)
    assert life.steps[-1].kind is not StepKind.KEPT
    assert [s.other for s in life.steps if s.kind is StepKind.RESTORED] == [EntryId(line)]
    assert life.seen == f"the model sees it again as {EntryId(line)}"
    assert lineage.life(second).seen == "the model sees nothing of it"
    assert lineage.life(EntryId(line)).steps[0].other == first


CLEARED = "[cleared]"


def _silent(w: Writer, output: EntryId, call: EntryId) -> EntryId:
    """Replaces the output without a word; gives what stands in its place."""
    made = EntryId(len(w.history))
    item = FunctionCallOutput(w.history.state.known[output].item.call_id, CLEARED)  # type: ignore[union-attr] # an output
    w.emit(
        e.UnannouncedReduction(
            before=Tokens(900, Basis.REPORTED, Scope.REQUEST),
            after=Tokens(90, Basis.REPORTED, Scope.REQUEST),
            explanation="old tool results were left out",
            kind="microcompact",
            segments=(Kept(call.bare, call.bare), Replaced(output.bare, item)),
        )
    )
    return made


def _back(w: Writer, made: EntryId, call: EntryId, item: FunctionCallOutput) -> EntryId:
    back = EntryId(len(w.history))
    w.emit(
        e.HistoryRolledBack(
            turns=0,
            segments=(Kept(call.bare, call.bare), Replaced(made.bare, item)),
            items_before=2,
            items_after=2,
            removed=0,
            reason="one result that had been cleared is there again",
        )
    )
    return back


def test_of_an_entry_that_was_rewritten_the_model_sees_only_what_took_its_place() -> None:
    w = Writer()
    call, output = w.call("read_file", "{}", "text " * 50)
    line = len(w.history)
    segments = [
        Kept(call.bare, call.bare),
        Replaced(output.bare, FunctionCallOutput("c1", CLEARED)),
    ]
    w.compact(segments, stage="prune")
    lives = Lineage(w.history)
    assert lives.life(output).seen == f"the model sees only {EntryId(line)} in its place"
    assert lives.life(output).steps[-1].words == f"{EntryId(line)} in the context"
    assert lives.life(EntryId(line)).seen == "the model sees it"
    assert lives.life(call).steps[-1].words == "in the context"


def test_what_every_compaction_puts_in_again_never_left_for_good() -> None:
    w = Writer()
    first = w.item(user("house rules"))
    lost = w.item(user("a question"))
    for text in ("one", "two"):
        here = w.history.state.context
        w.compact(
            [Inserted(user("house rules")), Inserted(CompactionSummary(text), here.span(here.ids))]
        )
    now = EntryId(len(w.history) - 1)
    then = EntryId(now.line - 1)
    lives = Lineage(w.history)
    life = lives.life(first)
    assert life.seen == f"the model sees it again as {now}"
    assert [step.other for step in life.steps if step.kind is StepKind.RESTORED] == [then, now]
    assert life.steps[-1].words == f"{now} in the context"
    assert f"it is what {then} was" in lives.life(now).steps[0].words
    assert lives.life(lost).seen.startswith("the model sees only summary")


def test_what_was_rewritten_and_restored_is_seen_itself() -> None:
    w = Writer()
    call, output = w.call("read_file", "{}", "text " * 50)
    cleared = EntryId(len(w.history))
    placeholder = FunctionCallOutput("c1", CLEARED)
    w.compact([Kept(call.bare, call.bare), Replaced(output.bare, placeholder)], stage="micro")
    w.emit(
        e.HistoryRestored(
            segments=(Kept(call.bare, call.bare), Restored(output.bare)),
            items_before=2,
            items_after=2,
            restored=1,
            removed=1,
        )
    )
    lives = Lineage(w.history)
    life = lives.life(output)
    assert life.seen == "the model sees it"
    assert life.forms == (output,)
    assert life.fate == w.history.state.fate(output)
    assert life.steps[-1].kind is StepKind.IN_CONTEXT
    assert lives.life(cleared).seen == f"the model sees only {output} in its place"


def test_what_stands_there_itself_did_not_come_back_as_another() -> None:
    w = Writer()
    rules, question = w.item(user("house rules")), w.item(user("a question"))
    w.compact([Kept(question.bare, question.bare)])
    w.emit(
        e.HistoryRestored(
            undone=1,
            segments=(Restored(rules.bare), Kept(question.bare, question.bare)),
            items_before=1,
            items_after=2,
            restored=1,
        )
    )
    again = EntryId(len(w.history))
    w.compact([Kept(rules.bare, question.bare), Inserted(user("house rules"))])
    lives = Lineage(w.history)
    life = lives.life(rules)
    assert life.seen == "the model sees it"
    assert [step.id for step in life.steps] == [rules] * len(life.steps)
    assert "is what" not in lives.life(again).steps[0].words


def test_what_came_back_and_was_rewritten_then_is_told_in_full() -> None:
    w = Writer()
    rules, question = w.item(system("rules")), w.item(user("a question"))
    w.compact([Kept(rules.bare, rules.bare)])
    back = EntryId(len(w.history))
    w.emit(
        e.HistoryRolledBack(
            turns=0,
            segments=(Kept(rules.bare, rules.bare), Inserted(user("a question"))),
            items_before=1,
            items_after=2,
            removed=0,
        )
    )
    cut = EntryId(len(w.history))
    w.compact([Kept(rules.bare, rules.bare), Replaced(back.bare, user("cut"))])
    life = Lineage(w.history).life(question)
    assert life.forms == (question, back, cut)
    assert life.seen == f"the model sees only {cut} in its place"
    assert [(step.kind, step.id) for step in life.steps] == [
        (StepKind.CREATED, question),
        (StepKind.REMOVED, question),
        (StepKind.CREATED, back),
        (StepKind.REWRITTEN, back),
        (StepKind.IN_CONTEXT, cut),
    ]


PICTURE = "data:image/png;base64,"


@pytest.mark.parametrize(
    ("left", "came"),
    [
        (
            user("Please run all the tests of the module called alpha, and tell me."),
            user("Please run all the tests of the module called gamma, and tell me."),
        ),
        (user("ok"), Message(Role.ASSISTANT, "ok")),
        (OtherItem("search", '{"query": "a"}'), OtherItem("search", '{"query": "b"}')),
        (
            Message(Role.USER, (ImagePart(f"{PICTURE}AAAA"),)),
            Message(Role.USER, (ImagePart(f"{PICTURE}BBBB"),)),
        ),
    ],
)
def test_another_item_of_the_same_length_is_not_what_left(left: Item, came: Item) -> None:
    def back(item: Item) -> Lineage:
        w = Writer()
        first, gone = w.item(system("rules")), w.item(left)
        assert gone.line == 2
        w.compact([Kept(first.bare, first.bare)])
        w.emit(
            e.HistoryRolledBack(
                turns=0,
                segments=(Kept(first.bare, first.bare), Inserted(item)),
                items_before=1,
                items_after=2,
                removed=0,
                inserted=1,
            )
        )
        return Lineage(w.history)

    gone = EntryId(2)
    assert not back(left).state.fate(gone).gone
    assert back(left).life(gone).seen == f"the model sees it again as {EntryId(4)}"
    assert back(came).state.fate(gone).gone
    assert back(came).life(gone).seen == "the model sees nothing of it"


def test_what_came_back_never_leads_in_a_circle_whatever_lines_a_record_names() -> None:
    state = SessionState()
    state.apply(e.Record(1, 0.0, e.ItemAppended(item=user("a"))))
    for line, insert in ((2, True), (3, False), (2, True)):
        new = (Inserted(user("b")),) if insert else ()
        edit = e.HistoryRolledBack(
            turns=0, segments=(Kept("1", "1"), *new), items_before=1, items_after=1, removed=0
        )
        state.apply(e.Record(line, 0.0, edit))
    fate = state.fates[EntryId(2)]
    assert fate.back != EntryId(2)
    assert state.fate(EntryId(2)) == fate


def test_what_was_cleared_without_a_word_says_when_and_why() -> None:
    w = Writer()
    call, output = w.call("read_file", "{}", "text " * 50)
    made = _silent(w, output, call)
    fate = w.history.state.fate(output)
    assert fate.gone
    assert fate.words() == f"rewritten by the program into {made}, unannounced"
    life = Lineage(w.history).life(output)
    assert life.forms == (output, made)
    assert life.seen == f"the model sees only {made} in its place"
    assert [(step.kind, step.line, step.reason) for step in life.steps[1:]] == [
        (StepKind.REWRITTEN, made.line, "old tool results were left out"),
        (StepKind.IN_CONTEXT, made.line, ""),
    ]
    assert "unannounced" in life.steps[1].words
    assert "microcompact" in life.steps[1].words


def test_what_was_cleared_and_is_there_again_is_told_as_such() -> None:
    w = Writer()
    call, output = w.call("read_file", "{}", "text " * 50)
    item = w.history.state.known[output].item
    assert isinstance(item, FunctionCallOutput)
    made = _silent(w, output, call)
    back = _back(w, made, call, item)
    state = w.history.state
    assert not state.fate(output).gone
    assert state.fate(output).words() == f"in context again, as {back}"
    assert state.fate(made).gone
    life = Lineage(w.history).life(output)
    assert life.forms == (output, made, back)
    assert life.seen == f"the model sees it again as {back}"
    assert life.steps[-1].words == f"{back} in the context"
    assert life.steps[2].reason == "one result that had been cleared is there again"
    again = _silent(w, back, call)
    assert w.history.state.fate(output).words() == w.history.state.fate(back).words()
    life = Lineage(w.history).life(output)
    assert life.seen == f"the model sees only {again} in its place"


def test_what_left_with_a_turn_says_why() -> None:
    w = Writer()
    first, second = w.item(user("first")), w.item(user("second"))
    line = w.emit(
        e.HistoryRolledBack(
            turns=1,
            segments=(Kept(first.bare, first.bare),),
            items_before=2,
            items_after=1,
            removed=1,
        )
    )
    life = Lineage(w.history).life(second)
    assert (life.steps[-1].kind, life.steps[-1].line) == (StepKind.ROLLED_BACK, line)
    assert life.steps[-1].reason == "the last turn was taken back"
    assert life.fate.words() == "left the context without a compaction"


def test_a_rollback_past_a_compaction_is_told_on_its_card() -> None:
    w = Writer()
    first = w.item(user("first"))
    w.item(user("second"))
    w.summarise([first], "both")
    line = w.emit(
        e.HistoryRolledBack(
            turns=1,
            segments=(Kept(first.bare, first.bare),),
            items_before=2,
            items_after=1,
            removed=1,
            undone=(1,),
        )
    )
    card = w.history.state.card_of(1)
    assert card is not None
    assert card.undone == line


@pytest.mark.parametrize("told_first", [True, False])
def test_an_output_is_known_to_be_cut_whenever_its_whole_size_is_told(told_first: bool) -> None:
    w = Writer()
    finished = e.ToolFinished(call_id="c9", name="bash", size=9_000)
    if told_first:
        w.emit(finished)
    output = w.item(FunctionCallOutput("c9", "short"))
    if not told_first:
        w.emit(finished)
    whole = w.item(FunctionCallOutput("c10", "all of it"))
    lives = Lineage(w.history)
    step = lives.life(output).steps[1]
    assert step.kind is StepKind.CAPPED
    assert step.words == "capped at entry to 5 of 9,000 characters"
    assert lives.life(whole).steps[1].kind is StepKind.IN_CONTEXT
    index = Index(w.history)
    assert index.find(parse("no such text")) == []
    assert index.cut == 1


def test_an_undone_compaction_brings_its_entries_back_to_life() -> None:
    w = Writer()
    head = w.item(system("rules"))
    gone = w.item(user("comes back"))
    w.summarise([head], "one")
    summary = w.history.state.context.ids[0]
    line = w.emit(
        e.HistoryRestored(
            segments=(Kept(head.bare, head.bare), Restored(gone.bare)),
            items_before=2,
            items_after=2,
            restored=1,
            removed=1,
            undone=1,
        )
    )
    lineage = Lineage(w.history)
    kinds = [step.kind for step in lineage.life(gone).steps]
    assert kinds == [
        StepKind.CREATED,
        StepKind.ABSORBED,
        StepKind.RESTORED,
        StepKind.IN_CONTEXT,
    ]
    undone = lineage.life(summary).steps[-1]
    assert (undone.kind, undone.line) == (StepKind.UNDONE, line)


def test_the_lineage_at_an_earlier_position_knows_nothing_of_what_came_later() -> None:
    w = Writer()
    head = w.item(system("rules"))
    gone = w.item(user("goes"))
    position = len(w.history)
    w.summarise([head], "one")
    assert Lineage(w.history, position).life(gone).seen == "the model sees it"


def test_an_unknown_id_is_an_error() -> None:
    with pytest.raises(KeyError):
        Lineage(Writer().history).life(EntryId(77))


def replayed(history: History) -> Lineage:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lineage, "_moves_otherwise", lambda record: True)
        return Lineage(history)


@given(RANDOM["steps"](most=30))
def test_without_a_replay_a_plain_session_has_the_same_lives(script: list[object]) -> None:
    kinds = {"undo", "restore"}
    history = random_history([step for step in script if not kinds & set(map(str, step))])
    quick, slow = Lineage(history), replayed(history)
    for id in history.state.known:
        assert quick.life(id) == slow.life(id)
        assert quick.stands_for(id) == slow.stands_for(id)


@pytest.mark.parametrize("name", ["two_mid_turn", "pre_turn_twice", "remote_v2"])
def test_the_lives_of_a_recording_need_no_replay(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(gzip.decompress((CODEX / f"{name}.jsonl.gz").read_bytes()))
    history = History()
    history.extend(CodexTail(path).more())
    quick, slow = Lineage(history), replayed(history)
    assert history.state.cards
    for id in history.state.known:
        assert quick.life(id) == slow.life(id)


RECORDED = [
    "claude_code/more/v2_0_76_killed.jsonl.gz",
    "claude_code/more/v2_1_12_parallel.jsonl.gz",
    "claude_code/more/v2_1_197_models.jsonl.gz",
    "claude_code/v2_0_76_microcompact.jsonl.gz",
    "codex/more/v151_rollbacks/rollout-*.jsonl.gz",
    "codex/two_mid_turn.jsonl.gz",
    "opencode/v1-prune/opencode.db.gz",
    "opencode_live/v1-retry/opencode.db.xz",
    "opencode_live/v2-revert/opencode.db.xz",
    "pi/branches.jsonl.gz",
]


@pytest.mark.parametrize("name", RECORDED)
def test_every_entry_of_a_recording_says_whether_it_is_seen_and_why_not(
    name: str, tmp_path: Path
) -> None:
    (path,) = FIXTURES.glob(name)
    if path.suffix == ".xz":
        packed, path = path, tmp_path / path.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
    history = History()
    history.extend(open_source(path).read())
    state, lives = history.state, Lineage(history)
    assert state.known
    for id in state.known:
        life, fate = lives.life(id), state.fate(id)
        here = state.context.place(id) is not None
        assert here is not (fate.gone or fate.outside or fate.back is not None)
        assert here is (life.seen == "the model sees it")
        nothing = life.seen == "the model sees nothing of it"
        assert (life.steps[-1].kind is StepKind.IN_CONTEXT) is not nothing
        for step in life.steps:
            if step.kind in LEFT:
                card = state.card_of(step.ordinal) if step.ordinal else None
                assert step.reason or (card is not None and card.reason)
