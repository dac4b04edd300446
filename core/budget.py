"""How large a request may be, who says so, and what is wrong with it.

Every number is a `Fact`: a value, or None when nobody knows it, with the sentence that names its
source. There is no default window: an assumed one makes a compaction storm (xorbitsai/xagent#2483).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .tokens import Tokens


class Origin(StrEnum):
    """Who says a number, in the order in which they are believed."""

    USER = "user"
    ENDPOINT = "endpoint"
    SESSION = "session"
    TABLE = "table"
    UNKNOWN = "unknown"


class Fact(msgspec.Struct, frozen=True):
    """A number of tokens and its source; None is unknown, and `source` then says why."""

    value: int | None
    source: str
    origin: Origin = Origin.UNKNOWN

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


class Concern(StrEnum):
    """What is wrong with a set of limits."""

    UNKNOWN_WINDOW = "unknown_window"
    NO_ROOM = "no_room"
    FIXED_PART_TOO_LARGE = "fixed_part_too_large"
    THRESHOLD_BELOW_FIXED_PART = "threshold_below_fixed_part"
    THRESHOLD_ABOVE_LIMIT = "threshold_above_limit"
    DOWNSHIFT = "downshift"


class LimitWarning(msgspec.Struct, frozen=True):
    """Something about the limits that the user should know before it bites."""

    concern: Concern
    message: str


class Budget(msgspec.Struct, frozen=True):
    """How large a request may be. Tokens of the whole request, instructions and tools included.

    limit = min(max input, window - max(max output, reserve)), over what is known.
    """

    window: Fact
    max_input: Fact
    max_output: Fact
    reserve: Fact

    @property
    def room_for_output(self) -> int:
        """What is kept free of the window for the answer: max(max output, reserve)."""
        return max(self.max_output.value or 0, self.reserve.value or 0)

    @property
    def limit(self) -> int | None:
        """The largest request, never below 0; None when neither window nor max input is known."""
        bounds = []
        if self.max_input.value is not None:
            bounds.append(self.max_input.value)
        if self.window.value is not None:
            bounds.append(self.window.value - self.room_for_output)
        return max(0, min(bounds)) if bounds else None

    def explain(self) -> str:
        """The arithmetic of `limit` in words, then the source of each number."""
        return f"{self._arithmetic()}. {_sources(self)}."

    def _arithmetic(self) -> str:
        window, max_input = self.window.value, self.max_input.value
        if window is None and max_input is None:
            return "limit unknown, because the window is"
        if window is None:
            return f"limit {self.limit:,} = max input; the window is unknown"
        free = f"window {window:,} - {self._output_words()}"
        if max_input is None:
            return f"limit {self.limit:,} = {free}"
        return f"limit {self.limit:,} = the smaller of max input {max_input:,} and ({free})"

    def _output_words(self) -> str:
        max_output, reserve = self.max_output.value, self.reserve.value
        if max_output is None and reserve is None:
            return "0 for output (neither max output nor reserve is known)"
        if max_output is None:
            return f"reserve {reserve:,}"
        if reserve is None:
            return f"max output {max_output:,}"
        return f"the larger of max output {max_output:,} and reserve {reserve:,}"

    def clamp_output(self, wanted: int | None) -> int | None:
        """The output size to ask for: `wanted`, but never above the model's max output.

        None asks for nothing and leaves it to the provider (gemini-cli#7784).
        """
        if wanted is None or self.max_output.value is None:
            return wanted
        return min(wanted, self.max_output.value)

    def warnings(
        self, *, threshold: int | None = None, fixed: Tokens | None = None
    ) -> tuple[LimitWarning, ...]:
        """What is wrong with these limits, the worst first.

        `threshold` is where the policy compacts; `fixed` is the part of a request that no
        compaction can remove (instructions and tool schemas).
        """
        return tuple(_warnings(self, threshold, fixed))


def downshift(before: Budget, after: Budget, used: Tokens) -> LimitWarning | None:
    """The warning when a context of `used` tokens no longer fits after a change of model.

    The provider would refuse the next request (BerriAI/litellm#31557).
    """
    limit = after.limit
    if limit is None or used.value <= limit:
        return None
    old = "an unknown limit" if before.limit is None else f"a limit of {before.limit:,}"
    return LimitWarning(
        Concern.DOWNSHIFT,
        f"The context holds {used.value:,} tokens ({used.basis}); the model changed from {old} to "
        f"{limit:,}. Compact before the next request.",
    )


def _sources(budget: Budget) -> str:
    """Each source once, with the numbers it gave or left unknown."""
    facts = {
        "window": budget.window,
        "max input": budget.max_input,
        "max output": budget.max_output,
        "reserve": budget.reserve,
    }
    by_source: dict[str, list[str]] = {}
    for name, fact in facts.items():
        told = name if fact.known else f"{name} unknown"
        by_source.setdefault(fact.source, []).append(told)
    return "; ".join(f"{', '.join(names)}: {source}" for source, names in by_source.items())


def _warnings(budget: Budget, threshold: int | None, fixed: Tokens | None) -> list[LimitWarning]:
    limit = budget.limit
    found: list[LimitWarning] = []
    if limit is None:
        found.append(
            LimitWarning(
                Concern.UNKNOWN_WINDOW,
                f"The context window is unknown ({budget.window.source}): no percentage is shown "
                "and no share of it can trigger a compaction. Set the window for this model.",
            )
        )
    elif limit == 0:
        found.append(LimitWarning(Concern.NO_ROOM, f"No request fits: {budget.explain()}"))
    elif fixed is not None and fixed.value >= limit:
        found.append(
            LimitWarning(
                Concern.FIXED_PART_TOO_LARGE,
                f"Instructions and tools alone take {fixed.value:,} tokens ({fixed.basis}), "
                f"the limit is {limit:,}: no compaction can make a request fit.",
            )
        )
    if threshold is not None and fixed is not None and threshold <= fixed.value:
        found.append(
            LimitWarning(
                Concern.THRESHOLD_BELOW_FIXED_PART,
                f"The threshold of {threshold:,} tokens is not above the fixed part of "
                f"{fixed.value:,} ({fixed.basis}; instructions and tools): every check would "
                "compact and free nothing. Raise the threshold.",
            )
        )
    if threshold is not None and limit is not None and threshold > limit:
        found.append(
            LimitWarning(
                Concern.THRESHOLD_ABOVE_LIMIT,
                f"The threshold of {threshold:,} tokens is above the limit of {limit:,}: the "
                "provider refuses a request before the threshold is reached.",
            )
        )
    return found
