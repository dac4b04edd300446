"""Turns, results of tools, and requests that failed for good, in a Claude Code session."""

from __future__ import annotations

import re
from typing import Any, Final

from .. import events as e
from ..items import FunctionCallOutput, Item
from .claude_reading import AGENT, Reading
from .codex_items import int_of, text_of
from .cutting import length

_TOO_LONG: Final = "prompt is too long"
_THRASHING: Final = "Autocompact is thrashing"
_THRASH_LIMIT: Final = 3
"""Compactions in a row whose context refilled at once, until Claude Code gives up."""
_FIGURES: Final = re.compile(r"(\d{1,12}) tokens > (\d{1,12})")


class Turns:
    """The fold over what begins and ends turns."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._broken = False

    def prompt(self, n: int) -> None:
        """The user said something to the model."""
        r = self._r
        if r.in_turn:
            left = "the file holds no end of this turn"
            r.out.add(n, e.TurnFinished(turn=r.turn, outcome="interrupted", message=left))
        if self._broken:
            self._broken = False
            r.out.add(n, e.BreakerClosed(by="a new prompt"))
        r.turn += 1
        r.in_turn = True
        r.out.add(n, e.TurnStarted(turn=r.turn))

    def end(self, n: int, outcome: str, message: str = "") -> None:
        """The turn is over, if one was open."""
        r = self._r
        if r.in_turn:
            r.in_turn = False
            event = e.TurnFinished(turn=r.turn, outcome=outcome, message=message)
            r.out.add(r.out.not_before(n), event)

    def result(self, n: int, items: tuple[Item, ...], told: dict[str, Any]) -> None:
        """What the program itself noted about a result: `told`, which the model never sees."""
        r = self._r
        agent = text_of(told.get("agentId"))
        if agent:
            r.agents.add(agent)
            r.note(n, "subagent", _subagent_words(agent, told))
        outputs = [item for item in items if isinstance(item, FunctionCallOutput)]
        size = length(text_of(told.get("stdout"))) + length(text_of(told.get("stderr")))
        milliseconds = int_of(told.get("totalDurationMs")) or int_of(told.get("durationMs"))
        if len(outputs) == 1:
            self.finished(n, outputs[0], size, milliseconds)

    def finished(
        self, n: int, output: FunctionCallOutput, size: int, milliseconds: int | None
    ) -> None:
        """A tool has run, if the program noted anything about that: `size` in characters."""
        if size or milliseconds is not None:
            self._r.out.add(
                n,
                e.ToolFinished(
                    call_id=output.call_id,
                    ok=not output.is_error,
                    seconds=(milliseconds or 0) / 1000,
                    size=size,
                    saved=output.saved,
                ),
            )

    def failed(self, n: int, text: str, details: str, kind: str) -> None:
        """A request failed for good, with this text for the user."""
        r = self._r
        told = f"{text} ({details})" if details else text
        if text.startswith(_THRASHING):
            self._broken = True
            r.out.add(n, e.BreakerOpened(failures=_THRASH_LIMIT, reason=text))
        elif _TOO_LONG in told.lower():
            found = _FIGURES.search(details)
            used, limit = (int(found[1]), int(found[2])) if found else (None, None)
            r.out.add(n, e.ContextOverflowed(message=told, used=used, limit=limit))
        else:
            r.out.add(n, e.ErrorRaised(kind=kind or "api_error", message=told, where=AGENT))
        self.end(n, "failed", text)


def _subagent_words(agent: str, told: dict[str, Any]) -> str:
    kind = text_of(told.get("agentType"))
    facts = [
        text_of(told.get("status")),
        _count(told.get("totalToolUseCount"), "tool calls"),
        _count(told.get("totalTokens"), "tokens"),
    ]
    words = ", ".join(filter(None, facts))
    return f"subagent {agent}" + (f" ({kind})" if kind else "") + (f": {words}" if words else "")


def _count(value: object, what: str) -> str:
    number = int_of(value)
    return "" if number is None else f"{number:,} {what}"
