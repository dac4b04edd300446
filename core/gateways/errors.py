"""Provider errors in our words: which kind it is, what to do, and the figures an overflow tells.

Servers that speak the same protocol have no common language for errors. A request that is too long
is recognised by its code, by status 413, by a bare 400 without a body, and by the wordings below,
which are those of the servers that OpenCode recognises (shared knowledge of the field: OpenAI,
Anthropic, Google, Bedrock, xAI, Groq, Moonshot, MiniMax, GitHub Copilot, OpenRouter, vLLM,
llama.cpp, LM Studio, Ollama). A wording that is not known stays what its status says: it is shown
as refused, and never taken for an overflow (litellm#10793).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from .base import ErrorKind, GatewayError


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider said when it failed, taken apart. `body` is its JSON, if it was JSON."""

    message: str = ""
    code: str = ""
    type: str = ""
    status: int | None = None
    body: Mapping[str, Any] = {}
    empty: bool = False
    """The answer had no body at all."""
    retry_after: float | None = None


class Place(msgspec.Struct, frozen=True):
    """Where a request went, for the sentence; `secret` is taken out of every text."""

    base_url: str
    key_variable: str = ""
    secret: str = ""


def to_error(fault: Fault, place: Place) -> GatewayError:
    """The error for what a provider said, with one sentence that tells what to do."""
    kind = classify(fault)
    used, limit = overflow_figures(fault) if kind is ErrorKind.OVERFLOW else (None, None)
    return GatewayError(
        kind,
        _without_secrets(_sentence(kind, fault, place), place.secret),
        status=fault.status,
        retry_after=fault.retry_after,
        used=used,
        limit=limit,
    )


def classify(fault: Fault) -> ErrorKind:
    """The kind of a fault, by code and status first, by its wording only for overflow."""
    codes = {fault.code.lower(), fault.type.lower()}
    if is_overflow(fault):
        return ErrorKind.OVERFLOW
    if codes & _NO_QUOTA:
        return ErrorKind.REFUSED
    if fault.status is None:
        return _kind_of_code(codes, fault.message)
    if fault.status in (401, 403):
        return ErrorKind.AUTH
    if fault.status == 429:
        return ErrorKind.RATE_LIMIT
    if fault.status in (408, 504):
        return ErrorKind.TIMEOUT
    if fault.status in (409, 425) or fault.status >= 500:
        return ErrorKind.SERVER
    return ErrorKind.REFUSED


def is_overflow(fault: Fault) -> bool:
    """Whether the provider refused the request because it is too long for the model."""
    if {fault.code.lower(), fault.type.lower()} & _OVERFLOW_CODES or fault.status == 413:
        return True
    if fault.status == 400 and fault.empty:
        return True
    if fault.status in (401, 403, 429) or _THROTTLING.search(fault.message):
        return False
    return any(pattern.search(fault.message) for pattern in _OVERFLOW)


def overflow_figures(fault: Fault) -> tuple[int | None, int | None]:
    """Tokens used and the limit, as the body's own fields or the message give them."""
    detail = fault.body.get("error", fault.body)
    if isinstance(detail, Mapping):
        used, limit = _whole(detail.get("n_prompt_tokens")), _whole(detail.get("n_ctx"))
        if used is not None and limit is not None:
            return used, limit
    used = limit = None
    for pattern in _FIGURES:
        found = pattern.search(fault.message)
        if found is None:
            continue
        given = found.groupdict()
        used = used or _sum_of(given.get("used"))
        limit = limit or _sum_of(given.get("limit"))
        if used and limit:
            break
    return used, limit


def parse_retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (a number or an HTTP date)."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(lower[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < _LONGEST_WAIT else None
    try:
        when = parsedate_to_datetime(lower["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    seconds = (when - (now or datetime.now(UTC))).total_seconds()
    return min(max(0.0, seconds), _LONGEST_WAIT)


def fault_of_body(
    body: object, status: int | None = None, retry_after: float | None = None
) -> Fault:
    """Take an error body apart: `{"error": {...}}`, the inner object alone, or plain text."""
    if not isinstance(body, Mapping):
        text = "" if body is None else str(body).strip()
        return Fault(message=_plain(text), status=status, empty=not text, retry_after=retry_after)
    detail = body.get("error", body)
    if isinstance(detail, str):
        detail = {"message": detail, **{k: v for k, v in body.items() if k != "error"}}
    if not isinstance(detail, Mapping):
        detail = {}
    message = detail.get("message") or detail.get("detail") or body.get("message") or ""
    return Fault(
        message=message if isinstance(message, str) else msgspec.json.encode(message).decode(),
        code=_word(detail.get("code")),
        type=_word(detail.get("type")),
        status=status,
        body=body,
        retry_after=retry_after,
    )


def host_of(base_url: str) -> str:
    """The server's name and port, for a sentence."""
    return base_url.partition("://")[2].partition("/")[0] or base_url


def network_error(place: Place, why: str) -> GatewayError:
    """The connection could not be made, or broke."""
    msg = (
        f"{host_of(place.base_url)} cannot be reached or broke the connection ({why}): check that "
        f"the server runs and that the base URL {place.base_url} is right."
    )
    return GatewayError(ErrorKind.NETWORK, _without_secrets(msg, place.secret))


def timeout_error(place: Place) -> GatewayError:
    """Nothing came within the time allowed."""
    return GatewayError(
        ErrorKind.TIMEOUT,
        f"{host_of(place.base_url)} did not answer in time: try again, or allow more seconds "
        "with `timeout` under [model].",
    )


def cut_off(place: Place) -> GatewayError:
    """A stream ended before its end was announced."""
    return GatewayError(
        ErrorKind.NETWORK,
        f"The answer of {host_of(place.base_url)} ended before it was complete: it is not used. "
        "Try again; if it happens each time, look at the server's own log.",
    )


def malformed(place: Place, what: str) -> GatewayError:
    """The answer is not what the protocol says."""
    msg = (
        f"{host_of(place.base_url)} answered with {what}: check that the base URL "
        f"{place.base_url} is the one of an OpenAI-compatible API (it often ends in /v1) and that "
        "the wire is the one it speaks."
    )
    return GatewayError(ErrorKind.MALFORMED, _without_secrets(msg, place.secret))


def _sentence(kind: ErrorKind, fault: Fault, place: Place) -> str:
    host = host_of(place.base_url)
    said = _said(fault)
    status = f" ({fault.status})" if fault.status is not None else ""
    variable = place.key_variable or "the key variable"
    match kind:
        case ErrorKind.AUTH:
            return f"{host} did not accept the key{status}{said} Put a valid key into {variable}."
        case ErrorKind.RATE_LIMIT:
            wait = f"{fault.retry_after:g} s" if fault.retry_after is not None else "a little"
            return f"{host} is limiting requests{status}{said} Wait {wait} and try again."
        case ErrorKind.OVERFLOW:
            bare = " It said nothing more, which is how some servers refuse a long request."
            return (
                f"{host} refused the request as too long{status}{said}"
                f"{bare if fault.empty else ''} Compact the context and send it again."
            )
        case ErrorKind.SERVER:
            return f"{host} failed{status}{said} Try again; if it goes on, look at its status."
        case ErrorKind.TIMEOUT:
            return f"{host} gave up waiting{status}{said} Try again."
        case _ if {fault.code.lower(), fault.type.lower()} & _NO_QUOTA:
            return f"The account at {host} has no quota left{status}{said} Look at its billing."
        case _ if fault.status == 404:
            return (
                f"{host} does not know this model or address{status}{said} Check the model name, "
                f"the base URL {place.base_url} and the wire."
            )
        case _ if fault.status is not None and 300 <= fault.status < 400:
            return (
                f"{host} sends the request on to another address{status}, which is not followed "
                "with a key. Put the final address into the base URL."
            )
        case _:
            return (
                f"{host} did not accept the request{status}{said} Change what it names; sending "
                "the same again will not help."
            )


def _said(fault: Fault) -> str:
    text = " ".join(fault.message.split())
    if not text:
        return f": code {fault.code}." if fault.code else "."
    if len(text) > _LONGEST_QUOTE:
        text = f"{text[:_LONGEST_QUOTE]} ..."
    return f': "{text}".'


def _plain(text: str) -> str:
    """A web page as an error body says nothing: keep its title."""
    if text[:200].lstrip().lower().startswith(("<!doctype", "<html")):
        title = re.search(r"<title[^>]*>([^<]{1,200})", text, re.IGNORECASE)
        return f"a web page, {title[1].strip()}" if title else "a web page"
    return text


def _without_secrets(text: str, secret: str) -> str:
    if len(secret) >= 4:
        text = text.replace(secret, "[key]")
    return _KEY_LIKE.sub("[key]", text)


def _kind_of_code(codes: set[str], message: str) -> ErrorKind:
    """The kind of an error that came inside a stream, without a status."""
    if codes & {"rate_limit_exceeded", "rate_limit_error", "too_many_requests", "429"}:
        return ErrorKind.RATE_LIMIT
    if codes & {"invalid_api_key", "authentication_error", "permission_error", "401", "403"}:
        return ErrorKind.AUTH
    if codes & {"timeout", "timeout_error", "408", "504"}:
        return ErrorKind.TIMEOUT
    if codes & {"invalid_request_error", "invalid_prompt", "bad_request", "400", "404", "422"}:
        return ErrorKind.REFUSED
    if _THROTTLING.search(message):
        return ErrorKind.RATE_LIMIT
    return ErrorKind.SERVER


def _word(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _sum_of(text: str | None) -> int | None:
    """A number, or a sum of numbers as in "190000 + 20000"; thousands may be set apart."""
    if not text:
        return None
    numbers = [re.sub(r"\D", "", part) for part in text.split("+")]
    return sum(int(number[:15]) for number in numbers if number) or None


_LONGEST_QUOTE = 600
_LONGEST_WAIT = 86_400.0

_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9_*.-]{8,}|Bearer\s+\S+", re.IGNORECASE
)

_NO_QUOTA = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})

_OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_context_window_exceeded",
        "context_window_exceeded",
        "request_too_large",
    }
)

_THROTTLING = re.compile(
    r"rate[ _-]?limit|too many requests|throttl|\bper (?:minute|second|hour|day|min)\b"
    r"|\b[rt]p[md]\b|^\s*service ?unavailable|please wait|quota",
    re.IGNORECASE,
)

_OVERFLOW = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"prompt (?:is )?too long",
        r"request_too_large|request entity too large",
        r"input (?:is )?too long for (?:the )?requested model",
        r"exceeds? (?:the |this model'?s? |the model'?s )?context (?:window|limit|length)",
        r"exceeds? (?:the |this |the model'?s? |model'?s? |its )*maximum context length",
        r"input token count.{0,80}exceeds? the maximum",
        r"maximum (?:number of )?(?:input )?tokens allowed|max tokens allowed",
        r"maximum prompt length is [\d,_]+",
        r"reduce the length of the (?:messages|prompt|input)",
        r"maximum context length is [\d,_]+ tokens",
        r"maximum allowed input length",
        r"input \([\d,_]+ tokens\) (?:is )?longer than the model'?s? context length",
        r"(?:token count|prompt|input|tokens?|request).{0,60}exceeds the limit of [\d,_]+",
        r"exceeds the available context size",
        (
            r"(?:greater|larger|longer) than the (?:model'?s )?(?:available )?"
            r"context (?:length|window|size)"
        ),
        r"context (?:window|size) exceeds (?:the )?limit",
        r"exceeded (?:the )?model (?:token|context) limit",
        r"context(?: |_)(?:length|window) (?:is |was )?exceeded|context_length_exceeded",
        r"context length is only [\d,_]+ tokens",
        r"input length.{0,80}exceed.{0,40}context (?:length|limit|window)",
        r"too large for model with [\d,_]+ maximum context length",
        r"(?:exceeds?|larger than|beyond) (?:the )?configured context size",
        r"model_context_window_exceeded",
        r"too many (?:input |prompt )?tokens",
        r"token limit (?:was |is )?exceeded|exceed(?:s|ed) (?:the )?(?:model'?s )?token limit",
    )
)

_N = r"[\d][\d,_]*"
_FIGURES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"input \((?P<used>{_N}) tokens\).{{0,40}}context length \((?P<limit>{_N}) tokens\)",
        rf"(?P<used>{_N}) tokens? > (?P<limit>{_N})",
        rf"(?P<used>{_N} \+ {_N}) > (?P<limit>{_N})",
        (
            rf"input token count \(?(?:of )?(?P<used>{_N})\)? exceeds.{{0,60}}?"
            rf"allowed \(?(?P<limit>{_N})"
        ),
        (
            rf"(?:token count of|requested) (?P<used>{_N})(?: tokens)? exceeds "
            rf"the (?:limit|maximum) of (?P<limit>{_N})"
        ),
        rf"n_keep: (?P<used>{_N}) ?>=? ?n_ctx: (?P<limit>{_N})",
        rf"token limit: (?P<limit>{_N}) \(requested: (?P<used>{_N})",
        rf"request \((?P<used>{_N}) tokens\) exceeds the available context size \((?P<limit>{_N})",
        rf"available context size \((?P<limit>{_N})",
        rf"maximum prompt length is (?P<limit>{_N})",
        rf"(?:maximum )?context length is (?:only )?(?P<limit>{_N})",
        rf"maximum context length (?:of )?(?P<limit>{_N})",
        rf"with (?P<limit>{_N}) maximum context length",
        rf"exceeds the limit of (?P<limit>{_N})",
        rf"context (?:window|size|limit) (?:of|is) (?P<limit>{_N})",
        rf"requested (?:a total of |about )?(?P<used>{_N}) (?:input )?tokens",
        (
            rf"(?:resulted in|contains|has|have|(?<!context )length of) (?P<used>{_N}) "
            r"(?:input |prompt )?tokens"
        ),
        rf"prompt (?:of|is|with) (?P<used>{_N}) tokens",
        rf"passed (?P<used>{_N}) input tokens",
        rf"input length (?:of )?\(?(?P<used>{_N})",
    )
)
