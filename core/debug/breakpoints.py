"""Breakpoints: where a session stops, in a form that a flag, a key and the journal share.

compaction      before any compaction
policy:NAME     before a compaction by this policy
stage:NAME      before this stage of a policy ("prune", "compaction")
tokens:N        when the context passes N tokens
percent:P       when the context passes P % of the window
output:N        when a tool output that entered is larger than N tokens
overflow        when the provider refused the context as too long
failure         when a compaction or the model's request failed
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from ..errors import ThresherError
from ..tokens import Tokens


class BreakKind(StrEnum):
    """What a breakpoint looks at."""

    COMPACTION = "compaction"
    POLICY = "policy"
    STAGE = "stage"
    TOKENS = "tokens"
    PERCENT = "percent"
    OUTPUT = "output"
    OVERFLOW = "overflow"
    FAILURE = "failure"


_NAMED = (BreakKind.POLICY, BreakKind.STAGE)
_NUMBERED = (BreakKind.TOKENS, BreakKind.PERCENT, BreakKind.OUTPUT)
FORMS = "compaction, stage:NAME, policy:NAME, tokens:N, percent:P, output:N, overflow, failure"
"""Every text form, for a message or a help line."""


class Breakpoint(msgspec.Struct, frozen=True):
    """One breakpoint. `name` is that of a policy or stage; `number` is in tokens, or in percent of
    the window."""

    kind: BreakKind
    name: str = ""
    number: int = 0

    def __str__(self) -> str:
        """The text form, which `parse` reads back."""
        if self.kind in _NAMED:
            return f"{self.kind}:{self.name}"
        return f"{self.kind}:{self.number}" if self.kind in _NUMBERED else str(self.kind)

    def words(self) -> str:
        """What it says to a reader."""
        match self.kind:
            case BreakKind.COMPACTION:
                return "before any compaction"
            case BreakKind.POLICY:
                return f"before a compaction by {self.name}"
            case BreakKind.STAGE:
                return f"before the stage {self.name}"
            case BreakKind.TOKENS:
                return f"when the context passes {self.number:,} tokens"
            case BreakKind.PERCENT:
                return f"when the context passes {self.number} % of the window"
            case BreakKind.OUTPUT:
                return f"when a tool output is larger than {self.number:,} tokens"
            case BreakKind.OVERFLOW:
                return "on overflow"
            case BreakKind.FAILURE:
                return "on failure"


def parse(text: str) -> Breakpoint:
    """Read a text form. Raises ThresherError that says what is wrong and which forms there are."""
    word, colon, value = text.strip().partition(":")
    value = value.strip()
    try:
        kind = BreakKind(word.strip().lower())
    except ValueError:
        raise _bad(text, "is no breakpoint") from None
    if kind in _NAMED:
        if not value:
            raise _bad(text, f"names no {kind}")
        return Breakpoint(kind, name=value)
    if kind in _NUMBERED:
        digits = value.replace(",", "").replace("_", "")
        plain = digits.isascii() and digits.isdigit() and len(digits) < 16
        number = int(digits) if plain else 0
        if number < 1:
            raise _bad(text, "needs a whole number above 0")
        if kind is BreakKind.PERCENT and number > 100:
            raise _bad(text, "is more than the whole window")
        return Breakpoint(kind, number=number)
    if colon:
        raise _bad(text, f"takes no value: {kind} alone")
    return Breakpoint(kind)


def known(texts: Iterable[str]) -> Iterator[Breakpoint]:
    """Those of a record's breakpoints that this version understands."""
    for text in texts:
        try:
            yield parse(text)
        except ThresherError:
            continue


def before_compaction(
    breakpoints: Iterable[Breakpoint], policy: str, stage: str
) -> Breakpoint | None:
    """The first one that stops before this compaction."""
    for each in breakpoints:
        match each.kind:
            case BreakKind.COMPACTION:
                return each
            case BreakKind.POLICY if each.name == policy:
                return each
            case BreakKind.STAGE if each.name == stage:
                return each
            case _:
                continue
    return None


def passed(
    breakpoints: Iterable[Breakpoint], size: Tokens, window: int | None
) -> tuple[Breakpoint, ...]:
    """All size breakpoints that a context of this size is past. A share of an unknown window is
    never passed."""
    found: list[Breakpoint] = []
    for each in breakpoints:
        if (each.kind is BreakKind.TOKENS and size.value >= each.number) or (
            each.kind is BreakKind.PERCENT
            and window is not None
            and size.value * 100 >= each.number * window
        ):
            found.append(each)
    return tuple(found)


def larger_than(breakpoints: Iterable[Breakpoint], tokens: int) -> Breakpoint | None:
    """The one with the lowest bound that an output of this many tokens is above."""
    bounds = [e for e in breakpoints if e.kind is BreakKind.OUTPUT and tokens > e.number]
    return min(bounds, key=lambda each: each.number, default=None)


def of_kind(breakpoints: Iterable[Breakpoint], kind: BreakKind) -> Breakpoint | None:
    """The first one of a kind."""
    return next((each for each in breakpoints if each.kind is kind), None)


def _bad(text: str, what: str) -> ThresherError:
    return ThresherError("No such breakpoint", f"{text.strip()!r} {what}. There are: {FORMS}.")
