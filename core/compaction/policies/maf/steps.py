"""What a strategy yields while it runs, and what it is answered.

A strategy that wants a summary says `Start`, as any policy does, then `Request`; the answer is a
`Summary` or a `Failure`. What it did to its messages it says with `Changed`; answered by `Refused`,
it takes that back. The rest is for the record and needs no answer.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

import msgspec

from ...policy import Answer, Failure, Start, Summary
from .messages import ChatMessage


class Request(msgspec.Struct, frozen=True):
    """A summary is wanted: the messages of the request, and the ones that it is about."""

    messages: tuple[ChatMessage, ...]
    about: tuple[ChatMessage, ...]


class Generated(msgspec.Struct, frozen=True):
    """A message that a strategy wrote, and the messages it stands for."""

    message: ChatMessage
    replaces: tuple[ChatMessage, ...]


class Changed(msgspec.Struct, frozen=True):
    """One strategy has done its work: the messages are in their new state."""

    stage: str
    reason: str
    generated: tuple[Generated, ...] = ()
    summary: Summary | None = None


class Untouched(msgspec.Struct, frozen=True):
    """One strategy did nothing, and why. `due` says that its condition was met all the same."""

    stage: str
    reason: str
    due: bool = False


class Log(msgspec.Struct, frozen=True):
    """A line that the framework writes to its log: level, a code of ours, the words.

    Codes: summary-failed, summary-blank, summary-nothing-fits, summary-failing-repeatedly,
    protected-overflow.
    """

    level: str
    code: str
    words: str
    stage: str = ""
    fields: dict[str, Any] = {}
    failure: Failure | None = None


RunStep: TypeAlias = Start | Request | Changed | Untouched | Log
Run: TypeAlias = Generator[RunStep, Answer, bool]
"""Ends with whether anything was changed."""
Core: TypeAlias = Generator[RunStep, Answer, Changed | None]
"""The inside of one strategy: ends with what it did, if it did anything."""
