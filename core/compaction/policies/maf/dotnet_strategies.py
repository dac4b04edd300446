"""The .NET design's strategies.

Each has a trigger and a target. `compact` does nothing with at most one included group outside
System, or while the trigger does not hold. Else units (groups; turns for the sliding window) go,
the oldest first, until the target holds or only the floor is left. The target is asked after each
unit and never before the first, so once a strategy has begun, at least one unit goes. A strategy
that was given no target stops as soon as its trigger no longer holds.

The floor counts the newest included groups outside System (turns for the sliding window); below 0
it is 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from ...policy import Failure, FailureKind, Refused, Start, Summary
from ...summaries import prompt
from .dotnet_groups import GroupKind, MessageGroup
from .dotnet_index import MessageIndex
from .dotnet_text import collapsed
from .dotnet_triggers import Always, Condition, Exceeds, Not, token_limits
from .messages import ChatMessage, Text, written
from .steps import Changed, Core, Generated, Log, Request, Run, Untouched

SUMMARY_PREFIX = "[Summary]\n"
UNAVAILABLE = "[Summary unavailable]"

Reducer = Callable[[Sequence[ChatMessage]], Sequence[ChatMessage]]
"""Gives fewer messages for the included ones, or as many to change nothing."""


class Strategy(ABC):
    """Guard and trigger."""

    name: ClassVar[str]

    def __init__(self, trigger: Condition | None = None, target: Condition | None = None) -> None:
        self.trigger: Condition = trigger or Always()
        self.target: Condition = target or Not(self.trigger)

    @property
    def stage(self) -> str:
        """The name for a card: the class's own, without its last word."""
        return self.name.removesuffix("Strategy")

    def compact(self, index: MessageIndex) -> Run:
        """Run once over the index; ends with whether it changed."""
        if index.included_others <= 1:
            few = f"{index.included_others} included group outside System is too few"
            yield Untouched(self.stage, few)
            return False
        reason = self.trigger.words(index)
        if not self.trigger.met(index):
            yield Untouched(self.stage, reason)
            return False
        return (yield from self._apply(index, reason))

    def limits(self) -> Iterator[tuple[str, Exceeds]]:
        """The token figures at which it begins, each with the stage's name."""
        for limit in token_limits(self.trigger):
            yield self.stage, limit

    @abstractmethod
    def _apply(self, index: MessageIndex, reason: str) -> Run:
        """The rule, once the trigger has held for this reason."""


class Single(Strategy):
    """A strategy that does one thing to the index, and takes it back when that is refused."""

    def _apply(self, index: MessageIndex, reason: str) -> Run:
        before = index.checkpoint()
        done = yield from self._core(index, reason)
        index.settle()
        if done is None:
            return False
        if isinstance((yield done), Refused):
            index.return_to(before)
            return False
        return True

    @abstractmethod
    def _core(self, index: MessageIndex, reason: str) -> Core:
        """What it does."""

    def _idle(self, reason: str, why: str) -> Untouched:
        return Untouched(self.stage, f"{reason}, but {why}", due=True)


class ToolResult(Single):
    """Tool call groups outside the floor become Summary groups with the results' full text: tokens
    may even rise."""

    name = "ToolResultCompactionStrategy"

    def __init__(
        self, trigger: Condition, target: Condition | None = None, *, floor: int = 16
    ) -> None:
        super().__init__(trigger, target)
        self.floor = max(0, floor)

    def _core(self, index: MessageIndex, reason: str) -> Core:
        outside = _outside(index, self.floor)
        found = [at for at in outside if index.groups[at].kind is GroupKind.TOOL_CALL]
        if not found:
            yield self._idle(reason, f"there is no tool call group before the newest {self.floor}")
            return None
        generated: list[Generated] = []
        for at in found:
            each = index.groups[at]
            message = written(collapsed(each.messages))
            index.exclude(each, f"Collapsed by {self.name}")
            index.insert(at + 1, GroupKind.SUMMARY, message, each.turn)
            generated.append(Generated(message, each.messages))
            if self.target.met(index, len(generated)):
                break
        words = (
            f"{reason}. {len(generated):,} of the {len(found):,} tool call groups before the "
            f"newest {self.floor} groups are collapsed; then {self.target.words(index)}."
        )
        return Changed(self.stage, words, tuple(generated))


class Summarization(Single):
    """The oldest groups become one summary by a model, in the place of the first of them.

    The request is a system prompt and the messages as they are, of any size. An error undoes the
    exclusions; a blank summary becomes a placeholder. System groups are stepped over, so one that
    stood between summarised groups stands after the summary. The summary belongs to no turn, and
    is summarised again by the next run.
    """

    name = "SummarizationCompactionStrategy"

    def __init__(
        self,
        trigger: Condition,
        target: Condition | None = None,
        *,
        floor: int = 8,
        instructions: str = "",
    ) -> None:
        super().__init__(trigger, target)
        self.floor = max(0, floor)
        self.instructions = instructions or prompt("maf_dotnet_summary")

    def _core(self, index: MessageIndex, reason: str) -> Core:
        outside = _outside(index, self.floor)
        if not outside:
            yield self._idle(reason, f"there is no group before the newest {self.floor}")
            return None
        gone = self._exclude(index, outside)
        about = tuple(message for each in gone for message in each.messages)
        words = (
            f"{reason}. {len(gone):,} of the {len(outside):,} groups before the newest "
            f"{self.floor} groups are summarised"
        )
        yield Start(self.stage, f"{words}.")
        asked = ChatMessage("system", (Text(self.instructions),))
        answer = yield Request((asked, *about), about)
        text = _reply(answer)
        if text is None:
            for each in gone:
                index.restore(each)
            failure = answer if isinstance(answer, Failure) else None
            why = failure.message if failure else "there is no answer"
            failed = f"{words}, but no summary was written: {why}"
            yield Log("warning", "summary-failed", failed, self.stage, failure=failure)
            return None
        message = written(SUMMARY_PREFIX + (text if text.strip() else UNAVAILABLE))
        index.insert(outside[0], GroupKind.SUMMARY, message, None)
        return Changed(
            self.stage,
            f"{words}; then {self.target.words(index)}.",
            (Generated(message, about),),
            answer if isinstance(answer, Summary) else None,
        )

    def _exclude(self, index: MessageIndex, outside: list[int]) -> list[MessageGroup]:
        gone: list[MessageGroup] = []
        for at in outside:
            index.exclude(index.groups[at], f"Summarized by {self.name}")
            gone.append(index.groups[at])
            if self.target.met(index, len(gone)):
                break
        return gone


class SlidingWindow(Single):
    """Whole turns go. Turn 0, what belongs to no turn (a model's summary) and the newest turns
    stay; with a floor of 0 no user message need be left."""

    name = "SlidingWindowCompactionStrategy"

    def __init__(
        self, trigger: Condition, target: Condition | None = None, *, floor: int = 1
    ) -> None:
        super().__init__(trigger, target)
        self.floor = max(0, floor)

    def _core(self, index: MessageIndex, reason: str) -> Core:
        turns: dict[int, list[MessageGroup]] = {}
        for at in index.eligible():
            each = index.groups[at]
            if each.turn is not None:
                turns.setdefault(each.turn, []).append(each)
        oldest_first = list(turns)[: max(0, len(turns) - self.floor)]
        gone: list[int] = []
        for turn in filter(None, oldest_first):
            for each in turns[turn]:
                index.exclude(each, f"Excluded by {self.name}")
            gone.append(turn)
            if self.target.met(index, len(gone)):
                break
        if not gone:
            yield self._idle(reason, f"there is no turn before the newest {self.floor}")
            return None
        named = f"turn {gone[0]}" if len(gone) == 1 else f"turns {gone[0]} to {gone[-1]}"
        return Changed(self.stage, f"{reason}. {named} left; then {self.target.words(index)}.")


class Truncation(Single):
    """The oldest groups go, summaries among them."""

    name = "TruncationCompactionStrategy"

    def __init__(
        self, trigger: Condition, target: Condition | None = None, *, floor: int = 32
    ) -> None:
        super().__init__(trigger, target)
        self.floor = max(0, floor)

    def _core(self, index: MessageIndex, reason: str) -> Core:
        outside = _outside(index, self.floor)
        gone = 0
        for at in outside:
            index.exclude(index.groups[at], f"Truncated by {self.name}")
            gone += 1
            if self.target.met(index, gone):
                break
        if not gone:
            yield self._idle(reason, f"there is no group before the newest {self.floor}")
            return None
        words = (
            f"{reason}. {gone:,} of the {len(outside):,} groups before the newest "
            f"{self.floor} groups left; then {self.target.words(index)}."
        )
        return Changed(self.stage, words)


class ChatReducer(Single):
    """A function of the program's own picks the messages that stay. The index is built anew from
    them, so groups, marks, reasons and turns before are gone."""

    name = "ChatReducerCompactionStrategy"

    def __init__(self, reducer: Reducer, trigger: Condition, words: str = "the reducer") -> None:
        super().__init__(trigger)
        self.reducer = reducer
        self.words = words

    def _core(self, index: MessageIndex, reason: str) -> Core:
        included = index.included
        left = self.reducer(included)
        if len(left) >= len(included):
            yield self._idle(reason, f"{self.words} left all {len(included):,} messages")
            return None
        index.rebuild(left)
        words = f"{reason}. {self.words} left {len(left):,} of {len(included):,} messages."
        return Changed(self.stage, words)


class Pipeline(Strategy):
    """Several strategies, every one of them in order: each by its own trigger, none because of
    what another one reached."""

    name = "PipelineCompactionStrategy"

    def __init__(self, strategies: Sequence[Strategy]) -> None:
        super().__init__()
        self.strategies = tuple(strategies)

    def limits(self) -> Iterator[tuple[str, Exceeds]]:
        """Those of its strategies."""
        for strategy in self.strategies:
            yield from strategy.limits()

    def _apply(self, index: MessageIndex, reason: str) -> Run:
        changed = False
        for strategy in self.strategies:
            changed = (yield from strategy.compact(index)) or changed
        return changed


class ContextWindow(Pipeline):
    """Tool results above one share of the input budget (window - max output), truncation above a
    larger one; thresholds are whole tokens, rounded down. No model is asked. Instructions and tool
    schemas are not in the messages, so they are not counted."""

    name = "ContextWindowCompactionStrategy"

    def __init__(
        self,
        window: int,
        max_output: int,
        *,
        tool_share: float = 0.5,
        truncation_share: float = 0.8,
        floor: int = 2,
    ) -> None:
        _check_window(window, max_output, tool_share, truncation_share)
        self.input_budget = window - max_output
        self.tool_share, self.truncation_share = tool_share, truncation_share
        super().__init__(
            (
                ToolResult(self._above(tool_share), floor=floor),
                Truncation(self._above(truncation_share), floor=floor),
            )
        )

    def _above(self, share: float) -> Exceeds:
        source = f"{share:.0%} of the input budget {self.input_budget:,}"
        return Exceeds("tokens", int(self.input_budget * share), source)


def _check_window(window: int, max_output: int, tool: float, truncation: float) -> None:
    if window <= 0:
        raise ValueError(f"max_context_window_tokens must be above 0, not {window:,}")
    if not 0 <= max_output < window:
        raise ValueError(
            f"max_output_tokens must be at least 0 and below the window {window:,}, "
            f"not {max_output:,}"
        )
    if not (0 < tool <= 1 and 0 < truncation <= 1):
        raise ValueError("tool_eviction_threshold and truncation_threshold must be in (0, 1]")
    if truncation < tool:
        raise ValueError("truncation_threshold must not be below tool_eviction_threshold")


def _outside(index: MessageIndex, floor: int) -> list[int]:
    """Positions of the eligible groups that the floor does not protect."""
    eligible = index.eligible()
    return eligible[: max(0, len(eligible) - floor)]


def _reply(answer: object) -> str | None:
    """The model's text, which may be blank; None when it gave none because of an error."""
    if isinstance(answer, Summary):
        return answer.text
    if isinstance(answer, Failure) and answer.kind is FailureKind.EMPTY:
        return ""
    return None
