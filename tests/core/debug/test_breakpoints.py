from __future__ import annotations

import pytest

from thresher.core.debug.breakpoints import (
    BreakKind,
    Breakpoint,
    before_compaction,
    known,
    larger_than,
    parse,
    passed,
)
from thresher.core.errors import ThresherError
from thresher.core.tokens import Basis, Scope, Tokens


@pytest.mark.parametrize(
    "text",
    ["compaction", "stage:prune", "policy:maf-dotnet", "tokens:8000", "percent:80", "output:500",
     "overflow", "failure"],
)  # fmt: skip
def test_a_text_form_is_read_and_written_as_it_is(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(text).words()


def test_a_number_may_be_written_as_people_do() -> None:
    assert parse(" Tokens: 8,000 ") == Breakpoint(BreakKind.TOKENS, number=8000)


@pytest.mark.parametrize(
    "text",
    ["", "somewhere", "stage", "policy:", "tokens", "tokens:many", "tokens:0", "tokens:-5",
     "percent:101", "output:1e3", "overflow:3", "compaction:x", "tokens:" + "9" * 40, "tokens:٣"],
)  # fmt: skip
def test_what_is_no_breakpoint_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ThresherError) as refused:
        parse(text)
    assert "percent:P" in refused.value.msg


def test_a_breakpoint_of_a_later_version_is_passed_over() -> None:
    assert [str(each) for each in known(["weather:rain", "overflow"])] == ["overflow"]


def test_a_compaction_is_met_by_its_policy_and_stage() -> None:
    points = [parse("stage:prune"), parse("policy:codex")]
    assert before_compaction(points, "codex", "local") == points[1]
    assert before_compaction(points, "opencode-v1", "prune") == points[0]
    assert before_compaction(points, "teaching", "compaction") is None
    assert before_compaction([parse("compaction")], "any", "any") is not None


def test_a_size_is_passed_when_it_is_reached_and_a_share_needs_a_window() -> None:
    points = [parse("tokens:100"), parse("percent:50")]
    size = Tokens(100, Basis.COUNTED, Scope.REQUEST)
    assert passed(points, size, 200) == tuple(points)
    assert passed(points, size, 201) == (points[0],)
    assert passed(points, size, None) == (points[0],)


def test_the_lowest_bound_that_an_output_is_above_is_named() -> None:
    points = [parse("output:500"), parse("output:50")]
    assert larger_than(points, 600) == points[1]
    assert larger_than(points, 50) is None
