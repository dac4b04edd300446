"""A model server for tests: 127.0.0.1 only, in this process, scripted, both OpenAI protocols.

    async with Loopback([Reply("I will look.", calls=(Call("glob", {"pattern": "*"}),)),
                         Reply("Done.")]) as server:
        ...                                # point a client at server.base_url
        assert server.requests[0].body["model"] == "m"

The script is a list of steps, one for each POST to .../responses or .../chat/completions, or a
function from the request to a step. When the list is used up, the answer is `Reply("Done.")`.
GET .../models and .../models/ID answer from `models` and use up nothing.

Steps
    Reply   text, reasoning and tool calls, in the protocol that was asked, as a stream if wanted
    Fail    an HTTP error
    Raw     any body, any content type: not JSON, a web page, hand-written events
    Hang    no answer until the client goes away or `gate` is set

Usage is computed from the request (`count`: one token for four characters of the conversation and
the tools as JSON) unless the reply says otherwise. With `window` set, a request that is counted
above it is refused as OpenAI does, and uses up no step.

Streams can be held and cut: `Reply.gate` is waited for before the first byte, `Reply.hold` after
`Reply.hold_after` events, `Reply.cut` ends the connection at a point. `server.waiting` is set while
a request waits at a gate, so a test need not sleep.

A program in another process is served by `in_thread`, which needs no event loop of the test:

    with in_thread([Reply("Hello.")]) as server:
        pexpect.spawn(..., env={"OPENAI_BASE_URL": server.base_url, ...})

Tests import it by its place: `from ...loopback import Loopback, Reply`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

COUNT: Literal["count"] = "count"


@dataclass(frozen=True)
class Call:
    """A tool call of the model. `arguments` as text is sent as it is, however broken."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """An answer of the model.

    `usage` is COUNT, None (the server says nothing), or the usage object itself as it goes out.
    `finish` is "" (by itself), "length", "content_filter", or "failed" (Responses only; with
    `error`). `refusal` is sent instead of text. `sealed` is the encrypted content of the reasoning.
    `chunk` is how many characters a delta has.

    `cut`: "" not at all; "dropped" closes the connection in the middle of the stream; "ended" ends
    the HTTP answer properly, but before the end of the stream is announced; "after" drops the
    connection when all but the last bytes are out (chat: after the finish reason, before usage).
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    sealed: str = ""
    refusal: str = ""
    usage: Mapping[str, Any] | Literal["count"] | None = COUNT
    finish: str = ""
    error: Mapping[str, Any] | None = None
    chunk: int = 16
    cut: Literal["", "dropped", "ended", "after"] = ""
    gate: asyncio.Event | None = None
    hold: asyncio.Event | None = None
    hold_after: int = 2
    ignore_stream: bool = False
    """Answer with one JSON object even when a stream is asked for."""
    compactions: tuple[str, ...] = ()
    """The encrypted contents of compaction items (Responses only), in front of everything else."""
    extra_events: tuple[Mapping[str, Any], ...] = ()
    """Events that are sent first, for what a client should pass over."""


@dataclass(frozen=True)
class Fail:
    """An HTTP error with a JSON or text body (None: no body at all)."""

    status: int
    body: Mapping[str, Any] | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Any answer, byte for byte."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Hang:
    """No answer until `gate` is set (never, without one); then the connection is closed."""

    gate: asyncio.Event | None = None


Step: TypeAlias = Reply | Fail | Raw | Hang


@dataclass(frozen=True)
class Request:
    """A request that came in. Header names are in lower case; `body` is {} for GET."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def protocol(self) -> str:
        """ "responses", "chat", or "" for anything else."""
        path = self.path.partition("?")[0].rstrip("/")
        if path.endswith("/responses"):
            return "responses"
        return "chat" if path.endswith("/chat/completions") else ""

    @property
    def messages(self) -> list[dict[str, Any]]:
        """`input` or `messages`, whichever there is."""
        found = self.body.get("input") or self.body.get("messages") or []
        return found if isinstance(found, list) else [{"role": "user", "content": found}]

    @property
    def text(self) -> str:
        """The conversation as JSON, for rules that look for words in it."""
        return json.dumps(self.messages, ensure_ascii=False)


Script: TypeAlias = Sequence[Step] | Callable[[Request], Step]


def count(body: Mapping[str, Any]) -> int:
    """The tokens of a request, as this server reckons: a quarter of its characters, rounded up."""
    kept = {k: body[k] for k in ("instructions", "input", "messages", "tools") if body.get(k)}
    return -(-len(json.dumps(kept, ensure_ascii=False)) // 4)


class Loopback:
    """The server. Give it a script; read `requests` (all of them, in order) afterwards.

    `window`: refuse longer requests. `key`: refuse requests with another key. `models`: the entries
    of GET /models, each with an "id".
    """

    def __init__(
        self,
        script: Script = (),
        *,
        window: int | None = None,
        key: str | None = None,
        models: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.requests: list[Request] = []
        self.window = window
        self.key = key
        self.models = list(models)
        self.waiting = asyncio.Event()
        self.left = asyncio.Event()
        """Set when a client closed its connection before it had its whole answer."""
        self._script = script
        self._next = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        assert self._server is not None, "the server is not running"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    @property
    def model_requests(self) -> list[Request]:
        """The requests to a model, without GET /models."""
        return [request for request in self.requests if request.protocol]

    async def __aenter__(self) -> Loopback:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                if not await self._serve(request, _Wire(reader, writer, self)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        except asyncio.CancelledError:
            pass  # the server is being closed; a raised cancel would be reported as an error
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, request: Request, wire: _Wire) -> bool:
        """Answer; False when the connection is to be closed."""
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            given = request.headers.get("authorization", "").removeprefix("Bearer ")
            message = f"Incorrect API key provided: {given}."
            error = {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}
            return await wire.answer(401, {"error": error})
        if request.method == "GET":
            return await self._models(request, wire)
        if not request.protocol:
            return await wire.answer(404, {"error": {"message": f"no such path: {request.path}"}})
        used = count(request.body)
        if self.window is not None and used > self.window:
            return await wire.answer(400, overflow(used, self.window))
        match self._step(request):
            case Fail() as step:
                return await wire.answer(step.status, step.body, step.headers)
            case Raw() as step:
                return await wire.raw(step.status, step.body, step.content_type)
            case Hang() as step:
                await wire.wait(step.gate or asyncio.Event())
                return False
            case Reply() as step:
                if step.gate is not None:
                    await wire.wait(step.gate)
                protocol = _Responses if request.protocol == "responses" else _Chat
                answer = protocol(request, step, len(self.model_requests), used)
                if step.ignore_stream or not request.body.get("stream"):
                    return await wire.answer(200, answer.whole())
                return await wire.stream(answer.events(), step)
        return False

    def _step(self, request: Request) -> Step:
        if callable(self._script):
            return self._script(request)
        at, self._next = self._next, self._next + 1
        return self._script[at] if at < len(self._script) else Reply("Done.")

    async def _models(self, request: Request, wire: _Wire) -> bool:
        _, _, name = request.path.partition("/models")
        if not name.strip("/"):
            return await wire.answer(200, {"object": "list", "data": self.models})
        wanted = unquote(name.strip("/"))
        for entry in self.models:
            if entry.get("id") == wanted:
                return await wire.answer(200, entry)
        return await wire.answer(404, {"error": {"message": f"no model {wanted}"}})


@contextmanager
def in_thread(script: Script = (), **options: Any) -> Iterator[Loopback]:
    """A running server on an event loop in a thread of its own, for tests of other processes.

    Its events (`gate`, `hold`) belong to that loop: leave them out of the script.
    """
    started = threading.Event()
    holder: list[tuple[Loopback, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with Loopback(script, **options) as server:
            stop = asyncio.Event()
            holder.append((server, asyncio.get_running_loop(), stop))
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(10), "the server did not start"
    server, loop, stop = holder[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


def overflow(used: int, limit: int) -> dict[str, Any]:
    """OpenAI's error body for a request that is too long."""
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted "
        f"in {used} tokens. Please reduce the length of the messages."
    )
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    }


# The two protocols -------------------------------------------------------------------------------


class _Answer:
    def __init__(self, request: Request, reply: Reply, number: int, used: int) -> None:
        self.reply = reply
        self.number = number
        self.model = str(request.body.get("model", ""))
        self.used = used
        self.calls = [
            (call, call.id or f"call_{number}_{at}") for at, call in enumerate(reply.calls)
        ]
        spoken = reply.text + reply.refusal + reply.reasoning
        self.written = -(-len(spoken + "".join(c.name + c.text for c, _ in self.calls)) // 4)

    def pieces(self, text: str) -> list[str]:
        size = self.reply.chunk
        return [text[at : at + size] for at in range(0, len(text), size)]


class _Chat(_Answer):
    """Chat Completions: whole answers and chunks."""

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.reply.text or None}
        if self.reply.refusal:
            message["refusal"] = self.reply.refusal
        if self.reply.reasoning:
            message["reasoning_content"] = self.reply.reasoning
        if self.calls:
            message["tool_calls"] = [self._call(*each) for each in self.calls]
        choice = {"index": 0, "message": message, "finish_reason": self._finish()}
        return self._head("chat.completion") | {"choices": [choice]} | self._usage()

    def events(self) -> list[str]:
        out = [_data(event) for event in self.reply.extra_events]
        out.append(self._chunk({"role": "assistant", "content": ""}))
        out += [self._chunk({"reasoning_content": p}) for p in self.pieces(self.reply.reasoning)]
        out += [self._chunk({"content": piece}) for piece in self.pieces(self.reply.text)]
        out += [self._chunk({"refusal": piece}) for piece in self.pieces(self.reply.refusal)]
        # The calls of a round come interleaved, as far as the protocol allows it.
        for at, (call, id) in enumerate(self.calls):
            named = {"name": call.name, "arguments": ""}
            first = {"index": at, "id": id, "type": "function", "function": named}
            out.append(self._chunk({"tool_calls": [first]}))
        longest = max((len(self.pieces(call.text)) for call, _ in self.calls), default=0)
        for turn in range(longest):
            for at, (call, _) in enumerate(self.calls):
                for piece in self.pieces(call.text)[turn : turn + 1]:
                    more = {"index": at, "function": {"arguments": piece}}
                    out.append(self._chunk({"tool_calls": [more]}))
        out.append(self._chunk({}, self._finish()))
        if usage := self._usage():
            out.append(_data(self._head("chat.completion.chunk") | {"choices": []} | usage))
        return [*out, "data: [DONE]\n\n"]

    def _finish(self) -> str:
        return self.reply.finish or ("tool_calls" if self.calls else "stop")

    def _usage(self) -> dict[str, Any]:
        if self.reply.usage is None:
            return {}
        if self.reply.usage != COUNT:
            return {"usage": dict(self.reply.usage)}
        total = self.used + self.written
        counted = {"prompt_tokens": self.used, "completion_tokens": self.written}
        return {"usage": counted | {"total_tokens": total}}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.number}", "object": kind, "created": 0, "model": self.model}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data(self._head("chat.completion.chunk") | {"choices": [choice]})

    @staticmethod
    def _call(call: Call, id: str) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.text}
        return {"id": id, "type": "function", "function": function}


class _Responses(_Answer):
    """Responses: whole answers and typed events."""

    def whole(self) -> dict[str, Any]:
        whole: dict[str, Any] = {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 0,
            "model": self.model,
            "status": "completed",
            "error": None,
            "output": [item for item, _ in self._items()],
        }
        if self.reply.finish in ("length", "content_filter"):
            reason = "max_output_tokens" if self.reply.finish == "length" else "content_filter"
            whole |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
        if self.reply.finish == "failed":
            whole |= {"status": "failed", "error": self.reply.error, "output": []}
        if self.reply.usage is not None:
            total = self.used + self.written
            counted = {"input_tokens": self.used, "output_tokens": self.written}
            given = self.reply.usage
            whole["usage"] = counted | {"total_tokens": total} if given == COUNT else dict(given)
        return whole

    def events(self) -> list[str]:
        whole = self.whole()
        begun = whole | {"status": "in_progress", "output": []}
        out = [_typed("response.created", response=begun)]
        out += [_typed(str(e.get("type")), **_without_type(e)) for e in self.reply.extra_events]
        for at, (item, deltas) in enumerate(self._items()):
            where = {"item_id": item["id"], "output_index": at}
            opened = item | {"status": "in_progress"}
            opened |= {"content": []} if "content" in item else {}
            opened |= {"arguments": ""} if "arguments" in item else {}
            out.append(_typed("response.output_item.added", output_index=at, item=opened))
            for kind, text in deltas:
                out += [_typed(kind, **where, delta=piece) for piece in self.pieces(text)]
            out.append(_typed("response.output_item.done", output_index=at, item=item))
        ends = {"incomplete": "response.incomplete", "failed": "response.failed"}
        out.append(_typed(ends.get(whole["status"], "response.completed"), response=whole))
        return out

    def _items(self) -> list[tuple[dict[str, Any], list[tuple[str, str]]]]:
        """Each output item, with the deltas that lead to it as (event type, text)."""
        reply = self.reply
        items: list[tuple[dict[str, Any], list[tuple[str, str]]]] = []
        for at, content in enumerate(reply.compactions):
            packed = {"type": "compaction", "id": f"cmp_{self.number}_{at}"}
            items.append((packed | {"encrypted_content": content}, []))
        if reply.reasoning or reply.sealed:
            thought: dict[str, Any] = {"type": "reasoning", "id": f"rs_{self.number}"}
            summary = {"type": "summary_text", "text": reply.reasoning}
            thought["summary"] = [summary] if reply.reasoning else []
            if reply.sealed:
                thought["encrypted_content"] = reply.sealed
            items.append((thought, [("response.reasoning_summary_text.delta", reply.reasoning)]))
        if reply.text or reply.refusal:
            if reply.text:
                part = {"type": "output_text", "text": reply.text, "annotations": []}
                deltas = [("response.output_text.delta", reply.text)]
            else:
                part = {"type": "refusal", "refusal": reply.refusal}
                deltas = [("response.refusal.delta", reply.refusal)]
            message = {"type": "message", "id": f"msg_{self.number}", "role": "assistant"}
            items.append((message | {"status": "completed", "content": [part]}, deltas))
        for call, id in self.calls:
            function = {"type": "function_call", "id": f"fc_{id}", "call_id": id}
            function |= {"name": call.name, "arguments": call.text, "status": "completed"}
            items.append((function, [("response.function_call_arguments.delta", call.text)]))
        return items


def _data(event: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(event, ensure_ascii=False)}\n\n"


def _typed(kind: str, **data: Any) -> str:
    return f"event: {kind}\n{_data({'type': kind, **data})}"


def _without_type(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "type"}


# HTTP --------------------------------------------------------------------------------------------


@dataclass
class _Wire:
    """Writes one answer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: Loopback

    async def answer(
        self,
        status: int,
        body: Mapping[str, Any] | str | None,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        if body is None:
            return await self.raw(status, b"", "", headers)
        if isinstance(body, str):
            return await self.raw(status, body.encode(), "text/plain", headers)
        data = json.dumps(body, ensure_ascii=False).encode()
        return await self.raw(status, data, "application/json", headers)

    async def raw(
        self,
        status: int,
        body: bytes,
        content_type: str,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        given = {"content-length": str(len(body)), **(headers or {})}
        if content_type:
            given["content-type"] = content_type
        self._head(status, given)
        self.writer.write(body)
        await self.writer.drain()
        return True

    async def stream(self, events: list[str], reply: Reply) -> bool:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        cut_at = {"": len(events), "after": len(events) - 2}.get(reply.cut, len(events) // 2)
        for at, event in enumerate(events[:cut_at]):
            if reply.hold is not None and at == reply.hold_after:
                await self.wait(reply.hold)
            data = event.encode()
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await self.writer.drain()
        if reply.cut in ("dropped", "after"):
            return False
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()
        return True

    async def wait(self, gate: asyncio.Event) -> None:
        """Wait for the gate, or for the client to go away (a ConnectionError then)."""
        opened = asyncio.create_task(gate.wait())
        gone = asyncio.create_task(self.reader.read(1))
        self.server.waiting.set()
        try:
            await asyncio.wait({opened, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                raise ConnectionResetError("the client went away")
        finally:
            self.server.waiting.clear()
            for task in (opened, gone):
                task.cancel()
            await asyncio.gather(opened, gone, return_exceptions=True)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Scripted", *(f"{k}: {v}" for k, v in headers.items())]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))


async def _read(reader: asyncio.StreamReader) -> Request | None:
    """One request; None when the client is done with the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length") or 0))
    return Request(method, path, headers, json.loads(body) if body else {})
