"""The Python design's strategies. Thresholds are arguments; there are no triggers and no targets.

Each walks the groups of a list, the oldest first, and marks all messages of a group as excluded
with its own reason. Where a walk meets a group that was excluded before, the reason is overwritten.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from ....amounts import count as counted
from ...policy import Refused
from .messages import written
from .python_messages import GroupKind, Marked, MarkedGroup, MessageList
from .python_text import Tokenizer, collapsed
from .steps import Changed, Core, Generated, Run, Untouched


class Strategy(ABC):
    """A strategy may be run again and again on the same list."""

    name: ClassVar[str]
    stage: ClassVar[str]
    """The reason that it leaves on what it excludes."""
    tokenizer: Tokenizer | None = None

    @abstractmethod
    def run(self, messages: MessageList) -> Run:
        """Run once over an annotated list; ends with whether it changed."""

    def limits(self) -> Iterator[tuple[str, int, str]]:
        """The token figures at which it begins: stage, tokens, where the number comes from."""
        return iter(())


def apply(messages: MessageList, strategy: Strategy, tokenizer: Tokenizer | None = None) -> Run:
    """Run a strategy as the framework does before a request: counted if anybody brings a tokenizer,
    and counted again after a change."""
    counting = tokenizer or strategy.tokenizer
    if counting is not None:
        messages.count(counting)
    changed = yield from strategy.run(messages)
    if changed and counting is not None:
        messages.count(counting)
    return changed


class Single(Strategy):
    """A strategy that does one thing to the list, and takes it back when that is refused."""

    def run(self, messages: MessageList) -> Run:
        """Run once."""
        before = messages.checkpoint()
        done = yield from self._core(messages)
        if done is None:
            return False
        if isinstance((yield done), Refused):
            messages.return_to(before)
            return False
        return True

    @abstractmethod
    def _core(self, messages: MessageList) -> Core:
        """What it does."""


class Truncation(Single):
    """Above `max_n` (tokens with a tokenizer, else messages) the oldest groups go until
    `compact_to` is reached. System groups (unless switched off), the first user group (if switched
    on) and the newest other group stay, however large they are."""

    name = "TruncationStrategy"
    stage = "truncation"

    def __init__(
        self,
        max_n: int,
        compact_to: int,
        *,
        tokenizer: Tokenizer | None = None,
        preserve_system: bool = True,
        preserve_first_user_group: bool = False,
    ) -> None:
        require(max_n > 0, f"max_n must be above 0, not {max_n}")
        require(
            0 < compact_to <= max_n,
            f"compact_to must be above 0 and at most max_n {max_n}, not {compact_to}",
        )
        self.max_n, self.compact_to = max_n, compact_to
        self.tokenizer = tokenizer
        self.preserve_system = preserve_system
        self.preserve_first_user_group = preserve_first_user_group

    def limits(self) -> Iterator[tuple[str, int, str]]:
        """Where it begins, when it counts tokens."""
        if self.tokenizer is not None:
            yield self.stage, self.max_n, "max_n"

    def _core(self, messages: MessageList) -> Core:
        size, unit = self._size(messages), "messages" if self.tokenizer is None else "tokens"
        if size <= self.max_n:
            yield Untouched(self.stage, f"{size:,} {unit} do not exceed {self.max_n:,}")
            return None
        protected = self._protected(messages)
        gone, changed = 0, False
        for group in messages.groups:
            if self._size(messages) <= self.compact_to:
                break
            if group not in protected:
                changed = exclude(messages, group, self.stage) or changed
                gone += 1
        reason = f"{size:,} {unit} exceed {self.max_n:,}"
        if not changed:
            idle = f"{reason}, but only protected groups are left"
            yield Untouched(self.stage, idle, due=True)
            return None
        left = f"{self._size(messages):,} {unit} stay, where {self.compact_to:,} are wanted"
        return Changed(self.stage, f"{reason}. {groups_words(gone)} left the request; {left}.")

    def _size(self, messages: MessageList) -> int:
        return messages.included_messages if self.tokenizer is None else messages.included_tokens

    def _protected(self, messages: MessageList) -> set[MarkedGroup]:
        protected = newest(messages)
        if self.preserve_system:
            protected.update(group for group in messages.groups if group.system)
        if self.preserve_first_user_group:
            users = (group for group in messages.groups if group.kind is GroupKind.USER)
            protected.update(group for group in [next(users, None)] if group is not None)
        return protected


class SlidingWindow(Single):
    """Of the included groups outside system only the newest `keep_last_groups` stay. There is no
    threshold: it acts whenever there are more. A kept call may lose the question it answers."""

    name = "SlidingWindowStrategy"
    stage = "sliding_window"

    def __init__(self, keep_last_groups: int, *, preserve_system: bool = True) -> None:
        require(keep_last_groups > 0, f"keep_last_groups must be above 0, not {keep_last_groups}")
        self.keep_last_groups = keep_last_groups
        self.preserve_system = preserve_system

    def _core(self, messages: MessageList) -> Core:
        included = messages.included_groups()
        others = [group for group in included if not group.system]
        kept = set(others[-self.keep_last_groups :])
        if self.preserve_system:
            kept.update(group for group in included if group.system)
        gone = [group for group in included if group not in kept]
        words = (
            f"{len(others):,} groups outside system, of which {self.keep_last_groups:,} may stay"
        )
        if not gone:
            yield Untouched(self.stage, words)
            return None
        for group in gone:
            exclude(messages, group, self.stage)
        return Changed(self.stage, f"{words}. {groups_words(len(gone))} left the request.")


class _ToolGroups(Single):
    """Something is done with all included tool call groups but the newest."""

    def __init__(self, keep_last_tool_call_groups: int = 1) -> None:
        require(
            keep_last_tool_call_groups >= 0,
            f"keep_last_tool_call_groups must not be negative, not {keep_last_tool_call_groups}",
        )
        self.keep = keep_last_tool_call_groups

    def _core(self, messages: MessageList) -> Core:
        found = [g for g in messages.included_groups() if g.kind is GroupKind.TOOL_CALL]
        words = f"{len(found):,} tool call groups, of which {self.keep:,} may stay as they are"
        if len(found) <= self.keep:
            yield Untouched(self.stage, words)
            return None
        return self._treat(messages, found[: len(found) - self.keep], words)

    @abstractmethod
    def _treat(self, messages: MessageList, old: list[MarkedGroup], words: str) -> Changed:
        """What is done with the older ones."""


class SelectiveToolCall(_ToolGroups):
    """Older tool call groups go, and nothing takes their place."""

    name = "SelectiveToolCallCompactionStrategy"
    stage = "tool_call_compaction"

    def _treat(self, messages: MessageList, old: list[MarkedGroup], words: str) -> Changed:
        for group in old:
            exclude(messages, group, self.stage)
        return Changed(self.stage, f"{words}. {groups_words(len(old))} left the request.")


class ToolResult(_ToolGroups):
    """Older tool call groups are collapsed: a line of their results stands before each."""

    name = "ToolResultCompactionStrategy"
    stage = "tool_result_compaction"

    def _treat(self, messages: MessageList, old: list[MarkedGroup], words: str) -> Changed:
        added: list[tuple[int, Marked]] = []
        generated: list[Generated] = []
        for group in old:
            replaced = tuple(each.message for each in group.members if not each.excluded)
            summary = Marked(
                written(collapsed(replaced), id=f"tool_summary_{group.id}"),
                summary_of_messages=tuple(each.id for each in group.members),
                summary_of_groups=(group.id,),
            )
            for each in group.members:
                each.summarized_by = summary.id
            exclude(messages, group, self.stage)
            added.append((group.first, summary))
            generated.append(Generated(summary.message, replaced))
        messages.insert(added)
        return Changed(
            self.stage, f"{words}. {groups_words(len(old))} are collapsed.", tuple(generated)
        )


def newest(messages: MessageList) -> set[MarkedGroup]:
    """The group that keeps a request from being empty: the newest included one outside system, or
    of any kind where there is no other."""
    included = messages.included_groups()
    others = [group for group in included if not group.system]
    return set((others or included)[-1:])


def exclude(messages: MessageList, group: MarkedGroup, reason: str) -> bool:
    """Exclude all messages of a group; whether that changed anything but reasons."""
    changes = [messages.exclude(each, reason) for each in group.members]
    return any(changes)


def groups_words(count: int) -> str:
    """A number of groups in words."""
    return counted(count, "group")


def require(holds: bool, words: str) -> None:
    """Refuse arguments that cannot be, as a ValueError."""
    if not holds:
        raise ValueError(words)
