"""The sessions of this machine, of every agent that is known: one list for all commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from thresher.core import paths
from thresher.core.errors import ThresherError

if TYPE_CHECKING:
    from thresher.core.sources.found import FoundSession

OWN = "thresher"
_NAMED = 5
"""Sessions that are named where an id means several."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A session before it is opened. Text is foreign and not clean.

    `last` is in seconds since the epoch; `size` in bytes; None is not known; `problem` says why it
    cannot be read or resumed. `running_how` is the evidence that it runs.
    """

    agent: str
    id: str
    path: Path
    last: float
    title: str = ""
    model: str = ""
    policy: str = ""
    cwd: str = ""
    size: int = 0
    lines: int | None = None
    compactions: int | None = None
    running: bool = False
    running_how: str = ""
    running_sure: bool = True
    problem: str = ""


def own_sessions() -> Iterator[Known]:
    """Those of our own agent, the one last active first."""
    from thresher.core.sessions import catalog

    for info in catalog.sessions(paths.sessions_dir()):
        yield Known(
            agent=OWN,
            id=info.id,
            path=info.path,
            last=info.last,
            title=info.title,
            model=info.model,
            policy=info.policy,
            cwd=info.cwd,
            size=info.size,
            lines=info.lines,
            compactions=info.compactions,
            running=info.running,
            problem=info.problem,
        )


def foreign_sessions() -> Iterator[Known]:
    """Those of every other agent, one agent after the other, the one last written to first; each
    is looked at when it is asked for."""
    from thresher.core.sources.alive import with_running
    from thresher.core.sources.finders import finders
    from thresher.core.sources.session_index import SessionIndex

    index = SessionIndex()
    try:
        for finder in finders():
            for found in with_running(index.sessions(finder), finder):
                yield _known(found)
    finally:
        index.save()


def _known(found: FoundSession) -> Known:
    return Known(
        agent=found.agent,
        id=found.id,
        path=found.path,
        last=found.modified,
        title=found.title,
        model=found.model,
        cwd=found.cwd,
        size=found.size,
        compactions=found.compactions,
        running=bool(found.running),
        running_how=found.running_how,
        running_sure=found.running_sure,
        problem=found.problem,
    )


def latest(agent: str = "") -> Path:
    """The session last active, of one agent or of all. Raises ThresherError when there is none."""
    from thresher.core.sessions import catalog
    from thresher.core.sources.finders import finder_named, finders

    if not agent:
        return _latest_of_all()
    if agent == OWN:
        return catalog.find("latest", paths.sessions_dir())
    finder = finder_named(agent)
    if finder is None:
        words = ", ".join((OWN, *(word for each in finders() for word in each.words[:1])))
        raise ThresherError("Unknown agent", f"there is no agent {agent!r}: known are {words}.")
    files = finder.files(None)
    if not files:
        raise ThresherError(
            "No sessions",
            f"there is no {finder.name} session under {finder.home()}; "
            f"set {finder.variable} if it is elsewhere, or give a file.",
        )
    return files[0]


def by_id(query: str) -> Path:
    """The session whose id begins like that, of whatever agent. Raises ThresherError unless there
    is exactly one."""
    named = dict(_by_name(query)) or {
        # A file need not be called as the session in it; that takes a look into each.
        (each.agent, each.id): each.path
        for each in foreign_sessions()
        if each.id.startswith(query)
    }
    found = {key: path for key, path in named.items() if key[1] == query} or named
    if not found:
        raise ThresherError(
            "No such session",
            f"no session on this machine begins with {query!r}: `thresher sessions` lists them, "
            "and a file is named with its path.",
        )
    if len(found) > 1:
        names = ", ".join(f"{id} ({agent})" for agent, id in list(found)[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise ThresherError(
            "Which session",
            f"{query!r} is the beginning of {len(found)} sessions: {names}{more}. Give more of "
            "the id.",
        )
    return next(iter(found.values()))


def _by_name(query: str) -> Iterator[tuple[tuple[str, str], Path]]:
    """Agent and id, and the file, of those whose file is called like that."""
    from thresher.core.sessions import catalog
    from thresher.core.sources.finders import finders

    for journal in catalog.matching(query, paths.sessions_dir()):
        yield (OWN, journal.parent.name), journal
    for finder in finders():
        # The newest file of a session counts: Codex begins another one when turns are undone.
        for path in reversed(finder.files(None)):
            if finder.id_of(path).startswith(query):
                yield (finder.agent, finder.id_of(path)), path


def _latest_of_all() -> Path:
    from thresher.core.sources.finders import finders

    dated = [(known.last, known.path) for known in own_sessions() if not known.problem][:1]
    for finder in finders():
        for path in finder.files(None)[:1]:
            dated.append((finder.look_at(path).modified, path))
    if not dated:
        raise ThresherError(
            "No session", "there is no session on this machine yet: `thresher demo` makes one."
        )
    return max(dated)[1]
