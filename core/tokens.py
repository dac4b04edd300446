"""What a token figure is: a value, how it was obtained, and what it covers.

The three ways of obtaining a figure are always told apart: *reported* by the provider, *counted*
with the model's own tokenizer, *estimated*. So is what it covers: the messages alone, or the whole
request with its instructions and tool schemas. Figures that differ in either are never added or
subtracted: many false compaction triggers in the field come from exactly that (openclaw#117314,
cline#9748).

The estimating counter and its correction are here; counters that need a vocabulary file are in
`tokenizer.py`, the running sum over a context is in `ledger.py`.
"""

from __future__ import annotations

from enum import StrEnum
from statistics import median
from typing import Protocol

import msgspec

from .estimate import estimate


class Basis(StrEnum):
    """How a figure was obtained, from the surest to the least sure."""

    REPORTED = "reported"
    COUNTED = "counted"
    ESTIMATED = "estimated"


class Scope(StrEnum):
    """What a figure covers: the messages alone, or everything the request carries."""

    MESSAGES = "messages"
    REQUEST = "request"


class TokenMismatch(TypeError):
    """Two figures of different basis or scope were about to be added or subtracted."""


class Tokens(msgspec.Struct, frozen=True):
    """A token figure. `value` is in tokens; a sum may be negative, a size never is."""

    value: int
    basis: Basis
    scope: Scope

    def comparable(self, other: Tokens) -> bool:
        """Whether a difference between the two figures means anything."""
        return self.basis is other.basis and self.scope is other.scope

    def __add__(self, other: Tokens) -> Tokens:
        self._require_comparable(other, "add")
        return Tokens(self.value + other.value, self.basis, self.scope)

    def __sub__(self, other: Tokens) -> int:
        """The difference in tokens. Raises `TokenMismatch` unless `comparable`."""
        self._require_comparable(other, "subtract")
        return self.value - other.value

    def _require_comparable(self, other: Tokens, verb: str) -> None:
        if not self.comparable(other):
            raise TokenMismatch(
                f"cannot {verb} {self.basis} tokens of the {self.scope} "
                f"and {other.basis} tokens of the {other.scope}"
            )


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one provider response said it cost, normalised. All figures are tokens.

    `cached_tokens` and `cache_write_tokens` lie inside `input_tokens`, `reasoning_tokens` inside
    `output_tokens` (the OpenAI reading; gateways for other dialects convert). None means the
    provider did not say, which is not zero.
    """

    input_tokens: int
    output_tokens: int = 0
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None

    @property
    def total(self) -> int:
        """The provider's own total, or input + output when it gave none."""
        if self.total_tokens is None:
            return self.input_tokens + self.output_tokens
        return self.total_tokens

    @property
    def input(self) -> Tokens:
        """The size of the request this usage belongs to."""
        return Tokens(self.input_tokens, Basis.REPORTED, Scope.REQUEST)


class Counter(Protocol):
    """Turns text into a number of tokens."""

    @property
    def basis(self) -> Basis:
        """What the numbers are worth."""
        ...

    def count_text(self, text: str) -> int:
        """Tokens of `text`, framing not included."""
        ...


class CharClassCounter:
    """The estimator as a counter: no vocabulary, no dependency, deterministic.

    The rule is `estimate.estimate`; `ratio` scales its result. A session's own ratio comes from
    `Correction`.
    """

    def __init__(self, ratio: float = 1.0) -> None:
        if not ratio > 0:
            raise ValueError(f"a ratio must be above zero, not {ratio}")
        self.ratio = ratio

    @property
    def basis(self) -> Basis:
        """Always ESTIMATED, corrected or not."""
        return Basis.ESTIMATED

    def count_text(self, text: str) -> int:
        """Estimated tokens of `text`; 0 only for the empty text."""
        if not text:
            return 0
        return max(1, round(self.ratio * estimate(text)))

    def corrected(self, ratio: float) -> CharClassCounter:
        """The same estimator scaled by `ratio` (replacing, not multiplying, an earlier one)."""
        return CharClassCounter(ratio)


MIN_SAMPLES = 3
MIN_TOKENS = 200
WINDOW = 15
FLOOR, CEILING = 0.5, 2.0
PLAUSIBLE = (0.33, 3.0)


class Correction(msgspec.Struct, frozen=True):
    """A session's own ratio reported / estimated, as a pure fold over its requests.

    The ratio is the median of the last `WINDOW` accepted pairs, held within `FLOOR`..`CEILING`,
    and 1.0 until there are `MIN_SAMPLES`. A pair whose own ratio lies outside `PLAUSIBLE` is not
    a tokenizer difference but another kind of number (usage summed over several calls,
    openclaw#117314); it is counted in `rejected` and changes nothing. Requests estimated below
    `MIN_TOKENS` say more about fixed overhead than about text and are passed over.
    """

    ratios: tuple[float, ...] = ()
    rejected: int = 0

    def observe(self, reported: Tokens, estimated: Tokens) -> Correction:
        """Take in what the provider reported and what the bare estimator said of one request.

        `estimated` must come from the uncorrected estimator. Raises `TokenMismatch` when the
        figures are not a reported and an estimated one of the same scope.
        """
        if (
            reported.basis is not Basis.REPORTED
            or estimated.basis is not Basis.ESTIMATED
            or reported.scope is not estimated.scope
        ):
            raise TokenMismatch(
                f"a ratio needs reported and estimated tokens of one scope, not {reported.basis} "
                f"of the {reported.scope} and {estimated.basis} of the {estimated.scope}"
            )
        if estimated.value < MIN_TOKENS:
            return self
        ratio = reported.value / estimated.value
        if not PLAUSIBLE[0] <= ratio <= PLAUSIBLE[1]:
            return Correction(self.ratios, self.rejected + 1)
        return Correction((*self.ratios, ratio)[-WINDOW:], self.rejected)

    @property
    def ratio(self) -> float:
        """What to multiply the bare estimate with."""
        if len(self.ratios) < MIN_SAMPLES:
            return 1.0
        return min(CEILING, max(FLOOR, median(self.ratios)))
