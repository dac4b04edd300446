"""The .NET design's message index: the groups with their exclusion marks and running figures.

The index lives over many passes: `update` takes in a longer message list and leaves old groups and
their marks alone. Every figure that a trigger asks for is kept up to date, so it costs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .dotnet_groups import CountText, GroupKind, MessageGroup, divide, group
from .messages import ChatMessage


class Checkpoint:
    """A state of an index to return to."""

    __slots__ = ("groups", "last", "marks", "turn")

    def __init__(self, index: MessageIndex) -> None:
        self.groups = list(index.groups)
        self.marks = [(each.excluded, each.reason) for each in index.groups]
        self.turn, self.last = index.turn, index.last


class MessageIndex:
    """Groups in their order. The `included_*` figures leave excluded groups out; `turns` counts
    the distinct turns above 0, `raw_messages` all messages outside Summary groups, excluded ones
    too. Tokens are UTF-8 bytes // 4 of a group, unless `count` counts its texts."""

    def __init__(
        self,
        groups: Iterable[MessageGroup] = (),
        *,
        turn: int = 0,
        last: ChatMessage | None = None,
        count: CountText | None = None,
    ) -> None:
        self.groups = list(groups)
        self.turn = turn
        self.last = last
        self._count = count
        self._pending: list[tuple[int, MessageGroup]] = []
        self._reckon()

    @classmethod
    def of(cls, messages: Sequence[ChatMessage], count: CountText | None = None) -> MessageIndex:
        """A new index of a message list."""
        groups, turn = divide(messages, count=count)
        return cls(groups, turn=turn, last=messages[-1] if messages else None, count=count)

    # -- figures -------------------------------------------------------------------------------

    @property
    def included_turns(self) -> int:
        """Distinct turns above 0 with an included group."""
        return len(self._turns)

    @property
    def turns(self) -> int:
        """Distinct turns above 0."""
        return len({each.turn for each in self.groups if each.turn})

    @property
    def raw_messages(self) -> int:
        """Messages of all groups that are no Summary."""
        return sum(len(g.messages) for g in self.groups if g.kind is not GroupKind.SUMMARY)

    @property
    def included(self) -> list[ChatMessage]:
        """The messages that go to the model, in order."""
        return [message for each in self.groups if not each.excluded for message in each.messages]

    def eligible(self) -> list[int]:
        """Positions of the included groups that are not System, the oldest first."""
        return [at for at, g in enumerate(self.groups) if not g.excluded and not g.system]

    # -- changes -------------------------------------------------------------------------------

    def exclude(self, each: MessageGroup, reason: str | None) -> None:
        """Take a group out of what goes to the model."""
        each.excluded, each.reason = True, reason
        self._add(each, -1)

    def restore(self, each: MessageGroup) -> None:
        """Take an exclusion back."""
        each.excluded, each.reason = False, None
        self._add(each, 1)

    def insert(self, at: int, kind: GroupKind, message: ChatMessage, turn: int | None) -> None:
        """A new group before position `at`. It counts at once; `settle` puts it in its place."""
        new = group(kind, (message,), turn, self._count)
        self._add(new, 1)
        self._pending.append((at, new))

    def settle(self) -> None:
        """Put the inserted groups into their places, which all mean the order before."""
        if not self._pending:
            return
        merged: list[MessageGroup] = []
        done = 0
        for at, new in sorted(self._pending, key=lambda pair: pair[0]):
            merged += self.groups[done:at]
            merged.append(new)
            done = at
        self.groups = merged + self.groups[done:]
        self._pending.clear()

    def rebuild(self, messages: Sequence[ChatMessage]) -> None:
        """Begin anew from a message list: groups, marks and turns before are gone."""
        self.groups, self.turn = divide(messages, count=self._count)
        self.last = messages[-1] if messages else None
        self._reckon()

    def update(self, messages: Sequence[ChatMessage]) -> None:
        """Take in the present message list, as far as it is new.

        Nothing is done when its last message is the last one that was taken in and it is not
        shorter than what was. Otherwise the last one that was taken in is looked for from the end:
        what follows it is appended; where it is missing, or stands earlier than it should (the
        front was cut off), the index is rebuilt.
        """
        if not messages:
            self.rebuild(())
            return
        raw = self.raw_messages
        if self.last is not None and len(messages) >= raw and same(messages[-1], self.last):
            return
        found = self._found(messages)
        if found < 0 or found + 1 < raw:
            self.rebuild(messages)
            return
        new, self.turn = divide(messages[found + 1 :], self.turn, self._count)
        self.groups += new
        self.last = messages[-1]
        for each in new:
            self._add(each, 1)

    def checkpoint(self) -> Checkpoint:
        """Keep the present state."""
        return Checkpoint(self)

    def return_to(self, checkpoint: Checkpoint) -> None:
        """Undo everything since a checkpoint."""
        self.groups = list(checkpoint.groups)
        for each, (excluded, reason) in zip(self.groups, checkpoint.marks, strict=True):
            each.excluded, each.reason = excluded, reason
        self.turn, self.last = checkpoint.turn, checkpoint.last
        self._pending.clear()
        self._reckon()

    # -- within --------------------------------------------------------------------------------

    def _found(self, messages: Sequence[ChatMessage]) -> int:
        if self.last is not None:
            for at in range(len(messages) - 1, -1, -1):
                if same(messages[at], self.last):
                    return at
        return -1

    def _reckon(self) -> None:
        self.included_groups = 0
        self.included_others = 0
        self.included_messages = 0
        self.included_tokens = 0
        self.included_tool_calls = 0
        self._turns: Counter[int] = Counter()
        for each in self.groups:
            if not each.excluded:
                self._add(each, 1)

    def _add(self, each: MessageGroup, sign: int) -> None:
        self.included_groups += sign
        self.included_others += sign * (not each.system)
        self.included_messages += sign * len(each.messages)
        self.included_tokens += sign * each.tokens
        self.included_tool_calls += sign * (each.kind is GroupKind.TOOL_CALL)
        if each.turn:
            self._turns[each.turn] += sign
            if not self._turns[each.turn]:
                del self._turns[each.turn]


def same(one: ChatMessage, other: ChatMessage) -> bool:
    """Whether two messages are the same to the index: by their ids where both have one, else by
    role, author and contents."""
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return (one.role, one.author, one.contents) == (other.role, other.author, other.contents)
