"""The .NET design's conditions: when a strategy begins (trigger) and when it has enough (target).

As plain data a condition is a word or a table of one key:

    "always"  "never"
    {tokens_exceed = n}  {tokens_below = n}  {messages_exceed = n}  {turns_exceed = n}
    {groups_exceed = n}  {has_tool_calls = true}
    {all = [...]}  {any = [...]}
    {tokens_exceed_share = x}   tokens above int(x * input budget); ours, to fit any window
    {tokens_below_share = x}    tokens below it; ours too
    {stop_after = n}            true from the n-th time that it is asked in one pass

All are strict and look at what is included. `groups_exceed` counts System groups too; `all` of
nothing is true, `any` of nothing is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from .dotnet_index import MessageIndex


class Condition(Protocol):
    """A question to an index. `checks` is how often it was asked in this pass, this time
    included."""

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Whether it holds."""
        ...

    def words(self, index: MessageIndex) -> str:
        """Its arithmetic as it is now."""
        ...


class Always(msgspec.Struct, frozen=True):
    """True."""

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """True."""
        return True

    def words(self, index: MessageIndex) -> str:
        """One word."""
        return "always"


class Never(msgspec.Struct, frozen=True):
    """False; `why` where there is something to say."""

    why: str = "never"

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """False."""
        return False

    def words(self, index: MessageIndex) -> str:
        """Why it never holds."""
        return self.why


class Exceeds(msgspec.Struct, frozen=True):
    """A figure of the index above a limit; `source` says where the limit comes from."""

    figure: str
    limit: int
    source: str = ""

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Strictly above."""
        return _figure(index, self.figure) > self.limit

    def words(self, index: MessageIndex) -> str:
        """The figure against the limit."""
        value = _figure(index, self.figure)
        verb = "exceed" if value > self.limit else "do not exceed"
        return f"{value:,} {_FIGURES[self.figure]} {verb} {_limit(self.limit, self.source)}"


class TokensBelow(msgspec.Struct, frozen=True):
    """Tokens strictly below a limit; `source` says where the limit comes from."""

    limit: int
    source: str = ""

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Strictly below."""
        return index.included_tokens < self.limit

    def words(self, index: MessageIndex) -> str:
        """The figure against the limit."""
        value = index.included_tokens
        verb = "are below" if value < self.limit else "are not below"
        return f"{value:,} {_FIGURES['tokens']} {verb} {_limit(self.limit, self.source)}"


class HasToolCalls(msgspec.Struct, frozen=True):
    """At least one ToolCall group."""

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Whether there is one."""
        return index.included_tool_calls > 0

    def words(self, index: MessageIndex) -> str:
        """How many there are."""
        return f"{index.included_tool_calls:,} tool call groups"


class StopAfter(msgspec.Struct, frozen=True):
    """A target that is reached by counting."""

    count: int

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """From the n-th time on."""
        return checks >= self.count

    def words(self, index: MessageIndex) -> str:
        """The number."""
        return f"after {self.count:,}"


class All(msgspec.Struct, frozen=True):
    """Every one of several; true of none."""

    parts: tuple[Condition, ...]

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Whether none fails."""
        return all(part.met(index, checks) for part in self.parts)

    def words(self, index: MessageIndex) -> str:
        """All of them."""
        return " and ".join(part.words(index) for part in self.parts) or "all of nothing"


class AnyOf(msgspec.Struct, frozen=True):
    """At least one of several; false of none."""

    parts: tuple[Condition, ...]

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Whether one holds."""
        return any(part.met(index, checks) for part in self.parts)

    def words(self, index: MessageIndex) -> str:
        """All of them."""
        return " or ".join(part.words(index) for part in self.parts) or "any of nothing"


class Not(msgspec.Struct, frozen=True):
    """The opposite: the target of a strategy that was given none."""

    part: Condition

    def met(self, index: MessageIndex, checks: int = 1) -> bool:
        """Whether the other one fails."""
        return not self.part.met(index, checks)

    def words(self, index: MessageIndex) -> str:
        """The words of the other one, which carry the arithmetic."""
        return self.part.words(index)


def condition(data: Any, budget: int | None = None) -> Condition:
    """A condition from plain data. `budget` is the input budget in tokens that shares refer to;
    while it is unknown (None) a share never holds, and says so. Raises ValueError."""
    match data:
        case "always":
            return Always()
        case "never":
            return Never()
        case {"all": [*parts], **rest} if not rest:
            return All(tuple(condition(part, budget) for part in parts))
        case {"any": [*parts], **rest} if not rest:
            return AnyOf(tuple(condition(part, budget) for part in parts))
        case {"has_tool_calls": True, **rest} if not rest:
            return HasToolCalls()
        case {"tokens_exceed_share": float() | int() as share, **rest} if not rest:
            return _share("tokens_exceed_share", share, budget)
        case {"tokens_below_share": float() | int() as share, **rest} if not rest:
            return _share("tokens_below_share", share, budget)
        case {"tokens_below": int(limit), **rest} if not rest and not isinstance(limit, bool):
            return TokensBelow(limit)
        case {"stop_after": int(count), **rest} if not rest and count is not True:
            return StopAfter(count)
        case dict() if len(data) == 1:
            ((key, limit),) = data.items()
            figure = str(key).removesuffix("_exceed")
            if figure != key and figure in _FIGURES and type(limit) is int:
                return Exceeds(figure, limit)
    raise ValueError(f"{data!r} is no condition: it is a word or a table of one known key")


def token_limits(found: Condition) -> Iterator[Exceeds]:
    """The token limits inside a condition, for the meter."""
    match found:
        case Exceeds(figure="tokens"):
            yield found
        case All(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from token_limits(part)
        case Not(part=part):
            yield from token_limits(part)
        case _:
            pass


_FIGURES = {
    "tokens": "tokens (bytes // 4 of the messages)",
    "messages": "messages",
    "turns": "turns",
    "groups": "groups",
}


def _figure(index: MessageIndex, figure: str) -> int:
    match figure:
        case "tokens":
            return index.included_tokens
        case "messages":
            return index.included_messages
        case "turns":
            return index.included_turns
        case _:
            return index.included_groups


def _limit(limit: int, source: str) -> str:
    return f"{limit:,} = {source}" if source else f"{limit:,}"


def _share(key: str, share: float, budget: int | None) -> Condition:
    if isinstance(share, bool) or not 0 < share <= 1:
        raise ValueError(f"{key} must be above 0 and at most 1, not {share!r}")
    if budget is None:
        return Never(f"{share:.0%} of the input budget is unknown, since the window is")
    tokens, source = int(budget * share), f"{share:.0%} of the input budget {budget:,}"
    if key == "tokens_below_share":
        return TokensBelow(tokens, source)
    return Exceeds("tokens", tokens, source)
