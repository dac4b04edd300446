"""Reading a session file of any known agent for the commands that print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.core.errors import ThresherError

from ..figures import count
from . import output

if TYPE_CHECKING:
    from thresher.core.history import History
    from thresher.core.sources.base import Source
    from thresher.core.sources.registry import Choice
    from thresher.core.state import SessionState

SHOWN_PROBLEMS = 10
SHOWN_SESSIONS = 8
SESSION_HELP = "The session in a file that holds several (OpenCode's database): its id."


def meant(path: Path, session: str | None) -> Path:
    """The path of one session in a file that may hold several; by default the newest.

    Which one was taken is told on standard error. Raises ThresherError when a session is named
    and the file holds only one.
    """
    from thresher.core.sources.opening import choices
    from thresher.core.sources.sample import contained

    file, inner = contained(path)
    if inner and session is None:
        return path
    known = choices(file)
    if session is None:
        if len(known) > 1:
            output.remark(
                f"{file} holds {len(known):,} sessions, and this is {known[0].id}; --session ID "
                f"names another: {_listed(known[1:])}"
            )
        return path
    if inner or not known:
        raise ThresherError("Wrong usage", f"{path} is one session by itself: leave --session out.")
    found = [each for each in known if each.id == session]
    found = found or [each for each in known if session and session in each.id]
    if len(found) != 1:
        what = "is in the ids of several sessions" if found else "is no session"
        raise ThresherError(
            "Which session", f"{session!r} {what} of {file}: {_listed(found or known)}."
        )
    return found[0].path


def _listed(known: Sequence[Choice]) -> str:
    shown = ", ".join(each.id for each in known[:SHOWN_SESSIONS])
    more = len(known) - SHOWN_SESSIONS
    return f"{shown} and {more:,} more" if more > 0 else shown


def source_of(path: Path) -> Source:
    """The session in this file. Raises ThresherError when it is of no format that is known."""
    from thresher.core.sources.opening import open_source

    return open_source(path)


def replay(path: Path) -> History:
    """Replay a session file. Raises ThresherError when it holds nothing that can be shown."""
    from thresher.core.history import History
    from thresher.core.hold.past import with_holds

    history = History()
    source = source_of(path)
    history.extend(with_holds(path, source.agent, source.read()))
    if not history.records:
        raise ThresherError("Empty session", f"{path} holds no record that can be shown.")
    return history


def remark_problems(state: SessionState) -> None:
    """What could not be read goes to standard error: it must not hide, nor get into a pipe."""
    problems = state.problems
    broken = [each for each in problems if each.line is not None]
    for problem in broken[:SHOWN_PROBLEMS]:
        output.remark(f"line #{problem.line}: {problem.message}")
    if len(broken) > SHOWN_PROBLEMS:
        output.remark(f"... {len(broken) - SHOWN_PROBLEMS:,} more lines with problems")
    if state.unknown:
        told = ", ".join(f"{kind} ({number:,})" for kind, number in state.unknown.items())
        output.remark(f"{count(sum(state.unknown.values()), 'record')} of unknown types: {told}")
