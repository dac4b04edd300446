"""The Python design's strategies from plain data, as they stand in a settings file.

    [[strategies]]
    strategy = "token_budget"
    params = { token_budget_share = 0.8, strategies = [
        { strategy = "tool_result", params = { keep_last_tool_call_groups = 1 } },
        { strategy = "sliding_window", params = { keep_last_groups = 20 } },
    ] }

| strategy | params |
|---|---|
| truncation | max_n, compact_to, tokenizer (left out: messages count), preserve_system, preserve_first_user_group |
| sliding_window | keep_last_groups, preserve_system |
| selective_tool_call, tool_result | keep_last_tool_call_groups |
| summarization | target_count, threshold, prompt, max_summary_input_tokens, tokenizer |
| token_budget | token_budget or token_budget_share (of window - max output), strategies, early_stop, tokenizer |
| context_window | max_context_window_tokens, max_output_tokens (left out: the model's own), tool_eviction_threshold, truncation_threshold, keep_last_tool_call_groups, preserve_first_user_group, tokenizer |
"""  # noqa: E501  (table rows)

from __future__ import annotations

from collections.abc import Mapping

from .python_composed import ContextWindow, TokenBudget
from .python_messages import MessageList
from .python_strategies import (
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    ToolResult,
    Truncation,
)
from .python_summarization import INPUT_TOKENS, Summarization
from .python_text import CharacterEstimator, Tokenizer
from .spec import Arguments, Limits, StrategySpec
from .steps import Run, Untouched

TOKENIZERS: Mapping[str, Tokenizer] = {"char_estimator": CharacterEstimator()}
"""The tokenizers that a strategy can name."""


class _Unknown(Strategy):
    """A strategy that needs the model's window, which nobody knows: it says so."""

    name = stage = "context_window"

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def run(self, messages: MessageList) -> Run:
        """Do nothing."""
        yield Untouched(self._stage, "the window is unknown")
        return False


def compose(
    spec: StrategySpec, limits: Limits, tokenizers: Mapping[str, Tokenizer] = TOKENIZERS
) -> Strategy:
    """The strategy that plain data describes. Raises ValueError with what is wrong."""
    if spec.trigger is not None or spec.target is not None:
        raise ValueError(f"{spec.strategy}: the Python design has no triggers and no targets")
    given = Arguments(spec.strategy, spec.params)
    made = _make(spec.strategy, given, limits, tokenizers)
    given.done()
    return made


def _make(
    name: str, given: Arguments, limits: Limits, tokenizers: Mapping[str, Tokenizer]
) -> Strategy:
    match name:
        case "truncation":
            return Truncation(
                given.whole("max_n", None),
                given.whole("compact_to", None),
                tokenizer=_tokenizer(given, tokenizers),
                preserve_system=given.switch("preserve_system", True),
                preserve_first_user_group=given.switch("preserve_first_user_group", False),
            )
        case "sliding_window":
            return SlidingWindow(
                given.whole("keep_last_groups", None),
                preserve_system=given.switch("preserve_system", True),
            )
        case "selective_tool_call":
            return SelectiveToolCall(given.whole("keep_last_tool_call_groups", 1))
        case "tool_result":
            return ToolResult(given.whole("keep_last_tool_call_groups", 1))
        case "summarization":
            return Summarization(
                target_count=given.whole("target_count", 4),
                threshold=given.whole_or_none("threshold", 2),
                instructions=given.text("prompt", ""),
                max_summary_input_tokens=given.whole_or_none(
                    "max_summary_input_tokens", INPUT_TOKENS
                ),
                tokenizer=_tokenizer(given, tokenizers),
            )
        case "token_budget":
            return _token_budget(given, limits, tokenizers)
        case "context_window":
            return _context_window(given, limits, tokenizers)
    known = (
        "truncation, sliding_window, selective_tool_call, tool_result, summarization, "
        "token_budget, context_window"
    )
    raise ValueError(f"there is no strategy {name!r}; there are: {known}")


def _token_budget(
    given: Arguments, limits: Limits, tokenizers: Mapping[str, Tokenizer]
) -> Strategy:
    inside = [compose(spec, limits, tokenizers) for spec in given.strategies()]
    tokenizer = _tokenizer(given, tokenizers) or CharacterEstimator()
    early_stop = given.switch("early_stop", True)
    budget = given.whole_or_none("token_budget", None)
    share = given.number("token_budget_share", 0.0)
    if (budget is None) == (share == 0.0):
        raise ValueError("token_budget needs either token_budget or token_budget_share")
    if budget is not None:
        return TokenBudget(budget, tokenizer, inside, early_stop=early_stop)
    if not 0 < share <= 1:
        raise ValueError(f"token_budget_share must be above 0 and at most 1, not {share}")
    if limits.input_budget is None:
        return _Unknown(TokenBudget.stage)
    source = f"{share:.0%} of the input budget {limits.input_budget:,}"
    tokens = int(limits.input_budget * share)
    return TokenBudget(tokens, tokenizer, inside, early_stop=early_stop, source=source)


def _context_window(
    given: Arguments, limits: Limits, tokenizers: Mapping[str, Tokenizer]
) -> Strategy:
    window = given.whole_or_none("max_context_window_tokens", limits.window)
    max_output = given.whole("max_output_tokens", limits.max_output)
    tool = given.number("tool_eviction_threshold", 0.5)
    truncation = given.number("truncation_threshold", 0.8)
    keep = given.whole("keep_last_tool_call_groups", 4)
    first = given.switch("preserve_first_user_group", False)
    tokenizer = _tokenizer(given, tokenizers)
    if window is None:
        return _Unknown(ContextWindow.stage)
    return ContextWindow(
        window,
        max_output,
        tokenizer=tokenizer,
        tool_share=tool,
        truncation_share=truncation,
        keep_last_tool_call_groups=keep,
        preserve_first_user_group=first,
    )


def _tokenizer(given: Arguments, tokenizers: Mapping[str, Tokenizer]) -> Tokenizer | None:
    name = given.text("tokenizer", "")
    if name and name not in tokenizers:
        raise ValueError(f"there is no tokenizer {name!r}; there are: {', '.join(tokenizers)}")
    return tokenizers[name] if name else None
