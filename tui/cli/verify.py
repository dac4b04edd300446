"""`thresher verify`: are the rebuilt requests those that were really sent?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from thresher.core.errors import ThresherError
from thresher.core.text import clean_line

from ..figures import count
from ..spans import Tone
from . import output
from .reading import SESSION_HELP, meant, source_of
from .tables import Cell, Column, table
from .targets import FILE_HELP, located

if TYPE_CHECKING:
    from thresher.core.sources.verify import Compared, Verdict

SHOWN = 3
"""Differences told of one request; --json has all."""


def add_to(app: App) -> None:
    """Register the command."""
    app.command(verify, help_epilogue="Example: thresher verify latest:codex --requests sent.jsonl")


def verify(
    file: Annotated[str, Parameter(help=FILE_HELP)],
    /,
    *,
    requests: Annotated[
        Path,
        Parameter(
            help="A log of the requests that were really sent: one JSON body a line, or bodies "
            "under `request` or `body`."
        ),
    ],
    session: Annotated[str | None, Parameter(help=SESSION_HELP)] = None,
    json: Annotated[
        bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")
    ] = False,
) -> int:
    """Compare the requests rebuilt from a session with a log of those that were really sent.

    Each request of the log is graded: exact, structure (same messages, some text differs) or
    differs, with what differs. The exit code is 1 when one differs. System texts are left out.
    """
    from thresher.core.sources.request_log import logged_requests
    from thresher.core.sources.verify import Grade
    from thresher.core.sources.verify import verify as compare

    source = source_of(meant(located(file), session))
    log = list(logged_requests(requests))
    if not log:
        raise ThresherError(
            "No requests", f"{requests} holds no request: give a log with one JSON body a line."
        )
    verdict = compare(source.requests(), log, getattr(source, "plain", None))
    if json:
        output.put_json(verdict)
    else:
        _tell(verdict)
    return 1 if verdict.grade is Grade.DIFFERS else 0


def _tell(verdict: Verdict) -> None:
    columns = (
        Column("request", tone=Tone.STRONG),
        Column("line"),
        Column("grade"),
        Column("what differs", least=24),
    )
    rows = [_row(each) for each in verdict.requests]
    output.put(table(columns, rows, output.columns()))
    output.say()
    told = (
        f"{verdict.grade.value}: of {count(verdict.logged, 'logged request')} {verdict.exact:,} "
        f"exact, {verdict.structure:,} in structure, {verdict.differs:,} different"
    )
    if verdict.unlogged == 1:
        told += "; 1 more was rebuilt that is not in the log"
    elif verdict.unlogged:
        told += f"; {verdict.unlogged:,} more were rebuilt that are not in the log"
    another = "" if verdict.exact or verdict.structure else " Is the log one of this session?"
    output.say(f"{told}.{another}")


def _row(each: Compared) -> tuple[Cell, ...]:
    tones = {"exact": Tone.KEPT, "structure": Tone.THRESHOLD, "differs": Tone.REMOVED}
    told: list[str] = []
    for residue in each.residue[:SHOWN]:
        where = "" if residue.message < 0 else f"message {residue.message}: "
        line = f"{where}{residue.what}"
        if residue.rebuilt or residue.sent:
            line += f"; rebuilt {residue.rebuilt!r}, sent {residue.sent!r}"
        told.append(clean_line(line, 400))
    if len(each.residue) > SHOWN:
        told.append(f"and {len(each.residue) - SHOWN:,} more messages")
    return (
        each.label or str(each.row),
        "" if each.position is None else f"#{each.position}",
        (each.grade.value, tones[each.grade.value]),
        "\n".join(told),
    )
