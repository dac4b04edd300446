from __future__ import annotations

import pytest

from thresher.core.compaction.policies.opencode.estimate import clipped, units
from thresher.core.compaction.policies.opencode.model_json import model_messages, size
from thresher.core.compaction.policies.opencode.serialise import Writing, written
from thresher.core.compaction.policies.opencode.tool_output import Bounds, Form, cut
from thresher.core.items import (
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Message,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
    assistant,
    system,
    user,
)

HOW = Writing(2_000, "[Old tool result content cleared]")


# Text form and JSON size -------------------------------------------------------------------------


def test_each_result_stands_behind_its_call_and_errors_are_not_cut() -> None:
    items = (
        Reasoning("thinking"),
        assistant("Looking."),
        FunctionCall("a", "bash", '{"command": "ls",  "n": 1.0}'),
        FunctionCall("b", "read", "no json"),
        FunctionCall("c", "bash", "{}"),
        FunctionCallOutput("b", "y" * 3000, is_error=True),
        FunctionCallOutput("a", "x" * 2001),
    )
    assert written(items, HOW) == "\n".join(
        [
            "[Assistant reasoning]: thinking",
            "[Assistant]: Looking.",
            '[Assistant tool call]: bash({"command":"ls","n":1})',
            f"[Tool result]: {'x' * 2000}",
            "[truncated]",
            '[Assistant tool call]: read("no json")',
            f"[Tool error]: {'y' * 3000}",
            "[Assistant tool call]: bash({})",
        ]
    )


def test_what_only_v2_tells_apart_has_labels_of_its_own() -> None:
    how = Writing(2_000, synthetic=True, empty_tools=frozenset({"read"}))
    assert written([Message(Role.USER, "note", synthetic=True)], how) == "[Synthetic context]: note"
    assert written([Message(Role.USER, "note", synthetic=True)], HOW) == "[User]: note"
    assert written([system("new rules")], how) == "[System update]: new rules"
    assert written([OtherItem("search", "{}", "found it")], how) == "[Synthetic context]: found it"
    reading = [FunctionCall("a", "read", "{}"), FunctionCallOutput("a", "the file", "read")]
    assert written(reading, how) == "[Assistant tool call]: read({})\n[Tool result]: "
    assert written([], how) == ""


def test_a_picture_without_a_name_is_a_file() -> None:
    message = Message(Role.USER, (TextPart("see"), ImagePart("data:image/jpeg;base64,AAAA")))
    assert written([message], HOW) == "[User]: see\n[Attached image/jpeg: file]"


def test_texts_are_measured_and_cut_in_utf_16_units() -> None:
    assert units("a🦀é") == 4
    assert clipped("🦀" * 1000, 2000) == "🦀" * 1000
    assert clipped("🦀" * 1001, 2001) == "🦀" * 1000 + "\n[truncated]"
    assert units("\ud83d") == 1


def test_a_step_is_an_assistant_message_and_one_tool_message() -> None:
    items = (
        assistant("hi"),
        FunctionCall("a", "bash", '{"x": 1}'),
        FunctionCall("b", "bash", "{}"),
        FunctionCallOutput("b", "two"),
        FunctionCallOutput("a", "one"),
    )
    said, results = model_messages(items)
    assert said == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "hi"},
            {"type": "tool-call", "toolCallId": "a", "toolName": "bash", "input": {"x": 1}},
            {"type": "tool-call", "toolCallId": "b", "toolName": "bash", "input": {}},
        ],
    }
    assert [part["output"]["value"] for part in results["content"]] == ["one", "two"]
    assert [part["toolName"] for part in results["content"]] == ["bash", "bash"]


def test_the_size_is_that_of_the_json_list() -> None:
    one = '{"role":"user","content":[{"type":"text","text":"🦀"}]}'
    assert size([user("🦀")]).list_units == units(f"[{one}]")
    both = size([user("🦀")]) + size([user("🦀")])
    assert both.list_units == units(f"[{one},{one}]")


# Bounds ------------------------------------------------------------------------------------------

LINES = "\n".join(f"line {n}" for n in range(1, 101))


def test_the_head_form_keeps_whole_lines_and_counts_the_others() -> None:
    text = cut(LINES, Bounds(3, 10_000), Form.HEAD, "/f")
    assert text.startswith("line 1\nline 2\nline 3\n\n...97 lines truncated...\n\n")
    assert "/f" in text


def test_where_the_bytes_end_first_bytes_are_counted() -> None:
    text = cut(LINES, Bounds(100, 15), Form.HEAD, "/f")
    assert text.startswith(f"line 1\nline 2\n\n...{len(LINES) - 13} bytes truncated...\n\n")


def test_the_tail_form_keeps_the_newest_lines() -> None:
    text = cut(LINES, Bounds(2, 10_000), Form.TAIL, "/f")
    assert text.startswith("...98 lines truncated...\n\n")
    assert text.endswith("\n\nline 99\nline 100")


def test_the_shell_form_keeps_the_end_of_a_line_that_is_too_long_by_itself() -> None:
    text = cut("x" * 50 + "é", Bounds(10, 4), Form.SHELL, "/f")
    assert text == "...output truncated...\n\nFull output saved to: /f\n\nxxé"


def test_both_ends_share_what_the_marker_leaves() -> None:
    marker = "... output truncated; full content saved to /f ..."
    assert cut(LINES, Bounds(9, 10_000), Form.BOTH, "/f") == (
        f"line 1\nline 2\nline 3\n\n{marker}\n\nline 99\nline 100"
    )
    room = len(marker) + 4 + 21
    assert cut("é" * 1000, Bounds(9, room), Form.BOTH, "/f") == (
        f"{'é' * 5}\n\n{marker}\n\n{'é' * 5}"
    )
    assert cut(LINES, Bounds(4, 10_000), Form.BOTH, "/f") == marker
    assert cut(LINES, Bounds(9, 10), Form.BOTH, "/f") == marker[:10]


def test_a_text_that_could_not_be_kept_is_said_to_be_lost() -> None:
    for form in Form:
        assert "could not be saved" in cut(LINES, Bounds(9, 10_000), form, "")


@pytest.mark.parametrize(
    ("text", "v1_holds", "v2_holds"), [("a\nb\n", False, True), ("a\nb", True, True)]
)
def test_only_v1_counts_an_empty_last_line(text: str, v1_holds: bool, v2_holds: bool) -> None:
    bounds = Bounds(2, 100)
    assert bounds.hold(text, Form.HEAD) is v1_holds
    assert bounds.hold(text, Form.BOTH) is v2_holds
