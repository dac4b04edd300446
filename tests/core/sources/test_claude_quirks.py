from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.items import FunctionCall, ImagePart, Message
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.claude_events import Translator
from thresher.core.sources.claude_messages import GO_ON
from thresher.core.sources.claude_plain import plain
from thresher.core.sources.lines import LineReader
from thresher.core.sources.report import compaction_records

from .claude_made import Made, call, text

PIXEL = base64.b64encode(b"a picture").decode()


def requests(made: Made) -> list[RebuiltRequest]:
    found: list[RebuiltRequest] = []
    translator = Translator(on_request=found.append)
    for line in LineReader().feed(made.data()):
        translator.feed(line)
    translator.flush()
    return found


def events(made: Made, kind: type[e.Event]) -> list[Any]:
    return [each.event for each in made.records() if isinstance(each.event, kind)]


def shape(request: RebuiltRequest) -> list[list[str]]:
    """Role and kinds of blocks of each message."""
    found = []
    for message in request.input:
        content = message["content"]
        kinds = ["text"] if isinstance(content, str) else [block["type"] for block in content]
        found.append([message["role"], *kinds])
    return found


def said_twice() -> Made:
    """A response that was first written as one record, and block by block when it was resumed."""
    made = Made()
    prompt = made.user("go")
    made.says("m1", text("Reading."), call("c1"))
    made.result("c1", "the log")
    made.says("m2", text("Read."))
    made.says("m1", text("Reading."), parent=prompt)
    made.says("m1", call("c1"))
    made.result("c1", "the log")
    made.says("m2", text("Read."))
    made.user("more")
    made.says("m3", text("Done."))
    return made


def test_a_response_that_was_written_down_twice_is_sent_once() -> None:
    made = said_twice()
    assert shape(requests(made)[-1]) == [
        ["user", "text"],
        ["assistant", "text", "tool_use"],
        ["user", "tool_result"],
        ["assistant", "text"],
        ["user", "text"],
    ]
    context = made.state().context.items
    assert [item.text for item in context if isinstance(item, Message)] == [
        "go",
        "Reading.",
        "Read.",
        "more",
        "Done.",
    ]
    assert sum(isinstance(item, FunctionCall) for item in context) == 1


def test_a_response_that_was_written_down_twice_is_counted_once() -> None:
    assert (made := said_twice().state()).requests == 3
    assert made.turns_total == 30


def test_parallel_calls_on_branches_of_their_own_are_not_taken_for_copies() -> None:
    made = Made()
    made.user("go")
    first = made.says("m1", call("c1"))
    second = made.says("m1", call("c2"))
    made.result("c1", "same", parent=first)
    made.result("c2", "same", parent=second)
    made.says("m2", text("Done."))
    assert shape(requests(made)[-1])[1:] == [
        ["assistant", "tool_use", "tool_use"],
        ["user", "tool_result", "tool_result"],
    ]


def stopped() -> Made:
    made = Made()
    made.user("go")
    made.says("m1", text("Slowly."))
    made.says("m1", call("c1"))
    made.user("still there?")
    return made


def test_a_call_whose_tool_was_stopped_is_not_sent_again_and_leaves_the_context() -> None:
    made = stopped()
    made.says("m2", text("Yes."))
    assert shape(requests(made)[-1]) == [
        ["user", "text"],
        ["assistant", "text"],
        ["user", "text"],
    ]
    (left,) = events(made, e.HistoryRolledBack)
    assert (left.removed, left.turns) == (1, 0)
    assert "stopped while tools ran" in left.reason
    state = made.state()
    assert not any(isinstance(item, FunctionCall) for item in state.context.items)
    assert state.problems == []


def test_a_call_that_still_runs_is_in_the_context() -> None:
    assert any(isinstance(item, FunctionCall) for item in stopped().state().context.items)


def test_a_stopped_call_is_no_part_of_what_a_compaction_removes() -> None:
    made = stopped()
    made.boundary(trigger="manual")
    made.user("Summary:\nshort", isCompactSummary=True)
    (report,) = compaction_records(made.records())
    assert report.trigger is Trigger.MANUAL
    assert report.items is not None
    assert report.items.before == 3


def test_what_asks_for_the_rest_of_a_cut_answer_is_shown_as_not_in_the_file() -> None:
    made = Made()
    made.user("go")
    made.says("m1", text("Half of"), stop_reason="max_tokens")
    made.says("m2", text("the answer."))
    made.user("more")
    made.says("m3", text("Done."))
    first, second, third = requests(made)
    assert first.input == [{"role": "user", "content": "go"}]
    assert second.input[-1] == {"role": "user", "content": [text(GO_ON)]}
    assert all(GO_ON not in str(message) for message in third.input)


def test_an_error_behind_an_answer_is_no_request_of_its_own() -> None:
    made = Made()
    made.user("go")
    made.says("m1", text("No."), stop_reason="refusal")
    made.says("error", text("API Error: it will not"))
    made.lines[-1].update(isApiErrorMessage=True, requestId="m1")
    assert len(requests(made)) == 1
    assert made.state().requests == 1


def at(seconds: int) -> dict[str, str]:
    moment = datetime(2026, 1, 1, 12, 0, seconds, tzinfo=UTC)
    return {"timestamp": moment.isoformat().replace("+00:00", "Z")}


def forked() -> Made:
    made = Made()
    made.lines.append({"type": "queue-operation", "operation": "enqueue", **at(30)})
    made.user("go", **at(1))
    made.says("m1", call("c1"), input=40_000)
    made.lines[-1].update(at(2))
    made.result("c1", "x" * 80_000)
    made.lines[-1].update(at(3))
    made.says("m2", text("Read."), input=60_000)
    made.lines[-1].update(at(4))
    made.user("in the fork", **at(31))
    made.says("m3", text("Yes."), input=41_000)
    made.lines[-1].update(at(32))
    return made


def test_a_fork_tells_what_of_it_is_a_copy() -> None:
    (note,) = [each for each in events(forked(), e.Note) if each.kind == "fork"]
    assert note.text.startswith("lines 2 to 5 are a copy of the session")


def test_figures_of_the_copy_are_not_held_against_those_of_the_fork() -> None:
    assert events(forked(), e.UnannouncedReduction) == []


def test_a_session_that_is_resumed_is_no_copy() -> None:
    made = forked()
    made.lines[0].update(at(0))
    assert [each for each in events(made, e.Note) if each.kind == "fork"] == []


def test_a_fork_that_begins_with_a_boundary_does_not_claim_to_know_what_was_removed() -> None:
    made = Made()
    made.boundary(preTokens=160_000)
    made.user("Summary:\nshort", isCompactSummary=True)
    made.says("m1", text("on"))
    (report,) = compaction_records(made.records())
    assert any("what it removed is unknown here" in mark for mark in report.marks)
    assert [each.kind for each in requests(made)] == [e.Purpose.TURN]


def picture() -> dict[str, Any]:
    content = {"type": "image", "file": {"base64": PIXEL, "type": "image/png"}}
    return {"type": "file", "filename": "/home/user/p.png", "content": content}


def test_a_picture_that_a_prompt_names_is_a_picture_in_the_context() -> None:
    made = Made()
    made.user("What is @p.png?")
    made.add("attachment", attachment=picture())
    made.says("m1", text("A picture."))
    item = made.state().context.items[1]
    assert isinstance(item, Message)
    assert item.content[-1] == ImagePart(f"data:image/png;base64,{PIXEL}")
    assert PIXEL not in item.text
    blocks = plain(requests(made)[0].input)[0]["content"]
    assert [block["type"] for block in blocks] == ["image", "text"]


def test_the_words_that_an_attachment_was_given_in_are_shown_as_they_stand() -> None:
    made = Made()
    made.user("go")
    told = "<system-reminder>\nToday's date is known.\n</system-reminder>"
    made.add("attachment", attachment={"type": "date", "date": "x"}, rendered=[{"content": told}])
    made.add("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["secret"]})
    made.says("m1", text("ok"))
    assert [item.text for item in made.state().context.items] == ["go", told, "ok"]
    assert requests(made)[0].input[0]["content"][0] == text(told)


def test_what_a_task_in_the_background_tells_is_no_prompt_of_the_user() -> None:
    made = Made()
    made.user("go")
    made.says("m1", text("ok"), stop_reason="end_turn")
    made.user("<task-notification>\n<task-id>a</task-id></task-notification>")
    made.says("m2", text("seen"))
    assert len(events(made, e.TurnStarted)) == 1


def test_what_is_said_in_the_name_of_the_system_is_left_out_like_a_reminder() -> None:
    messages = [
        {"role": "user", "content": "go"},
        {"role": "system", "content": "Available agents"},
        {"role": "assistant", "content": [text("ok")]},
    ]
    assert [message["role"] for message in plain(messages)] == ["user", "assistant"]


def test_a_summary_without_its_mark_is_known_by_its_place_and_words() -> None:
    made = Made()
    made.boundary()
    words = "This session is being continued from a previous conversation.\nSummary:\nshort"
    made.user(words, isMeta=True)
    made.says("m1", text("on"))
    made.user(words)
    (report,) = compaction_records(made.records())
    assert report.summary == "short"
    assert isinstance(made.state().context.items[-1], Message)


def thought(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "s"}


def switching(version: str) -> Made:
    made = Made()
    for n, model in enumerate(("claude-a", "claude-b", "claude-a")):
        made.user(f"turn {n}")
        made.says(f"m{n}", thought(f"thought {n}"), model=model)
        made.says(f"m{n}", text(f"answer {n}"), model=model)
    for line in made.lines:
        line["version"] = version
    return made


def thoughts(request: RebuiltRequest) -> list[str]:
    blocks = [block for message in request.input for block in message["content"]]
    kept = [block for block in blocks if isinstance(block, dict)]
    return [block["thinking"] for block in kept if block["type"] == "thinking"]


def test_thinking_of_another_model_is_not_sent_and_comes_back_with_its_own() -> None:
    made = switching("2.1.197")
    assert [thoughts(each) for each in requests(made)] == [[], [], ["thought 0"]]
    first, second = events(made, e.HistoryRolledBack)
    assert (first.removed, first.inserted) == (1, 0)
    assert (second.removed, second.inserted) == (1, 1)
    assert made.state().problems == []


def test_older_versions_send_all_thinking_to_every_model() -> None:
    made = switching("2.1.70")
    assert [thoughts(each) for each in requests(made)] == [
        [],
        ["thought 0"],
        ["thought 0", "thought 1"],
    ]
    assert events(made, e.HistoryRolledBack) == []


def test_subagents_inside_the_file_of_a_session_have_requests_of_their_own() -> None:
    made = Made()
    made.user("go")
    made.says("m1", call("c1"))
    last = made.last
    made.user("a part of it", parent=None, isSidechain=True)
    made.says("s1", call("d1"))
    made.lines[-1]["isSidechain"] = True
    made.result("d1", "out")
    made.lines[-1]["isSidechain"] = True
    made.says("s2", text("done"))
    made.lines[-1]["isSidechain"] = True
    made.last = last
    made.result("c1", "done")
    made.says("m2", text("all done"))
    found = [(each.kind, each.position, len(each.input)) for each in requests(made)]
    assert found == [
        (e.Purpose.TURN, 0, 1),
        (e.Purpose.SUBAGENT, 2, 1),
        (e.Purpose.SUBAGENT, 4, 3),
        (e.Purpose.TURN, 6, 3),
    ]
