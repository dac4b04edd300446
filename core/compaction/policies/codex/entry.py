"""The entry cap: what a tool's output becomes when it enters the history."""

from __future__ import annotations

import msgspec

from ...policy import Edit, Plan, Situation, Skip, SkipKind
from .estimate import text_tokens
from .params import CodexParams
from .truncation import Unit, bytes_of, tool_text, truncated

STAGE = "truncation"


def capped(text: str, params: CodexParams) -> str:
    """The output of a tool as the model sees it: cut by the truncation policy, then once more by
    what the history takes, which is more than the first cut leaves unless the policy is tiny or
    as large as the ceiling for one item."""
    limit, unit = params.truncation_limit, params.truncation_unit
    shown = tool_text(text, limit, unit)
    allowance = int(limit * params.history_allowance)
    ceiling = bytes_of(params.item_ceiling, Unit.TOKENS)
    if bytes_of(allowance, unit) <= ceiling:
        return truncated(shown, allowance, unit)
    return truncated(shown, params.item_ceiling, Unit.TOKENS)


def cap(situation: Situation, params: CodexParams) -> Plan:
    """Replace the fresh output where it is too long."""
    fresh = situation.fresh_output
    if fresh is None:
        return
    text = capped(fresh.output, params)
    size = f"an output of about {text_tokens(fresh.output):,} tokens"
    allowed = f"{params.truncation_limit:,} {params.truncation_unit}"
    if text == fresh.output:
        yield Skip(SkipKind.NOT_DUE, f"{size} is within {allowed}.", STAGE)
        return
    yield Edit(
        stage=STAGE,
        reason=f"{size} was cut to {allowed}; its two ends stay",
        output=msgspec.structs.replace(fresh, output=text),
    )
