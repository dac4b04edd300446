"""The constants that Codex's three ways of compacting share."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .truncation import Unit


class Scope(StrEnum):
    """What is compared with the limit."""

    TOTAL = "total"
    """All active tokens."""
    BODY_AFTER_PREFIX = "body_after_prefix"
    """Without the input of the first response in this window."""


class OverflowCount(StrEnum):
    """What the count says after the provider has refused a request as too long."""

    DIFFERENCE = "difference"
    """The usable window less everything reported in the session, at least 0: as Codex has it. In
    a long session that is 0, so the next turn does not compact although nothing was freed."""
    WINDOW = "window"
    """The usable window, so the next turn compacts: not as Codex has it."""


class CodexParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Names in brackets are those of Codex's own settings; values are those of 0.171.0."""

    auto_limit: int | None = None
    """Tokens at which a compaction is due (model_auto_compact_token_limit); it can only lower the
    limit that comes from the window. Not set as shipped."""
    limit_percent: int = 90
    """The limit as a share of the raw window, in whole tokens."""
    usable_percent: int = 95
    """The usable window as a share of the raw one (effective_context_window_percent)."""
    scope: Scope = Scope.TOTAL
    """What is compared with the limit (model_auto_compact_token_limit_scope)."""
    post_turn_percent: int = 0
    """Compact at the end of a turn from this share of the usable window on
    (model_post_turn_compact_threshold_percent); 0 is off, as shipped."""
    comp_hashes: dict[str, str] = {}
    """The compaction hash of a model by its name. A change between two models that both have one
    sets off a compaction when the hashes differ. From Codex's model catalogue; none by default."""
    overflow_count: OverflowCount = OverflowCount.DIFFERENCE
    """The count after a refused request. Codex does not compact then; the next turn may."""
    estimate_when_unreported: bool = False
    """Where the provider reports no usage, take the estimate of the whole history. Not in Codex,
    which counts 0 then."""
    truncation_limit: int = 10_000
    """What one tool output may have when it enters (truncation policy of the bundled models)."""
    truncation_unit: Unit = Unit.TOKENS
    """The unit of `truncation_limit`; a model that Codex does not know has 10,000 bytes."""
    history_allowance: float = 1.2
    """An output within this multiple of `truncation_limit` is not cut again in the history."""
    item_ceiling: int = 10_000
    """Tokens that no output in the history may exceed, whatever the allowance (from the source)."""

    def __post_init__(self) -> None:
        if self.auto_limit is not None and self.auto_limit < 1:
            raise ValueError(f"auto_limit must be at least 1, not {self.auto_limit}")
        for name in ("limit_percent", "usable_percent"):
            if not 1 <= getattr(self, name) <= 100:
                raise ValueError(f"{name} must be between 1 and 100, not {getattr(self, name)}")
        if not 0 <= self.post_turn_percent <= 100:
            raise ValueError(
                f"post_turn_percent must be between 0 and 100, not {self.post_turn_percent}"
            )
        if self.truncation_limit < 0 or self.item_ceiling < 0 or self.history_allowance < 1:
            raise ValueError(
                "truncation_limit and item_ceiling must not be negative, and history_allowance "
                "not below 1"
            )
