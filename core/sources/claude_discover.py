"""The sessions of Claude Code on this machine, newest first, without reading them whole.

Claude Code keeps a transcript for each session in a folder for each project, below
CLAUDE_CONFIG_DIR (default ~/.claude). Subagents are not listed: they open from their own files.
Nothing in a file says whether its session is still running.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from .claude_items import SYNTHETIC, first_text, has_results, is_echo
from .claude_reading import AGENT
from .claude_start import TITLE
from .codex_items import dict_of, text_of
from .found import Finder, FoundSession, count_matches, newest_first, reason_of
from .lines import Line, LineReader, open_bytes

HEAD: Final = 1 << 18
"""Bytes read for project, model and title."""
HEAD_LINES: Final = 60
SEARCH_LIMIT: Final = 64 << 20
"""Larger files are not searched for compactions: their number is then unknown."""

_BOUNDARY: Final = re.compile(rb'"subtype"\s*:\s*"(?:micro)?compact_boundary"')


def claude_home() -> Path:
    """Where Claude Code keeps its files: CLAUDE_CONFIG_DIR, or .claude in the home directory."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def claude_files(home: Path | None = None) -> list[Path]:
    """The transcripts, newest first, without those of subagents."""
    projects = (home or claude_home()) / "projects"
    try:
        found = [path for path in projects.glob("*/*.jsonl") if not _is_agent(path)]
    except OSError:
        return []
    return newest_first(found)


def look_at(path: Path) -> FoundSession:
    """What can be said of a session cheaply. Raises FileNotFoundError; all else is a `problem`."""
    stat = path.stat()
    found = FoundSession(
        path=path, agent=AGENT, id=id_of(path), modified=stat.st_mtime, size=stat.st_size
    )
    try:
        with open_bytes(path) as file:
            found = _described(found, file.read(HEAD))
            file.seek(0)
            if stat.st_size <= SEARCH_LIMIT:
                found = msgspec.structs.replace(found, compactions=count_matches(file, _BOUNDARY))
    except FileNotFoundError:
        raise
    except (OSError, EOFError) as error:
        return msgspec.structs.replace(found, problem=f"cannot be read: {reason_of(error)}")
    return found


def id_of(path: Path) -> str:
    """The id of a session, which is the name of its file."""
    return path.stem


def _is_agent(path: Path) -> bool:
    return path.name.startswith("agent-")


def _described(found: FoundSession, head: bytes) -> FoundSession:
    named = ""
    reader = LineReader()
    for line in islice(reader.feed(head), HEAD_LINES):
        value = line.value or {}
        if value.get("type") == "summary":
            named = named or text_of(value.get("summary"))
        found = _with(found, line)
        if found.title and found.model:
            break
    if found.version or found.title:
        return msgspec.structs.replace(found, title=found.title or named)
    if named:
        problem = "holds nothing but titles of other sessions"
        return msgspec.structs.replace(found, title=named, problem=problem)
    return msgspec.structs.replace(found, problem="its beginning is not that of a session")


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
)
"""How the sessions of Claude Code are found."""
