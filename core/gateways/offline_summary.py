"""The offline stand-in's summary: taken out of the conversation by rules, in short sections.

The same sections are read back from a summary that stands in a later conversation: so nothing that
an earlier summary kept is lost by the next one, and the stand-in can go on where it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from .offline_facts import facts
from .offline_transcript import Entry, Who, rounds_since_user

_MOST_FINDINGS = 36
_MOST_FILES = 60
_MOST_COMMANDS = 12
_LONGEST_GOAL = 700


class Memory(msgspec.Struct, frozen=True):
    """What a conversation holds, by section. `rounds` counts the rounds done for `goal`."""

    goal: str = ""
    rounds: int = 0
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def remember(entries: Sequence[Entry]) -> Memory:
    """Everything worth keeping of a conversation, earlier summaries in it included."""
    earlier = Memory()
    for entry in entries:
        if entry.who in (Who.SUMMARY, Who.USER, Who.HARNESS) and _HEADING.search(entry.text):
            earlier = _merge(earlier, read_back(entry.text))
    goal = next(
        (e.text for e in reversed(entries) if e.who is Who.USER and not _HEADING.search(e.text)),
        "",
    )
    goal = " ".join(goal.split())[:_LONGEST_GOAL] or earlier.goal
    outputs = [entry for entry in entries if entry.who is Who.OUTPUT]
    now = Memory(
        goal=goal,
        rounds=rounds_since_user(entries),
        read=tuple(e.argument("path") for e in outputs if e.tool == "read_file"),
        changed=tuple(e.argument("path") for e in outputs if e.tool in ("write_file", "edit_file")),
        commands=tuple(_one_line(e.argument("command")) for e in outputs if e.tool == "bash"),
        findings=tuple(facts(entries)),
    )
    return _merge(earlier, now)


def write(memory: Memory) -> str:
    """The summary text."""
    sections = [
        ("Goal", [memory.goal or "No goal was stated."]),
        ("Progress", [f"Rounds done: {memory.rounds}. Go on from there; do not start again."]),
        ("Files read", _bullets(memory.read, _MOST_FILES)),
        ("Files changed", _bullets(memory.changed, _MOST_FILES)),
        ("Commands run", _bullets(memory.commands, _MOST_COMMANDS)),
        ("Findings", _bullets(memory.findings, _MOST_FINDINGS)),
    ]
    return "\n\n".join(f"## {title}\n" + "\n".join(lines) for title, lines in sections if lines)


def read_back(text: str) -> Memory:
    """The sections of a summary that `write` made, wherever in a text it stands."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if heading := _HEADING.search(line):
            lines = sections.setdefault(heading[1], [])
        elif line.startswith(("#", "</")):
            lines = []
        elif line.strip():
            lines.append(line.strip().removeprefix("- "))
    rounds = re.search(r"Rounds done: (\d{1,6})", " ".join(sections.get("Progress", ())))
    return Memory(
        goal=" ".join(sections.get("Goal", ())),
        rounds=int(rounds[1]) if rounds else 0,
        read=_kept(sections, "Files read"),
        changed=_kept(sections, "Files changed"),
        commands=_kept(sections, "Commands run"),
        findings=_kept(sections, "Findings"),
    )


# A policy may put words of its own on the line before the first heading.
_HEADING = re.compile(
    r"(?:^|[\s:>])## (Goal|Progress|Files read|Files changed|Commands run|Findings)[ \t]*$",
    re.MULTILINE,
)
_DROPPED = re.compile(r"\(\d+ older ones are left out\)")


def _merge(earlier: Memory, now: Memory) -> Memory:
    same = not now.goal or now.goal == earlier.goal
    return Memory(
        goal=now.goal or earlier.goal,
        rounds=now.rounds + earlier.rounds if same else now.rounds,
        read=_once(earlier.read, now.read),
        changed=_once(earlier.changed, now.changed),
        commands=_once(earlier.commands, now.commands),
        findings=_once(earlier.findings, now.findings),
    )


def _once(earlier: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    """Both, each text once; of two findings on one file the later stands."""
    by_subject = {_subject(text): text for text in (*earlier, *now) if text}
    return tuple(by_subject.values())


def _subject(text: str) -> str:
    file = re.match(r"`[^`]+`(?=: )", text)
    return file[0] if file else text


def _bullets(texts: tuple[str, ...], most: int) -> list[str]:
    left_out = len(texts) - most
    note = [f"({left_out} older ones are left out)"] if left_out > 0 else []
    return [*note, *(f"- {text}" for text in texts[-most:])]


def _kept(sections: dict[str, list[str]], title: str) -> tuple[str, ...]:
    return tuple(line for line in sections.get(title, ()) if not _DROPPED.fullmatch(line))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:160]} ..."
