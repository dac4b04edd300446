from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.items import CompactionSummary, FunctionCall, FunctionCallOutput, OtherItem
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_items import is_real_user, item_of
from thresher.core.sources.codex_replay import (
    Head,
    descent,
    normalised,
    rebuilt,
    truncated,
)
from thresher.core.sources.codex_tokens import estimate_item, unreported, version_of
from thresher.core.sources.report import compaction_records, context_at, state_at

Json = dict[str, Any]


def message(role: str, text: str, **more: Any) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **more}


def call(id: str, **more: Any) -> Json:
    return {"type": "function_call", "name": "sh", "arguments": "{}", "call_id": id, **more}


def output(id: str, text: str = "ok") -> Json:
    return {"type": "function_call_output", "call_id": id, "output": text}


def line(kind: str, payload: Json, **more: Any) -> Json:
    return {"timestamp": "2026-01-01T10:00:00.000Z", "type": kind, "payload": payload, **more}


def item(payload: Json) -> Json:
    return line("response_item", payload)


def event(kind: str, **more: Any) -> Json:
    return line("event_msg", {"type": kind, **more})


META = line(
    "session_meta", {"id": "T1", "cwd": "/p", "cli_version": "0.60.0", "instructions": "Be brief."}
)
LATER = line("session_meta", {"id": "T1", "cwd": "/p", "cli_version": "0.155.1"})
START, END = event("task_started"), event("task_complete", last_agent_message="x")


def session(tmp_path: Path, *parts: Json) -> CodexSource:
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(part) + "\n" for part in parts))
    return CodexSource(path)


def texts(raws: Iterable[Json]) -> list[str]:
    return ["".join(part["text"] for part in raw["content"]) for raw in raws]


def same_as_raw(source: CodexSource) -> bool:
    """The fold and the replay tell the same history."""
    folded = [entry.item for entry in context_at(source.read())]
    return [each.text for each in folded] == [item_of(raw).text for raw in source.context_raw()]


# -- old forms ---------------------------------------------------------------------------------


def test_an_old_compacted_line_without_history_is_rebuilt_from_what_the_user_said(
    tmp_path: Path,
) -> None:
    source = session(
        tmp_path,
        META,
        item(message("user", "<environment_context>x</environment_context>")),
        item(message("user", "first")),
        item(call("c1")),
        item(output("c1")),
        item(message("assistant", "the summary")),
        line("compacted", {"message": "the summary"}),
        item(message("user", "second")),
    )
    harness = "<environment_context>x</environment_context>"
    assert texts(source.context_raw()) == [harness, "first", "the summary", "second"]
    assert same_as_raw(source)
    (report,) = compaction_records(source.read())
    assert report.items is not None
    assert (report.items.before, report.items.kept, report.items.after) == (5, 2, 3)
    assert (report.evidence, report.summary) == ("derived", "the summary")
    summary = context_at(source.read(), 6).entries[-1].item
    assert summary == CompactionSummary("the summary")


def test_the_rebuilt_history_keeps_the_newest_words_within_20_000_tokens() -> None:
    old, middle, new = "o" * 400, "m" * 80_000, "n" * 400
    history = [message("user", old), message("user", middle, id="m2"), message("user", new)]
    cut, kept, summary = rebuilt(history, "S")
    assert (kept, texts([summary])) == (history[2], ["S"])
    assert cut["id"] == "m2"
    assert texts([cut]) == ["m" * 39_800 + "\u2026100 tokens truncated\u2026" + "m" * 39_800]


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("abcdefghijklmnop", 2, "abcd\u20262 tokens truncated\u2026mnop"),
        ("0123456789", 0, "\u20263 tokens truncated\u2026"),
        ("short", 2, "short"),
        ("äöüäöüäöü", 2, "äö\u20263 tokens truncated\u2026öü"),
    ],
)
def test_a_text_is_cut_in_the_middle_at_whole_characters(
    text: str, tokens: int, expected: str
) -> None:
    assert truncated(text, tokens) == expected


def test_items_without_ids_are_kept_by_equality(tmp_path: Path) -> None:
    words = message("user", "same words")
    source = session(
        tmp_path,
        META,
        START,
        item(words),
        item(words),
        item(message("assistant", "answer")),
        line(
            "compacted",
            {"message": "s", "replacement_history": [words, words, message("user", "s")]},
        ),
    )
    (report,) = compaction_records(source.read())
    assert report.items is not None
    assert (report.items.kept, report.items.removed, report.items.inserted) == (2, 1, 1)


def test_a_kept_message_that_was_cut_is_a_replacement(tmp_path: Path) -> None:
    long, short = message("user", "long " * 9, id="m1"), message("user", "lo…ng", id="m1")
    source = session(
        tmp_path,
        META,
        item(long),
        line("compacted", {"message": "s", "replacement_history": [short, message("user", "s")]}),
    )
    (report,) = compaction_records(source.read())
    assert report.items is not None
    assert (report.items.kept, report.items.replaced, report.items.removed) == (0, 1, 0)
    fate = state_at(source.read()).fates
    assert [each.became is not None for each in fate.values()] == [True]


def test_an_old_numeric_window_id_is_the_window_number(tmp_path: Path) -> None:
    payload = {"message": "s", "replacement_history": [], "window_id": 7}
    (report,) = compaction_records(session(tmp_path, META, line("compacted", payload)).read())
    assert report.window == 7


def test_old_instructions_are_not_put_into_the_input(tmp_path: Path) -> None:
    source = session(
        tmp_path, META, item(message("user", "hi")), item(message("assistant", "hello"))
    )
    (request,) = source.requests()
    assert (request.input, request.instructions) == ([message("user", "hi")], "Be brief.")


def test_base_instructions_that_the_history_holds_are_not_sent_twice() -> None:
    head = Head("T1", "Be brief.")
    history = [message("developer", "Be brief."), message("user", "hi")]
    assert head.request(history) == history
    assert texts(head.request(history[1:])) == ["Be brief.", "hi"]


# -- phases without attribution ----------------------------------------------------------------


def compacted(*kept: Json) -> Json:
    return line("compacted", {"message": "s", "replacement_history": [*kept, message("user", "s")]})


@pytest.mark.parametrize(
    ("behind", "phase", "moment", "trigger"),
    [
        ([item(message("user", "next"))], "pre_turn", Moment.TURN_START, Trigger.AUTO),
        ([END], "standalone_turn", Moment.MANUAL, Trigger.MANUAL),
        ([START], "standalone_turn", Moment.MANUAL, Trigger.MANUAL),
    ],
)
def test_the_lines_behind_tell_a_manual_compaction_from_one_before_a_turn(
    tmp_path: Path, behind: list[Json], phase: str, moment: Moment, trigger: Trigger
) -> None:
    source = session(
        tmp_path, META, START, item(message("user", "a")), END, START, compacted(), *behind
    )
    (report,) = compaction_records(source.read())
    assert (report.phase, report.moment, report.trigger) == (phase, moment, trigger)
    assert report.marks == ()


@pytest.mark.parametrize(
    ("behind", "phase"), [(END, "post_turn"), (item(message("user", "more")), "mid_turn")]
)
def test_a_compaction_behind_an_answer_is_post_turn_when_the_turn_ends(
    tmp_path: Path, behind: Json, phase: str
) -> None:
    said = [item(message("user", "a")), item(message("assistant", "b"))]
    (report,) = compaction_records(
        session(tmp_path, META, START, *said, compacted(), behind).read()
    )
    assert report.phase == phase


def test_a_phase_that_nothing_tells_is_marked_as_a_guess(tmp_path: Path) -> None:
    (report,) = compaction_records(session(tmp_path, META, START, compacted()).read())
    assert report.phase == "pre_turn"
    assert report.marks == ("phase is a guess between pre_turn and standalone_turn",)


def test_a_changed_compaction_hash_is_the_cause(tmp_path: Path) -> None:
    def settings(hash: str) -> Json:
        return line("turn_context", {"model": "toy", "comp_hash": hash})

    source = session(
        tmp_path,
        META,
        START,
        settings("7"),
        item(message("user", "a")),
        END,
        START,
        compacted(),
        settings("8"),
    )
    (report,) = compaction_records(source.read())
    assert report.reason.startswith("comp_hash_changed")
    assert report.moment is Moment.MODEL_CHANGE


# -- rollbacks ---------------------------------------------------------------------------------


def turn(text: str) -> list[Json]:
    return [START, item(message("user", text)), item(message("assistant", f"re {text}")), END]


def rolled(turns: int) -> Json:
    return event("thread_rolled_back", num_turns=turns)


def test_a_rollback_takes_back_the_last_turns(tmp_path: Path) -> None:
    source = session(tmp_path, META, *turn("a"), *turn("b"), *turn("c"), rolled(2), *turn("d"))
    assert texts(source.context_raw()) == ["a", "re a", "d", "re d"]
    assert same_as_raw(source)
    (event,) = [r.event for r in source.read() if isinstance(r.event, e.HistoryRolledBack)]
    assert (event.turns, event.removed, event.items_before, event.items_after) == (2, 4, 6, 2)
    state = state_at(source.read())
    assert not state.problems
    assert sum(fate.rolled_back for fate in state.fates.values()) == 4
    assert state.compactions == 0


def test_a_rollback_after_a_compaction_keeps_the_checkpoint(tmp_path: Path) -> None:
    source = session(tmp_path, META, *turn("a"), START, compacted(), END, *turn("b"), rolled(1))
    assert texts(source.context_raw()) == ["s"]
    assert same_as_raw(source)


def test_a_rollback_of_a_turn_that_compacted_undoes_the_compaction(tmp_path: Path) -> None:
    middle = [
        START,
        item(message("user", "b")),
        item(call("c")),
        item(output("c")),
        compacted(),
        END,
    ]
    source = session(tmp_path, LATER, *turn("a"), *middle, rolled(1), *turn("z"))
    assert texts(source.context_raw()) == ["a", "re a", "z", "re z"]
    assert same_as_raw(source)
    (event,) = [r.event for r in source.read() if isinstance(r.event, e.HistoryRolledBack)]
    assert (event.undone, event.inserted) == ((1,), 2)


def test_a_rollback_of_a_turn_undoes_the_compaction_before_its_message(tmp_path: Path) -> None:
    source = session(
        tmp_path, LATER, *turn("a"), START, compacted(), item(message("user", "b")), END, rolled(1)
    )
    assert texts(source.context_raw()) == ["a", "re a"]
    assert same_as_raw(source)


def test_an_older_codex_lost_what_lay_before_a_compaction_that_a_rollback_undid(
    tmp_path: Path,
) -> None:
    context = item(message("developer", "rules"))
    second = [START, compacted(), context, item(message("user", "b")), END]
    source = session(tmp_path, META, *turn("a"), *second, rolled(1), *turn("z"))
    assert texts(source.context_raw()) == ["rules", "z", "re z"]
    assert same_as_raw(source)
    (event,) = [r.event for r in source.read() if isinstance(r.event, e.HistoryRolledBack)]
    assert event.undone == (1,)


def test_an_older_codex_took_the_harness_messages_in_front_of_a_turn_back_with_it(
    tmp_path: Path,
) -> None:
    change = item(message("developer", "new rules"))
    third = [START, change, item(message("user", "b")), END]
    source = session(tmp_path, META, *turn("a"), *third, rolled(1))
    assert texts(source.context_raw()) == ["a", "re a"]


def test_pictures_in_what_the_user_said_go_with_an_old_compacted_line(tmp_path: Path) -> None:
    words = {"type": "input_text", "text": "look"}
    picture = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        {"type": "input_text", "text": "</image>"},
    ]
    said = {"type": "message", "role": "user", "content": [words, *picture]}
    source = session(tmp_path, META, item(said), line("compacted", {"message": "s"}))
    kept, _ = source.context_raw()
    assert kept["content"] == [words]


def test_a_rollback_of_more_turns_than_there_are_keeps_what_was_before_the_first(
    tmp_path: Path,
) -> None:
    first = item(message("developer", "rules"))
    source = session(tmp_path, META, START, first, *turn("a")[1:], *turn("b"), rolled(9))
    assert texts(source.context_raw()) == ["rules"]
    assert same_as_raw(source)


def test_a_rollback_without_turns_is_a_note(tmp_path: Path) -> None:
    notes = [
        r.event for r in session(tmp_path, META, rolled(1)).read() if isinstance(r.event, e.Note)
    ]
    assert [note.kind for note in notes] == ["rollback"]


def test_openai_s_own_endpoint_is_told_some_of_the_metadata(tmp_path: Path) -> None:
    known = {"turn_id": "t", "create_time": 1.5, "content_item_kinds": ["user.text"], "more": 1}
    said = message("user", "a", id="m1", internal_chat_message_metadata_passthrough=known)

    def sent_by(version: str, provider: str) -> Json:
        about = {"id": "T1", "cli_version": version, "model_provider": provider}
        lines = [line("session_meta", about), *turn("x")[:1], item(said), *turn("x")[2:]]
        (request,) = session(tmp_path, *lines).requests()
        return request.input[-1].get("internal_chat_message_metadata_passthrough", {})

    assert sorted(sent_by("0.171.0", "openai")) == ["content_item_kinds", "create_time", "turn_id"]
    assert sorted(sent_by("0.150.1", "openai")) == ["create_time", "turn_id"]
    assert sent_by("0.171.0", "my-own") == {}


# -- failed compactions ------------------------------------------------------------------------


def answer(text: str) -> Json:
    return line("response_item", message("assistant", text), metadata={"compaction_output": True})


def test_an_answer_without_a_compacted_line_stays_in_the_history_and_is_told(
    tmp_path: Path,
) -> None:
    source = session(tmp_path, META, *turn("a"), START, answer("lost summary"), END, *turn("b"))
    assert texts(source.context_raw())[2] == "lost summary"
    assert same_as_raw(source)
    (failed,) = [r.event for r in source.read() if isinstance(r.event, e.CompactionFailed)]
    assert (failed.outcome, failed.evidence) == (e.Outcome.ABORTED, "inferred")


def test_the_error_message_of_an_older_file_fails_its_turn(tmp_path: Path) -> None:
    error = event("error", message="boom", codex_error_info={"http_connection_failed": {"code": 1}})
    source = session(tmp_path, META, START, item(message("user", "a")), error, END)
    raised = [r.event for r in source.read() if isinstance(r.event, e.ErrorRaised)]
    assert [(each.kind, each.message) for each in raised] == [("http_connection_failed", "boom")]
    (ended,) = [r.event for r in source.read() if isinstance(r.event, e.TurnFinished)]
    assert (ended.outcome, ended.message) == ("failed", "boom")


# -- items -------------------------------------------------------------------------------------


def test_orphans_are_normalised_as_codex_does() -> None:
    history = [
        call("c1"),
        call("c2"),
        output("c2"),
        output("c9"),
        {"type": "custom_tool_call", "call_id": "c3"},
    ]
    sent = normalised(history)
    assert [raw.get("output", raw["call_id"]) for raw in sent] == [
        "c1",
        "aborted",
        "c2",
        "ok",
        "c3",
        "aborted",
    ]
    assert sent[-1]["type"] == "custom_tool_call_output"


def test_retries_of_a_request_that_does_not_fit_go_down_to_nothing() -> None:
    history = [message("user", "a"), call("c1"), call("c2"), output("c1"), output("c2")]
    assert [len(step) for step in descent(history)] == [4, 2, 0]


def test_real_words_of_the_user_are_told_from_harness_text() -> None:
    kinds = "internal_chat_message_metadata_passthrough"
    assert is_real_user(message("user", "hello"))
    assert not is_real_user(message("user", "<environment_context>\n</environment_context>"))
    assert not is_real_user(message("user", "# AGENTS.md instructions for /p\n"))
    assert not is_real_user(message("user", "x", **{kinds: {"content_item_kinds": ["hooks.x"]}}))
    assert not is_real_user(
        message("user", "x", **{kinds: {"content_item_kinds": ["compaction.summary"]}})
    )
    assert is_real_user(
        message("user", "<skill>", **{kinds: {"content_item_kinds": ["user.text", "skills.x"]}})
    )


def test_every_kind_of_call_pairs_with_its_output() -> None:
    assert item_of(
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "+x"}
    ) == FunctionCall("c", "patch", "+x")
    assert isinstance(
        item_of({"type": "local_shell_call", "call_id": "c", "action": {"x": 1}}), FunctionCall
    )
    assert isinstance(
        item_of({"type": "tool_search_output", "call_id": "c", "tools": []}), FunctionCallOutput
    )
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}]
    assert (
        item_of({"type": "function_call_output", "call_id": "c", "output": parts}).text
        == "a\n[input_image]"
    )
    assert item_of(
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": {"content": "no", "success": False},
        }
    ) == FunctionCallOutput("c", "no", is_error=True)
    assert isinstance(item_of({"type": "web_search_call", "action": {}}), OtherItem)


def test_unknown_types_are_counted_and_unknown_items_stay_in_the_history(tmp_path: Path) -> None:
    source = session(
        tmp_path,
        META,
        item({"type": "hologram", "data": 1}),
        line("mood", {"happy": True}),
        event("confetti"),
        line("response_item", [1]) if False else {"type": "response_item", "payload": [1]},
    )
    state = state_at(source.read())
    assert state.unknown == {
        "response_item/hologram": 1,
        "mood": 1,
        "event_msg/confetti": 1,
        "response_item": 1,
    }
    assert isinstance(state.context.entries[0].item, OtherItem)


def test_a_forked_file_keeps_its_own_thread(tmp_path: Path) -> None:
    parent = line("session_meta", {"id": "T0", "cwd": "/elsewhere"})
    records = list(session(tmp_path, META, parent, *turn("a")).read())
    first = records[0].event
    assert isinstance(first, e.SessionStarted)
    assert (first.session_id, first.cwd) == ("T1", "/p")
    assert [r.event.kind for r in records if isinstance(r.event, e.Note)] == ["fork"]


# -- tokens ------------------------------------------------------------------------------------


def test_sealed_items_count_by_their_base64_length() -> None:
    assert estimate_item({"type": "reasoning", "encrypted_content": "x" * 2400}) == 288
    assert estimate_item({"type": "compaction", "encrypted_content": "x" * 480}) == 40
    assert (
        estimate_item(
            {"type": "compaction", "encrypted_content": "x" * 2400}, version_of("0.150.1")
        )
        == 288
    )
    assert estimate_item({"type": "compaction_trigger"}) == 0


def test_sealed_reasoning_counts_once_more_before_the_last_words_of_the_user() -> None:
    thought = {"type": "reasoning", "encrypted_content": "x" * 2400}
    first, answer, last = message("user", "a"), message("assistant", "b"), message("user", "cccc")
    assert unreported([first, thought, answer, last]) == 288 + 1
    assert unreported([first, last, thought]) == 0
    assert unreported([first, last]) == 0


# -- turns without an end ----------------------------------------------------------------------


def test_a_turn_without_an_end_had_sent_what_nothing_answered(tmp_path: Path) -> None:
    settings = line("turn_context", {"model": "m"}, ordinal=0)
    version = line("session_meta", {"id": "T1", "cli_version": "0.171.0"}, ordinal=0)
    killed = [START, settings, item(message("user", "b"))]
    requests = list(session(tmp_path, version, *killed, *turn("c")).requests())
    assert [(each.failed, each.evidence) for each in requests] == [
        ("interrupted", "inferred"),
        ("", "derived"),
    ]
    assert texts(requests[0].input) == ["b"]


def test_a_turn_without_an_end_whose_tool_still_ran_had_sent_nothing_more(tmp_path: Path) -> None:
    settings = line("turn_context", {"model": "m"}, ordinal=0)
    version = line("session_meta", {"id": "T1", "cli_version": "0.171.0"}, ordinal=0)
    killed = [START, settings, item(message("user", "b")), item(call("c1")), item(call("c2"))]
    lines = [version, *killed, item(output("c2")), *turn("c")]
    assert [each.failed for each in session(tmp_path, *lines).requests()] == ["", ""]
