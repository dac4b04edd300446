"""The files beside a Claude Code transcript: persisted outputs, and the sessions of subagents.

For `S.jsonl` they are in the folder `S`; older versions put agents beside the transcript itself.
Only these places are looked at, whatever path a session file names, and a link that leads out of
them is not followed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ..events import Note, Record
from .claude_agents import FOLDER, PREFIX, agents_beside, is_agent
from .claude_events import Translator
from .codex_items import dict_of, text_of

META_LIMIT: Final = 1 << 16
"""Bytes of a description that are read."""


class Folder:
    """What lies beside one transcript."""

    def __init__(self, path: Path) -> None:
        name = path.name.removesuffix(".gz").removesuffix(".jsonl")
        self._path = path
        self._agent = is_agent(path)
        # A subagent's transcript shares the folder of its session.
        self._own = path.parent.parent if path.parent.name == FOLDER else path.parent / name
        self._meta = path.with_name(f"{name}.meta.json")
        self._known: set[str] = set()

    @property
    def title(self) -> str:
        """What a subagent was asked to do; empty for a session."""
        if not self._agent:
            return ""
        meta = read_meta(self._meta)
        kind, told = text_of(meta.get("agentType")), text_of(meta.get("description"))
        return ": ".join(filter(None, (kind, told)))

    def saved(self, name: str) -> str:
        """The path of a persisted output, when it is there."""
        place = self._own / "tool-results"
        path = place / name
        try:
            inside = path.resolve().parent == place.resolve() and self._is_here(place)
            return str(path) if inside and path.is_file() else ""
        except (OSError, ValueError, RuntimeError):
            return ""

    def news(self, line: int, translator: Translator) -> Iterator[Record]:
        """A row for each subagent that was not there before, and that no result has told of."""
        for path in self._new_agents():
            agent = path.stem.removeprefix(PREFIX)
            if agent in translator.reading.agents:
                continue
            meta = read_meta(path.with_name(f"{path.stem}.meta.json"))
            told = ": ".join(
                filter(None, (text_of(meta.get("agentType")), text_of(meta.get("description"))))
            )
            place = path.name if path.parent == self._path.parent else f"{FOLDER}/{path.name}"
            text = f"subagent {agent}" + (f" ({told})" if told else "")
            text += f" has a session of its own: {place}"
            at = translator.reading.out.at
            yield Record(line, at, Note(kind="subagent", text=text))

    def _is_here(self, folder: Path) -> bool:
        """No link leads from beside the transcript to somewhere else."""
        return folder.resolve().is_relative_to(self._own.parent.resolve())

    def _new_agents(self) -> list[Path]:
        if self._agent:
            return []
        try:
            agents = self._own / FOLDER
            found = sorted(agents.glob(f"{PREFIX}*.jsonl")) if self._is_here(agents) else []
            new = [path for path in found if path.name not in self._known]
            self._known.update(path.name for path in new)
            return [*new, *agents_beside(self._path, self._known)]
        except OSError:
            return []


def read_meta(path: Path) -> dict[str, object]:
    """The description of a subagent; empty when there is none that can be read."""
    try:
        with path.open("rb") as file:
            return dict_of(json.loads(file.read(META_LIMIT)))
    except (OSError, ValueError, RecursionError):
        return {}
