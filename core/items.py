"""What a conversation is made of.

Every system that thresher runs or reads is told in these few kinds. They follow the item types of
the OpenAI Responses protocol (message, function_call, function_call_output, reasoning), to which
the teaching harness adds a compaction summary. Items are immutable: what a compaction changes, it
replaces.

Items of a large foreign session may hold only the head of their text: then `body` says how much
there is and where. Whoever needs the whole text asks the session's `Bodies` for it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"


class TextPart(msgspec.Struct, frozen=True, gc=False, tag="text", tag_field="part"):
    """A piece of text inside a message of several parts."""

    text: str


class ImagePart(
    msgspec.Struct, frozen=True, gc=False, tag="image", tag_field="part", omit_defaults=True
):
    """A picture, kept exactly as it came.

    `url` is the data: or https: address as the provider's protocol has it; it is never fetched.
    `detail` is the provider's own word for the resolution.
    """

    url: str
    detail: str = ""


class OpaquePart(msgspec.Struct, frozen=True, gc=False, tag="opaque", tag_field="part"):
    """A part whose kind is not known here: its kind, and its JSON text unchanged."""

    kind: str
    json: str


Part: TypeAlias = TextPart | ImagePart | OpaquePart


class Body(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where the whole of an item is, when only the head of it is held: in a large session file.

    `offset` and `size` are those of its line in bytes, `part` says which item of that line it is.
    `chars` are the characters of the item's whole `text`, `sealed` those of what is no text
    (sealed reasoning, the JSON of a foreign item). `check` tells whether it is still the same.
    `sample` are some pieces of the text behind its head, from which the tokens are estimated.
    """

    offset: int
    size: int
    part: int = 0
    chars: int = 0
    sealed: int = 0
    check: int = 0
    sample: str = ""


class Message(
    msgspec.Struct, frozen=True, gc=False, tag="message", tag_field="kind", omit_defaults=True
):
    """Something said.

    `content` is plain text, or parts in their order when there is more than text.
    `synthetic` marks text that the harness wrote in somebody's name (environment notes, restored
    files, an instruction to go on): it is sent like any other, but nobody typed it.
    `phase` is the provider's own mark ("commentary", "final_answer"), when there is one.
    """

    role: Role
    content: str | tuple[Part, ...]
    synthetic: bool = False
    phase: str = ""
    body: Body | None = None

    @property
    def text(self) -> str:
        """The text parts, joined by newlines; pictures and unknown parts have none."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, TextPart))


class FunctionCall(
    msgspec.Struct, frozen=True, gc=False, tag="function_call", tag_field="kind", omit_defaults=True
):
    """The model asks for a tool: `arguments` is the JSON text exactly as the model wrote it."""

    call_id: str
    name: str
    arguments: str
    namespace: str = ""
    body: Body | None = None

    @property
    def text(self) -> str:
        """What the model wrote, for counting and search."""
        return f"{self.name} {self.arguments}"


class FunctionCallOutput(
    msgspec.Struct,
    frozen=True,
    gc=False,
    tag="function_call_output",
    tag_field="kind",
    omit_defaults=True,
):
    """What a tool gave back for the call with the same `call_id`.

    `saved` is the path of the whole text when `output` is only a capped form of it.
    """

    call_id: str
    output: str
    name: str = ""
    is_error: bool = False
    saved: str = ""
    body: Body | None = None

    @property
    def text(self) -> str:
        """The output as the model sees it."""
        return self.output


class Reasoning(
    msgspec.Struct, frozen=True, gc=False, tag="reasoning", tag_field="kind", omit_defaults=True
):
    """The model's thinking: readable (`summary`), or sealed by the provider (`encrypted`)."""

    summary: str = ""
    encrypted: str = ""
    body: Body | None = None

    @property
    def text(self) -> str:
        """The readable part; sealed reasoning has none."""
        return self.summary


class CompactionSummary(
    msgspec.Struct,
    frozen=True,
    gc=False,
    tag="compaction_summary",
    tag_field="kind",
    omit_defaults=True,
):
    """What stands in the context for everything that was summarised away.

    `content` is the text; the words the model sees around it belong to the policy that made it and
    are kept in `prefix`. A provider-made summary that cannot be read has only `encrypted`. `role`
    is whose words it is sent as: most systems say it in the user's name, some in the model's own.
    """

    content: str = ""
    prefix: str = ""
    encrypted: str = ""
    role: Role = Role.USER
    body: Body | None = None

    @property
    def opaque(self) -> bool:
        """True when the summary is sealed and its contents are unknown."""
        return bool(self.encrypted) and not self.content

    @property
    def text(self) -> str:
        """The summary as the model sees it."""
        return f"{self.prefix}{self.content}"


class OtherItem(
    msgspec.Struct, frozen=True, gc=False, tag="other", tag_field="kind", omit_defaults=True
):
    """An item of a foreign agent that has no form of its own here.

    `type` is the agent's name for it, `json` the whole item unchanged, `text` what can be read.
    """

    type: str
    json: str
    text: str = ""
    body: Body | None = None


Item: TypeAlias = (
    Message | FunctionCall | FunctionCallOutput | Reasoning | CompactionSummary | OtherItem
)


def text_length(item: Item) -> int:
    """The characters of the item's whole text, also when only its head is held."""
    return len(item.text) if item.body is None else item.body.chars


def sealed_length(item: Item) -> int:
    """The characters of what is sealed in an item, also when only its beginning is held."""
    if not isinstance(item, Reasoning | CompactionSummary):
        return 0
    return len(item.encrypted) if item.body is None else item.body.sealed


_LIKE, _LIKE_SEALED = 200, 50
"""Characters of a beginning that are compared: of every cut text so many are held."""

Likeness: TypeAlias = tuple[type, str, str, int, int, str, str]


def likeness(item: Item) -> Likeness:
    """What tells an item from all others, also where only its head is held: what it is, whose, its
    call, its lengths and its beginnings. The same item read from two places is like itself."""
    return (
        type(item),
        getattr(item, "role", ""),
        getattr(item, "call_id", "") or getattr(item, "type", ""),
        text_length(item),
        sealed_length(item),
        item.text[:_LIKE],
        _beside_text(item),
    )


def _beside_text(item: Item) -> str:
    """The beginnings of what an item holds that is no text."""
    if isinstance(item, Reasoning | CompactionSummary):
        return item.encrypted[:_LIKE_SEALED]
    if isinstance(item, OtherItem):
        return item.json[:_LIKE]
    if isinstance(item, Message) and not isinstance(item.content, str):
        return " ".join(
            part.url[:_LIKE_SEALED] if isinstance(part, ImagePart) else part.json[:_LIKE_SEALED]
            for part in item.content
            if not isinstance(part, TextPart)
        )
    return ""


class Kind(StrEnum):
    """What an item is to the reader of a meter: one part of the bar."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    OUTPUT = "output"
    REASONING = "reasoning"
    SUMMARY = "summary"
    OTHER = "other"


def kind_of(item: Item) -> Kind:
    """The meter's part that an item counts towards; developer messages count as system."""
    match item:
        case Message(role=Role.SYSTEM | Role.DEVELOPER):
            return Kind.SYSTEM
        case Message(role=Role.USER):
            return Kind.USER
        case Message():
            return Kind.ASSISTANT
        case FunctionCall():
            return Kind.CALL
        case FunctionCallOutput():
            return Kind.OUTPUT
        case Reasoning():
            return Kind.REASONING
        case CompactionSummary():
            return Kind.SUMMARY
        case _:
            return Kind.OTHER


def system(text: str) -> Message:
    """A system message."""
    return Message(Role.SYSTEM, text)


def user(text: str) -> Message:
    """A message that the user typed."""
    return Message(Role.USER, text)


def assistant(text: str) -> Message:
    """A message of the model."""
    return Message(Role.ASSISTANT, text)
