"""The .NET design's strategies from plain data, as they stand in a settings file.

    [[strategies]]
    strategy = "tool_result"
    trigger = { tokens_exceed_share = 0.5 }
    target = { tokens_below = 4000 }          # left out: the trigger no longer holds
    params = { minimum_preserved_groups = 2 }

| strategy | params |
|---|---|
| tool_result, truncation | minimum_preserved_groups |
| summarization | minimum_preserved_groups, prompt |
| sliding_window | minimum_preserved_turns |
| chat_reducer | keep_last (messages) |
| pipeline | strategies |
| context_window | max_context_window_tokens, max_output_tokens (left out: the model's own), tool_eviction_threshold, truncation_threshold |
"""  # noqa: E501  (a table row)

from __future__ import annotations

from collections.abc import Sequence

from .dotnet_strategies import (
    ChatReducer,
    ContextWindow,
    Pipeline,
    Reducer,
    SlidingWindow,
    Strategy,
    Summarization,
    ToolResult,
    Truncation,
)
from .dotnet_triggers import Condition, Never, condition
from .messages import ChatMessage
from .spec import Arguments, Limits, StrategySpec


class _Unknown(Pipeline):
    """A context window strategy for a window that nobody knows: it never begins, and says so."""

    name = ContextWindow.name

    def __init__(self) -> None:
        super().__init__(())
        self.trigger = Never("the window is unknown")


def compose(spec: StrategySpec, limits: Limits) -> Strategy:
    """The strategy that plain data describes. Raises ValueError with what is wrong."""
    given = Arguments(spec.strategy, spec.params)
    made = _make(spec, given, limits)
    given.done()
    return made


def pipeline(specs: Sequence[StrategySpec], limits: Limits) -> Pipeline:
    """Several strategies as one."""
    return Pipeline([compose(spec, limits) for spec in specs])


def keep_last(count: int) -> Reducer:
    """A reducer that keeps the newest messages, whatever they belong to."""

    def reduce(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return messages[max(0, len(messages) - count) :]

    return reduce


def _make(spec: StrategySpec, given: Arguments, limits: Limits) -> Strategy:
    match spec.strategy:
        case "pipeline":
            _no_conditions(spec)
            return pipeline(given.strategies(), limits)
        case "context_window":
            _no_conditions(spec)
            return _context_window(given, limits)
        case "tool_result":
            trigger, target = _conditions(spec, limits)
            floor = given.whole("minimum_preserved_groups", 16)
            return ToolResult(trigger, target, floor=floor)
        case "summarization":
            trigger, target = _conditions(spec, limits)
            return Summarization(
                trigger,
                target,
                floor=given.whole("minimum_preserved_groups", 8),
                instructions=given.text("prompt", ""),
            )
        case "sliding_window":
            trigger, target = _conditions(spec, limits)
            floor = given.whole("minimum_preserved_turns", 1)
            return SlidingWindow(trigger, target, floor=floor)
        case "truncation":
            trigger, target = _conditions(spec, limits)
            floor = given.whole("minimum_preserved_groups", 32)
            return Truncation(trigger, target, floor=floor)
        case "chat_reducer":
            trigger, target = _conditions(spec, limits)
            if target is not None:
                raise ValueError("chat_reducer has no target")
            count = given.whole("keep_last", None, least=0)
            return ChatReducer(keep_last(count), trigger, f"the reducer (keep_last {count})")
    known = (
        "tool_result, summarization, sliding_window, truncation, chat_reducer, pipeline, "
        "context_window"
    )
    raise ValueError(f"there is no strategy {spec.strategy!r}; there are: {known}")


def _conditions(spec: StrategySpec, limits: Limits) -> tuple[Condition, Condition | None]:
    if spec.trigger is None:
        raise ValueError(f"{spec.strategy} needs a trigger, as in trigger = 'always'")
    target = None if spec.target is None else condition(spec.target, limits.input_budget)
    return condition(spec.trigger, limits.input_budget), target


def _no_conditions(spec: StrategySpec) -> None:
    if spec.trigger is not None or spec.target is not None:
        raise ValueError(f"{spec.strategy} has no trigger and no target of its own")


def _context_window(given: Arguments, limits: Limits) -> Strategy:
    window = given.whole_or_none("max_context_window_tokens", limits.window)
    max_output = given.whole("max_output_tokens", limits.max_output)
    tool = given.number("tool_eviction_threshold", 0.5)
    truncation = given.number("truncation_threshold", 0.8)
    if window is None:
        return _Unknown()
    return ContextWindow(window, max_output, tool_share=tool, truncation_share=truncation)
