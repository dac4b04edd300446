"""What the offline stand-in can say about tool outputs: one line each, found by rules.

Everything here is taken from outputs in the conversation; the files themselves are not looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from .offline_transcript import Entry, Who

_LONGEST = 240
_MATCHES_TOLD = 6


def facts(entries: Iterable[Entry]) -> list[str]:
    """Findings in the order in which they were made, each once.

    The slices that were read of one file give one finding, at the place of its last slice.
    """
    found: dict[str, str] = {}
    slices: dict[str, list[str]] = {}
    for number, entry in enumerate(entries):
        if entry.who is not Who.OUTPUT:
            continue
        if entry.tool == "read_file" and not _failed(entry):
            path = entry.argument("path")
            slices.setdefault(path, []).extend(plain_lines(entry.text))
            found.pop(path, None)
            if told := _of_file(path, slices[path]):
                found[path] = told
        else:
            for at, told in enumerate(_of_output(entry)):
                found[f"{number}.{at}"] = told
    return list(dict.fromkeys(_short(told) for told in found.values()))


def plain_lines(text: str) -> list[str]:
    """The lines of a read_file output, without line numbers and notes."""
    lines = []
    for line in text.splitlines():
        number, tab, rest = line.partition("\t")
        if tab and number.strip().isdigit():
            lines.append(rest)
        elif not _NOTE.match(line):
            lines.append(line)
    return lines


class Match(msgspec.Struct, frozen=True):
    """A line that grep found."""

    path: str
    line: int
    text: str


def matches(text: str) -> list[Match]:
    """The matches in a grep output."""
    return [
        Match(found["path"], int(found["line"]), found["text"].strip())
        for found in _MATCH.finditer(text)
    ]


def densest(found: list[Match], path: str, span: int = 60) -> int | None:
    """The line from which `span` lines hold the most matches in a file; None without any."""
    lines = [match.line for match in found if match.path == path]
    if not lines:
        return None
    return max(lines, key=lambda start: sum(start <= line < start + span for line in lines))


_NOTE = re.compile(r"\[(?:lines \d|read as |\.\.\. |the file is empty)")
_MATCH = re.compile(r"^(?P<path>[^:\n]{1,300}):(?P<line>\d{1,9}):(?P<text>.*)$", re.MULTILINE)
_DEFINITION = re.compile(
    r"^(?:export |pub |async |default |static )*"
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|type)\s+(\w+)"
)
_CLOCK = re.compile(r"\d{2}:\d{2}:\d{2}")
_LEVEL = re.compile(r"\b(ERROR|CRITICAL|FATAL|WARN(?:ING)?)\b")


def _failed(entry: Entry) -> bool:
    return entry.text.startswith("Error:")


def _of_output(entry: Entry) -> Iterator[str]:
    if _failed(entry):
        yield f"{entry.tool} {_main_argument(entry)} did not work: {entry.text[6:].strip()}"
        return
    lines = [line for line in entry.text.splitlines() if line.strip()]
    match entry.tool:
        case "glob":
            names = [line for line in lines if not line.startswith("[")]
            kinds = Counter(name.rpartition(".")[2] for name in names if "." in name)
            mostly = ", ".join(f"{count} .{kind}" for kind, count in kinds.most_common(3))
            yield f"{len(names)} files match {entry.argument('pattern')} ({mostly or 'no suffix'})"
        case "grep":
            found = matches(entry.text)
            yield f"{len(found)} lines match {entry.argument('pattern')}"
            for told in _spread(found):
                yield f"`{told.path}` line {told.line}: {told.text}"
        case "bash":
            if lines:
                end = next((x for x in reversed(lines) if not x.startswith("[")), lines[-1])
                code = re.search(r"\[exit code (\d+)\]", entry.text)
                failed = f" (exit code {code[1]})" if code else ""
                yield f"`{entry.argument('command')}` ended with: {end.strip()}{failed}"
        case "write_file" | "edit_file" | "task":
            yield f"{entry.tool}: {lines[0] if lines else 'done'}"


def _spread(found: list[Match]) -> list[Match]:
    """A few matches, evenly over all of them, the first included."""
    step = max(1, -(-len(found) // _MATCHES_TOLD))
    return found[::step]


def _of_file(path: str, lines: list[str]) -> str:
    if not any(line.strip() for line in lines):
        return f"`{path}` is empty"
    if path.endswith(".log") or sum(bool(_LEVEL.search(line)) for line in lines) > 5:
        return _of_log(path, lines)
    names = list(dict.fromkeys(m[1] for line in lines if (m := _DEFINITION.match(line))))
    defines = f"; defines {', '.join(names[:6])}" if names else ""
    first = next((text for line in lines if (text := line.strip().strip("\"'#/*;<!- "))), "")
    return f"`{path}`: {first}{defines}"


def _of_log(path: str, lines: list[str]) -> str:
    levels = Counter(found[1] for line in lines if (found := _LEVEL.search(line)))
    counts = ", ".join(f"{count} {level}" for level, count in levels.most_common())
    told = f"`{path}`, {len(lines)} lines read: {counts or 'no errors or warnings'}"
    errors = [line for line in lines if (m := _LEVEL.search(line)) and not m[1].startswith("WARN")]
    if not errors:
        return told
    shape, count = Counter(map(_shape, errors)).most_common(1)[0]
    times = [clock[0] for e in errors if _shape(e) == shape and (clock := _CLOCK.search(e))]
    if count == 1:
        return f"{told}; first error{f' at {times[0]}' if times else ''}: {shape}"
    when = f", from {times[0]} to {times[-1]}" if times else ""
    return f"{told}; the most frequent error, {count} times{when}: {shape}"


def _shape(line: str) -> str:
    """An error line without what differs from one to the next."""
    text = line[found.start() :] if (found := _LEVEL.search(line)) else line
    return re.sub(r"\s+", " ", re.sub(r"\w*\d[\w-]*", "N", text)).strip()


def _main_argument(entry: Entry) -> str:
    for name in ("path", "command", "pattern"):
        if value := entry.argument(name):
            return value
    return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
