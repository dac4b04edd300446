from __future__ import annotations

from typing import Any

import pytest

from thresher.core.compaction.policies import registry
from thresher.core.compaction.policies.codex.due import (
    ESTIMATED,
    Cause,
    Due,
    Phase,
    active,
    decide,
    limit_marks,
    limits,
    remaining,
)
from thresher.core.compaction.policies.codex.params import CodexParams, OverflowCount, Scope
from thresher.core.compaction.policy import Account, Moment, Trigger
from thresher.core.errors import ThresherError
from thresher.core.items import Reasoning, assistant, user
from thresher.core.tokens import Usage

from .codex_situations import budget, situation, work

DEFAULT = CodexParams()


def due(params: CodexParams = DEFAULT, **at: Any) -> Due:
    return decide(situation([user("u"), assistant("a")], **at), params)


@pytest.mark.parametrize(
    ("window", "configured", "limit", "usable"),
    [
        (100, 200, 90, 95),
        (100, 40, 40, 95),
        (20_000, None, 18_000, 19_000),
        (272_000, None, 244_800, 258_400),
        (372_000, None, 334_800, 353_400),
        (19, None, 17, 18),
        (None, 5_000, 5_000, None),
        (None, None, None, None),
    ],
)
def test_the_limit_is_the_smaller_of_the_configured_and_nine_tenths_of_the_raw_window(
    window: int | None, configured: int | None, limit: int | None, usable: int | None
) -> None:
    found = limits(budget(window), CodexParams(auto_limit=configured))
    assert (found.limit, found.usable) == (limit, usable)


@pytest.mark.parametrize(("used", "fires"), [(17_999, False), (18_000, True)])
def test_the_limit_itself_fires(used: int, fires: bool) -> None:
    assert due(used=used).is_due is fires


def test_a_limit_above_nine_tenths_does_not_raise_it() -> None:
    found = due(CodexParams(auto_limit=200), used=91, window=100, moment=Moment.TURN_START)
    assert (found.is_due, found.phase) == (True, Phase.PRE_TURN)


def test_without_any_limit_nothing_is_ever_due() -> None:
    found = due(used=10_000_000, window=None)
    assert not found.is_due
    assert "nobody says" in found.reason


def test_what_came_after_the_report_counts() -> None:
    items = [user("u"), *work("c", "o" * 4_000)]
    at = situation(items, used=17_500)
    assert active(at, DEFAULT).tokens == 17_500 + 1_001
    assert decide(at, DEFAULT).is_due


def test_sealed_reasoning_from_before_the_last_message_adds_to_the_count() -> None:
    sealed = Reasoning("", "x" * 2_400)
    items = [user("u"), sealed, assistant("a"), user("v"), sealed, assistant("b")]
    assert active(situation(items, used=100), DEFAULT).tokens == 388


def test_nothing_reported_counts_as_nothing_unless_it_is_to_be_estimated() -> None:
    items = [user("u" * 80_000), assistant("a")]
    assert not decide(situation(items), DEFAULT).is_due
    assert decide(situation(items), CodexParams(estimate_when_unreported=True)).is_due


def test_after_a_compaction_its_own_estimate_stands_for_the_report() -> None:
    at = situation([user("u")], memory={ESTIMATED: 18_400})
    assert active(at, DEFAULT).tokens == 18_400
    assert decide(at, DEFAULT).is_due


@pytest.mark.parametrize(
    ("moment", "phase"),
    [(Moment.TURN_START, Phase.PRE_TURN), (Moment.AFTER_ROUND, Phase.MID_TURN)],
)
def test_the_phase_is_that_of_the_moment(moment: Moment, phase: Phase) -> None:
    found = due(used=18_000, moment=moment)
    assert (found.phase, found.cause) == (phase, Cause.CONTEXT_LIMIT)
    assert found.reason.startswith(f"context_limit in {phase}: 18,000 tokens")


def test_by_hand_is_always_due() -> None:
    found = due(moment=Moment.MANUAL, trigger=Trigger.MANUAL)
    assert (found.is_due, found.phase) == (True, Phase.STANDALONE)
    busy = situation([user("u"), *work("c")], moment=Moment.MANUAL, trigger=Trigger.MANUAL)
    assert decide(busy, DEFAULT).phase is Phase.MID_TURN


# After a turn ---------------------------------------------------------------------------------


def test_a_turn_that_ends_over_the_limit_waits_for_the_next() -> None:
    assert not due(used=18_500, moment=Moment.TURN_END).is_due
    assert due(used=18_500, moment=Moment.TURN_START).is_due


@pytest.mark.parametrize(("used", "fires"), [(9_499, False), (9_500, True), (18_000, True)])
def test_a_share_of_the_usable_window_compacts_after_a_turn(used: int, fires: bool) -> None:
    found = due(CodexParams(post_turn_percent=50), used=used, moment=Moment.TURN_END)
    assert (found.is_due, found.phase) == (fires, Phase.POST_TURN)


# The body after the prefix --------------------------------------------------------------------

BODY = CodexParams(auto_limit=100, scope=Scope.BODY_AFTER_PREFIX)


def body(**at: Any) -> Due:
    return due(BODY, window=1_000, **at)


def test_the_prefix_does_not_count_towards_the_limit() -> None:
    assert not body(used=600, first=600).is_due
    assert not body(used=650, first=600).is_due
    assert body(used=750, first=600).is_due


def test_until_a_response_the_estimate_or_everything_is_the_prefix() -> None:
    assert not body(used=800).is_due
    assert body(used=800, memory={ESTIMATED: 700}).is_due
    assert not body(used=800, memory={ESTIMATED: 701}).is_due


def test_the_usable_window_forces_it_whatever_the_prefix() -> None:
    assert due(BODY, window=100, used=99, first=98).is_due


def test_a_configured_limit_for_the_body_is_not_capped() -> None:
    params = CodexParams(auto_limit=950, scope=Scope.BODY_AFTER_PREFIX)
    assert limits(budget(1_000), params).limit == 950
    assert remaining(situation(used=600, first=500, window=1_000), params) == 850


# A change of model ----------------------------------------------------------------------------


def changed(
    params: CodexParams = DEFAULT, *, old: int | None = 64_000, new: int = 20_000, used: int
) -> Due:
    return due(
        params,
        used=used,
        window=new,
        moment=Moment.MODEL_CHANGE,
        trigger=Trigger.MODEL_CHANGE,
        model="small",
        previous_model="large",
        previous_budget=None if old is None else budget(old),
    )


@pytest.mark.parametrize(("used", "fires"), [(18_000, False), (18_001, True), (30_050, True)])
def test_a_smaller_window_compacts_what_is_above_its_limit(used: int, fires: bool) -> None:
    found = changed(used=used)
    assert found.is_due is fires
    assert not fires or found.cause is Cause.MODEL_DOWNSHIFT


def test_a_larger_window_or_an_unknown_one_compacts_nothing() -> None:
    assert not changed(used=30_000, old=20_000, new=64_000).is_due
    assert not changed(used=30_000, old=None).is_due


def test_for_the_body_only_the_usable_window_counts_at_a_change() -> None:
    params = CodexParams(scope=Scope.BODY_AFTER_PREFIX)
    assert not changed(params, used=18_500).is_due
    assert changed(params, used=19_000).is_due


@pytest.mark.parametrize(
    ("hashes", "fires"),
    [
        ({"large": "7", "small": "8"}, True),
        ({"large": "7", "small": "7"}, False),
        ({"large": "7"}, False),
        ({}, False),
    ],
)
def test_two_different_compaction_hashes_compact_at_any_fill(
    hashes: dict[str, str], fires: bool
) -> None:
    found = changed(CodexParams(comp_hashes=hashes), used=10)
    assert found.is_due is fires
    assert not fires or found.cause is Cause.COMP_HASH


# A refused request ----------------------------------------------------------------------------


def refused(spent: int, overflows: int = 1, params: CodexParams = DEFAULT) -> int:
    account = Account(turns=spent, overflows=overflows, refused=True, first=Usage(1))
    return active(situation([user("u")], used=spent, account=account), params).tokens


def test_a_refused_request_fills_the_count_by_what_was_not_spent_yet() -> None:
    assert refused(446) == 18_554
    assert refused(18_999) == 1


def test_a_long_session_counts_nothing_after_a_refused_request() -> None:
    assert refused(50_000) == 0
    assert refused(446, overflows=2) == 0


def test_the_count_can_be_filled_up_whole_instead() -> None:
    params = CodexParams(overflow_count=OverflowCount.WINDOW)
    assert refused(50_000, params=params) == 19_000


# Marks and settings ---------------------------------------------------------------------------


def test_the_meter_gets_the_limit_and_the_usable_window() -> None:
    marks = limit_marks(budget(20_000), CodexParams(post_turn_percent=50))
    assert [(mark.name, mark.tokens) for mark in marks] == [
        ("threshold", 18_000),
        ("after the turn", 9_500),
        ("usable", 19_000),
    ]
    assert limit_marks(budget(None), DEFAULT) == ()
    assert [mark.name for mark in limit_marks(budget(1_000), BODY)] == ["usable"]


def test_the_marks_of_a_token_budget_stand_in_order() -> None:
    policy = registry.make("codex-token-budget", {})
    assert [(mark.name, mark.tokens) for mark in policy.marks(budget(272_000))] == [
        ("reminder", 238_656),
        ("threshold", 244_800),
        ("usable", 258_400),
        ("reset", 261_184),
    ]


@pytest.mark.parametrize(
    "params",
    [
        {"auto_limit": 0},
        {"limit_percent": 101},
        {"usable_percent": 0},
        {"post_turn_percent": -1},
        {"truncation_limit": -1},
        {"history_allowance": 0.5},
        {"scope": "half"},
        {"nothing": 1},
    ],
)
@pytest.mark.parametrize("name", ["codex", "codex-remote", "codex-token-budget"])
def test_a_constant_out_of_range_is_refused_by_name(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(ThresherError, match=next(iter(params))):
        registry.make(name, params)


def test_constants_come_as_text_from_a_command_line() -> None:
    policy = registry.make("codex", {"auto_limit": "5000", "scope": "body_after_prefix"})
    assert limits(budget(None), policy.params).limit == 5_000  # type: ignore[arg-type]  # Struct
