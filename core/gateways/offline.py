"""The offline stand-in: no model, no network, yet the same work for the loop and the screens.

It plans by rules (`offline_plan.py`), calls the real tools on the real workspace, answers with what
the tools gave, and writes summaries by rule (`offline_summary.py`). What it does follows from the
conversation that it is sent and from how many rounds it has delivered for the user's words. It is
told apart from a model wherever it is named.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ..items import FunctionCall, Item, Message, Role, assistant
from ..tokens import Basis, CharClassCounter, Counter, Usage
from .base import (
    EndpointLimits,
    ErrorKind,
    GatewayError,
    ModelReply,
    ModelRequest,
    Sealed,
    StopReason,
    StreamPart,
    TextDelta,
)
from .offline_plan import Step, View, plan
from .offline_seal import seal
from .offline_summary import Memory, remember, write
from .offline_survey import survey
from .offline_transcript import of_items, of_summary_request
from .openai_chat import chat_messages

MODEL = "offline-stand-in"
WINDOW = 32_000
"""Tokens; stated by `limits`, and refused above, as a provider does."""
MAX_OUTPUT = 2_000


class OfflineGateway:
    """The stand-in on one workspace. Deterministic: same seed, files and requests, same replies.

    `window` is in tokens. `pace` is the wait between two pieces of text, in seconds. `counter`
    counts its tokens; by default the shipped vocabulary, or the estimator where that is missing.
    """

    name = "offline stand-in, not a model"
    wire = "offline"

    def __init__(
        self,
        workspace: Path,
        *,
        window: int | None = None,
        seed: int = 0,
        pace: float = 0.0,
        counter: Counter | None = None,
    ) -> None:
        self.window = WINDOW if window is None else window
        self.pace = pace
        self._workspace = workspace
        self._seed = seed
        self._tokens = None if counter is None else _Tokens(counter)
        self._plans: dict[tuple[str, frozenset[str]], list[Step]] = {}
        self._done: dict[str, int] = {}
        self._finished: set[str] = set()
        self._served = 0

    @property
    def basis(self) -> Basis | None:
        """How its usage is counted; None before the first request."""
        return None if self._tokens is None else self._tokens.counter.basis

    def wire_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The conversation in the form of Chat Completions: that form is what is counted."""
        return chat_messages(request.items, request.instructions)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Answer in small pieces. Raises GatewayError when the request is above the window."""
        used = await self._admit(request)
        answer = await self._answer(request)
        for piece in _PIECE.findall(answer.text):
            # A wait of nothing still lets the screen and an interrupt have their turn.
            await asyncio.sleep(self.pace)
            yield TextDelta(piece)
        yield await self._deliver(request, answer, used)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Answer at once. Raises GatewayError when the request is above the window."""
        used = await self._admit(request)
        return await self._deliver(request, await self._answer(request), used)

    def compaction_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """The conversation that is compacted."""
        return self.wire_messages(request)

    async def compact_remotely(self, request: ModelRequest) -> Sealed:
        """Play a provider that compacts by itself. Raises GatewayError above the window."""
        used = await self._admit(request)
        text = self._fitted(remember(of_items(request.items)), MAX_OUTPUT)
        self._served += 1
        written = self._tokens.text(text) if self._tokens else 0
        usage = Usage(used, written, total_tokens=used + written)
        return Sealed(seal(text), usage, MODEL, f"offline-{self._served}")

    async def limits(self, model: str) -> EndpointLimits | None:
        """Its window and the size of its answers."""
        return EndpointLimits(self.window, MAX_OUTPUT, "the offline stand-in's own limits")

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _admit(self, request: ModelRequest) -> int:
        """Count the request as it would go out; refuse it when it is too long."""
        if self._tokens is None:
            self._tokens = _Tokens(await asyncio.to_thread(_best_counter))
        used = self._tokens.request(self.wire_messages(request), request)
        if used > self.window:
            raise GatewayError(
                ErrorKind.OVERFLOW,
                f"The offline stand-in refused the request as too long: its maximum context length "
                f"is {self.window:,} tokens. However, you requested {used:,} tokens. Compact the "
                "context and send it again.",
                status=400,
                used=used,
                limit=self.window,
            )
        return used

    async def _answer(self, request: ModelRequest) -> _Answer:
        if not request.tools and request.tool_choice == "none":
            return _Answer(self._summary(request))
        entries = of_items(request.items)
        memory = remember(entries)
        task = _task(request.items) or memory.goal
        if task in self._finished and _said_last(request.items, task):
            self._finished.discard(task)
            self._done.pop(task, None)
        steps = await self._plan(task, frozenset(tool.name for tool in request.tools))
        at = max(self._done.get(task, 0), memory.rounds)
        if request.tool_choice == "none" or at >= len(steps) or task in self._finished:
            return _Answer(_conclusion(task, memory), task=task)
        step = steps[at]
        calls = tuple(
            FunctionCall(self._call_id(request, number), name, _json(arguments))
            for number, (name, arguments) in enumerate(step.calls(View(entries, memory)))
        )
        return _Answer(step.say, calls, task, at + 1)

    def _summary(self, request: ModelRequest) -> str:
        memory = remember(of_summary_request(request.items))
        return self._fitted(memory, min(MAX_OUTPUT, request.max_output or MAX_OUTPUT))

    def _fitted(self, memory: Memory, room: int) -> str:
        text = write(memory)
        while self._tokens and self._tokens.text(text) > room and memory.findings:
            # The oldest go first: they are the ones that later findings build on.
            memory = msgspec.structs.replace(memory, findings=memory.findings[1:])
            text = write(memory)
        return text

    async def _deliver(self, request: ModelRequest, answer: _Answer, used: int) -> ModelReply:
        """The reply, and only now the mark that it was given: a broken stream does not count."""
        self._served += 1
        if answer.calls:
            self._done[answer.task] = answer.step
        elif answer.task:
            self._finished.add(answer.task)
        items: tuple[Item, ...] = (assistant(answer.text), *answer.calls)
        tokens = self._tokens
        written = tokens.text(answer.text) if tokens else 0
        written += sum(tokens.text(call.text) for call in answer.calls) if tokens else 0
        return ModelReply(
            items=items,
            usage=Usage(used, written, total_tokens=used + written),
            stop=StopReason.TOOL_CALLS if answer.calls else StopReason.STOP,
            model=MODEL,
            response_id=f"offline-{self._served}",
        )

    async def _plan(self, task: str, tools: frozenset[str]) -> list[Step]:
        key = (task, tools)
        if key not in self._plans:
            files = await asyncio.to_thread(survey, self._workspace)
            self._plans[key] = plan(task, files, tools, self._seed)
        return self._plans[key]

    def _call_id(self, request: ModelRequest, number: int) -> str:
        last = request.items[-1].text if request.items else ""
        seen = f"{self._seed}/{self._served}/{len(request.items)}/{number}/{last}"
        digest = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()
        return f"call_{digest[:16]}"


class _Answer(msgspec.Struct, frozen=True):
    """What to say and call; `step` is how many rounds of `task` are done when it is delivered."""

    text: str
    calls: tuple[FunctionCall, ...] = ()
    task: str = ""
    step: int = 0


class _Tokens:
    """Counts requests; a message that was counted before costs a look-up."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.text = lru_cache(maxsize=4096)(counter.count_text)

    def request(self, messages: Sequence[dict[str, Any]], request: ModelRequest) -> int:
        """Tokens of the messages and of the tool schemas, as JSON."""
        tools = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
        return sum(self.text(_json(part)) for part in (*messages, *tools))


def _best_counter() -> Counter:
    from .. import tokenizer
    from ..errors import ThresherError

    try:
        return tokenizer.load()
    except ThresherError:
        return CharClassCounter()


def _task(items: Sequence[Item]) -> str:
    """What the user said last, other than to go on."""
    said = [
        item.text.strip()
        for item in items
        if isinstance(item, Message) and item.role is Role.USER and not item.synthetic
    ]
    tasks = [text for text in said if not _GO_ON.fullmatch(text)]
    return (tasks or said or [""])[-1]


def _said_last(items: Sequence[Item], task: str) -> bool:
    last = items[-1] if items else None
    return isinstance(last, Message) and last.role is Role.USER and last.text.strip() == task


def _conclusion(task: str, memory: Memory) -> str:
    """The final answer: findings from the tool outputs, and how they were come by."""
    asked = " ".join(task.split())
    asked = f"{asked[:160]} ..." if len(asked) > 160 else asked
    findings = [f"- {finding}" for finding in memory.findings[-_MOST_TOLD:]]
    work = f"{len(memory.read)} files read, {len(memory.commands)} commands run"
    changed = f" Changed: {', '.join(memory.changed)}." if memory.changed else ""
    if not findings:
        return f'On "{asked}": no tool has given me anything to report ({work}).{changed}'
    return "\n".join(
        [f'What I found for "{asked}" ({work}):', "", *findings, "", f"{_BY_RULE}{changed}"]
    )


def _json(value: object) -> str:
    # Not msgspec: half of a surrogate pair must not stop the stand-in from counting.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_MOST_TOLD = 30
_BY_RULE = "This was put together by rules from the tool outputs; no model was asked."
_GO_ON = re.compile(r"(?:please )?(?:go on|continue|carry on|resume|weiter|继续)\W*", re.IGNORECASE)
_PIECE = re.compile(r".{1,14}(?:\s+|$)|\S{1,24}|\s+", re.DOTALL)
