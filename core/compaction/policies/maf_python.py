"""Microsoft Agent Framework for Python: strategies that mark messages as excluded.

Source: microsoft/agent-framework, `python/packages/core/agent_framework/_compaction.py`, as
agent-framework-core 1.23.0 behaves. Before every model call the messages are divided into groups (a
call and its results, wherever they stand, are one), and a strategy marks groups as excluded. What
is excluded stays in the list and is not sent. Thresholds are arguments of each strategy:

- truncation: above max_n tokens or messages the oldest groups go until compact_to
- sliding_window: only the newest keep_last_groups groups stay
- selective_tool_call: older tool call groups go
- tool_result: older tool call groups become a line of their results, at most 4,096 characters
- summarization: above target_count + threshold messages the older ones are summed up by a model
- token_budget: other strategies in order until the tokens fit, then the oldest groups go, and at
  last system groups too
- context_window: tool_result above 50 % of the input budget, truncation above 80 % down to 50 %

Sizes are counted message by message on its JSON, ids included: with the framework's own estimate a
quarter of the characters. Instructions and tool schemas are not counted.

With `strategies` empty, it is token_budget around tool_result, summarization and sliding_window.
Else `strategies` are run one after the other, as plain data in TOML:

    [[compaction.params.strategies]]
    strategy = "context_window"
    params = { keep_last_tool_call_groups = 4, preserve_first_user_group = true }

What the system leaves open, and what is done here:

- It marks the caller's list; here what is excluded has left the context, and stays in the journal.
- By hand the same thresholds apply: that is the framework's own one-off call.
- After three failed summaries in a row the framework writes an error to its log and goes on; here
  the engine's breaker opens.
- System groups can go (the last fallback): enforce mode refuses that, report mode shows it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ...models import Budget
from ..policy import Mark, Moment, Plan, Situation, Skip, SkipKind
from .maf.bridge import Bridge, drive
from .maf.python_compose import compose
from .maf.python_messages import MessageList
from .maf.python_strategies import Strategy, apply
from .maf.python_summarization import INPUT_TOKENS
from .maf.spec import Limits, StrategySpec
from .maf.steps import Run

STAGE = "compaction"


class MafPythonParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the strategies."""

    strategies: tuple[StrategySpec, ...] = ()
    """The strategies as plain data; empty: those that the other constants make."""
    token_budget: int | None = None
    """Tokens to which everything is brought down; none: `token_budget_share`."""
    token_budget_share: float = 0.8
    """The token budget as a share of window - max output. Ours: the framework asks for a number."""
    early_stop: bool = True
    """Leave the remaining strategies out once the tokens fit (the framework's default)."""
    keep_last_tool_call_groups: int = 1
    """Newest tool call groups that tool_result leaves alone (the framework's default)."""
    target_count: int = 4
    """Messages that stay when a summary is written (the framework's default)."""
    threshold: int = 2
    """Messages above `target_count` before that happens (the framework's default)."""
    prompt: str = ""
    """The system prompt of the summary request; empty: ours."""
    max_summary_input_tokens: int | None = INPUT_TOKENS
    """Tokens of prompt and transcript of a summary request; none: no limit (the default: 8,000)."""
    keep_last_groups: int = 8
    """Newest groups that sliding_window keeps. Ours: the framework asks for a number."""

    def __post_init__(self) -> None:
        for spec in self.composed():
            compose(spec, Limits(1_000_000))

    def composed(self) -> tuple[StrategySpec, ...]:
        """The strategies in force, as plain data."""
        if self.strategies:
            return self.strategies
        size = (
            {"token_budget_share": self.token_budget_share}
            if self.token_budget is None
            else {"token_budget": self.token_budget}
        )
        inside = [
            {
                "strategy": "tool_result",
                "params": {"keep_last_tool_call_groups": self.keep_last_tool_call_groups},
            },
            {
                "strategy": "summarization",
                "params": {
                    "target_count": self.target_count,
                    "threshold": self.threshold,
                    "prompt": self.prompt,
                    "max_summary_input_tokens": self.max_summary_input_tokens,
                },
            },
            {"strategy": "sliding_window", "params": {"keep_last_groups": self.keep_last_groups}},
        ]
        params = {**size, "early_stop": self.early_stop, "strategies": inside}
        return (StrategySpec("token_budget", params),)


class MafPython:
    """The Python framework's strategies, run before every request."""

    name: ClassVar[str] = "maf-python"
    title: ClassVar[str] = "Microsoft Agent Framework (Python)"
    moments: ClassVar[frozenset[Moment]] = frozenset({Moment.BEFORE_REQUEST, Moment.MANUAL})
    Params: ClassVar[type[msgspec.Struct]] = MafPythonParams

    def __init__(self, params: MafPythonParams | None = None) -> None:
        self.params = params or MafPythonParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The token figures at which a strategy begins, by the framework's own estimate."""
        try:
            strategies = self._strategies(budget)
        except ValueError:
            return ()
        return tuple(Mark(*limit) for strategy in strategies for limit in strategy.limits())

    def plan(self, situation: Situation) -> Plan:
        """The strategies, one after the other."""
        try:
            strategies = self._strategies(situation.budget)
        except ValueError as error:
            yield Skip(SkipKind.FAILED, f"The strategies do not fit the model: {error}.", STAGE)
            return
        bridge = Bridge(situation.context)
        messages = MessageList.of(bridge.messages)
        yield from drive(
            _in_order(messages, strategies), bridge, situation, lambda: messages.included
        )

    def _strategies(self, budget: Budget) -> list[Strategy]:
        limits = Limits.of(budget)
        return [compose(spec, limits) for spec in self.params.composed()]


def _in_order(messages: MessageList, strategies: list[Strategy]) -> Run:
    changed = False
    for strategy in strategies:
        changed = (yield from apply(messages, strategy)) or changed
    return changed
