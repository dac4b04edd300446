from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.errors import ThresherError
from thresher.core.models import (
    Budget,
    Concern,
    Fact,
    Origin,
    Stated,
    downshift,
    find,
    resolve,
    stated_by_endpoint,
    table,
)
from thresher.core.tokens import Basis, Scope, Tokens

NONE = Fact(None, "nobody says")


def budget(
    window: int | None = None,
    max_input: int | None = None,
    max_output: int | None = None,
    reserve: int | None = None,
) -> Budget:
    return Budget(*(Fact(value, "test") for value in (window, max_input, max_output, reserve)))


def request(value: int) -> Tokens:
    return Tokens(value, Basis.ESTIMATED, Scope.REQUEST)


# The table ---------------------------------------------------------------------------------------


def test_the_table_covers_the_current_models_of_every_vendor() -> None:
    vendors = {row.vendor for row in table()}
    assert len(table()) >= 60
    assert vendors >= {
        "openai", "anthropic", "google", "mistral", "deepseek", "xai", "moonshot", "zai", "qwen",
        "meta",
    }  # fmt: skip


def test_every_row_is_dated_sourced_and_sane() -> None:
    for row in table():
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row.as_of), row
        assert row.source, row
        for size in (row.context_window, row.max_input, row.max_output, row.price_holds_up_to):
            assert size is None or size >= 1000, row
        for price in (row.price_input, row.price_cached_input, row.price_output):
            assert price is None or 0 <= price < 1000, row
        if row.context_window is not None:
            assert (row.max_input or 0) <= row.context_window, row
            assert (row.max_output or 0) < row.context_window, row
        if row.price_cached_input is not None:
            assert row.price_input is not None, row
            assert row.price_cached_input <= row.price_input, row


def test_names_and_aliases_are_unique_and_lower_case() -> None:
    names = [name for row in table() for name in (row.name, *row.aliases)]
    assert len(names) == len(set(names))
    assert names == [name.lower() for name in names]


@pytest.mark.parametrize(
    ("name", "window", "max_output"),
    [
        ("gpt-4o", 128_000, 16_384),
        ("gpt-4.1", 1_047_576, 32_768),
        ("gpt-5", 400_000, 128_000),
        ("o3", 200_000, 100_000),
        ("claude-sonnet-4-5", 200_000, 64_000),
        ("claude-3-5-sonnet", 200_000, 8_192),
        ("gemini-2.5-pro", 1_048_576, 65_536),
        ("kimi-k2-thinking", 262_144, None),
    ],
)
def test_well_known_facts(name: str, window: int, max_output: int | None) -> None:
    row = find(name)
    assert row is not None
    assert (row.context_window, row.max_output) == (window, max_output)


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ("gpt-5", "gpt-5"),
        (" GPT-5 ", "gpt-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("openai/gpt-5", "gpt-5"),
        ("azure/gpt-4o", "gpt-4o"),
        ("openrouter/openai/gpt-5-codex", "gpt-5-codex"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic/claude-opus-4-1-20250805", "claude-opus-4-1"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("vertex_ai/claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
        ("meta-llama/llama-3.3-70b-instruct", "llama-3.3-70b-instruct"),
        ("x-ai/grok-4", "grok-4"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
    ],
)
def test_a_name_matches_its_row(asked: str, row: str) -> None:
    found = find(asked)
    assert found is not None
    assert found.name == row


@pytest.mark.parametrize(
    "asked",
    [
        "", "/", "openai/", "gpt", "gpt-5-ultra", "gpt-5-preview", "gpt-5-2025", "gpt-50",
        "my-gpt-5", "gpt-4-0613", "gpt-4-32k", "gpt-4o-audio-preview", "gpt-5:free",
        "claude-sonnet-4-5[1m]", "ollama/llama-3.3-70b-instruct", "llama3.3:70b",
        "lmstudio/gpt-oss-20b", "local/openai/gpt-5", "deepseek/gpt-5", "anthropic/gpt-4o",
        "gpt-5-2025-13-07", "gpt-5-20250800", "ft:gpt-4o-2024-08-06:org::id", "gpt-5/",
        "openai//gpt-5",
    ],
)  # fmt: skip
def test_a_near_match_is_no_match(asked: str) -> None:
    assert find(asked) is None
    limits = resolve(asked)
    assert (limits.window.value, limits.table_name) == (None, "")
    assert limits.budget().limit is None


@given(st.sampled_from([row.name for row in table()]), st.text("abcxyz019.-:/@", min_size=1))
def test_a_longer_name_is_never_taken_for_a_shorter_one(name: str, more: str) -> None:
    known = {n for row in table() for n in (row.name, *row.aliases)}
    found = find(name + more)
    if found is not None:
        assert name + more in known or re.fullmatch(r"[-@]20\d\d-?\d\d-?\d\d", more)


# Who is believed ---------------------------------------------------------------------------------


def test_each_number_is_taken_from_the_first_who_says_it() -> None:
    limits = resolve(
        "no-such-model",
        user=Stated("--window", window=50_000),
        endpoint=Stated("GET /models", window=60_000, max_output=4_000),
        session=Stated("session line 1", max_input=40_000),
    )
    assert limits.window == Fact(50_000, "--window", Origin.USER)
    assert limits.max_input == Fact(40_000, "session line 1", Origin.SESSION)
    assert limits.max_output.value is None
    assert "set aside: 4,000 belongs to a window of 60,000" in limits.max_output.source


@pytest.mark.parametrize("missing", range(4))
def test_the_order_is_user_endpoint_session_table(missing: int) -> None:
    sides = [
        Stated("user", window=11_000),
        Stated("endpoint", window=12_000),
        Stated("session", window=13_000),
    ]
    said = [None if at < missing else side for at, side in enumerate(sides)]
    window = resolve("gpt-4o", user=said[0], endpoint=said[1], session=said[2]).window
    expected = [11_000, 12_000, 13_000, 128_000][missing]
    origin = [Origin.USER, Origin.ENDPOINT, Origin.SESSION, Origin.TABLE][missing]
    assert (window.value, window.origin) == (expected, origin)


def test_a_users_window_is_not_overridden_by_a_hosted_model_of_the_same_name() -> None:
    limits = resolve("gpt-5", user=Stated("config.toml", window=32_768))
    assert limits.budget().limit == 32_768
    assert limits.max_output.value is None
    assert limits.max_input.value is None
    assert limits.clamp_output(200_000) == 128_000


def test_a_users_larger_window_is_not_capped_by_the_tables_max_input() -> None:
    limits = resolve("gpt-5", user=Stated("config.toml", window=1_000_000))
    assert limits.budget().limit == 1_000_000


def test_an_endpoint_that_agrees_with_the_table_keeps_the_tables_other_numbers() -> None:
    limits = resolve("gpt-4o", endpoint=Stated("GET /models", window=128_000))
    assert limits.max_output.value == 16_384
    assert limits.budget().limit == 128_000 - 16_384


def test_an_output_as_large_as_the_window_reserves_nothing() -> None:
    limits = resolve("local", endpoint=Stated("vLLM", window=8_192, max_output=8_192))
    assert limits.budget().limit == 8_192
    assert "fill the whole window" in limits.max_output.source


def test_what_the_user_states_is_never_set_aside() -> None:
    limits = resolve("gpt-4o", user=Stated("flags", window=8_000, max_output=9_000))
    assert limits.max_output.value == 9_000
    assert limits.budget().limit == 0
    assert limits.budget().warnings()[0].concern is Concern.NO_ROOM


def test_prices_come_with_their_source_and_date() -> None:
    limits = resolve("gpt-4o")
    assert (limits.price_input.value, limits.price_output.value) == (2.5, 10)
    assert re.search(r"table, gpt-4o, 20\d\d-\d\d-\d\d", limits.price_input.source)
    assert limits.price_cache_write.value is None
    assert resolve("no-such-model").price_input.value is None


@pytest.mark.parametrize("field", ["window", "max_input", "max_output"])
@pytest.mark.parametrize("value", [0, -5])
def test_a_limit_that_is_not_above_zero_is_refused_with_its_source(field: str, value: int) -> None:
    with pytest.raises(ThresherError, match="--flag") as caught:
        resolve("gpt-4o", user=Stated("--flag", **{field: value}))
    assert "above 0" in caught.value.msg


# The budget --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "limit"),
    [
        (budget(400_000, 272_000, 128_000), 272_000),
        (budget(200_000, None, 64_000, 20_000), 136_000),
        (budget(200_000, None, 8_192, 20_000), 180_000),
        (budget(200_000, 150_000, 8_192, 20_000), 150_000),
        (budget(200_000), 200_000),
        (budget(None, None, 64_000, 20_000), None),
        (budget(None, 100_000, 64_000), 100_000),
        (budget(10_000, None, 64_000), 0),
    ],
)
def test_limit_is_the_smaller_of_max_input_and_window_less_output(
    given_: Budget, limit: int | None
) -> None:
    assert given_.limit == limit


sizes = st.none() | st.integers(1, 2_000_000)


@given(sizes, sizes, sizes, sizes)
def test_the_limit_never_exceeds_a_bound_and_is_unknown_only_without_any(
    window: int | None, max_input: int | None, max_output: int | None, reserve: int | None
) -> None:
    it = budget(window, max_input, max_output, reserve)
    if window is None and max_input is None:
        assert it.limit is None
        return
    assert it.limit is not None
    assert it.limit >= 0
    if window is not None:
        assert it.limit == 0 or it.limit + max(max_output or 0, reserve or 0) <= window
    if max_input is not None:
        assert it.limit <= max_input


@given(sizes, sizes, sizes, sizes)
def test_the_explanation_has_every_number_that_decides(
    window: int | None, max_input: int | None, max_output: int | None, reserve: int | None
) -> None:
    told = budget(window, max_input, max_output, reserve).explain()
    numbers = [window, max_input] if window is None else [window, max_input, max_output, reserve]
    for number in numbers:
        assert number is None or f"{number:,}" in told
    assert ("limit unknown" in told) == (window is None and max_input is None)


def test_the_explanation_names_each_source_once() -> None:
    told = resolve("gpt-5").budget(Fact(20_000, "policy")).explain()
    assert told.startswith(
        "limit 272,000 = the smaller of max input 272,000 and "
        "(window 400,000 - the larger of max output 128,000 and reserve 20,000). "
    )
    assert "window, max input, max output: table, gpt-5" in told
    assert told.endswith("reserve: policy.")


@pytest.mark.parametrize(
    ("wanted", "max_output", "asked"),
    [(340_000, 65_536, 65_536), (1_000, 65_536, 1_000), (5_000, None, 5_000), (None, 65_536, None)],
)
def test_output_is_clamped_to_what_the_model_can_give(
    wanted: int | None, max_output: int | None, asked: int | None
) -> None:
    assert budget(400_000, None, max_output).clamp_output(wanted) == asked


def test_a_budget_survives_json() -> None:
    it = resolve("gpt-5").budget(Fact(20_000, "policy"))
    assert msgspec.json.decode(msgspec.json.encode(it), type=Budget) == it


# Warnings ----------------------------------------------------------------------------------------


def concerns(it: Budget, threshold: int | None = None, fixed: int | None = None) -> list[Concern]:
    part = None if fixed is None else request(fixed)
    return [warning.concern for warning in it.warnings(threshold=threshold, fixed=part)]


def test_sound_limits_give_no_warning() -> None:
    assert concerns(budget(200_000, None, 64_000), threshold=100_000, fixed=9_000) == []


def test_an_unknown_window_is_said_and_not_filled_in() -> None:
    warning = resolve("mystery-1").budget().warnings()[0]
    assert warning.concern is Concern.UNKNOWN_WINDOW
    assert "the table has no model 'mystery-1'" in warning.message


@pytest.mark.parametrize(("threshold", "warned"), [(8_999, True), (9_000, True), (9_001, False)])
def test_a_threshold_that_is_not_above_the_fixed_part_is_warned_of(
    threshold: int, warned: bool
) -> None:
    found = concerns(budget(200_000), threshold=threshold, fixed=9_000)
    assert found == ([Concern.THRESHOLD_BELOW_FIXED_PART] if warned else [])


def test_the_threshold_warning_does_not_need_a_known_window() -> None:
    assert concerns(budget(), threshold=100, fixed=9_000) == [
        Concern.UNKNOWN_WINDOW,
        Concern.THRESHOLD_BELOW_FIXED_PART,
    ]


def test_a_fixed_part_that_fills_the_limit_is_warned_of() -> None:
    assert concerns(budget(8_000, None, 2_000), fixed=6_000) == [Concern.FIXED_PART_TOO_LARGE]


def test_a_threshold_above_the_limit_is_warned_of() -> None:
    it = budget(200_000, None, 64_000)
    assert concerns(it, threshold=136_001) == [Concern.THRESHOLD_ABOVE_LIMIT]
    assert concerns(it, threshold=136_000) == []


def test_a_change_to_a_smaller_model_is_warned_of_only_when_the_context_does_not_fit() -> None:
    large, small = budget(128_000), budget(8_192)
    warning = downshift(large, small, request(60_000))
    assert warning is not None
    assert "60,000" in warning.message
    assert "8,192" in warning.message
    assert downshift(large, small, request(8_192)) is None
    assert downshift(large, budget(), request(60_000)) is None
    assert downshift(budget(), small, request(60_000)) is not None


# What endpoints say ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "window", "max_input", "max_output"),
    [
        ({"id": "a", "max_model_len": 32_768}, 32_768, None, None),
        ({"context_window": 131_072, "max_completion_tokens": 8_192}, 131_072, None, 8_192),
        (
            {
                "context_length": 400_000,
                "top_provider": {"context_length": 200_000, "max_completion_tokens": 16_000},
            },
            200_000,
            None,
            16_000,
        ),
        ({"max_context_length": 131_072, "loaded_context_length": 4_096}, 4_096, None, None),
        ({"max_input_tokens": 200_000, "max_output_tokens": 64_000}, None, 200_000, 64_000),
    ],
)
def test_an_endpoints_own_fields_are_read(
    entry: dict[str, object], window: int | None, max_input: int | None, max_output: int | None
) -> None:
    stated = stated_by_endpoint(entry, "GET /models")
    assert stated == Stated("GET /models", window, max_input, max_output)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"id": "gpt-5", "object": "model"},
        {"context_length": 0},
        {"context_length": -1},
        {"context_length": "128000"},
        {"context_length": True},
        {"context_length": None, "top_provider": None},
        {"top_provider": ["context_length"]},
    ],
)
def test_an_endpoint_that_states_nothing_usable_states_nothing(entry: dict[str, object]) -> None:
    assert stated_by_endpoint(entry, "GET /models") is None
