"""Usage as the two OpenAI protocols report it, brought into one form.

In that form cached and cache-writing tokens lie inside the input. Some servers that translate other
dialects report them beside it; then they are added, so that the size of the request comes out.
What a server does not say stays None; a report of no input at all is no report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tokens import Usage


def response_usage(raw: object) -> Usage | None:
    """`usage` of a Responses answer."""
    return _usage(raw, "input_tokens", "output_tokens")


def chat_usage(raw: object) -> Usage | None:
    """`usage` of a Chat Completions answer."""
    return _usage(raw, "prompt_tokens", "completion_tokens")


def _usage(raw: object, input_field: str, output_field: str) -> Usage | None:
    if not isinstance(raw, Mapping):
        return None
    spent = _count(raw.get(input_field))
    if not spent:
        return None
    inside = _details(raw, f"{input_field}_details")
    cached = _first(
        inside.get("cached_tokens"),
        raw.get("prompt_cache_hit_tokens"),
        raw.get("cache_read_input_tokens"),
    )
    written = _first(inside.get("cache_write_tokens"), raw.get("cache_creation_input_tokens"))
    output = _count(raw.get(output_field)) or 0
    total = _count(raw.get("total_tokens"))
    beside = (cached or 0) + (written or 0)
    if beside and (beside > spent or total == spent + beside + output):
        spent += beside
    return Usage(
        input_tokens=spent,
        output_tokens=output,
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=_count(_details(raw, f"{output_field}_details").get("reasoning_tokens")),
        total_tokens=total,
    )


def _details(raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = raw.get(field)
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    return int(value) if value == value and value < 2**53 else None


def _first(*values: object) -> int | None:
    return next((count for value in values if (count := _count(value)) is not None), None)
