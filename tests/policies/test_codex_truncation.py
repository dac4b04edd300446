from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.compaction.policies.codex.entry import capped
from thresher.core.compaction.policies.codex.local import Codex, CodexLocalParams
from thresher.core.compaction.policies.codex.params import CodexParams
from thresher.core.compaction.policies.codex.truncation import Unit, bytes_of, cut, truncated
from thresher.core.compaction.policy import Edit, Moment, Skip
from thresher.core.items import FunctionCallOutput

from .codex_situations import run, situation

UNITS = st.sampled_from(Unit)


@pytest.mark.parametrize(
    ("text", "unit", "limit", "expected"),
    [
        ("abcdefghij", Unit.BYTES, 4, "ab…6 chars truncated…ij"),
        ("abcdefghij", Unit.BYTES, 5, "ab…5 chars truncated…hij"),
        ("abcdefghijklmnop", Unit.TOKENS, 2, "abcd…2 tokens truncated…mnop"),
        ("äöüäöüäöü", Unit.BYTES, 7, "ä…6 chars truncated…öü"),
        ("0123456789", Unit.TOKENS, 0, "…3 tokens truncated…"),
        ("0123456789", Unit.BYTES, 0, "…10 chars truncated…"),
        ("short", Unit.TOKENS, 2, "short"),
        ("", Unit.TOKENS, 0, ""),
    ],
)
def test_a_text_is_cut_to_its_two_ends(text: str, unit: Unit, limit: int, expected: str) -> None:
    assert truncated(text, limit, unit) == expected


@given(st.text(), st.integers(0, 30), UNITS)
def test_both_ends_are_whole_characters_of_the_text_within_the_budget(
    text: str, limit: int, unit: Unit
) -> None:
    parts = cut(text, limit, unit)
    size = len(text.encode())
    if parts is None:
        assert size <= bytes_of(limit, unit)
        return
    assert size > bytes_of(limit, unit)
    assert text.startswith(parts.head)
    assert text.endswith(parts.tail)
    assert len((parts.head + parts.tail).encode()) <= bytes_of(limit, unit)


def test_half_of_a_surrogate_pair_counts_as_one_byte() -> None:
    assert truncated("ab\ud800cd", 2, Unit.BYTES) == "a…3 chars truncated…d"


def test_a_cut_output_says_its_size_and_its_lines_above_it() -> None:
    shown = capped("line\n" * 1_000, CodexParams(truncation_limit=200))
    assert shown.startswith(
        "Warning: truncated output (original token count: 1250)\nTotal output lines: 1000\n\nline\n"
    )
    assert "…1050 tokens truncated…" in shown


def test_the_last_line_counts_without_its_line_end() -> None:
    shown = capped("a" * 3_000 + "\nb", CodexParams(truncation_limit=200))
    assert "Total output lines: 2\n" in shown


def test_the_history_cuts_again_what_the_headers_brought_over_its_allowance() -> None:
    shown = capped("x" * 1_000, CodexParams(truncation_limit=10))
    assert shown.startswith("Warning: truncated outpu…")
    assert shown.endswith("truncated…d…" + "x" * 20)


def test_no_output_in_the_history_is_above_the_ceiling() -> None:
    shown = capped("x" * 400_000, CodexParams(truncation_limit=50_000, item_ceiling=10_000))
    assert len(shown.encode()) < 40_100


async def test_the_fresh_output_is_replaced_and_nothing_else() -> None:
    fresh = FunctionCallOutput("c", "y" * 900, "bash", is_error=True, saved="/tmp/all")
    policy = Codex(CodexLocalParams(truncation_limit=50))
    (step,) = run(policy, situation(moment=Moment.TOOL_OUTPUT, fresh_output=fresh))
    assert isinstance(step, Edit)
    assert step.output is not None
    assert (step.output.call_id, step.output.is_error, step.output.saved) == ("c", True, "/tmp/all")
    assert (step.stage, step.segments) == ("truncation", ())


def test_an_output_within_the_limit_enters_as_it_is() -> None:
    fresh = FunctionCallOutput("c", "y" * 900)
    (step,) = run(Codex(), situation(moment=Moment.TOOL_OUTPUT, fresh_output=fresh))
    assert isinstance(step, Skip)
