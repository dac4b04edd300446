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
    from thresher.core.sources.session_index import SessionIndex

BATCH = 25
"""Rows that are shown together."""


def find_sessions(
    root: Path | None = None, codex_home: Path | None = None
) -> Iterator[Sequence[SessionRow]]:
    """All sessions in batches; those of one agent newest first. Blocking: call it in a thread.

    The places default to those of this user.
    """
    from thresher.core.sources.finders import finders
    from thresher.core.sources.session_index import SessionIndex

    homes = {"codex": codex_home}
    index = SessionIndex()
    foreign = [foreign_rows(index, each, homes.get(each.agent)) for each in finders()]
    try:
        for rows in (own_rows(root or paths.sessions_dir()), *foreign):
            while batch := list(islice(rows, BATCH)):
                yield batch
    finally:
        index.save()


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
            cwd=info.cwd,
        )


def foreign_rows(
    index: SessionIndex, finder: Finder, home: Path | None = None
) -> Iterator[SessionRow]:
    """The sessions of another agent."""
    from thresher.core.sources.alive import with_running

    for found in with_running(index.sessions(finder, home), finder, home):
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
            running_sure=found.running_sure,
            problem=found.problem,
            cwd=found.cwd,
        )
