from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.gateways.base import ErrorKind
from thresher.core.gateways.errors import Place, fault_of_body, to_error

PLACE = Place("https://api.example/v1", "EXAMPLE_KEY", "secret-1234")

WORDINGS: list[tuple[str, int | None, int | None]] = [
    (
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 "
            "tokens (8000 in the messages, 1000 in the completion). Please reduce the length."
        ),
        9000,
        8192,
    ),
    (
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted "
            "in 130,125 tokens."
        ),
        130_125,
        128_000,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input.", None, None),
    ("prompt is too long: 210345 tokens > 200000 maximum", 210_345, 200_000),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        210_000,
        200_000,
    ),
    ("request_too_large: Request exceeds the maximum size", None, None),
    ("Input is too long for requested model.", None, None),
    (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_196_265,
        1_048_575,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537_812,
        131_072,
    ),
    ("Please reduce the length of the messages or completion.", None, None),
    (
        "Input (9500 tokens) is longer than the model's context length (8192 tokens).",
        9500,
        8192,
    ),
    ("prompt token count of 140000 exceeds the limit of 128000", 140_000, 128_000),
    (
        "the request exceeds the available context size (8192 tokens), try increasing it",
        None,
        8192,
    ),
    (
        "request (10500 tokens) exceeds the available context size (8192 tokens), try another",
        10_500,
        8192,
    ),
    (
        (
            "The number of tokens to keep from the initial prompt is greater than the context "
            "length (n_keep: 9123>= n_ctx: 4096). Load the model with a larger context length."
        ),
        9123,
        4096,
    ),
    ("invalid params, context window exceeds limit", None, None),
    (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 300123)",
        300_123,
        262_144,
    ),
    ("Context length exceeded", None, None),
    ("413 Request Entity Too Large", None, None),
    ("The context length is only 4096 tokens, which the prompt passes.", None, 4096),
    ("Input length 70000 exceeds the maximum context length 65536", 70_000, 65_536),
    ("prompt too long; exceeded max context length by 12 tokens", None, None),
    ("Prompt is too large for model with 32768 maximum context length", None, 32_768),
    ("The prompt exceeds the configured context size.", None, None),
    ("model_context_window_exceeded", None, None),
    ("Too many tokens in the prompt.", None, None),
    ("Token limit exceeded for this request", None, None),
    (
        "Requested token count exceeds the model's maximum context length of 4096 tokens.",
        None,
        4096,
    ),
    ("The maximum allowed input length is 2048.", None, None),
    ("max tokens allowed: 100000", None, None),
]


@pytest.mark.parametrize(("message", "used", "limit"), WORDINGS)
@pytest.mark.parametrize("status", [400, 422, 500, None])
def test_known_wordings_are_an_overflow_with_their_figures(
    message: str, used: int | None, limit: int | None, status: int | None
) -> None:
    error = to_error(fault_of_body({"error": {"message": message}}, status), PLACE)
    assert error.kind is ErrorKind.OVERFLOW
    assert (error.used, error.limit) == (used, limit)


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached: maximum context length is 100 tokens per minute",
        "Too many tokens, please wait before trying again.",
        "ThrottlingException: Too many tokens for this account",
        "Limit 30000, Requested 31000 tokens per min (TPM)",
        "Service unavailable: token limit exceeded on this worker",
    ],
)
def test_throttling_is_never_an_overflow(message: str) -> None:
    for status in (400, 429, 503, None):
        error = to_error(fault_of_body({"error": {"message": message}}, status), PLACE)
        assert error.kind is not ErrorKind.OVERFLOW
        assert (error.used, error.limit) == (None, None)


@pytest.mark.parametrize(
    "message",
    [
        "The conversation has become a bit much.",
        "Unsupported parameter: max_tokens",
        "max_tokens must be at most 4096",
        "tools: array too long",
        "messages.3: text content blocks must be non-empty",
        "context is missing",
        "",
    ],
)
def test_an_unknown_wording_is_refused_and_quoted(message: str) -> None:
    error = to_error(fault_of_body({"error": {"message": message}}, 400), PLACE)
    assert error.kind is ErrorKind.REFUSED
    assert message in error.msg


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"error": {"code": "context_length_exceeded"}}, ErrorKind.OVERFLOW),
        ({"error": {"type": "exceed_context_size_error"}}, ErrorKind.OVERFLOW),
        ({"error": {"code": "rate_limit_exceeded", "message": "x"}}, ErrorKind.RATE_LIMIT),
        ({"error": {"code": 429, "message": "x"}}, ErrorKind.RATE_LIMIT),
        ({"error": {"code": "invalid_api_key", "message": "x"}}, ErrorKind.AUTH),
        ({"error": {"type": "invalid_request_error", "message": "x"}}, ErrorKind.REFUSED),
        ({"error": {"code": "server_error", "message": "x"}}, ErrorKind.SERVER),
        ({"error": "overloaded, too many requests"}, ErrorKind.RATE_LIMIT),
        ({"type": "error", "code": "timeout", "message": "x"}, ErrorKind.TIMEOUT),
    ],
)
def test_errors_without_a_status_are_told_apart_by_code(body: object, kind: ErrorKind) -> None:
    assert to_error(fault_of_body(body), PLACE).kind is kind


def test_the_fields_of_llama_cpp_give_the_figures() -> None:
    body = {
        "error": {
            "code": 400,
            "type": "exceed_context_size_error",
            "message": "the request exceeds the available context size",
            "n_prompt_tokens": 9001,
            "n_ctx": 8192,
        }
    }
    error = to_error(fault_of_body(body, 400), PLACE)
    assert (error.kind, error.used, error.limit) == (ErrorKind.OVERFLOW, 9001, 8192)


@pytest.mark.parametrize(
    "said",
    [
        "Incorrect API key provided: secret-1234.",
        "bad header 'Authorization: Bearer abcdefghijkl'",
        "Incorrect API key provided: sk-" + "proj_abcd****************wxyz.",
    ],
)
def test_no_key_gets_into_a_message(said: str) -> None:
    error = to_error(fault_of_body({"error": {"message": said}}, 401), PLACE)
    assert "[key]" in error.msg
    assert not any(part in error.msg for part in ("secret-1234", "abcdefghijkl", "wxyz"))
    assert "EXAMPLE_KEY" in error.msg


def test_a_web_page_is_told_by_its_title() -> None:
    page = "<!DOCTYPE html><html><head><title> 502 Bad Gateway </title></head><body>" + "x" * 5000
    error = to_error(fault_of_body(page, 502), PLACE)
    assert "502 Bad Gateway" in error.msg
    assert "xxxx" not in error.msg


def test_a_long_message_is_cut() -> None:
    error = to_error(fault_of_body({"error": {"message": "word " * 10_000}}, 500), PLACE)
    assert len(error.msg) < 1_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=40),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
bodies = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {
            "error": json_values
            | st.fixed_dictionaries({"message": json_values, "code": json_values})
        }
    ),
)


@given(bodies, st.one_of(st.none(), st.integers(300, 599)))
def test_any_body_becomes_an_error_with_one_sentence(body: object, status: int | None) -> None:
    error = to_error(fault_of_body(body, status), PLACE)
    assert error.kind in ErrorKind
    assert "\n" not in error.msg
    assert "api.example" in error.msg
