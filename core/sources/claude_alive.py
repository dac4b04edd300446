"""The register that Claude Code keeps of its running processes.

Versions since 2.1.197 at the latest (not 2.1.70) write `sessions/PID.json` into their own folder
while they run: the process, when it started, and the session that it is at. What a process that was
killed leaves behind is told apart by the start time. The keys beside these files are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .claude_folder import read_meta
from .codex_items import int_of, text_of
from .found import Registered

REGISTER: Final = "sessions"


def registered(home: Path) -> dict[str, Registered]:
    """The processes by the id of the session that each is at."""
    found: dict[str, Registered] = {}
    try:
        files = [each for each in (home / REGISTER).glob("*.json") if each.stem.isdecimal()]
    except OSError:
        return {}
    for file in files:
        told = read_meta(file)
        session, pid = text_of(told.get("sessionId")), int_of(told.get("pid"))
        if session and pid is not None:
            found[session] = Registered(pid, text_of(told.get("procStart")))
    return found
