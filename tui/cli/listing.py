"""`thresher sessions`: what there is on this machine."""

from __future__ import annotations

import time
from itertools import chain
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from thresher.core import paths

from ..ages import age
from ..figures import count
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
            f"There are no sessions yet in {paths.sessions_dir()}. `thresher demo` makes one."
        )
        return 0
    output.put(table(_COLUMNS, [_row(each, time.time()) for each in found], output.columns()))
    output.say()
    output.say(f"{count(len(found), 'session')}. `thresher open ID` shows one.")
    return 0


_COLUMNS = (
    Column("id", tone=Tone.STRONG, least=16),
    Column("agent"),
    Column("last active", tone=Tone.MUTED),
    Column("compactions", right=True),
    Column("model", least=8),
    Column("policy", least=6),
    Column("title", least=12),
)


def _row(each: Known, now: float) -> tuple[Cell, ...]:
    title: Cell = each.title.strip()
    if each.problem:
        title = (f"cannot be used: {each.problem}", Tone.REMOVED)
    return (
        each.id,
        each.agent,
        ("running", Tone.ACCENT) if each.running else age(each.last, now),
        "?" if each.compactions is None else str(each.compactions),
        each.model,
        each.policy,
        title,
    )
