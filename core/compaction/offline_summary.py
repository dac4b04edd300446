"""The extractive summariser: a summary without any model, made of the history's own words. Pure.

It keeps what a model's summary most often loses or bends: the goal, the user's rules word for word,
which files were read and changed (from the arguments of the tools), which commands ran and how
they ended, what went wrong, and what is still open. The same history always gives the same text,
never longer than the bound. A summary of its own kind in the history is taken up section by
section, so nothing fades away over several compactions as long as there is room.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
)

DEFAULT_LIMIT = 8_000
"""Characters."""

GOAL = "Goal"
FOCUS = "Kept in particular"
RULES = "Rules from the user, word for word"
LATEST = "Latest request"
OPEN = "Open work"
CHANGED = "Files changed"
ERRORS = "Errors"
READ = "Files read"
COMMANDS = "Commands and how they ended"
EARLIER = "From an earlier summary"

_ORDER = (GOAL, FOCUS, RULES, LATEST, CHANGED, READ, COMMANDS, ERRORS, OPEN, EARLIER)
_PRIORITY = (RULES, GOAL, FOCUS, LATEST, OPEN, CHANGED, ERRORS, COMMANDS, READ, EARLIER)
_NEWEST_FIRST = frozenset({CHANGED, READ, COMMANDS, ERRORS})
"""Where room is short, the newest points of these sections stay; of the others the oldest."""

_MOST = {GOAL: 2, FOCUS: 1, RULES: 40, LATEST: 1, OPEN: 8}
_MOST_OTHERWISE = 30
_LONGEST = {RULES: 600, GOAL: 1_000, LATEST: 1_000, EARLIER: 2_000}
_LONGEST_OTHERWISE = 240

_RULE = re.compile(
    r"\b(?:must|never|always|don'?t|do not|only|please|should(?:n'?t)?|avoid|make sure|ensure"
    r"|prefer|required?|remember|under no|no matter|instead of|without)\b"
    r"|必须|不要|请|务必|禁止|不得|始终|总是|只能",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:[.!?](?=\S)[^.!?。！？\n]*)*(?:[.!?。！？]+|\n|$)")
_CHANGES = re.compile(
    r"write|edit|patch|creat|updat|delet|remov|renam|replac|insert|append|move|save", re.IGNORECASE
)
_OPEN_LINE = re.compile(
    r"^\s*(?:[-*]\s*)?\[ \]|\b(?:todo|fixme|next step|remaining|still (?:to do|open|need)"
    r"|not yet)\b",
    re.IGNORECASE,
)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATH_KEYS = (
    "path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file",
    "absolute_path", "paths", "files",
)  # fmt: skip
_COMMAND_KEYS = ("command", "cmd", "script")


def extract(items: Iterable[Item], *, limit: int = DEFAULT_LIMIT, focus: str = "") -> str:
    """The summary of a history, at most `limit` characters; empty when there is nothing to say."""
    sections = _Sections()
    if focus.strip():
        sections.add(FOCUS, focus)
    _Reader(sections).read(items)
    return _fitted(sections, limit)


class _Sections:
    """The points of each section, in the order they came up, no point twice."""

    def __init__(self) -> None:
        self.points: dict[str, dict[str, None]] = {name: {} for name in _ORDER}

    def add(self, section: str, text: str) -> None:
        point = _one_line(text, _LONGEST.get(section, _LONGEST_OTHERWISE))
        if point:
            # What comes up again is as new as its last mention.
            if section in _NEWEST_FIRST:
                self.points[section].pop(point, None)
            self.points[section].setdefault(point)

    def replace(self, section: str, text: str) -> None:
        self.points[section] = {}
        self.add(section, text)


class _Reader:
    def __init__(self, sections: _Sections) -> None:
        self._sections = sections
        self._calls: dict[str, FunctionCall] = {}
        self._unanswered: dict[str, FunctionCall] = {}
        self._first_said = False

    def read(self, items: Iterable[Item]) -> None:
        last_words = ""
        for item in items:
            match item:
                case Message(role=Role.USER, synthetic=False):
                    self._user(item.text)
                    last_words = ""
                case Message(role=Role.ASSISTANT):
                    last_words = item.text or last_words
                case FunctionCall():
                    self._call(item)
                case FunctionCallOutput():
                    self._output(item)
                case CompactionSummary(content=content) if content:
                    self._earlier(content)
                case _:
                    pass
        for line in last_words.splitlines():
            if _OPEN_LINE.search(line):
                self._sections.add(OPEN, line)
        if last_words:
            self._sections.add(OPEN, f"the assistant's last words: {last_words}")
        for call in self._unanswered.values():
            self._sections.add(OPEN, f"{call.name} was called and has not answered: {_told(call)}")

    def _user(self, text: str) -> None:
        if not text.strip():
            return
        if self._first_said:
            self._sections.replace(LATEST, text)
        else:
            self._first_said = True
            self._sections.add(GOAL, text)
        for sentence in _SENTENCE.findall(text):
            if _RULE.search(sentence):
                self._sections.add(RULES, sentence)
            elif _OPEN_LINE.search(sentence):
                self._sections.add(OPEN, sentence)

    def _call(self, call: FunctionCall) -> None:
        self._calls[call.call_id] = call
        self._unanswered[call.call_id] = call
        changes = bool(_CHANGES.search(call.name))
        arguments = _arguments(call)
        for path in _paths(arguments):
            self._sections.add(CHANGED if changes else READ, path)
        for path in _PATCHED.findall(_texts(arguments) or call.arguments):
            self._sections.add(CHANGED, path)

    def _output(self, output: FunctionCallOutput) -> None:
        call = self._calls.get(output.call_id)
        self._unanswered.pop(output.call_id, None)
        name = output.name or (call.name if call else "a tool")
        command = _command(_arguments(call)) if call else ""
        told = f"{name} {command}".rstrip()
        if command:
            ended = "failed" if output.is_error else "ok"
            self._sections.add(
                COMMANDS, f"`{_one_line(command, 120)}` {ended}: {_last_line(output.output)}"
            )
        if output.is_error:
            what = _one_line(told, 100) if command or not call else f"{name} {_told(call)}"
            self._sections.add(ERRORS, f"{what}: {_first_line(output.output)}")

    def _earlier(self, content: str) -> None:
        section, foreign = "", []
        for line in content.splitlines():
            heading = line.removeprefix("## ") if line.startswith("## ") else ""
            if heading in _ORDER:
                section = heading
            elif section and line.startswith("- "):
                if not _LEFT_OUT.fullmatch(line):
                    self._sections.add(section, line.removeprefix("- "))
                self._first_said = self._first_said or section == GOAL
            elif line.strip():
                foreign.append(line)
        if foreign:
            self._sections.replace(EARLIER, " ".join(foreign))


# Fitting -----------------------------------------------------------------------------------------

_LEFT_OUT = re.compile(r"- \(\d+ more left out\)")
_NOTE_ROOM = len("- (1000000 more left out)\n")


def _fitted(sections: _Sections, limit: int) -> str:
    """Take points in order of priority as long as they fit; write them in reading order."""
    room = limit
    chosen: dict[str, list[str]] = {}
    left: dict[str, int] = {}
    for name in _PRIORITY:
        points = list(sections.points[name])
        if not points:
            continue
        newest_first = name in _NEWEST_FIRST
        taken: list[str] = []
        head = len(f"\n## {name}\n") + _NOTE_ROOM
        for point in reversed(points) if newest_first else points:
            cost = len(f"- {point}\n") + (0 if taken else head)
            if cost > room or len(taken) >= _MOST.get(name, _MOST_OTHERWISE):
                break
            room -= cost
            taken.append(point)
        if taken:
            chosen[name] = taken[::-1] if newest_first else taken
            left[name] = len(points) - len(taken)
    lines: list[str] = []
    for name in _ORDER:
        if name not in chosen:
            continue
        lines += ["", f"## {name}", *(f"- {point}" for point in chosen[name])]
        if left[name]:
            lines.append(f"- ({left[name]} more left out)")
    return "\n".join(lines[1:])


# Reading arguments and texts ---------------------------------------------------------------------


def _arguments(call: FunctionCall) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def _paths(arguments: dict[str, Any]) -> Iterator[str]:
    for key in _PATH_KEYS:
        value = arguments.get(key)
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, str) and path.strip():
                yield path


def _command(arguments: dict[str, Any]) -> str:
    for key in _COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value:
            return " ".join(map(str, value))
    return ""


def _texts(arguments: dict[str, Any]) -> str:
    return "\n".join(value for value in arguments.values() if isinstance(value, str))


def _told(call: FunctionCall) -> str:
    arguments = _arguments(call)
    return next(_paths(arguments), "") or _command(arguments) or _one_line(call.arguments, 80)


def _lines(text: str) -> Sequence[str]:
    return [line for line in text.splitlines() if line.strip()]


def _first_line(text: str) -> str:
    lines = _lines(text)
    return _one_line(lines[0], 160) if lines else "no output"


def _last_line(text: str) -> str:
    lines = _lines(text)
    return _one_line(lines[-1], 100) if lines else "no output"


def _one_line(text: str, longest: int) -> str:
    flat = " ".join(text[: 4 * longest].split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
