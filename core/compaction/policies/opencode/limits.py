"""OpenCode's limits: how large a reported request may be before it compacts."""

from __future__ import annotations

import msgspec

from ....models import Budget, resolve
from ....tokens import Usage


class Limits(msgspec.Struct, frozen=True):
    """A model's limits in tokens as OpenCode has them; 0 is "not known"."""

    context: int
    input: int
    output: int

    @classmethod
    def of(cls, budget: Budget, model: str = "") -> Limits:
        """Those of the session's model, or of `model` where the table knows its window."""
        if model:
            other = resolve(model).budget()
            budget = other if other.window.known else budget
        return cls(
            budget.window.value or 0, budget.max_input.value or 0, budget.max_output.value or 0
        )


def count(usage: Usage) -> int:
    """The provider's total; where it gave none, input and output without reasoning."""
    if usage.total_tokens:
        return usage.total_tokens
    return usage.input_tokens + usage.output_tokens - (usage.reasoning_tokens or 0)
