"""Messages as the Microsoft Agent Framework has them: a role, and contents of several kinds.

There can be a hundred thousand, none of them can be part of a cycle: the garbage collector is told
to leave them alone, which halves the time of a pass over a long history.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Text(msgspec.Struct, frozen=True, gc=False):
    """A piece of text; it may be empty, which is not the same as no content."""

    text: str


class Thought(msgspec.Struct, frozen=True, gc=False):
    """Reasoning: readable text (None: there is none), and what the provider sealed."""

    text: str | None = None
    protected: str = ""


class Call(msgspec.Struct, frozen=True, gc=False):
    """A function call. `arguments` is an object, or the JSON text that a model wrote."""

    id: str
    name: str
    arguments: str | dict[str, Any]


class Result(msgspec.Struct, frozen=True, gc=False):
    """What a function gave back, as text."""

    call_id: str
    text: str


class Media(msgspec.Struct, frozen=True, gc=False):
    """A picture or file: a data: address (the bytes are inside) or one that leads elsewhere."""

    uri: str
    media_type: str = ""
    name: str = ""


class Hosted(msgspec.Struct, frozen=True, gc=False):
    """A content of a kind that the strategies do not look into."""

    kind: str
    text: str = ""


Content: TypeAlias = Text | Thought | Call | Result | Media | Hosted


class ChatMessage(msgspec.Struct, frozen=True, gc=False):
    """One message. `role` is system, user, assistant, tool or a provider's own word; `summary` is
    the mark that a compaction wrote it (`_is_summary` in .NET)."""

    role: str
    contents: tuple[Content, ...] = ()
    id: str | None = None
    author: str = ""
    summary: bool = False

    @property
    def text(self) -> str:
        """The text contents, one after the other."""
        return "".join(content.text for content in self.contents if isinstance(content, Text))

    @property
    def calls(self) -> tuple[Call, ...]:
        """The function calls in it."""
        return tuple(content for content in self.contents if isinstance(content, Call))

    @property
    def calling(self) -> bool:
        """An assistant's message with a function call."""
        return self.role == "assistant" and any(isinstance(c, Call) for c in self.contents)

    @property
    def only_thought(self) -> bool:
        """An assistant's message without anything but reasoning; also one without any content."""
        return self.role == "assistant" and all(isinstance(c, Thought) for c in self.contents)


def written(text: str, *, id: str | None = None) -> ChatMessage:
    """A message that a strategy puts in place of others."""
    return ChatMessage("assistant", (Text(text),), id=id, summary=True)
