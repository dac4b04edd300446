"""The session formats that can be opened: one line here and one module for each.

A module has `recognise(sample) -> str`, which says how a file is known to be of its format (empty:
it is not), and `SOURCE`, the class that reads it (see base.Source). A module whose files hold
several sessions has `choices(path)` too. Modules are imported when they are asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Protocol, Self, cast

import msgspec

from .base import Source
from .sample import Sample

_PACKAGE = __name__.rpartition(".")[0]


class Format(StrEnum):
    """The formats, in the order in which they are asked; a module's name is relative to here."""

    module: str

    CODEX = ("codex rollout", ".codex")
    CLAUDE_CODE = ("Claude Code transcript", ".claude_code")
    THRESHER = ("thresher journal", "..sessions.source")
    OPENCODE = ("opencode session", ".opencode")
    PI = ("pi session", ".pi")
    MAF = ("Agent Framework session", ".maf")
    OTLP = ("OpenTelemetry export", ".otlp")
    CHAT = ("request log", ".chat")
    UNKNOWN = ("unknown", "")

    def __new__(cls, name: str, module: str) -> Self:
        """A name for people, with the module beside it."""
        made = str.__new__(cls, name)
        made._value_ = name
        made.module = module
        return made


class Choice(msgspec.Struct, frozen=True):
    """One of several sessions in a file. `path` opens it. Text is foreign; `last` is in seconds
    (UTC)."""

    id: str
    path: Path
    title: str = ""
    last: float = 0.0


class _Module(Protocol):
    SOURCE: type[Source]

    def recognise(self, sample: Sample) -> str: ...

    def choices(self, path: Path) -> Sequence[Choice]: ...


def formats() -> list[Format]:
    """Every format that can be opened."""
    return [each for each in Format if each.module]


def recognise(format: Format, sample: Sample) -> str:
    """How the sample is known to be of this format, in words; empty when it is not."""
    return _module(format).recognise(sample)


def source_class(format: Format) -> type[Source]:
    """The class that reads this format. UNKNOWN is a ValueError."""
    return _module(format).SOURCE


def holds_several(format: Format) -> bool:
    """A file of this format can hold several sessions."""
    return bool(format.module) and hasattr(_module(format), "choices")


def choices_in(format: Format, path: Path) -> Sequence[Choice]:
    """The sessions in a file that can hold several, newest first; empty for all others."""
    return _module(format).choices(path) if holds_several(format) else ()


def _module(format: Format) -> _Module:
    if not format.module:
        raise ValueError("an unknown format has no module")
    return cast(_Module, import_module(format.module, _PACKAGE))
