"""Transcripts of subagents, and the sessions that they belong to.

Newer versions keep them in the folder of their session, `S/subagents/agent-*.jsonl`; versions up to
2.0 put them beside it, where only their first record tells whose they are. Each start of such a
version also left "Warmup" agents there, which nobody asked for anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from .claude_items import first_text
from .codex_items import dict_of, text_of
from .lines import parse

PREFIX: Final = "agent-"
FOLDER: Final = "subagents"
_HEAD: Final = 1 << 16
"""Bytes of the first record that are read."""
_WARMUP: Final = "Warmup"


class Origin(NamedTuple):
    """Whose agent a transcript is: the id of the session, empty where it is not told."""

    session: str
    warmup: bool = False


def is_agent(path: Path) -> bool:
    """Whether a file is the transcript of a subagent, by its name."""
    return path.name.startswith(PREFIX)


def origin_of(path: Path) -> Origin:
    """Whose agent this is, by its first record. A file that cannot be read tells nothing."""
    try:
        with path.open("rb") as file:
            line = file.readline(_HEAD)
    except OSError:
        return Origin("")
    value, _ = parse(line)
    record = value or {}
    said = first_text(dict_of(record.get("message")).get("content"))
    return Origin(text_of(record.get("sessionId")), said == _WARMUP)


def agents_beside(session: Path, known: set[str]) -> Iterator[Path]:
    """The agents of this session that lie beside its file, in order of their names. Files that were
    looked at are added to `known` by name, and not looked at again."""
    id = session.name.removesuffix(".gz").removesuffix(".jsonl")
    for path in sorted(session.parent.glob(f"{PREFIX}*.jsonl")):
        if path.name in known:
            continue
        origin = origin_of(path)
        if origin.session:
            known.add(path.name)
        if origin.session == id and not origin.warmup:
            yield path


def orphans(projects: Path) -> Iterator[Path]:
    """The agents below this folder whose session's file is gone."""
    for path in projects.glob(f"*/*/{FOLDER}/{PREFIX}*.jsonl"):
        folder = path.parent.parent
        if not folder.with_name(f"{folder.name}.jsonl").exists():
            yield path
    for path in projects.glob(f"*/{PREFIX}*.jsonl"):
        origin = origin_of(path)
        if not origin.warmup and not _has_session(path, origin):
            yield path


def _has_session(path: Path, origin: Origin) -> bool:
    # A name that leads elsewhere is no name of a session.
    simple = origin.session and Path(origin.session).name == origin.session
    return bool(simple) and path.with_name(f"{origin.session}.jsonl").exists()
