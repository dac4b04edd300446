"""The sessions of this machine as rows of the picker: our own ones, and those of other agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.core import paths

from .widgets.session_list import SessionRow

if TYPE_CHECKING:
    from thresher.core.sources.found import Finder

BATCH = 25
"""Rows that are shown together."""


def find_sessions(
    root: Path | None = None, codex_home: Path | None = None
) -> Iterator[Sequence[SessionRow]]:
    """All sessions in batches; those of one agent newest first. Blocking: call it in a thread.

    The places default to those of this user.
    """
    from thresher.core.sources.finders import finders

    homes = {"codex": codex_home}
    foreign = [foreign_rows(each, homes.get(each.agent)) for each in finders()]
    for rows in (own_rows(root or paths.sessions_dir()), *foreign):
        while batch := list(islice(rows, BATCH)):
            yield batch


def own_rows(root: Path) -> Iterator[SessionRow]:
    """The sessions that thresher recorded below this folder."""
    from thresher.core.sessions import catalog

    for info in catalog.sessions(root):
        yield SessionRow(
            path=info.path,
            agent="thresher",
            title=info.title,
            model=info.model,
            id=info.id,
            size=info.size,
            last_at=info.last,
            compactions=info.compactions,
            running=info.running,
            problem=info.problem,
        )


def foreign_rows(finder: Finder, home: Path | None = None) -> Iterator[SessionRow]:
    """The sessions of another agent."""
    for found in finder.sessions(home):
        yield SessionRow(
            path=found.path,
            agent=found.agent,
            title=found.title,
            model=found.model,
            id=found.id,
            size=found.size,
            last_at=found.modified,
            compactions=found.compactions,
            running=bool(found.running),
            problem=found.problem,
        )


def from_home(path: Path) -> str:
    """A path as people write it, with ~ for the home directory. Not clean."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
