"""Microsoft Agent Framework for .NET: strategies with triggers and targets, in a pipeline.

Source: microsoft/agent-framework, `dotnet/src/Microsoft.Agents.AI/Compaction` at 5eb3eb745e16 (all
types there are marked experimental). Before every model call the conversation is divided into
groups (a call with its results, a user message, ...), and each strategy of the pipeline runs in
order, by its own trigger:

- ToolResult writes older tool call groups as text, results in full
- Summarization lets a model sum up the oldest groups
- SlidingWindow drops whole turns, the oldest first
- Truncation drops the oldest groups
- ChatReducer keeps what a function picks; here the newest messages
- ContextWindow is ToolResult and Truncation by shares of the input budget

A strategy begins when its trigger holds and stops as soon as its target does (if it has none: as
soon as the trigger no longer holds), or at its floor of newest groups. Sizes are the framework's
own estimate: UTF-8 bytes // 4 for each group, messages only, without instructions and tools.

With `strategies` empty, the pipeline is that of the framework's sample (tool results, summary,
window, truncation), with the token triggers as shares of the input budget, so that it fits any
window. Else `strategies` is the whole pipeline as plain data, in TOML:

    [[compaction.params.strategies]]
    strategy = "truncation"      # tool_result, summarization, sliding_window, truncation,
                                 # chat_reducer, context_window, pipeline
    trigger = { any = [{ tokens_exceed = 32768 }, { groups_exceed = 200 }] }
    target = { tokens_below = 20000 }
    params = { minimum_preserved_groups = 32 }

Triggers and targets: "always", "never", tokens_exceed, tokens_below, messages_exceed, turns_exceed,
groups_exceed, has_tool_calls, all, any; and, which the framework does not have,
tokens_exceed_share and tokens_below_share (of the input budget) and stop_after (units).

What the system leaves open, and what is done here:

- It compacts a copy and leaves the stored history alone; here what is excluded has left the
  context, as in the framework's harness, and stays in the journal. Turn numbers are kept.
- By hand the same triggers apply: that is the framework's one-off call.
- A group that would lose its result (a late one belongs to no group) is the framework's fault and
  shows in report mode; enforce mode refuses it, as it does a collapse that grows the context.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ...models import Budget
from ..policy import Mark, Moment, Plan, Situation, Skip, SkipKind
from .maf.bridge import Bridge, drive
from .maf.dotnet_compose import pipeline
from .maf.dotnet_strategies import Pipeline
from .maf.dotnet_turns import MEMORY, kept, resumed
from .maf.spec import Limits, StrategySpec

STAGE = "CompactionProvider"


class MafDotnetParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the pipeline. Shares are of the input budget: window - max output."""

    strategies: tuple[StrategySpec, ...] = ()
    """The pipeline as plain data; empty: the one that the other constants make."""
    tool_result_share: float = 0.5
    """ToolResult begins above this share (ContextWindow: 0.5; the sample: 7 messages)."""
    tool_result_floor: int = 2
    """Newest groups that ToolResult leaves alone (ContextWindow: 2; on its own: 16)."""
    summarization_share: float = 0.55
    """Summarization begins above this share. Ours: the sample has 1,280 tokens."""
    summarization_target_share: float = 0.25
    """Summarization stops below this share. Ours: the sample stops as soon as the trigger no
    longer holds, so a summary is written every few requests."""
    summarization_floor: int = 4
    """Newest groups that are not summarised. Ours, for small windows (on its own: 8)."""
    summarization_prompt: str = ""
    """The system prompt of the summary request; empty: ours."""
    turns: int = 4
    """SlidingWindow begins above this many turns (the sample: 4)."""
    sliding_window_floor: int = 1
    """Newest turns that SlidingWindow keeps (on its own: 1)."""
    truncation_share: float = 0.8
    """Truncation begins above this share (ContextWindow: 0.8; the sample: 32,768 tokens)."""
    truncation_floor: int = 2
    """Newest groups that Truncation keeps (ContextWindow: 2; on its own: 32)."""
    conversation_id: str = ""
    """The id of a conversation that the service keeps. The framework's provider then leaves every
    request alone, and says so."""

    def __post_init__(self) -> None:
        # The model is not known here: one with room for everything serves to try the pipeline.
        pipeline(self.pipeline(), Limits(1_000_000))

    def pipeline(self) -> tuple[StrategySpec, ...]:
        """The strategies in force, as plain data."""
        return self.strategies or (
            StrategySpec(
                "tool_result",
                {"minimum_preserved_groups": self.tool_result_floor},
                {"tokens_exceed_share": self.tool_result_share},
            ),
            StrategySpec(
                "summarization",
                {
                    "minimum_preserved_groups": self.summarization_floor,
                    "prompt": self.summarization_prompt,
                },
                {"tokens_exceed_share": self.summarization_share},
                {"tokens_below_share": self.summarization_target_share},
            ),
            StrategySpec(
                "sliding_window",
                {"minimum_preserved_turns": self.sliding_window_floor},
                {"turns_exceed": self.turns},
            ),
            StrategySpec(
                "truncation",
                {"minimum_preserved_groups": self.truncation_floor},
                {"tokens_exceed_share": self.truncation_share},
            ),
        )


class MafDotnet:
    """The .NET framework's compaction provider around a pipeline."""

    name: ClassVar[str] = "maf-dotnet"
    title: ClassVar[str] = "Microsoft Agent Framework (.NET)"
    moments: ClassVar[frozenset[Moment]] = frozenset({Moment.BEFORE_REQUEST, Moment.MANUAL})
    Params: ClassVar[type[msgspec.Struct]] = MafDotnetParams

    def __init__(self, params: MafDotnetParams | None = None) -> None:
        self.params = params or MafDotnetParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The token figures at which a strategy begins, by the framework's own estimate."""
        try:
            strategy = self._pipeline(budget)
        except ValueError:
            return ()
        return tuple(
            Mark(stage, limit.limit, limit.source or "trigger")
            for stage, limit in strategy.limits()
        )

    def plan(self, situation: Situation) -> Plan:
        """The provider's test, then the pipeline."""
        if id := self.params.conversation_id.strip():
            words = f"Skipped: the service keeps the conversation {id}, so nothing is removed here."
            yield Skip(SkipKind.NO_OP, words, STAGE)
            return
        try:
            strategy = self._pipeline(situation.budget)
        except ValueError as error:
            yield Skip(SkipKind.FAILED, f"The pipeline does not fit the model: {error}.", STAGE)
            return
        bridge = Bridge(situation.context)
        index = resumed(bridge, situation.memory)

        def memory() -> dict[str, Any]:
            return {MEMORY: kept(index.groups, bridge)}

        yield from drive(strategy.compact(index), bridge, situation, lambda: index.included, memory)

    def _pipeline(self, budget: Budget) -> Pipeline:
        return pipeline(self.params.pipeline(), Limits.of(budget))
