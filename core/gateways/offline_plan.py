"""What the offline stand-in does next: a list of steps chosen by rules from the user's words and
what lies in the workspace. Every step is one round: a sentence, and one to three calls of the real
tools. The same words on the same workspace give the same steps.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .offline_facts import densest, matches
from .offline_summary import Memory
from .offline_survey import File, FileKind
from .offline_transcript import Entry, Who

NOTE_PATH = "NOTES-offline.md"

_FEWEST_READS = 10
_MOST_STEPS = 36
_SLICE_CHARS = 20_000

ToolCall: TypeAlias = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class View:
    """What a step may look at: the conversation, and what was kept of the earlier one."""

    entries: Sequence[Entry]
    memory: Memory


@dataclass(frozen=True)
class Step:
    """One round: what is said before, and the calls, which may depend on earlier outputs."""

    say: str
    calls: Callable[[View], list[ToolCall]]


def plan(task: str, files: Sequence[File], tools: frozenset[str], seed: int = 0) -> list[Step]:
    """The steps for a task, using only `tools`; with none of them there are no steps."""
    dice = random.Random(f"{seed}/{task}".encode("utf-8", "surrogatepass"))
    return _Planner(task, files, tools, dice).steps()[:_MOST_STEPS]


@dataclass
class _Planner:
    task: str
    files: Sequence[File]
    tools: frozenset[str]
    dice: random.Random

    def steps(self) -> list[Step]:
        if edit := _EDIT.search(self.task):
            return self._edit(edit["old"], edit["new"], edit["path"])
        logs, tests = _LOGS.search(self.task), _TESTS.search(self.task)
        steps = self._delegate() if _DELEGATE.search(self.task) else []
        if logs:
            steps += self._logs()
        if tests:
            steps += self._tests()
        if not steps:
            steps += self._explore()
        if _COMPACT.search(self.task):
            middle = len(steps) // 2
            steps[middle:middle] = self._compact()
        if _NOTE.search(self.task) or not (logs or tests):
            note = self._later(
                "I will put what I found into a note.",
                "write_file",
                lambda view: {"path": NOTE_PATH, "content": _note(self.task, view.memory)},
            )
            # The note must not be what a bound on the number of steps cuts off.
            steps = steps[: _MOST_STEPS - len(note)] + note
        return steps

    # -- kinds of work -------------------------------------------------------------------------

    def _explore(self) -> list[Step]:
        files = self._of(FileKind.DOC, FileKind.CODE, FileKind.TEST, FileKind.OTHER)
        files.sort(key=lambda file: not file.path.lower().startswith("readme"))
        steps = self._step("I will start with a list of what is here.", _ALL_FILES)
        if files:
            steps += self._step(
                "Sizes first, and the definitions, to see where the weight lies.",
                ("bash", {"command": f"wc -l -- {_quoted(files)}"}),
                ("grep", {"pattern": r"^\s*(def|class|func|fn|export) "}),
            )
        pieces = _pieces_of_all(files) + [
            _Piece(log, 1, min(log.lines, 120)) for log in self._of(FileKind.LOG)[:2]
        ]
        for number, group in enumerate(_groups(pieces)):
            names = " and ".join(dict.fromkeys(piece.file.path for piece in group))
            words = _READING_FIRST if number == 0 else self.dice.choice(_READING)
            steps += self._step(words.format(names=names), *(piece.call for piece in group))
        return steps + self._step(
            "Now the open ends that people left in the files.",
            ("grep", {"pattern": r"\b(TODO|FIXME|XXX|HACK)\b"}),
        )

    def _logs(self) -> list[Step]:
        every = self._of(FileKind.LOG)
        logs = self._named(every) or every
        steps = self._step(
            "First: which logs are there, and how long are they?",
            ("glob", {"pattern": "**/*.log"}),
            ("bash", {"command": f"wc -l -- {_quoted(logs)}" if logs else "ls"}),
        )
        errors = ("grep", {"pattern": r"\b(ERROR|CRITICAL|FATAL)\b", "glob": "*.log"})
        if _OPEN_ENDS.search(self.task):
            open_ends = ("grep", {"pattern": r"\b(TODO|FIXME|XXX)\b"})
            said = "Two searches at once: open ends in the text, errors in the logs."
            steps += self._step(said, open_ends, errors)
        else:
            steps += self._step("Where do the errors stand?", errors)
        for log in logs[:4]:
            steps += self._whole(log) if _WHOLE.search(self.task) else self._worst_part(log)
        code = self._of(FileKind.CODE)
        if code:
            steps += self._step(
                "Which code writes such errors?",
                ("grep", {"pattern": r"(log|logger|logging)\.(error|warning|exception)"}),
            )
        for file in code[:3]:
            said = f"{file.path} may be where it comes from."
            steps += self._step(said, _Piece(file, 1, 120).call)
        return steps

    def _whole(self, log: File) -> list[Step]:
        """The whole of a log, three large pieces to a round: more than a small window holds."""
        pieces = _pieces(log, max(20, _SLICE_CHARS * log.lines // max(1, log.size + 8 * log.lines)))
        steps: list[Step] = []
        for at in range(0, len(pieces), 3):
            group = pieces[at : at + 3]
            said = f"Reading {log.path}, lines {group[0].first} to {group[-1].last}."
            steps += self._step(said, *(piece.call for piece in group))
        return steps

    def _worst_part(self, log: File) -> list[Step]:
        def call(view: View) -> dict[str, Any]:
            found = [m for e in view.entries if e.who is Who.OUTPUT for m in matches(e.text)]
            at = densest(found, log.path) or log.lines // 2
            return {"path": log.path, "offset": max(1, at - 20), "limit": 120}

        said = f"The part of {log.path} where most of them stand, and what came before."
        return self._later(said, "read_file", call)

    def _tests(self) -> list[Step]:
        tests = self._of(FileKind.TEST)
        if any(file.unittest for file in tests):
            run = "python3 -m unittest discover -s tests -t . 2>&1"
        else:
            run = "python3 -m pytest -q 2>&1"
        steps = self._step("I will run the tests as they are.", ("bash", {"command": run}))
        for file in tests[:4]:
            steps += self._step(f"What does {file.path} expect?", _Piece(file, 1, 200).call)
        for file in self._of(FileKind.CODE)[:4]:
            steps += self._step(f"And what {file.path} does.", _Piece(file, 1, 160).call)
        return steps

    def _edit(self, old: str, new: str, path: str) -> list[Step]:
        return [
            *self._step(f"I will look at {path} first.", ("read_file", {"path": path})),
            *self._step(
                "One place, one change.", ("edit_file", {"path": path, "old": old, "new": new})
            ),
            *self._step(
                "Checking the result.", ("grep", {"pattern": re.escape(new), "path": path})
            ),
        ]

    def _delegate(self) -> list[Step]:
        folders = dict.fromkeys(f.path.partition("/")[0] for f in self.files if "/" in f.path)
        asked: list[ToolCall] = []
        for folder in list(folders)[:2] or ["this folder"]:
            prompt = f"Look through {folder} and say what each file in it is for."
            asked.append(("task", {"description": f"Explore {folder}", "prompt": prompt}))
        return self._step("Parts of this can be looked at on their own.", *asked)

    def _compact(self) -> list[Step]:
        wish = re.search(r"focus(?:ed|ing)? on ([^.\n]{1,120})", self.task, re.IGNORECASE)
        focus = wish[1].strip() if wish else "the findings so far"
        return self._step(
            "A part of the work is done: its details can go.", ("compact", {"focus": focus})
        )

    # -- parts ---------------------------------------------------------------------------------

    def _step(self, say: str, *calls: ToolCall) -> list[Step]:
        """A step with those calls whose tools there are; nothing when there are none."""
        usable = [call for call in calls if call[0] in self.tools]
        return [Step(say, lambda view: usable)] if usable else []

    def _later(
        self, say: str, tool: str, arguments: Callable[[View], dict[str, Any]]
    ) -> list[Step]:
        """A step whose call is known only when its turn comes."""
        return [Step(say, lambda view: [(tool, arguments(view))])] if tool in self.tools else []

    def _of(self, *kinds: FileKind) -> list[File]:
        return [file for kind in kinds for file in self.files if file.kind is kind]

    def _named(self, files: Sequence[File]) -> list[File]:
        """The files that the user's words name."""
        words = set(re.findall(r"[a-z]{3,}", self.task.lower())) - {"log", "logs"}
        return [f for f in files if words & set(re.findall(r"[a-z]{3,}", f.path.lower()))]


@dataclass(frozen=True)
class _Piece:
    """Lines of a file: `count` of them from `first` on."""

    file: File
    first: int
    count: int

    @property
    def last(self) -> int:
        return min(self.first + self.count - 1, self.file.lines)

    @property
    def call(self) -> ToolCall:
        if self.first == 1 and self.last == self.file.lines:
            return ("read_file", {"path": self.file.path})
        where = {"path": self.file.path, "offset": self.first, "limit": self.count}
        return ("read_file", where)


def _pieces(file: File, lines: int) -> list[_Piece]:
    return [_Piece(file, first, lines) for first in range(1, file.lines + 1, lines)]


def _pieces_of_all(files: Sequence[File]) -> list[_Piece]:
    """All files in pieces, of a size that gives enough of them to see a context fill."""
    pieces: list[_Piece] = []
    for lines in (250, 160, 100, 60, 40, 25):
        pieces = [piece for file in files for piece in _pieces(file, lines)]
        if len(pieces) >= _FEWEST_READS * 4 // 3:
            break
    return pieces


def _groups(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Pieces by rounds: one, one, then two at once, and so on; more at once if there are many."""
    groups: list[list[_Piece]] = []
    at = 0
    many = len(pieces) > _MOST_STEPS
    while at < len(pieces):
        size = 2 if many or len(groups) % 3 == 2 else 1
        groups.append(list(pieces[at : at + size]))
        at += size
    return groups


def _note(task: str, memory: Memory) -> str:
    findings = "\n".join(f"- {finding}" for finding in memory.findings) or "- nothing yet"
    files = "\n".join(f"- {path}" for path in memory.read) or "- none"
    return (
        "# Notes of the offline stand-in\n\nPut together by rules, not by a model.\n\n"
        f"## Asked\n\n{task.strip()}\n\n## Found\n\n{findings}\n\n## Read\n\n{files}\n"
    )


def _quoted(files: Sequence[File]) -> str:
    return " ".join(shlex.quote(file.path) for file in files[:12])


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_ALL_FILES: ToolCall = ("glob", {"pattern": "**/*"})

_LOGS = _words(r"\b(?:logs?|errors?|outages?|incidents?|exceptions?|crash\w*|todos?)\b|日志|错误")
_TESTS = _words(r"\b(?:unit)?tests?\b|测试")
_NOTE = _words(r"\b(?:write|notes?|report|document|save)\b|报告|笔记")
_WHOLE = _words(r"\b(?:whole|entire|complete|full|all of)\b|整个")
_OPEN_ENDS = _words(r"\b(?:todos?|fixmes?|open ends?)\b")
_COMPACT = _words(r"\bcompact\b")
_DELEGATE = _words(r"\b(?:sub-?agents?|delegate)\b")
_EDIT = re.compile(
    r"replace (?P<q>['\"`])(?P<old>.{1,400}?)(?P=q) (?:with|by) "
    r"(?P<r>['\"`])(?P<new>.{0,400}?)(?P=r)"
    r" in (?:the file )?[`'\"]?(?P<path>[\w./-]{1,200}\w)",
    re.IGNORECASE | re.DOTALL,
)

_READING_FIRST = "{names} should say what this is about."
_READING = (
    "Next: {names}.",
    "On to {names}.",
    "{names} is worth a closer look.",
    "I have not seen {names} yet.",
    "Reading {names} before I draw conclusions.",
)
