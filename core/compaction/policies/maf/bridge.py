"""From a context of items to the framework's messages, and from what a strategy did back to edits.

What a model said in one go is one assistant message (reasoning, text, calls); the outputs that
follow are one tool message, as the framework's own function loop writes them. An earlier summary is
an assistant's message with the mark of a summary. Instructions and tool schemas are not part of the
context, so they are not counted, just as in the framework.

A strategy's exclusions become removals, and what it wrote becomes an inserted summary that stands
for what it replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....context import Context, Entry, EntryId, Inserted, Segment
from ....items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
    Part,
    Reasoning,
    Role,
    TextPart,
    system,
    user,
)
from ...policy import (
    Answer,
    Applied,
    Edit,
    Follow,
    Moment,
    Plan,
    Situation,
    Skip,
    SkipKind,
    Start,
    Summarise,
    Trigger,
)
from .messages import Call, ChatMessage, Content, Hosted, Media, Result, Text, Thought
from .steps import Changed, Log, Request, Run, Untouched

PREFIXES = ("[Summary]\n", "[Tool Calls]\n", "[Tool results: ")
"""What the framework writes in front of the texts that it puts in place of others."""


class Bridge:
    """The messages of one context, and which entries each of them was made of."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.messages: list[ChatMessage] = []
        self._entries: dict[int, tuple[EntryId, ...]] = {}
        # Messages are found by identity, so each must live as long as the bridge.
        self._alive: list[ChatMessage] = []
        for run in _runs(context.entries):
            message = _message(run)
            self.messages.append(message)
            self._take_in(message, tuple(entry.id for entry in run))

    def entries(self, message: ChatMessage) -> tuple[EntryId, ...]:
        """The entries that a message was made of; none for one that is not in the context."""
        return self._entries.get(id(message), ())

    def items(self, messages: Iterable[ChatMessage]) -> tuple[Item, ...]:
        """The items behind messages; of a message that a strategy wrote for a request, its text."""
        found: list[Item] = []
        for message in messages:
            ids = self.entries(message)
            if ids:
                found += [entry.item for id in ids if (entry := self.context.get(id))]
            else:
                found.append(
                    system(message.text) if message.role == "system" else user(message.text)
                )
        return tuple(found)

    def edit(
        self,
        changed: Changed,
        included: Sequence[ChatMessage],
        *,
        follow: Follow = Follow.GO_ON,
        memory: Mapping[str, Any] | None = None,
    ) -> Edit:
        """The edit that makes the context what a strategy left included."""
        stands_for = {id(new.message): new.replaces for new in changed.generated}
        segments: list[Segment] = []
        places: list[int] = []
        for message in included:
            ids = self.entries(message)
            if ids:
                places += [at for each in ids if (at := self.context.place(each)) is not None]
                continue
            segments += self.context.keep(places)
            places = []
            replaced = (
                each for old in stands_for.get(id(message), ()) for each in self.entries(old)
            )
            segments.append(Inserted(_summary(message.text), self.context.span(replaced)))
        segments += self.context.keep(places)
        loses = self._loses_newest_user(included)
        reason = (
            f"{changed.reason} The newest user message is among what went."
            if loses
            else (changed.reason)
        )
        return Edit(
            stage=changed.stage,
            reason=reason,
            segments=tuple(segments),
            follow=follow,
            summary=changed.summary,
            memory=memory or {},
            drops_newest_user=loses,
        )

    def applied(self, after: Context, included: Sequence[ChatMessage]) -> bool:
        """Take in the context after an edit; False when it is not the one that the edit described,
        since somebody changed it on the way."""
        at = 0
        new: list[tuple[ChatMessage, tuple[EntryId, ...]]] = []
        for message in included:
            ids = self.entries(message)
            found = tuple(entry.id for entry in after.entries[at : at + max(1, len(ids))])
            if (ids and found != ids) or not found:
                return False
            if not ids:
                new.append((message, found))
            at += len(found)
        if at != len(after):
            return False
        self.context, self.messages = after, list(included)
        for message, ids in new:
            self._take_in(message, ids)
        return True

    def _take_in(self, message: ChatMessage, ids: tuple[EntryId, ...]) -> None:
        self._alive.append(message)
        self._entries[id(message)] = ids

    def _loses_newest_user(self, included: Sequence[ChatMessage]) -> bool:
        for message in reversed(self.messages):
            if message.role == "user" and self._typed(message):
                return all(message is not each for each in reversed(included))
        return False

    def _typed(self, message: ChatMessage) -> bool:
        return any(
            isinstance(item, Message) and not item.synthetic for item in self.items((message,))
        )


def drive(
    run: Run,
    bridge: Bridge,
    situation: Situation,
    included: Callable[[], Sequence[ChatMessage]],
    memory: Callable[[], Mapping[str, Any]] = dict,
) -> Plan:
    """Carry a strategy's run out as a policy's plan: one edit for each strategy that changed
    anything. `included` gives the messages that go to the model as they are then, `memory` what to
    keep with the edit."""
    follow = Follow.RETRY if situation.moment is Moment.OVERFLOW else Follow.GO_ON
    idle: list[Untouched] = []
    told = False
    answer: Answer = None
    while True:
        try:
            step = run.send(answer)
        except StopIteration:
            break
        answer = None
        match step:
            case Start():
                yield step
            case Request():
                answer = yield Summarise(
                    items=bridge.items(step.messages),
                    source=bridge.items(step.about),
                    focus=situation.focus,
                )
            case Changed():
                told, now = True, included()
                answer = yield bridge.edit(step, now, follow=follow, memory=memory())
                if isinstance(answer, Applied) and not bridge.applied(answer.context, now):
                    # Somebody changed the edit on the way: what the strategies know is not so.
                    return
            case Log(code="protected-overflow"):
                yield Skip(SkipKind.NO_OP, f"{step.words}.", step.stage)
            case Log(level="warning"):
                told = True
                yield Skip(SkipKind.FAILED, f"{step.words}.", step.stage, step.failure)
            case Untouched():
                idle.append(step)
            case Log():
                # The third failure in a row: the engine's own breaker says that.
                pass
    if not told:
        yield _nothing(idle, situation.trigger is Trigger.MANUAL)


def _nothing(idle: Sequence[Untouched], by_hand: bool) -> Skip:
    due = [each for each in idle if each.due]
    words = "; ".join(f"{each.stage}: {each.reason}" for each in due or idle) or "no strategy"
    kind = SkipKind.NO_OP if due or by_hand else SkipKind.NOT_DUE
    return Skip(kind, f"{words}.", due[0].stage if due else "")


def _summary(text: str) -> CompactionSummary:
    prefix = next((each for each in PREFIXES if text.startswith(each)), "")
    return CompactionSummary(text.removeprefix(prefix), prefix, role=Role.ASSISTANT)


# From items to messages ---------------------------------------------------------------------------


def _runs(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    run: list[Entry] = []
    for entry in entries:
        if run and not _joins(run[-1].item, entry.item):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def _joins(last: Item, item: Item) -> bool:
    match item:
        case FunctionCallOutput():
            return isinstance(last, FunctionCallOutput)
        case FunctionCall():
            return _by_model(last)
        case Message(role=Role.ASSISTANT) | Reasoning() | OtherItem():
            return isinstance(last, Reasoning | OtherItem)
        case _:
            return False


def _by_model(item: Item) -> bool:
    return isinstance(item, FunctionCall | Reasoning | OtherItem) or (
        isinstance(item, Message) and item.role is Role.ASSISTANT
    )


def _message(run: Sequence[Entry]) -> ChatMessage:
    first = run[0]
    return ChatMessage(
        _role(first.item),
        tuple([content for entry in run for content in _contents(entry.item)]),
        id=f"msg_{first.id.bare}",
        summary=isinstance(first.item, CompactionSummary),
    )


def _role(item: Item) -> str:
    match item:
        case FunctionCallOutput():
            return "tool"
        case Message(role=Role.SYSTEM | Role.DEVELOPER):
            return "system"
        case Message(role=role):
            return role.value
        case _:
            return "assistant"


def _contents(item: Item) -> Sequence[Content]:
    match item:
        case Message(content=content):
            return (Text(content),) if isinstance(content, str) else [_part(p) for p in content]
        case FunctionCall():
            return (Call(item.call_id, item.name, item.arguments),)
        case FunctionCallOutput():
            return (Result(item.call_id, item.output),)
        case Reasoning():
            return (Thought(item.summary or None, item.encrypted),)
        case CompactionSummary():
            return (Text(item.text),)
        case OtherItem():
            return (Hosted(item.type, item.text),)


def _part(part: Part) -> Content:
    match part:
        case TextPart(text=text):
            return Text(text)
        case ImagePart(url=url):
            head = url.partition(",")[0]
            kind = head.removeprefix("data:").partition(";")[0] if head.startswith("data:") else ""
            return Media(url, kind or "image/*")
        case _:
            return Hosted(part.kind)
