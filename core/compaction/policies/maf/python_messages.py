"""The Python design's working list: messages with group annotations and exclusion marks.

Groups, walking the messages once:

- system, user: a message each
- an assistant's message with a call: it, the reasoning-only messages before it, those directly
  after it, and then the tool messages directly after those
- a run of tool messages without a call before it: a tool_call group of its own
- anything else: assistant_text

Then results are tied to their calls: a result whose call id has exactly one open call before it
belongs to that call's group, wherever it stands. With two open calls of one id it is not tied.
A group's id is `group_` and the id of its first message; a message without an id gets
`msg_<position>`. Excluded messages stay in the list; what goes to the model are the others.

The whole list is divided each time. The framework redoes only its tail, and so, when late results
of several calls are interleaved, splits an old group once a summary is inserted between them. What
is sent is the same; the reason that a later strategy leaves on the excluded half may not be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from .messages import Call, ChatMessage, Result, Thought
from .python_text import Tokenizer, message_json


class GroupKind(StrEnum):
    """The kinds of groups, by the framework's names."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT_TEXT = "assistant_text"
    TOOL_CALL = "tool_call"


class Marked(msgspec.Struct, eq=False, gc=False):
    """One message of the list. `tokens` is None until it was counted; the ids of what a summary
    stands for, and of the summary that stands for a message, link both."""

    message: ChatMessage
    excluded: bool = False
    reason: str | None = None
    tokens: int | None = None
    summary_of_messages: tuple[str, ...] = ()
    summary_of_groups: tuple[str, ...] = ()
    summarized_by: str | None = None

    @property
    def id(self) -> str:
        """The message's id; every message of a list has one."""
        return self.message.id or ""


class MarkedGroup(msgspec.Struct, eq=False, gc=False):
    """Messages that stay or go together, in order; they need not be neighbours."""

    id: str
    kind: GroupKind
    index: int
    first: int
    has_reasoning: bool
    members: list[Marked] = []

    @property
    def included(self) -> bool:
        """Whether any of its messages goes to the model."""
        return any(not each.excluded for each in self.members)

    @property
    def system(self) -> bool:
        """Whether it is an anchor that most strategies leave alone."""
        return self.kind is GroupKind.SYSTEM


class _Span(msgspec.Struct, gc=False):
    kind: GroupKind
    start: int
    end: int
    has_reasoning: bool
    group_id: str = ""


class Checkpoint:
    """A state of a list to return to."""

    __slots__ = ("entries", "marks")

    def __init__(self, entries: Sequence[Marked]) -> None:
        self.entries = list(entries)
        self.marks = [(e.excluded, e.reason, e.summarized_by) for e in entries]


class MessageList:
    """The messages in order, their groups, and the running figures of what is included."""

    def __init__(self, entries: Iterable[Marked] = ()) -> None:
        self.entries = list(entries)
        self.groups: list[MarkedGroup] = []
        self.included_messages = 0
        self.included_tokens = 0
        self.annotate()

    @classmethod
    def of(cls, messages: Iterable[ChatMessage]) -> MessageList:
        """A list without any marks."""
        return cls(Marked(message) for message in messages)

    @property
    def included(self) -> list[ChatMessage]:
        """The messages that go to the model, in order."""
        return [each.message for each in self.entries if not each.excluded]

    def included_groups(self) -> list[MarkedGroup]:
        """The groups with anything included, by their first messages."""
        return [group for group in self.groups if group.included]

    def annotate(self) -> None:
        """Divide the list into groups anew, and add up the figures.

        A group of several runs is included as a whole as soon as one of its messages is.
        """
        self._name()
        messages = [each.message for each in self.entries]
        groups: dict[str, MarkedGroup] = {}
        scattered: set[str] = set()
        for span in _tied(messages, _spans(messages)):
            group = groups.get(span.group_id)
            if group is None:
                group = MarkedGroup(
                    span.group_id, span.kind, len(groups), span.start, span.has_reasoning
                )
                groups[span.group_id] = group
            else:
                scattered.add(span.group_id)
            group.members += self.entries[span.start : span.end]
        for id in scattered:
            if groups[id].included:
                for each in groups[id].members:
                    each.excluded = False
        self.groups = list(groups.values())
        self._add_up()

    def count(self, tokenizer: Tokenizer) -> None:
        """Count what has no count yet: the first such message and everything after it."""
        at = next((n for n, each in enumerate(self.entries) if each.tokens is None), None)
        if at is None:
            return
        for each in self.entries[at:]:
            each.tokens = tokenizer.count(message_json(each.message))
        self._add_up()

    def exclude(self, each: Marked, reason: str) -> bool:
        """Mark a message; one that is excluded already gets the new reason. Ends with whether
        anything but the reason changed."""
        each.reason = reason
        if each.excluded:
            return False
        each.excluded = True
        self.included_messages -= 1
        self.included_tokens -= each.tokens or 0
        return True

    def insert(self, added: Sequence[tuple[int, Marked]]) -> None:
        """Put messages before positions of the order as it is, and annotate."""
        merged: list[Marked] = []
        done = 0
        for at, new in sorted(added, key=lambda pair: pair[0]):
            merged += self.entries[done:at]
            merged.append(new)
            done = at
        self.entries = merged + self.entries[done:]
        self.annotate()

    def checkpoint(self) -> Checkpoint:
        """Keep the present state."""
        return Checkpoint(self.entries)

    def return_to(self, checkpoint: Checkpoint) -> None:
        """Undo everything since a checkpoint."""
        self.entries = list(checkpoint.entries)
        for each, marks in zip(self.entries, checkpoint.marks, strict=True):
            each.excluded, each.reason, each.summarized_by = marks
        self.annotate()

    def _name(self) -> None:
        if all(each.message.id for each in self.entries):
            return
        known = {each.message.id for each in self.entries if each.message.id}
        spare = len(self.entries)
        for at, each in enumerate(self.entries):
            if each.message.id:
                continue
            id = f"msg_{at}"
            while id in known:
                id = f"msg_{spare}"
                spare += 1
            known.add(id)
            old = each.message
            each.message = ChatMessage(old.role, old.contents, id, old.author, old.summary)

    def _add_up(self) -> None:
        self.included_messages = self.included_tokens = 0
        for each in self.entries:
            if not each.excluded:
                self.included_messages += 1
                self.included_tokens += each.tokens or 0


def _spans(messages: Sequence[ChatMessage]) -> list[_Span]:
    spans: list[_Span] = []
    at = 0
    while at < len(messages):
        message, end = messages[at], at + 1
        kind, reasoning = GroupKind.ASSISTANT_TEXT, _thinks(message)
        if message.role == "system":
            kind = GroupKind.SYSTEM
        elif message.role == "user":
            kind = GroupKind.USER
        elif message.calling:
            kind = GroupKind.TOOL_CALL
            end, more = _after_call(messages, end)
            reasoning = reasoning or more
        elif message.role == "tool":
            kind, reasoning = GroupKind.TOOL_CALL, False
            end = _results(messages, end)
        elif _only_thought(message):
            end = _thoughts(messages, at)
            if end < len(messages) and messages[end].calling:
                kind = GroupKind.TOOL_CALL
                end, _ = _after_call(messages, end + 1)
            else:
                spans += [_Span(kind, n, n + 1, True) for n in range(at, end - 1)]
                at = end - 1
        spans.append(_Span(kind, at, end, reasoning))
        at = end
    for span in spans:
        span.group_id = f"group_{messages[span.start].id}"
    return spans


def _tied(messages: Sequence[ChatMessage], spans: list[_Span]) -> list[_Span]:
    """Give spans that share a call and its result the id of the earliest of them."""
    ties = _ties(messages)
    if not ties:
        return spans
    home = [n for n, span in enumerate(spans) for _ in range(span.start, span.end)]
    parents = list(range(len(spans)))

    def root(n: int) -> int:
        while parents[n] != n:
            parents[n] = parents[parents[n]]
            n = parents[n]
        return n

    for call, result in ties:
        one, other = home[call], home[result]
        if one < other:
            one, other = root(one), root(other)
            parents[max(one, other)] = min(one, other)
    thinking: dict[int, bool] = {}
    for n, span in enumerate(spans):
        thinking[root(n)] = thinking.get(root(n), False) or span.has_reasoning
    for n, span in enumerate(spans):
        span.group_id = spans[root(n)].group_id
        span.has_reasoning = thinking[root(n)]
    return spans


def _ties(messages: Sequence[ChatMessage]) -> list[tuple[int, int]]:
    """Positions (call, result) of the results with exactly one open call before them."""
    opened: dict[str, list[int]] = {}
    ties: list[tuple[int, int]] = []
    for at, message in enumerate(messages):
        if message.role not in ("assistant", "tool"):
            continue
        for content in message.contents:
            match content:
                case Call(id=id) if id and message.role == "assistant":
                    opened.setdefault(id, []).append(at)
                case Result(call_id=id) if id and len(opened.get(id, ())) == 1:
                    ties.append((opened[id].pop(), at))
                case _:
                    pass
    return ties


def _after_call(messages: Sequence[ChatMessage], at: int) -> tuple[int, bool]:
    end = _thoughts(messages, at)
    return _results(messages, end), end > at


def _thoughts(messages: Sequence[ChatMessage], at: int) -> int:
    while at < len(messages) and _only_thought(messages[at]):
        at += 1
    return at


def _results(messages: Sequence[ChatMessage], at: int) -> int:
    while at < len(messages) and messages[at].role == "tool":
        at += 1
    return at


def _only_thought(message: ChatMessage) -> bool:
    """Here, unlike in .NET, a message without any content is no reasoning."""
    return message.only_thought and bool(message.contents)


def _thinks(message: ChatMessage) -> bool:
    return any(isinstance(content, Thought) for content in message.contents)
