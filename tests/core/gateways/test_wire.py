from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from thresher.core.gateways.openai_chat import chat_messages
from thresher.core.gateways.openai_responses import response_input
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
    assistant,
    system,
    user,
)

PICTURE = "data:image/png;base64,iVBORw0KGgo="
CALL_A = FunctionCall("a", "glob", '{"pattern":"*"}')
CALL_B = FunctionCall("b", "grep", '{"pattern": "x"}')
OUT_A = FunctionCallOutput("a", "one.py", "glob")
OUT_B = FunctionCallOutput("b", "two.py", "grep", is_error=True, saved="/tmp/x")


def test_responses_input_holds_every_item_in_its_own_form() -> None:
    items = (
        system("rules"),
        Message(Role.DEVELOPER, "more rules"),
        user("hello"),
        Reasoning("thought", "sealed"),
        Message(Role.ASSISTANT, "looking", phase="commentary"),
        CALL_A,
        CALL_B,
        OUT_A,
        OUT_B,
        CompactionSummary("short", prefix="Earlier: "),
        CompactionSummary(encrypted="blob"),
        OtherItem("web_search_call", '{"type":"web_search_call","id":"ws_1"}'),
    )
    assert response_input(items) == [
        _said("system", "input_text", "rules"),
        _said("developer", "input_text", "more rules"),
        _said("user", "input_text", "hello"),
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "thought"}],
            "encrypted_content": "sealed",
        },
        _said("assistant", "output_text", "looking") | {"phase": "commentary"},
        {
            "type": "function_call",
            "call_id": "a",
            "name": "glob",
            "arguments": '{"pattern":"*"}',
        },
        {"type": "function_call", "call_id": "b", "name": "grep", "arguments": '{"pattern": "x"}'},
        {"type": "function_call_output", "call_id": "a", "output": "one.py"},
        {"type": "function_call_output", "call_id": "b", "output": "two.py"},
        _said("user", "input_text", "Earlier: short"),
        {"type": "compaction", "encrypted_content": "blob"},
        {"type": "web_search_call", "id": "ws_1"},
    ]


def test_reasoning_that_cannot_be_taken_back_is_not_sent() -> None:
    unsealed, sealed = Reasoning("thought"), Reasoning("thought", "sealed")
    assert [w["type"] for w in response_input((user("q"), unsealed, assistant("a")))] == [
        "message",
        "message",
    ]
    assert [w["type"] for w in response_input((sealed, user("q"), sealed))] == ["message"]
    assert [w["type"] for w in response_input((sealed, sealed, CALL_A))][:2] == ["reasoning"] * 2


def test_pictures_keep_their_shape_in_both_protocols_and_after_a_second_conversion() -> None:
    item = Message(
        Role.USER, (TextPart("see"), ImagePart(PICTURE, "high"), ImagePart("https://x/y.png"))
    )
    responses = response_input((item,))
    assert responses[0]["content"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": PICTURE, "detail": "high"},
        {"type": "input_image", "image_url": "https://x/y.png"},
    ]
    chat = chat_messages((item,))
    assert chat[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": PICTURE, "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
    ]
    assert (response_input((item,)), chat_messages((item,))) == (responses, chat)


def test_an_unknown_part_goes_through_where_its_protocol_is_spoken_and_is_named_elsewhere() -> None:
    part = OpaquePart("input_file", '{"type":"input_file","file_id":"f1"}')
    item = Message(Role.USER, (part,))
    assert response_input((item,))[0]["content"] == [{"type": "input_file", "file_id": "f1"}]
    (left_out,) = chat_messages((item,))[0]["content"]
    assert left_out["type"] == "text"
    assert "input_file" in left_out["text"]


def test_chat_attaches_calls_to_the_message_directly_before_them() -> None:
    items = (system("s"), user("q"), assistant("looking"), CALL_A, CALL_B, OUT_A, OUT_B)
    assert chat_messages(items, "instructions") == [
        {"role": "system", "content": "instructions"},
        {"role": "system", "content": "s"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "looking",
            "tool_calls": [
                _chat_call("a", "glob", CALL_A.arguments),
                _chat_call("b", "grep", CALL_B.arguments),
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "one.py"},
        {"role": "tool", "tool_call_id": "b", "content": "two.py"},
    ]


def test_chat_calls_without_a_message_before_them_get_one_without_content() -> None:
    items = (user("q"), CALL_A, OUT_A, Reasoning("hm", "sealed"), CALL_B, OUT_B)
    messages = chat_messages(items)
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert messages[1]["content"] is None
    assert messages[3]["content"] is None


def test_chat_never_attaches_calls_to_a_summary() -> None:
    summary = CompactionSummary("notes", role=Role.ASSISTANT)
    said, called, _ = chat_messages((summary, CALL_A, OUT_A))
    assert said == {"role": "assistant", "content": "notes"}
    assert called["content"] is None
    assert [call["id"] for call in called["tool_calls"]] == ["a"]


def test_chat_puts_a_late_output_behind_its_call() -> None:
    messages = chat_messages((user("q"), CALL_A, CALL_B, OUT_B, user("note"), OUT_A))
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert [m["tool_call_id"] for m in messages[2:4]] == ["b", "a"]


def test_a_summary_is_a_user_message_in_chat() -> None:
    assert chat_messages((CompactionSummary("short", prefix="Earlier: "),)) == [
        {"role": "user", "content": "Earlier: short"}
    ]
    (sealed,) = chat_messages((CompactionSummary(encrypted="blob"),))
    assert "blob" not in json.dumps(sealed)


def _said(role: str, kind: str, text: str) -> dict[str, object]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _chat_call(id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


@st.composite
def histories(draw: st.DrawFn) -> list[Item]:
    """Sound histories: every output somewhere after its call."""
    items: list[Item] = [system("s")]
    open_calls: list[str] = []
    for number in range(draw(st.integers(1, 14))):
        match draw(
            st.sampled_from(["user", "assistant", "reasoning", "call", "output", "summary"])
        ):
            case "user":
                items.append(user(f"u{number}"))
            case "assistant":
                items.append(assistant(f"a{number}"))
            case "reasoning":
                items.append(Reasoning("r", draw(st.sampled_from(["", "sealed"]))))
            case "call":
                open_calls.append(f"c{number}")
                items.append(FunctionCall(f"c{number}", "glob", "{}"))
            case "output" if open_calls:
                at = draw(st.integers(0, len(open_calls) - 1))
                items.append(FunctionCallOutput(open_calls.pop(at), "o"))
            case _:
                items.append(CompactionSummary(f"s{number}"))
    items.extend(FunctionCallOutput(id, "o") for id in open_calls)
    return items


@given(histories())
def test_chat_messages_are_in_an_order_that_the_protocol_allows(items: Sequence[Item]) -> None:
    messages = chat_messages(items)
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = {call["id"] for call in message.get("tool_calls", ())}
        assert waiting or message["content"] is not None
    assert not waiting
    calls = [call["id"] for m in messages for call in m.get("tool_calls", ())]
    assert calls == [item.call_id for item in items if isinstance(item, FunctionCall)]


@given(histories())
def test_responses_input_keeps_the_order_of_the_items(items: Sequence[Item]) -> None:
    wire = response_input(items)
    kept = [item for item in items if not isinstance(item, Reasoning)]
    assert len([w for w in wire if w["type"] != "reasoning"]) == len(kept)
    ids = [(w["type"], w["call_id"]) for w in wire if "call_id" in w]
    assert ids == [
        ("function_call" if isinstance(i, FunctionCall) else "function_call_output", i.call_id)
        for i in items
        if isinstance(i, FunctionCall | FunctionCallOutput)
    ]
