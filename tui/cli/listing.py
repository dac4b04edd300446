"""`thresher sessions`: what there is on this machine."""

from __future__ import annotations

import time
from itertools import chain
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from thresher.core import paths
from thresher.core.sources.finders import finders
from thresher.core.text import clean_line

from ..ages import age
from ..figures import bytes_of, count
from ..places import project_of
from ..spans import Tone
from . import output
from .known import Known, foreign_sessions, own_sessions
from .tables import Cell, Column, table

Json = Annotated[
    bool,
    Parameter(name="--json", negative="", show_default=False, help="Print JSON, one line each."),
]


def add_to(app: App) -> None:
    """Register the command."""
    app.command(sessions, help_epilogue="Example: thresher sessions --json | head -3")


def sessions(*, json: Json = False) -> int:
    """List the sessions of this machine, of every agent, the one last active first."""
    found = sorted(
        chain(own_sessions(), foreign_sessions()),
        key=lambda each: (each.last, each.id),
        reverse=True,
    )
    if json:
        for each in found:
            output.put_json({**msgspec.structs.asdict(each), "path": str(each.path)})
        return 0
    if not found:
        output.say(
            f"There are no sessions yet, neither in {paths.sessions_dir()} nor of another agent "
            f"({', '.join(f'{each.name}: {each.home()}' for each in finders())}). "
            "`thresher demo` makes one."
        )
        return 0
    cells = output.columns()
    left_out = (_SPARE if cells < _ROOMY else ()) + (_MORE if cells < _NARROW else ())
    shown = tuple(column for column in _COLUMNS if column.title not in left_out)
    at = [_COLUMNS.index(column) for column in shown]
    rows = [_row(each, time.time()) for each in found]
    output.put(table(shown, [[row[k] for k in at] for row in rows], cells))
    output.say()
    for each in found:
        if each.running_how:
            output.say(f"{clean_line(each.id, 60)} is running: {each.running_how}.")
    output.say(f"{count(len(found), 'session')}. `thresher open ID` shows one.")
    return 0


_COLUMNS = (
    Column("id", tone=Tone.STRONG, least=16),
    Column("agent"),
    Column("project", tone=Tone.MUTED, least=8),
    Column("last active", tone=Tone.MUTED),
    Column("compactions", right=True),
    Column("size", right=True, tone=Tone.MUTED),
    Column("model", least=8),
    Column("policy", least=6),
    Column("title", least=8),
)
_ROOMY = 130
_SPARE = ("policy", "size", "model")
"""Left out on a terminal that is narrower than that."""
_NARROW = 70
_MORE = ("project", "last active", "compactions")
"""Left out below that: an id says little without its title."""


def _row(each: Known, now: float) -> tuple[Cell, ...]:
    title: Cell = each.title.strip()
    if each.problem:
        title = (f"cannot be used: {each.problem}", Tone.REMOVED)
    return (
        each.id,
        each.agent,
        project_of(each.cwd),
        _last(each, now),
        "?" if each.compactions is None else str(each.compactions),
        bytes_of(each.size),
        each.model,
        each.policy,
        title,
    )


def _last(each: Known, now: float) -> Cell:
    if not each.running:
        return age(each.last, now)
    return ("running" if each.running_sure else "running?", Tone.ACCENT)
