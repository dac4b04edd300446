from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import pytest

from thresher.core.compaction.policy import ToolSchema
from thresher.core.gateways.base import (
    ErrorKind,
    Gateway,
    GatewayError,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    TextDelta,
)
from thresher.core.gateways.openai_chat import ChatGateway
from thresher.core.gateways.openai_client import Connection, Endpoint
from thresher.core.gateways.openai_responses import ResponsesGateway
from thresher.core.items import FunctionCall, FunctionCallOutput, Reasoning, assistant, system, user
from thresher.core.tokens import Usage

from ...loopback import Call, Fail, Hang, Loopback, Raw, Reply, count, overflow

KEY = "test-key-that-must-not-show"
GLOB = ToolSchema("glob", "Find files.", {"type": "object", "properties": {}})
ASK = ModelRequest(model="m", items=(system("rules"), user("hello")))

pytestmark = pytest.mark.parametrize("wire", ["responses", "chat"])


def gateway(server: Loopback | str, wire: str, **endpoint: Any) -> Gateway:
    base_url = server if isinstance(server, str) else server.base_url
    given = {"key_variable": "SOME_KEY", **endpoint}
    connection = Connection(Endpoint(base_url=base_url, **given), KEY)
    return ResponsesGateway(connection) if wire == "responses" else ChatGateway(connection)


async def streamed(gate: Gateway, request: ModelRequest = ASK) -> tuple[str, str, ModelReply]:
    """Text, reasoning and reply of a stream; the reply came once, and last."""
    parts = [part async for part in gate.stream(request)]
    await gate.aclose()
    *deltas, reply = parts
    assert isinstance(reply, ModelReply)
    assert not any(isinstance(part, ModelReply) for part in deltas)
    text = "".join(p.text for p in deltas if isinstance(p, TextDelta))
    return text, "".join(p.text for p in deltas if isinstance(p, ReasoningDelta)), reply


async def completed(gate: Gateway, request: ModelRequest = ASK) -> ModelReply:
    reply = await gate.complete(request)
    await gate.aclose()
    return reply


async def refused(gate: Gateway, *, stream: bool = True) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        await (streamed(gate) if stream else completed(gate))
    await gate.aclose()
    assert KEY not in caught.value.msg
    return caught.value


async def test_a_stream_gives_the_text_in_pieces_and_then_the_reply(wire: str) -> None:
    async with Loopback([Reply("A longer text, 中文, in several pieces.", chunk=4)]) as server:
        text, _, reply = await streamed(gateway(server, wire))
    assert text == "A longer text, 中文, in several pieces."
    assert reply.items == (assistant(text),)
    assert reply.stop is StopReason.STOP
    assert reply.model == "m"
    assert reply.response_id
    used = count(server.requests[0].body)
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (used, 10)


async def test_without_a_stream_the_reply_is_the_same(wire: str) -> None:
    step = Reply("Words.", calls=(Call("glob", {"pattern": "*"}, "c1"),), reasoning="Because.")
    async with Loopback([step, step]) as server:
        _, _, by_stream = await streamed(gateway(server, wire))
        at_once = await completed(gateway(server, wire))
    assert at_once.items == by_stream.items
    assert at_once.stop is by_stream.stop is StopReason.TOOL_CALLS
    assert "stream" not in server.requests[1].body


async def test_parallel_calls_are_put_together_from_their_pieces(wire: str) -> None:
    calls = (
        Call("glob", {"pattern": "**/*.py"}, "c1"),
        Call("read_file", {"path": "a/b.py", "limit": 20}, "c2"),
        Call("grep", {"pattern": "x"}),
    )
    async with Loopback([Reply("Three at once.", calls=calls, chunk=3)]) as server:
        _, _, reply = await streamed(gateway(server, wire))
    found = [item for item in reply.items if isinstance(item, FunctionCall)]
    assert [(c.name, json.loads(c.arguments)) for c in found] == [
        (call.name, call.arguments) for call in calls
    ]
    assert [c.call_id for c in found][:2] == ["c1", "c2"]
    assert found[2].call_id
    assert reply.stop is StopReason.TOOL_CALLS


async def test_broken_arguments_reach_the_loop_as_the_model_wrote_them(wire: str) -> None:
    async with Loopback([Reply(calls=(Call("glob", '{"pattern": '),))]) as server:
        _, _, reply = await streamed(gateway(server, wire))
    (call,) = reply.items
    assert isinstance(call, FunctionCall)
    assert call.arguments == '{"pattern": '


async def test_reasoning_is_shown_and_kept(wire: str) -> None:
    async with Loopback([Reply("Yes.", reasoning="First this, then that.")]) as server:
        text, thought, reply = await streamed(gateway(server, wire))
    assert (text, thought) == ("Yes.", "First this, then that.")
    assert reply.items == (Reasoning("First this, then that."), assistant("Yes."))


@pytest.mark.parametrize(
    ("finish", "stop"), [("length", StopReason.LENGTH), ("content_filter", StopReason.FILTER)]
)
async def test_an_answer_that_was_cut_or_filtered_says_so(
    wire: str, finish: str, stop: StopReason
) -> None:
    async with Loopback([Reply("Half of", finish=finish)] * 2) as server:
        _, _, reply = await streamed(gateway(server, wire))
        assert (await completed(gateway(server, wire))).stop is stop
    assert reply.stop is stop
    assert reply.items == (assistant("Half of"),)


async def test_a_refusal_is_text_with_its_own_reason_to_stop(wire: str) -> None:
    async with Loopback([Reply(refusal="I will not.")] * 2) as server:
        text, _, reply = await streamed(gateway(server, wire))
        at_once = await completed(gateway(server, wire))
    assert text == "I will not."
    assert reply.items == at_once.items == (assistant("I will not."),)
    assert reply.stop is at_once.stop is StopReason.FILTER


async def test_an_empty_answer_has_no_items(wire: str) -> None:
    async with Loopback([Reply()]) as server:
        text, _, reply = await streamed(gateway(server, wire))
    assert (text, reply.items) == ("", ())


async def test_usage_is_unknown_when_the_server_does_not_report_it(wire: str) -> None:
    async with Loopback([Reply("Hi.", usage=None), Reply("Hi.", usage={})]) as server:
        for _ in range(2):
            _, _, reply = await streamed(gateway(server, wire))
            assert reply.usage is None


NESTED = {
    "responses": {
        "input_tokens": 100,
        "output_tokens": 20,
        "total_tokens": 120,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
        "output_tokens_details": {"reasoning_tokens": 5},
    },
    "chat": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
}


async def test_usage_keeps_cached_tokens_inside_the_input(wire: str) -> None:
    async with Loopback([Reply("Hi.", usage=NESTED[wire])]) as server:
        _, _, reply = await streamed(gateway(server, wire))
    assert reply.usage == Usage(100, 20, 64, 8, 5, 120)


async def test_usage_that_counts_the_cache_beside_the_input_is_brought_inside(wire: str) -> None:
    beside: dict[str, Any] = dict(NESTED[wire])
    beside |= {"total_tokens": 192}
    async with Loopback([Reply("Hi.", usage=beside)]) as server:
        _, _, reply = await streamed(gateway(server, wire))
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (172, 64)


async def test_the_request_on_the_wire_is_what_was_promised(wire: str) -> None:
    call = FunctionCall("c1", "glob", "{}")
    items = (system("s"), user("q"), assistant("a"), call, FunctionCallOutput("c1", "out"))
    request = ModelRequest(
        model="m", items=items, instructions="be brief", tools=(GLOB,), max_output=300
    )
    async with Loopback() as server:
        gate = gateway(server, wire)
        await streamed(gate, request)
        (sent,) = server.requests
        assert sent.messages == gate.wire_messages(request)
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body["stream"] is True
    assert sent.body["tool_choice"] == "auto"
    if wire == "responses":
        assert sent.body["store"] is False
        assert sent.body["instructions"] == "be brief"
        assert sent.body["max_output_tokens"] == 300
        assert sent.body["tools"][0]["name"] == "glob"
        assert "include" not in sent.body
    else:
        assert sent.body["stream_options"] == {"include_usage": True}
        assert sent.messages[0] == {"role": "system", "content": "be brief"}
        assert sent.body["max_tokens"] == 300
        assert sent.body["tools"][0]["function"]["parameters"] == GLOB.parameters


async def test_a_request_without_tools_names_no_choice_of_them(wire: str) -> None:
    async with Loopback() as server:
        await streamed(
            gateway(server, wire), ModelRequest(model="m", items=ASK.items, tool_choice="none")
        )
    assert not {"tools", "tool_choice"} & server.requests[0].body.keys()


async def test_only_what_was_given_goes_to_the_server(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-key")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/elsewhere")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-the-environment")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer smuggled\nX-Extra: 1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with Loopback() as server:
        await streamed(gateway(server, wire, project="proj"))
    headers = server.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["openai-project"] == "proj"
    assert "openai-organization" not in headers
    assert not {"another-key", "admin-key"} & set(headers.values())
    assert os.environ["OPENAI_API_KEY"] == "another-key"


async def test_without_a_key_no_authorization_is_sent(wire: str) -> None:
    async with Loopback() as server:
        connection = Connection(Endpoint(base_url=server.base_url))
        gate = ResponsesGateway(connection) if wire == "responses" else ChatGateway(connection)
        await streamed(gate)
    assert "authorization" not in server.requests[0].headers


# Failures ----------------------------------------------------------------------------------------

ERRORS: list[tuple[Fail, ErrorKind]] = [
    (Fail(401, {"error": {"message": "bad key", "code": "invalid_api_key"}}), ErrorKind.AUTH),
    (Fail(403, {"error": {"message": "not yours"}}), ErrorKind.AUTH),
    (Fail(429, {"error": {"message": "slow down", "code": "rate_limit"}}), ErrorKind.RATE_LIMIT),
    (Fail(429, {"error": {"message": "none", "code": "insufficient_quota"}}), ErrorKind.REFUSED),
    (Fail(500, {"error": {"message": "oops"}}), ErrorKind.SERVER),
    (Fail(502, "<html><head><title>Bad gateway</title></head></html>"), ErrorKind.SERVER),
    (Fail(503, None), ErrorKind.SERVER),
    (Fail(504, None), ErrorKind.TIMEOUT),
    (Fail(408, None), ErrorKind.TIMEOUT),
    (Fail(404, {"error": {"message": "no such model"}}), ErrorKind.REFUSED),
    (Fail(422, {"detail": [{"msg": "field required"}]}), ErrorKind.REFUSED),
    (Fail(400, {"error": {"message": "an unheard-of complaint"}}), ErrorKind.REFUSED),
    (Fail(400, overflow(9000, 8192)), ErrorKind.OVERFLOW),
    (Fail(413, "Payload Too Large"), ErrorKind.OVERFLOW),
    (Fail(400, None), ErrorKind.OVERFLOW),
    (Fail(307, None, {"location": "https://elsewhere.example/v1"}), ErrorKind.REFUSED),
]


@pytest.mark.parametrize(("step", "kind"), ERRORS)
async def test_http_errors_have_kinds_and_are_sent_once(
    wire: str, step: Fail, kind: ErrorKind
) -> None:
    async with Loopback([step, step]) as server:
        error = await refused(gateway(server, wire))
        again = await refused(gateway(server, wire), stream=False)
        assert len(server.requests) == 2
    assert error.kind is again.kind is kind
    assert error.status == step.status
    assert error.msg.endswith(".")
    assert "127.0.0.1" in error.msg


async def test_a_wrong_key_names_the_variable_and_never_the_key(wire: str) -> None:
    async with Loopback(key="the right one") as server:
        error = await refused(gateway(server, wire))
    assert error.kind is ErrorKind.AUTH
    assert "SOME_KEY" in error.msg
    assert "[key]" in error.msg


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
async def test_a_rate_limit_carries_how_long_to_wait(
    wire: str, headers: Mapping[str, str], seconds: float | None
) -> None:
    async with Loopback([Fail(429, {"error": {"message": "slow"}}, headers)]) as server:
        error = await refused(gateway(server, wire))
    assert error.retry_after == seconds
    assert error.retryable


async def test_the_window_of_the_server_is_refused_with_its_figures(wire: str) -> None:
    async with Loopback(window=5) as server:
        error = await refused(gateway(server, wire))
        used = count(server.requests[0].body)
    assert (error.kind, error.used, error.limit) == (ErrorKind.OVERFLOW, used, 5)
    assert not error.retryable


async def test_an_error_inside_a_stream_has_a_kind_too(wire: str) -> None:
    inside = {"message": "too long", "type": "x", "code": "context_length_exceeded"}
    body = f"data: {json.dumps({'error': inside})}\n\n".encode()
    async with Loopback([Raw(body, "text/event-stream")]) as server:
        error = await refused(gateway(server, wire))
    assert error.kind is ErrorKind.OVERFLOW


async def test_a_stream_that_is_dropped_is_an_error_after_the_deltas(wire: str) -> None:
    async with Loopback([Reply("A text that is cut. " * 5, cut="dropped")]) as server:
        gate = gateway(server, wire)
        stream = gate.stream(ASK)
        first = await anext(stream)
        with pytest.raises(GatewayError) as caught:
            await _exhausted(stream)
        await gate.aclose()
    assert isinstance(first, TextDelta)
    assert caught.value.kind is ErrorKind.NETWORK


async def _exhausted(stream: AsyncIterator[object]) -> None:
    async for _ in stream:
        pass


async def test_a_stream_that_ends_without_its_end_is_an_error(wire: str) -> None:
    async with Loopback([Reply("A text that is cut. " * 5, cut="ended")]) as server:
        error = await refused(gateway(server, wire))
    assert error.kind is ErrorKind.NETWORK
    assert "before it was complete" in error.msg


async def test_an_endpoint_that_is_down_says_where_it_was_looked_for(wire: str) -> None:
    async with Loopback() as server:
        base_url = server.base_url
    error = await refused(gateway(base_url, wire))
    assert error.kind is ErrorKind.NETWORK
    assert base_url in error.msg


async def test_silence_is_a_timeout(wire: str) -> None:
    async with Loopback([Hang(), Reply("slow", hold=asyncio.Event())]) as server:
        assert (await refused(gateway(server, wire, timeout=0.2))).kind is ErrorKind.TIMEOUT
        assert (await refused(gateway(server, wire, timeout=0.2))).kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize(
    "step",
    [
        Raw(b"<html>hello</html>", "text/html"),
        Raw(b"not json", "application/json"),
        Raw(b"[1, 2]", "application/json"),
        Raw(b"data: {not json}\n\n", "text/event-stream"),
    ],
)
async def test_an_answer_that_is_not_the_protocol_is_malformed(wire: str, step: Raw) -> None:
    async with Loopback([step, step]) as server:
        assert (await refused(gateway(server, wire))).kind is ErrorKind.MALFORMED
        assert (await refused(gateway(server, wire), stream=False)).kind is ErrorKind.MALFORMED


async def test_a_server_that_ignores_the_wish_to_stream_is_understood(wire: str) -> None:
    step = Reply("All at once.", calls=(Call("glob", {}, "c1"),), ignore_stream=True)
    async with Loopback([step]) as server:
        _, _, reply = await streamed(gateway(server, wire))
    assert reply.items == (assistant("All at once."), FunctionCall("c1", "glob", "{}"))


async def test_a_connection_that_breaks_after_the_announced_end_loses_no_answer(wire: str) -> None:
    async with Loopback([Reply("All of it.", cut="after" if wire == "chat" else "")]) as server:
        _, _, reply = await streamed(gateway(server, wire))
    assert reply.items == (assistant("All of it."),)
    assert (reply.usage is None) == (wire == "chat")


async def test_events_that_nobody_knows_are_passed_over(wire: str) -> None:
    odd: tuple[Mapping[str, Any], ...] = (
        {"type": "response.of_the_future", "delta": "x"},
        {"object": "keepalive"},
    )
    async with Loopback([Reply("Fine.", extra_events=odd)]) as server:
        text, _, _ = await streamed(gateway(server, wire))
    assert text == "Fine."


async def test_leaving_a_stream_closes_its_connection(wire: str) -> None:
    async with Loopback(
        [Reply("Some words to wait in.", hold=asyncio.Event(), hold_after=4)]
    ) as server:
        gate = gateway(server, wire)
        stream = gate.stream(ASK)
        await anext(stream)
        assert isinstance(stream, AsyncGenerator)
        await stream.aclose()
        await asyncio.wait_for(server.left.wait(), 10)
        await gate.aclose()


async def test_half_a_surrogate_pair_is_refused_in_words(wire: str) -> None:
    async with Loopback() as server:
        gate = gateway(server, wire)
        with pytest.raises(GatewayError, match="surrogate"):
            await gate.complete(ModelRequest(model="m", items=(user("\ud800"),)))
        await gate.aclose()


@pytest.mark.parametrize(
    ("entry", "window", "max_input", "max_output"),
    [
        ({"id": "org/m", "context_length": 8192}, 8192, None, None),
        ({"id": "org/m", "max_model_len": 4096, "max_output_tokens": 512}, 4096, None, 512),
        ({"id": "org/m", "max_input_tokens": 200_000}, None, 200_000, None),
    ],
)
async def test_limits_are_what_the_endpoint_says_of_the_model(
    wire: str,
    entry: Mapping[str, Any],
    window: int | None,
    max_input: int | None,
    max_output: int | None,
) -> None:
    async with Loopback(models=[{"id": "other", "context_length": 1}, entry]) as server:
        gate = gateway(server, wire)
        limits = await gate.limits("org/m")
        await gate.aclose()
    assert limits is not None
    assert (limits.context_window, limits.max_input, limits.max_output) == (
        window,
        max_input,
        max_output,
    )
    assert "/models" in limits.source


async def test_limits_are_unknown_when_the_endpoint_says_nothing(wire: str) -> None:
    async with Loopback(models=[{"id": "m"}]) as server:
        gate = gateway(server, wire)
        assert await gate.limits("m") is None
        assert await gate.limits("absent") is None
        await gate.aclose()
    gate = gateway("http://127.0.0.1:9/v1", wire)
    assert await gate.limits("m") is None
    await gate.aclose()
