"""OpenTelemetry exports as JSON (OTLP/JSON): their spans and log records, one after the other.

The collector's file exporter writes one export request a line; a single document, also a
pretty-printed one, is read too. The form is that of the protocol: `resourceSpans` or
`resourceLogs`, scopes below them, values wrapped by their type, times in nanoseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from .codex_items import dict_of, text_of
from .lines import Line, open_bytes, parse, read_lines, unreadable
from .sample import Sample

_BEGINNING: Final = re.compile(rb'\s*\{\s*"resource(?:Spans|Logs|Metrics)"\s*:')
_KINDS: Final = ("resourceSpans", "resourceLogs", "resourceMetrics")
_DEEPEST: Final = 40


class Signal(msgspec.Struct, frozen=True):
    """A span, or a log record (`is_log`, then `name` is its body). Times are seconds (UTC)."""

    name: str
    attributes: dict[str, Any]
    scope: str = ""
    service: str = ""
    trace: str = ""
    id: str = ""
    parent: str = ""
    start: float = 0.0
    end: float = 0.0
    failed: str = ""
    """What the status says of an error; "error" where it gives no words."""
    is_log: bool = False

    def number(self, key: str) -> int | None:
        """An attribute that is a whole number; None where it is missing or none."""
        value = self.attributes.get(key)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, key: str) -> str:
        """An attribute that is a text."""
        return text_of(self.attributes.get(key))


def recognised(sample: Sample) -> str:
    """How a file is known to be an export; empty when it is not."""
    if _BEGINNING.match(sample.head.removeprefix(b"\xef\xbb\xbf")):
        return "its beginning"
    return sample.line_like(is_export)


def is_export(value: dict[str, Any]) -> bool:
    """Whether an object is an export request of any kind."""
    return any(isinstance(value.get(kind), list) for kind in _KINDS)


def export_lines(path: Path) -> Iterator[Line]:
    """The export requests of a file. Errors of the file itself are ThresherError."""
    whole = whole_document(path)
    if whole is not None:
        yield whole
        return
    yield from read_lines(path)


def whole_document(path: Path) -> Line | None:
    """The file as one object, where its first line alone is not one."""
    try:
        with open_bytes(path) as file:
            first = file.readline()
            if parse(first)[0] is not None or not _BEGINNING.match(first + file.readline()):
                return None
            file.seek(0)
            data = file.read()
    except (OSError, EOFError) as error:
        raise unreadable(path, error) from error
    value, fault = parse(data)
    return Line(0, 0, len(data), value, fault) if value is not None else None


def signals(value: dict[str, Any]) -> list[Signal]:
    """What one export request holds, in the order in which it ended: inner spans before outer."""
    found = [
        _signal(each, scope, service, is_log)
        for kind, inner, leaves, is_log in (
            ("resourceSpans", "scopeSpans", "spans", False),
            ("resourceLogs", "scopeLogs", "logRecords", True),
        )
        for resource in _objects(value.get(kind))
        for service in [_service(resource)]
        for scoped in _objects(resource.get(inner))
        for scope in [text_of(dict_of(scoped.get("scope")).get("name"))]
        for each in _objects(scoped.get(leaves))
    ]
    return sorted(found, key=lambda signal: (signal.end, -signal.start))


def _signal(value: dict[str, Any], scope: str, service: str, is_log: bool) -> Signal:
    status = dict_of(value.get("status"))
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    start = value.get("timeUnixNano" if is_log else "startTimeUnixNano")
    end = value.get("endTimeUnixNano", value.get("observedTimeUnixNano", start))
    return Signal(
        name=text_of(_value(dict_of(value.get("body")))) if is_log else text_of(value.get("name")),
        attributes=_attributes(value.get("attributes")),
        scope=scope,
        service=service,
        trace=text_of(value.get("traceId")),
        id=text_of(value.get("spanId")),
        parent=text_of(value.get("parentSpanId")),
        start=_seconds(start),
        end=_seconds(start if is_log and start else end),
        failed=(text_of(status.get("message")) or "error") if failed else "",
        is_log=is_log,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _service(resource: dict[str, Any]) -> str:
    attributes = _attributes(dict_of(resource.get("resource")).get("attributes"))
    return text_of(attributes.get("service.name"))


def _attributes(value: object) -> dict[str, Any]:
    return {text_of(e.get("key")): _value(dict_of(e.get("value"))) for e in _objects(value)}


def _value(wrapped: dict[str, Any], depth: int = 0) -> Any:
    """A value without the wrapper that names its type; a 64-bit number is written as a text."""
    for kind, value in wrapped.items():
        match kind:
            case "intValue":
                try:
                    return int(value)
                except (TypeError, ValueError, OverflowError):
                    return None
            case "arrayValue" if depth < _DEEPEST:
                values = _objects(dict_of(value).get("values"))
                return [_value(each, depth + 1) for each in values]
            case "stringValue" | "boolValue" | "doubleValue":
                return value
            case _:
                pass
    return None


def _seconds(nanoseconds: object) -> float:
    try:
        found = int(nanoseconds) / 1e9  # type: ignore[call-overload]  # any JSON value: the except
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return found if 0 < found < 1e11 else 0.0
