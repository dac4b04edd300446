"""A log of model requests: rows in several wrappings, and what of them the model was sent.

Bodies are those of Chat Completions (`messages`), Responses (`input`) and Anthropic Messages
(`messages` beside `system`). A row is such a body, or has it under `body` or `request` with the
answer and its usage beside it. A file holds one row a line, or is one JSON array of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ..tokens import Usage
from .base import WireItem
from .codex_items import dict_of, int_of, text_of, texts_of
from .lines import Line, open_bytes, parse, read_lines, unreadable
from .sample import Sample
from .times import seconds_of

_WRAPPINGS: Final = ("body", "request", "request_body", "requestBody", "payload", "params", "json")
_ANSWERS: Final = ("response", "reply", "response_body", "responseBody", "result", "output")
_MOST: Final = 256 << 20
"""Bytes of a JSON document that are read at most."""


class Logged(msgspec.Struct, frozen=True):
    """A request of the log. `row` counts from 0; `sent` is `messages` or `input` as it stands.

    `system` is the system text beside it, `answer` the text of the answer where there is one, `at`
    seconds (UTC; 0: not known), `status` the HTTP status (0: not known), `label` the log's own name
    for it.
    """

    row: int
    sent: list[WireItem]
    wire: str
    system: str = ""
    model: str = ""
    answer: str = ""
    usage: Usage | None = None
    at: float = 0.0
    status: int = 0
    label: str = ""
    goes_on: bool = False
    """Only what is new is sent: the server keeps the rest (`previous_response_id`)."""


def logged(row: int, value: dict[str, Any], before: dict[str, Logged]) -> Logged | None:
    """A row as a request; None when it is none. `before` maps the log's own numbers to requests,
    for rows that say they are the same as one of these."""
    label = str(value["n"]) if isinstance(value.get("n"), int) else ""
    same = value.get("same_input_as")
    found = before.get(str(same)) if same is not None else None
    body = body_of(value)
    if body is None and found is None:
        return None
    if body is not None:
        found = _of_body(row, body, value)
    if found is None:
        return None
    found = msgspec.structs.replace(
        found,
        row=row,
        label=label,
        status=int_of(value.get("status")) or 0,
        usage=usage_of(value),
        answer=_answer(value),
        at=_time(value),
    )
    if label:
        before[label] = found
    return found


def body_of(value: dict[str, Any], depth: int = 0) -> dict[str, Any] | None:
    """The body of a request in a row, or None."""
    if _is_body(value):
        return value
    if depth > 2:
        return None
    for key in _WRAPPINGS:
        inner = value.get(key)
        if isinstance(inner, str) and inner.lstrip().startswith("{"):
            inner, _ = parse(inner.encode("utf-8", "replace"))
        if isinstance(inner, dict) and (found := body_of(inner, depth + 1)) is not None:
            return found
    return None


def is_request(value: dict[str, Any]) -> bool:
    """A row of a log."""
    return body_of(value) is not None


def rows(path: Path) -> Iterator[Line]:
    """The rows of a file, numbered from 0; of a JSON document its elements."""
    document = read_document(path)
    if document is None:
        yield from read_lines(path)
        return
    for number, value in enumerate(document):
        good = isinstance(value, dict)
        fault = "" if good else "it is no object"
        yield Line(number, 0, 0, value if good else None, fault)


def logged_requests(path: Path) -> Iterator[Logged]:
    """All requests of a log, in order; rows that are none are passed over. A file that cannot be
    read is a ThresherError."""
    numbers: dict[str, Logged] = {}
    for line in rows(path):
        if line.value is not None and (found := logged(line.number, line.value, numbers)):
            yield found


def read_document(path: Path) -> list[Any] | None:
    """The rows of a file that is one JSON array or one object; None for a file of lines."""
    try:
        with open_bytes(path) as file:
            head = file.read(1 << 16)
            if not may_be_document(head):
                return None
            data = head + file.read(_MOST)
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error
    try:
        value = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict):
        for key in ("requests", "entries", "calls"):
            if isinstance(value.get(key), list):
                return list(value[key])
    return list(value) if isinstance(value, list) else [value]


def may_be_document(head: bytes) -> bool:
    """The file begins like one JSON value over several lines, or like an array."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        return True
    first = start.split(b"\n", 1)[0]
    return start.startswith(b"{") and parse(first)[0] is None


def recognised(sample: Sample) -> str:
    """How a log is known: by a line, or by the words of a document."""
    if found := sample.line_like(is_request):
        return found
    head = sample.head
    if may_be_document(head) and (b'"messages"' in head or b'"input"' in head):
        document = _documented(head)
        if document is None or any(isinstance(row, dict) and is_request(row) for row in document):
            return "the document"
    return ""


def usage_of(value: dict[str, Any]) -> Usage | None:
    """The usage beside a request, in any of the three dialects; None when there is none.

    Anthropic counts cached tokens beside the input, the others inside it.
    """
    told = dict_of(value.get("usage"))
    if not told:
        answers = (dict_of(value.get(key)) for key in _ANSWERS)
        told = next((dict_of(each.get("usage")) for each in answers if each.get("usage")), {})
    output = _number(told, "output_tokens", "completion_tokens", "completion")
    input = _number(told, "input_tokens", "prompt_tokens", "prompt")
    if input is None:
        return None
    details = dict_of(told.get("input_tokens_details")) or dict_of(
        told.get("prompt_tokens_details")
    )
    thought = dict_of(told.get("output_tokens_details")) or dict_of(
        told.get("completion_tokens_details")
    )
    cached = int_of(details.get("cached_tokens"))
    read, write = (
        _number(told, "cache_read_input_tokens"),
        _number(told, "cache_creation_input_tokens"),
    )
    if read is not None or write is not None:
        input, cached = input + (read or 0) + (write or 0), read
    return Usage(
        input_tokens=input,
        output_tokens=output or 0,
        cached_tokens=cached if cached is not None else _number(told, "cached"),
        cache_write_tokens=write,
        reasoning_tokens=int_of(thought.get("reasoning_tokens")),
        total_tokens=_number(told, "total_tokens"),
    )


def without_system(sent: Iterable[WireItem]) -> list[WireItem]:
    """The messages without those of the system at their beginning."""
    items = list(sent)
    start = 0
    while start < len(items) and items[start].get("role") == "system":
        start += 1
    return items[start:]


def _documented(head: bytes) -> list[Any] | None:
    """The rows of a document that is whole in the sample; None when it is longer."""
    try:
        value = msgspec.json.decode(head)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else [value]


def _is_body(value: dict[str, Any]) -> bool:
    messages = value.get("messages", value.get("input"))
    if isinstance(messages, str):
        return "input" in value and isinstance(value.get("model"), str)
    if not isinstance(messages, list) or not messages:
        return False
    return all(isinstance(each, dict) and ("role" in each or "type" in each) for each in messages)


def _of_body(row: int, body: dict[str, Any], value: dict[str, Any]) -> Logged:
    sent = body.get("messages", body.get("input"))
    items = [{"role": "user", "content": sent}] if isinstance(sent, str) else sent
    system = body.get("system", body.get("instructions"))
    text = text_of(system) or "\n".join(texts_of(system))
    wire = "responses" if "messages" not in body else "anthropic" if _is_anthropic(body) else "chat"
    return Logged(
        row=row,
        sent=[each for each in items or () if isinstance(each, dict)],
        wire=wire,
        system=text,
        model=text_of(body.get("model")) or text_of(value.get("model")),
        goes_on=bool(body.get("previous_response_id")),
    )


def _is_anthropic(body: dict[str, Any]) -> bool:
    if "system" in body or "anthropic_version" in body:
        return True
    kinds = {
        part.get("type")
        for each in body["messages"]
        if isinstance(each, dict) and isinstance(each.get("content"), list)
        for part in each["content"]
        if isinstance(part, dict)
    }
    return bool(kinds & {"tool_use", "tool_result", "thinking"})


def _answer(value: dict[str, Any]) -> str:
    for key in _ANSWERS:
        answer = value.get(key)
        if isinstance(answer, str) and key != "output":
            return answer
        answer = dict_of(answer)
        if text := text_of(answer.get("text")) or text_of(answer.get("output_text")):
            return text
        choices = answer.get("choices")
        first = dict_of(choices[0]) if isinstance(choices, list) and choices else {}
        message = dict_of(first.get("message"))
        content = message.get("content", answer.get("content"))
        if text := text_of(content) or "\n".join(texts_of(content)):
            return text
        output = answer.get("output")
        parts = (
            [dict_of(each).get("content") for each in output] if isinstance(output, list) else []
        )
        if text := "\n".join(text for part in parts for text in texts_of(part)):
            return text
    return ""


def _time(value: dict[str, Any]) -> float:
    for key in ("timestamp", "time", "at", "created", "ts"):
        told = value.get(key)
        if isinstance(told, str) and (found := seconds_of(told)):
            return found
        if isinstance(told, int | float) and not isinstance(told, bool) and 0 < told < 1e14:
            return told / 1000 if told > 1e11 else float(told)
    return 0.0


def _number(told: dict[str, Any], *names: str) -> int | None:
    return next((found for name in names if (found := int_of(told.get(name))) is not None), None)
