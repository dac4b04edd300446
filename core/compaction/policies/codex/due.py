"""When Codex compacts: the count, the limit, and the triggers with phase and cause in its words."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ....items import FunctionCallOutput, Message, Role
from ....models import Budget
from ...policy import Mark, Moment, Situation, Trigger
from .estimate import estimate_all, text_tokens, unreported
from .params import CodexParams, OverflowCount, Scope

ESTIMATED = "codex_estimate"
"""The policy's memory of the estimate it made after the last compaction, in tokens."""


class Phase(StrEnum):
    """When in a turn it runs."""

    PRE_TURN = "pre_turn"
    MID_TURN = "mid_turn"
    POST_TURN = "post_turn"
    STANDALONE = "standalone_turn"


class Cause(StrEnum):
    """Why it runs; the last is a tool that the model called."""

    CONTEXT_LIMIT = "context_limit"
    USER_REQUESTED = "user_requested"
    MODEL_DOWNSHIFT = "model_downshift"
    COMP_HASH = "comp_hash_changed"
    NEW_CONTEXT = "new_context"


class Count(msgspec.Struct, frozen=True):
    """The active tokens, and how they come about in words."""

    tokens: int
    words: str


class Limits(msgspec.Struct, frozen=True):
    """The limit and the usable window, in tokens; None where nobody knows them."""

    limit: int | None
    usable: int | None
    words: str


class Due(msgspec.Struct, frozen=True):
    """Whether a compaction is due, why and when, and the arithmetic in words."""

    is_due: bool
    reason: str
    phase: Phase
    cause: Cause = Cause.CONTEXT_LIMIT


def limits(budget: Budget, params: CodexParams) -> Limits:
    """min(configured, 90 % of the raw window); with the scope body_after_prefix a configured limit
    is used as it is. The usable window is 95 % of the raw one."""
    window, wish = budget.window.value, params.auto_limit
    if window is None:
        if wish is None:
            return Limits(
                None, None, f"no limit, since the window is unknown ({budget.window.source})"
            )
        return Limits(wish, None, f"the limit {wish:,} (configured; the window is unknown)")
    usable = window * params.usable_percent // 100
    share = window * params.limit_percent // 100
    words = f"{params.limit_percent} % of the window {window:,}"
    if wish is None or (wish > share and params.scope is Scope.TOTAL):
        return Limits(share, usable, f"the limit {share:,} ({words})")
    return Limits(wish, usable, f"the limit {wish:,} (configured; {words} is {share:,})")


def limit_marks(budget: Budget, params: CodexParams) -> tuple[Mark, ...]:
    """The limit and the usable window, and what is set between them. A limit that counts from the
    end of the prefix has no fixed place, so it has no mark."""
    found = limits(budget, params)
    marks = []
    if found.limit is not None and params.scope is Scope.TOTAL:
        marks.append(Mark("threshold", found.limit, found.words))
    if found.usable is not None:
        if params.post_turn_percent:
            share = -(-found.usable * params.post_turn_percent // 100)
            words = f"at the end of a turn: {params.post_turn_percent} % of the usable window"
            marks.append(Mark("after the turn", share, words))
        words = f"usable window: {params.usable_percent} % of {budget.window.value:,}"
        marks.append(Mark("usable", found.usable, words))
    return tuple(marks)


def active(situation: Situation, params: CodexParams) -> Count:
    """The last reported total and what came after it. After a compaction its own estimate stands
    for the report; after a refused request the count is filled up."""
    behind = unreported(situation.context.items)
    base, source = _counted(situation, params)
    if not source:
        if not params.estimate_when_unreported:
            return Count(behind, f"{behind:,} tokens (estimated; none were reported)")
        whole = _whole_request(situation)
        return Count(whole, f"{whole:,} tokens (the whole history, estimated)")
    words = f"{base + behind:,} tokens ({base:,} {source} + {behind:,} estimated since)"
    return Count(base + behind, words)


def reached(situation: Situation, params: CodexParams, buffer: int = 0) -> tuple[bool, str]:
    """Whether the limit (and a `buffer` above it) or the usable window is reached, in words."""
    count, found = active(situation, params), limits(situation.budget, params)
    used, words = count.tokens, count.words
    if params.scope is Scope.BODY_AFTER_PREFIX:
        prefix = _prefix(situation, count)
        used -= prefix
        words = f"{used:,} tokens after the prefix of {prefix:,}, of {words}"
    if found.limit is not None and used >= found.limit + buffer:
        more = f" and the buffer of {buffer:,}" if buffer else ""
        return True, f"{words} reach {found.words}{more}"
    if found.usable is not None and count.tokens >= found.usable:
        return True, f"{count.words} reach the usable window {found.usable:,}"
    below = f"{words} are below {found.words}"
    return False, below if found.limit is not None else f"{words}; {found.words}"


def remaining(situation: Situation, params: CodexParams) -> int | None:
    """Tokens up to the limit, below 0 behind it; None without a limit."""
    count, found = active(situation, params), limits(situation.budget, params)
    if found.limit is None:
        return None
    body = params.scope is Scope.BODY_AFTER_PREFIX
    return found.limit - count.tokens + (_prefix(situation, count) if body else 0)


def decide(situation: Situation, params: CodexParams, buffer: int = 0) -> Due:
    """The table of triggers. A change of model is looked at before the limit."""
    if situation.trigger is Trigger.MANUAL:
        busy = len(situation.context) and isinstance(
            situation.context.entries[-1].item, FunctionCallOutput
        )
        return _due(
            Cause.USER_REQUESTED,
            Phase.MID_TURN if busy else Phase.STANDALONE,
            f"the user asked for it at {active(situation, params).words}",
        )
    if situation.moment in (Moment.TURN_START, Moment.MODEL_CHANGE):
        changed = _model_change(situation, params)
        if changed is not None:
            return changed
    if situation.moment is Moment.MODEL_CHANGE:
        return Due(False, "Nothing about this change of model asks for it.", Phase.PRE_TURN)
    is_reached, words = reached(situation, params, buffer)
    if situation.moment is Moment.TURN_END:
        return _after_turn(situation, params, is_reached, words)
    phase = Phase.PRE_TURN if situation.moment is Moment.TURN_START else Phase.MID_TURN
    if is_reached:
        return _due(Cause.CONTEXT_LIMIT, phase, words)
    return Due(False, f"{words}.", phase)


def asked_models(situation: Situation, due: Due) -> tuple[str, ...]:
    """Whom to ask, in order; the empty name is the session's own model. After a change of model
    the one before comes first, since the context still fits its window."""
    changed = due.cause in (Cause.MODEL_DOWNSHIFT, Cause.COMP_HASH)
    return (situation.previous_model, "") if changed else ("",)


def estimate_after(situation: Situation, contents: int) -> int:
    """Codex's count after a compaction: the base instructions and the new history's items."""
    return text_tokens(base_instructions(situation)) + contents


def base_instructions(situation: Situation) -> str:
    """What stands in front of every history: the instructions beside the request, and our own
    agent's system message, which is an entry of its context."""
    entries = situation.context.entries
    head = entries[0].item if entries else None
    own = head.text if isinstance(head, Message) and head.role is Role.SYSTEM else ""
    return situation.shape.instructions + own


def _counted(situation: Situation, params: CodexParams) -> tuple[int, str]:
    """The figure that the count begins with, and its source; no source when there is none."""
    account = situation.account
    usable = limits(situation.budget, params).usable
    if account.refused and usable is not None:
        if params.overflow_count is OverflowCount.WINDOW:
            return usable, "filled up after a refused request"
        # After the first overflow Codex's own total is the usable window, so nothing is left.
        spent = account.turns + account.summaries if account.overflows == 1 else usable
        return max(0, usable - spent), "filled up after a refused request"
    if situation.usage is not None:
        return situation.usage.total, "reported"
    known = situation.memory.get(ESTIMATED)
    return (known, "estimated after the last compaction") if isinstance(known, int) else (0, "")


def _prefix(situation: Situation, count: Count) -> int:
    """Where the body begins: the first reported input of this window; until there is one, the
    estimate after the last compaction; without that, all there is."""
    if situation.account.first is not None:
        return situation.account.first.input_tokens
    known = situation.memory.get(ESTIMATED)
    return known if isinstance(known, int) else count.tokens


def _model_change(situation: Situation, params: CodexParams) -> Due | None:
    old, new = situation.previous_model, situation.model
    if not old or old == new:
        return None
    hashes = params.comp_hashes.get(old), params.comp_hashes.get(new)
    if all(hashes) and hashes[0] != hashes[1]:
        words = f"{old} and {new} differ in their compaction hash ({hashes[0]}, {hashes[1]})"
        return _due(Cause.COMP_HASH, Phase.PRE_TURN, words)
    if situation.previous_budget is None:
        return None
    before = limits(situation.previous_budget, params).usable
    after = limits(situation.budget, params)
    if before is None or after.usable is None or before <= after.usable:
        return None
    count = active(situation, params)
    over = params.scope is Scope.TOTAL and after.limit is not None and count.tokens > after.limit
    if not over and count.tokens < after.usable:
        return None
    bound = after.words if over else f"the usable window {after.usable:,}"
    return _due(
        Cause.MODEL_DOWNSHIFT,
        Phase.PRE_TURN,
        f"{old} (usable {before:,}) gives way to {new} ({after.usable:,}): {count.words} are too "
        f"many for {bound}",
    )


def _after_turn(situation: Situation, params: CodexParams, is_reached: bool, words: str) -> Due:
    percent, usable = params.post_turn_percent, limits(situation.budget, params).usable
    if not percent:
        return Due(
            False,
            "Nothing is compacted at the end of a turn: post_turn_percent is 0.",
            Phase.POST_TURN,
        )
    if is_reached:
        return _due(Cause.CONTEXT_LIMIT, Phase.POST_TURN, words)
    count = active(situation, params)
    if usable is None or count.tokens * 100 < usable * percent:
        return Due(False, f"{words}, and below {percent} % of the usable window.", Phase.POST_TURN)
    return _due(
        Cause.CONTEXT_LIMIT,
        Phase.POST_TURN,
        f"{count.words} reach {percent} % of the usable window {usable:,}",
    )


def _due(cause: Cause, phase: Phase, words: str) -> Due:
    return Due(True, f"{cause} in {phase}: {words}.", phase, cause)


def _whole_request(situation: Situation) -> int:
    own = text_tokens(situation.shape.instructions)
    return own + estimate_all(situation.context.items)
