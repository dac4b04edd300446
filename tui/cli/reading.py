"""Reading a session file of any known agent for the commands that print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from thresher.core.errors import ThresherError

from ..figures import count
from . import output

if TYPE_CHECKING:
    from thresher.core.history import History
    from thresher.core.sources.base import Source
    from thresher.core.state import SessionState

SHOWN_PROBLEMS = 10


def source_of(path: Path) -> Source:
    """The session in this file. Raises ThresherError when it is of no format that is known."""
    from thresher.core.sources.registry import open_source

    return open_source(path)


def replay(path: Path) -> History:
    """Replay a session file. Raises ThresherError when it holds nothing that can be shown."""
    from thresher.core.history import History

    history = History()
    history.extend(source_of(path).read())
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
