"""What is known of a model: its window, its limits, its prices, and who says so.

Every number is a `Fact` or a `Price`: a value, or None when nobody knows it, with the sentence that
names its source. Numbers are resolved one by one in a fixed order: the user's setting, what the
endpoint says, what the session recorded, the table shipped with thresher, unknown. There is no
default window: an assumed one makes a compaction storm (xorbitsai/xagent#2483), and a table that
beats the user's setting makes a wrong one (aaif-goose/goose#11049).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .budget import Budget, Concern, Fact, LimitWarning, Origin, downshift
from .catalog import ModelFacts, find, table
from .errors import ThresherError

__all__ = [
    "Budget", "Concern", "Fact", "LimitWarning", "ModelFacts", "ModelLimits", "Origin", "Price",
    "Stated", "downshift", "find", "resolve", "stated_by_endpoint", "table",
]  # fmt: skip


class Price(msgspec.Struct, frozen=True):
    """US dollars for a million tokens, and the source; None is unknown."""

    value: float | None
    source: str
    origin: Origin = Origin.UNKNOWN


class Stated(msgspec.Struct, frozen=True):
    """What one side (user, endpoint, session) says of a model. None: it does not say."""

    source: str
    window: int | None = None
    max_input: int | None = None
    max_output: int | None = None


class ModelLimits(msgspec.Struct, frozen=True):
    """Everything resolved for one model name.

    `table_name` is the row it matched, or empty. `output_cap` is the largest answer that anybody
    says the model can give; it also holds where `max_output` was set aside for the budget.
    """

    model: str
    table_name: str
    window: Fact
    max_input: Fact
    max_output: Fact
    output_cap: Fact
    price_input: Price
    price_cached_input: Price
    price_cache_write: Price
    price_output: Price
    price_holds_up_to: int | None = None

    def budget(self, reserve: Fact | None = None) -> Budget:
        """The budget with a reserve for the answer; without one only max output is kept free."""
        return Budget(
            self.window,
            self.max_input,
            self.max_output,
            reserve or Fact(None, "no reserve set"),
        )

    def clamp_output(self, wanted: int | None) -> int | None:
        """The output size to ask for: `wanted`, but never above what the model can give.

        None asks for nothing and leaves it to the provider (gemini-cli#7784).
        """
        if wanted is None or self.output_cap.value is None:
            return wanted
        return min(wanted, self.output_cap.value)


def resolve(
    model: str,
    *,
    user: Stated | None = None,
    endpoint: Stated | None = None,
    session: Stated | None = None,
) -> ModelLimits:
    """Resolve every number of `model` on its own: user > endpoint > session > table > unknown.

    A max input or max output belongs to the window its source states. Where another source's
    window is in force, the number is set aside, and its `source` says so: a hosted model's
    128,000 of output means nothing in a local window of 32,768 (aaif-goose/goose#11049). What the
    user states is never set aside.

    Raises `ThresherError` when a number that somebody states is not above zero.
    """
    row = find(model)
    sides = [
        (Origin.USER, user),
        (Origin.ENDPOINT, endpoint),
        (Origin.SESSION, session),
        (Origin.TABLE, _stated_by(row)),
    ]
    stated = [(origin, side) for origin, side in sides if side is not None]
    for origin, side in stated:
        _require_positive(model, origin, side)
    missing = f"the table has no model {model!r}" if row is None else f"not in the row {row.name}"

    window = _pick("window", stated, None, missing)
    return ModelLimits(
        model=model,
        table_name=row.name if row else "",
        window=window,
        max_input=_pick("max_input", stated, window, missing),
        max_output=_pick("max_output", stated, window, missing),
        output_cap=_pick("max_output", stated, None, missing),
        price_input=_price(row, "price_input", missing),
        price_cached_input=_price(row, "price_cached_input", missing),
        price_cache_write=_price(row, "price_cache_write", missing),
        price_output=_price(row, "price_output", missing),
        price_holds_up_to=row.price_holds_up_to if row else None,
    )


def stated_by_endpoint(entry: Mapping[str, Any], source: str) -> Stated | None:
    """Read the limits out of one entry of an endpoint's model list (`GET /models`).

    The protocol has no field for them; servers add their own: `context_length` with
    `top_provider.max_completion_tokens` (OpenRouter), `context_window` (Groq), `max_model_len`
    (vLLM), `loaded_context_length` and `max_context_length` (LM Studio), `max_input_tokens`
    (Anthropic). What is not a whole number above zero is ignored.
    """
    top = entry.get("top_provider")
    routed: Mapping[str, Any] = top if isinstance(top, Mapping) else {}
    window = _first_int(
        (routed, "context_length"),
        (entry, "loaded_context_length"),
        (entry, "max_model_len"),
        (entry, "context_length"),
        (entry, "context_window"),
        (entry, "max_context_length"),
    )
    max_input = _first_int((entry, "max_input_tokens"))
    max_output = _first_int(
        (routed, "max_completion_tokens"),
        (entry, "max_completion_tokens"),
        (entry, "max_output_tokens"),
    )
    if window is None and max_input is None and max_output is None:
        return None
    return Stated(source, window, max_input, max_output)


# Choosing between sources ------------------------------------------------------------------------


def _stated_by(row: ModelFacts | None) -> Stated | None:
    if row is None:
        return None
    return Stated(_source(row), row.context_window, row.max_input, row.max_output)


def _source(row: ModelFacts) -> str:
    return f"table, {row.name}, {row.as_of}: {row.source}"


def _pick(
    field: str, stated: list[tuple[Origin, Stated]], window: Fact | None, missing: str
) -> Fact:
    """The first side that states `field`, unless its own window is not the one in force."""
    for origin, side in stated:
        value: int | None = getattr(side, field)
        if value is None:
            continue
        if window is not None and origin is not Origin.USER and window.value is not None:
            if side.window is not None and side.window != window.value:
                return Fact(
                    None,
                    f"set aside: {value:,} belongs to a window of {side.window:,} ({side.source}),"
                    f" not to {window.value:,} ({window.source})",
                )
            if field == "max_output" and value >= window.value:
                return Fact(
                    None,
                    f"set aside: {value:,} would fill the whole window of {window.value:,}"
                    f" ({side.source})",
                )
        return Fact(value, side.source, origin)
    return Fact(None, missing)


def _price(row: ModelFacts | None, field: str, missing: str) -> Price:
    value: float | None = getattr(row, field) if row else None
    if row is None or value is None:
        return Price(None, missing)
    return Price(value, _source(row), Origin.TABLE)


def _require_positive(model: str, origin: Origin, side: Stated) -> None:
    for field in ("window", "max_input", "max_output"):
        value: int | None = getattr(side, field)
        if value is not None and value <= 0:
            raise ThresherError(
                "Limit not usable",
                f"The {field.replace('_', ' ')} of {model!r} is {value} according to the {origin} "
                f"({side.source}); give a number of tokens above 0.",
            )


def _first_int(*places: tuple[Mapping[str, Any], str]) -> int | None:
    for where, field in places:
        value = where.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
