"""The sessions of Claude Code on this machine, newest first, without reading them whole.

Claude Code keeps a transcript for each session in a folder for each project, below
CLAUDE_CONFIG_DIR (default ~/.claude). Subagents are not listed, they belong to their session and
open from their own files; one whose session is gone has a row. Nothing in a transcript says whether
its session is still running: see claude_alive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from .claude_agents import is_agent, orphans
from .claude_alive import registered
from .claude_items import SYNTHETIC, first_text, has_results, is_echo
from .claude_reading import AGENT
from .claude_start import TITLE
from .codex_items import dict_of, text_of
from .found import Finder, FoundSession, newest_first
from .glance import glance, told_by
from .lines import Line

HEAD_LINES: Final = 60
"""Lines read for project, model and title."""

_BOUNDARY: Final = re.compile(rb'"subtype"\s*:\s*"(?:micro)?compact_boundary"')


def claude_home() -> Path:
    """Where Claude Code keeps its files: CLAUDE_CONFIG_DIR, or .claude in the home directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def claude_files(home: Path | None = None) -> list[Path]:
    """The transcripts, newest first, without those of subagents that have a session, and without
    the empty files that versions up to 2.0 leave behind whenever a session is resumed."""
    projects = (home or claude_home()) / "projects"
    try:
        found = [path for path in projects.glob("*/*.jsonl") if _is_session(path)]
        found.extend(orphans(projects))
    except OSError:
        return []
    return newest_first(found)


def look_at(path: Path) -> FoundSession:
    """What can be said of a session cheaply. Raises FileNotFoundError; all else is a `problem`."""
    stat = path.stat()
    found = FoundSession(
        path=path, agent=AGENT, id=id_of(path), modified=stat.st_mtime, size=stat.st_size
    )
    return glance(found, _described, _BOUNDARY)


def id_of(path: Path) -> str:
    """The id of a session, which is the name of its file."""
    return path.stem


def _is_session(path: Path) -> bool:
    try:
        return not is_agent(path) and path.stat().st_size > 0
    except OSError:
        return False


def _described(found: FoundSession, lines: Iterator[Line]) -> FoundSession:
    named = ""

    def take(found: FoundSession, line: Line) -> FoundSession:
        nonlocal named
        value = line.value or {}
        if value.get("type") == "summary":
            named = named or text_of(value.get("summary"))
        return _with(found, line)

    found = told_by(found, islice(lines, HEAD_LINES), take)
    if is_agent(found.path) and found.title:
        return msgspec.structs.replace(
            found, title=f"subagent (its session is gone): {found.title}"
        )
    if found.problem and named:
        problem = "holds nothing but titles of other sessions"
        return msgspec.structs.replace(found, title=named, problem=problem)
    return msgspec.structs.replace(found, title=found.title or named)


def _with(found: FoundSession, line: Line) -> FoundSession:
    value = line.value or {}
    message = dict_of(value.get("message"))
    if text_of(value.get("version")) and not found.version:
        found = msgspec.structs.replace(
            found, version=text_of(value.get("version")), cwd=text_of(value.get("cwd"))
        )
    match value.get("type"):
        case "user" if not found.title and _is_prompt(value, message.get("content")):
            title = " ".join(first_text(message.get("content")).split())[:TITLE]
            return msgspec.structs.replace(found, title=title)
        case "assistant" if not found.model and text_of(message.get("model")) != SYNTHETIC:
            return msgspec.structs.replace(found, model=text_of(message.get("model")))
        case _:
            return found


def _is_prompt(value: dict[str, object], content: object) -> bool:
    synthetic = value.get("isMeta") is True or value.get("isCompactSummary") is True
    return not (synthetic or has_results(content) or is_echo(content))


FINDER: Final = Finder(
    agent=AGENT,
    name="Claude Code",
    words=("claude", "claude_code"),
    variable="CLAUDE_CONFIG_DIR",
    home=claude_home,
    files=claude_files,
    look_at=look_at,
    id_of=id_of,
    registered=lambda home: registered(home or claude_home()),
)
"""How the sessions of Claude Code are found."""
