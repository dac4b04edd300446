from __future__ import annotations

import pytest

from thresher.core.tokens import Basis, Scope, Tokens
from thresher.tui import figures

REPORTED = Tokens(12_345, Basis.REPORTED, Scope.REQUEST)
COUNTED = Tokens(12_345, Basis.COUNTED, Scope.MESSAGES)
ESTIMATED = Tokens(900, Basis.ESTIMATED, Scope.MESSAGES)


def test_a_figure_never_stands_without_its_basis() -> None:
    assert figures.with_basis(REPORTED) == "12,345 reported"
    assert figures.with_basis(COUNTED) == "12,345 counted"
    assert figures.with_basis(ESTIMATED) == "~900 estimated"
    assert figures.with_basis(None) == "?"


def test_an_unknown_number_is_a_question_mark_and_not_a_zero() -> None:
    assert figures.thousands(None) == "?"
    assert figures.thousands(0) == "0"


def test_figures_of_one_kind_share_their_basis() -> None:
    after = Tokens(450, Basis.COUNTED, Scope.MESSAGES)
    assert figures.change(COUNTED, after) == "12,345 → 450 counted, messages"


def test_figures_of_two_kinds_keep_both_bases() -> None:
    told = figures.change(REPORTED, ESTIMATED)
    assert told == "12,345 reported, request → ~900 estimated, messages"
    assert figures.change(REPORTED, None) == "12,345 reported, request → ?"
    assert figures.change(None, None) == "? → ?"


@pytest.mark.parametrize(
    ("part", "whole", "told"),
    [(0, 200, "0 %"), (1, 200, "<1 %"), (100, 200, "50 %"), (300, 200, "150 %"), (1, 0, "?")],
)
def test_shares(part: int, whole: int, told: str) -> None:
    assert figures.percent(part, whole) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (1_500, "1.5k"),
        (128_000, "128k"),
        (2_500_000, "2.5M"),
    ],
)
def test_scale_labels(value: int, told: str) -> None:
    assert figures.compact(value) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0002, "<1ms"), (0.02, "20ms"), (3.24, "3.2s"), (41.2, "41s"), (125.0, "2m05s")],
)
def test_durations(value: float, told: str) -> None:
    assert figures.seconds(value) == told


def test_counts_and_prices() -> None:
    assert figures.count(1, "round") == "1 round"
    assert figures.count(1_200, "round") == "1,200 rounds"
    assert figures.dollars(0.00921) == "$0.0092"
    assert figures.dollars(1.5) == "$1.50"
