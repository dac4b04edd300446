"""The Python design's strategies that are made of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...policy import Refused
from .python_messages import MarkedGroup, MessageList
from .python_strategies import (
    Strategy,
    ToolResult,
    Truncation,
    exclude,
    groups_words,
    newest,
    require,
)
from .python_text import CharacterEstimator, Tokenizer
from .steps import Changed, Log, Run, Untouched


class TokenBudget(Strategy):
    """Several strategies in order until the tokens are within a budget; at the end, groups go until
    they are: first the oldest outside system, then system groups too. Only the newest group stays
    for certain."""

    name = "TokenBudgetComposedStrategy"
    stage = "token_budget"
    fallback = "token_budget_fallback"
    strict = "token_budget_fallback_strict"

    def __init__(
        self,
        token_budget: int,
        tokenizer: Tokenizer,
        strategies: Sequence[Strategy],
        *,
        early_stop: bool = True,
        source: str = "token_budget",
    ) -> None:
        self.budget = token_budget
        self.tokenizer: Tokenizer = tokenizer
        self.strategies = tuple(strategies)
        self.early_stop = early_stop
        self.source = source

    def limits(self) -> Iterator[tuple[str, int, str]]:
        """The budget; what is inside only begins above it."""
        yield self.stage, self.budget, self.source

    def run(self, messages: MessageList) -> Run:
        """Run once."""
        messages.count(self.tokenizer)
        if self._within(messages):
            words = f"{messages.included_tokens:,} tokens are within the budget {self._words}"
            yield Untouched(self.stage, words)
            return False
        changed = False
        for strategy in self.strategies:
            changed = (yield from strategy.run(messages)) or changed
            messages.count(self.tokenizer)
            if self.early_stop and self._within(messages):
                return changed
        if self._within(messages):
            return changed
        last = newest(messages)
        others = [g for g in messages.groups if not g.system and g not in last]
        changed = (yield from self._drop(messages, others, self.fallback)) or changed
        if self._within(messages):
            return changed
        systems = [g for g in messages.groups if g.system and g not in last]
        return (yield from self._drop(messages, systems, self.strict)) or changed

    @property
    def _words(self) -> str:
        return (
            f"{self.budget:,}"
            if self.source == "token_budget"
            else (f"{self.budget:,} = {self.source}")
        )

    def _within(self, messages: MessageList) -> bool:
        return messages.included_tokens <= self.budget

    def _drop(self, messages: MessageList, groups: Iterable[MarkedGroup], stage: str) -> Run:
        before, size = messages.checkpoint(), messages.included_tokens
        gone, changed = 0, False
        for group in groups:
            changed = exclude(messages, group, stage) or changed
            gone += 1
            if self._within(messages):
                break
        reason = f"{size:,} tokens are still above the budget {self._words}"
        if not changed:
            yield Untouched(stage, f"{reason}, and there is nothing left to remove", due=True)
            return False
        words = f"{reason}. {groups_words(gone)} left; {messages.included_tokens:,} tokens stay."
        if isinstance((yield Changed(stage, words)), Refused):
            messages.return_to(before)
            return False
        return True


class ContextWindow(Strategy):
    """Above one share of the input budget (window - max output) older tool call groups are
    collapsed; if the tokens are then above a larger share, the oldest groups go until the *smaller*
    share is reached. What is protected may stay above the budget, with a warning."""

    name = "ContextWindowCompactionStrategy"
    stage = "context_window"

    def __init__(
        self,
        window: int,
        max_output: int,
        *,
        tokenizer: Tokenizer | None = None,
        tool_share: float = 0.5,
        truncation_share: float = 0.8,
        keep_last_tool_call_groups: int = 4,
        preserve_first_user_group: bool = False,
    ) -> None:
        require(window > 0, f"max_context_window_tokens must be above 0, not {window:,}")
        require(
            0 <= max_output < window,
            f"max_output_tokens must be at least 0 and below the window {window:,}, "
            f"not {max_output:,}",
        )
        require(
            0 < tool_share <= 1 and 0 < truncation_share <= 1,
            "tool_eviction_threshold and truncation_threshold must be in (0, 1]",
        )
        require(
            tool_share <= truncation_share,
            "truncation_threshold must not be below tool_eviction_threshold",
        )
        self.tokenizer: Tokenizer = tokenizer or CharacterEstimator()
        self.input_budget = window - max_output
        self.tool_share, self.truncation_share = tool_share, truncation_share
        self.tool_tokens = int(self.input_budget * tool_share)
        self.truncation_tokens = int(self.input_budget * truncation_share)
        self._tools = ToolResult(keep_last_tool_call_groups)
        self._truncation = Truncation(
            self.truncation_tokens,
            self.tool_tokens,
            tokenizer=self.tokenizer,
            preserve_first_user_group=preserve_first_user_group,
        )

    def limits(self) -> Iterator[tuple[str, int, str]]:
        """Both thresholds."""
        yield ToolResult.stage, self.tool_tokens, self._share(self.tool_share)
        yield Truncation.stage, self.truncation_tokens, self._share(self.truncation_share)

    def run(self, messages: MessageList) -> Run:
        """Run once."""
        messages.count(self.tokenizer)
        changed = False
        if messages.included_tokens > self.tool_tokens:
            changed = yield from self._tools.run(messages)
            messages.count(self.tokenizer)
        else:
            words = (
                f"{messages.included_tokens:,} tokens do not exceed {self.tool_tokens:,} = "
                f"{self._share(self.tool_share)}"
            )
            yield Untouched(ToolResult.stage, words)
        if messages.included_tokens > self.truncation_tokens:
            changed = (yield from self._truncation.run(messages)) or changed
        if (left := messages.included_tokens) > self.input_budget:
            yield Log(
                "warning",
                "protected-overflow",
                f"what is protected ({left:,} tokens) is above the input budget "
                f"{self.input_budget:,}",
                self.stage,
                {
                    "compaction_strategy": self.name,
                    "compaction_included_tokens_after": left,
                    "compaction_input_budget_tokens": self.input_budget,
                },
            )
        return changed

    def _share(self, share: float) -> str:
        return f"{share:.0%} of the input budget {self.input_budget:,}"
