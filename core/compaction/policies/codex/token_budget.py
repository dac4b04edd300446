"""Codex, token budget: a new context window, and no summary.

Source: OpenAI's Codex CLI 0.171.0 with its feature token_budget, from a recorded session. The
feature is off as shipped; the model catalogue can switch it on.

When: as with the local way (policy codex), but a reset by the limit waits for a buffer above it;
the usable window always forces it. The model can ask for one itself with the tool new_context,
which takes effect as soon as the outputs of its round are there. The tool get_context_remaining
tells it how much is left. At most once in a window each, it is reminded when little is left
(`reminder`), and told to write down what it needs when nothing is (between limit and buffer).

How: no request is made. The new window holds the fresh initial context and a message that names the
first, the current and the previous window. Everything else goes, what the user said too, and even
the request that is being worked on: what the model did not write into files, it no longer knows.

The system message of our own agent is what Codex calls base instructions, and stays. Codex's
windows have UUIDs; here they are named after their number.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ....context import Inserted, Segment
from ....items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, Role, TextPart
from ....models import Budget
from ...policy import (
    Append,
    Edit,
    Mark,
    Moment,
    Plan,
    Situation,
    Skip,
    SkipKind,
    Start,
    ToolSchema,
    Trigger,
)
from ...summaries import prompt
from . import entry
from .due import (
    ESTIMATED,
    Cause,
    Due,
    Phase,
    decide,
    estimate_after,
    limit_marks,
    limits,
    remaining,
)
from .estimate import estimate_all
from .local import Codex
from .params import CodexParams
from .pieces import divided
from .skips import not_after_a_refusal
from .windows import Window, following

STAGE = "token-budget"
REMINDER = "<context_window_reminder>"
FULL = "<context_window_full>"
WINDOW = "<context_window>"
NEW_CONTEXT = "new_context"
GET_REMAINING = "get_context_remaining"

_NO_ARGUMENTS = {
    "type": "object",
    "properties": {},
    "required": [],
    "additionalProperties": False,
}


class CodexTokenBudgetParams(CodexParams, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The constants of the rule."""

    reminder: int = 6_144
    """Remind the model when this many tokens or fewer are left up to the limit; 0 is never. From
    Codex's model catalogue."""
    fallback_buffer: int = 16_384
    """Tokens above the limit at which the window is reset, with the fallback prompt between; 0:
    reset at the limit. From Codex's model catalogue."""
    agent_name: str = "/root"
    """What the model is called in the message that opens a window."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reminder < 0 or self.fallback_buffer < 0:
            raise ValueError("reminder and fallback_buffer must not be negative")


class CodexTokenBudget:
    """The rule of the feature token_budget."""

    name: ClassVar[str] = "codex-token-budget"
    title: ClassVar[str] = "Codex CLI, token budget"
    moments: ClassVar[frozenset[Moment]] = Codex.moments
    Params: ClassVar[type[msgspec.Struct]] = CodexTokenBudgetParams
    tools: ClassVar[tuple[ToolSchema, ...]] = (
        ToolSchema(
            NEW_CONTEXT,
            "Begin a new context window. Nothing of this conversation is carried over and no "
            "summary is written, so write down first what you still need.",
            _NO_ARGUMENTS,
        ),
        ToolSchema(
            GET_REMAINING,
            "Say how many tokens are left in this context window.",
            _NO_ARGUMENTS,
        ),
    )

    def __init__(self, params: CodexTokenBudgetParams | None = None) -> None:
        self.params = params or CodexTokenBudgetParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The reminder, the limit, the reset, and the usable window."""
        found, params = limits(budget, self.params).limit, self.params
        marks = list(limit_marks(budget, params))
        if marks and marks[0].name == "threshold" and found is not None:
            if params.reminder:
                words = f"{params.reminder:,} tokens below the limit"
                marks.insert(0, Mark("reminder", max(0, found - params.reminder), words))
            if params.fallback_buffer:
                words = f"the limit and the buffer of {params.fallback_buffer:,}"
                marks.append(Mark("reset", found + params.fallback_buffer, words))
        return tuple(sorted(marks, key=lambda mark: mark.tokens))

    def serve(self, name: str, situation: Situation) -> str:
        """What the model's call of one of the tools gives."""
        if name == NEW_CONTEXT:
            return "A new context window begins after this round. Nothing is summarised for it."
        left = remaining(situation, self.params)
        return f"Tokens left in this context window: {'unknown' if left is None else max(0, left)}"

    def plan(self, situation: Situation) -> Plan:
        """The entry cap, or a new window, or a word to the model."""
        if situation.moment is Moment.TOOL_OUTPUT:
            yield from entry.cap(situation, self.params)
            return
        if situation.moment is Moment.OVERFLOW:
            yield not_after_a_refusal(STAGE)
            return
        due = self._due(situation)
        if due.is_due:
            yield Start(STAGE, due.reason)
            yield self._new_window(situation, due)
            return
        if situation.moment in (Moment.TURN_START, Moment.AFTER_ROUND):
            yield from self._word(situation)
        yield Skip(SkipKind.NOT_DUE, due.reason, STAGE)

    def _due(self, situation: Situation) -> Due:
        asked = situation.moment is Moment.AFTER_ROUND and asks_for_window(situation.context.items)
        if asked and situation.trigger is Trigger.AUTO:
            return Due(
                True,
                f"{Cause.NEW_CONTEXT} in {Phase.MID_TURN}: the model asked for a new window.",
                Phase.MID_TURN,
                Cause.NEW_CONTEXT,
            )
        due = decide(situation, self.params, self.params.fallback_buffer)
        if due.phase is Phase.POST_TURN:
            return Due(False, "Nothing is reset at the end of a turn.", Phase.POST_TURN)
        return due

    def _word(self, situation: Situation) -> Plan:
        left = remaining(situation, self.params)
        if left is None or left > self.params.reminder:
            return
        if left <= 0 and self.params.fallback_buffer:
            if not _holds(situation, FULL):
                words = "the limit is reached, and the reset follows at the end of the buffer"
                yield Append(_note(prompt("codex_fallback")), words)
        elif self.params.reminder and not _holds(situation, REMINDER):
            text = prompt("codex_reminder").replace("{remaining}", f"{left:,}")
            yield Append(_note(text), f"{left:,} tokens are left in this window")

    def _new_window(self, situation: Situation, due: Due) -> Edit:
        context, window = situation.context, following(situation)
        contents = opened(situation.fresh, window, self.params.agent_name)
        head = len(divided(context.items)[0])
        gone = context.span(entry.id for entry in context.entries[head:])
        segments: list[Segment] = list(context.keep(range(head)))
        segments += (Inserted(item, gone if _is_window_message(item) else "") for item in contents)
        return Edit(
            stage=STAGE,
            reason=due.reason,
            segments=tuple(segments),
            phase=due.phase,
            memory={
                **window.memory,
                ESTIMATED: estimate_after(situation, estimate_all(contents)),
            },
            drops_newest_user=True,
        )


def opened(fresh: tuple[Item, ...], window: Window, agent_name: str) -> tuple[Item, ...]:
    """What a new window begins with: the initial context, and the message with the window's ids
    behind its developer messages. A `fresh` context that brings such a message stays as it is.

    The message is the developer's. Where no other one is the user's (Codex's initial context always
    has one), it takes that role: providers refuse a request of system messages alone.
    """
    if any(map(_is_window_message, fresh)):
        return fresh
    lines = (
        f"Agent name: {agent_name}",
        f"First context window id: {window.first_window_id}",
        f"Current context window id: {window.window_id}",
        f"Previous context window id: {window.previous_window_id}",
    )
    parts = (WINDOW, "\n" + "\n".join(lines) + "\n", WINDOW.replace("<", "</"))
    spoken = any(isinstance(item, Message) and item.role is Role.USER for item in fresh)
    role = Role.DEVELOPER if spoken else Role.USER
    message = Message(role, tuple(map(TextPart, parts)), synthetic=True)
    at = sum(isinstance(item, Message) and item.role is Role.DEVELOPER for item in fresh)
    return (*fresh[:at], message, *fresh[at:])


def asks_for_window(items: tuple[Item, ...]) -> bool:
    """Whether the newest round called new_context and has its outputs."""
    at = len(items)
    while at and isinstance(items[at - 1], FunctionCallOutput):
        at -= 1
    if at == len(items):
        return False
    while at and isinstance(items[at - 1], FunctionCall | Reasoning | Message):
        item = items[at - 1]
        if isinstance(item, Message) and item.role is not Role.ASSISTANT:
            return False
        if isinstance(item, FunctionCall) and item.name == NEW_CONTEXT:
            return True
        at -= 1
    return False


def _note(text: str) -> Message:
    return Message(Role.DEVELOPER, text, synthetic=True)


def _holds(situation: Situation, tag: str) -> bool:
    return any(
        isinstance(item, Message)
        and item.synthetic
        and isinstance(item.content, str)
        and item.content.startswith(tag)
        for item in situation.context.items
    )


def _is_window_message(item: Item) -> bool:
    return isinstance(item, Message) and item.synthetic and item.text.lstrip().startswith(WINDOW)
