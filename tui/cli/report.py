"""`thresher report`: a session, or one compaction of it, as a file to take along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from thresher.core.errors import ThresherError

from ..travel import POSITIONS, named_position
from . import output
from .reading import remark_problems, replay
from .targets import FILE_HELP, located

if TYPE_CHECKING:
    from thresher.core.history import History


def add_to(app: App) -> None:
    """Register the command."""
    app.command(
        report,
        help_epilogue="Example: thresher report latest -o report.html\n"
        "Example: thresher report latest:codex --compaction 2 > compaction.md",
    )


def report(
    file: Annotated[str, Parameter(help=FILE_HELP)],
    /,
    *,
    format: Annotated[
        Literal["md", "html", "json"] | None,
        Parameter(help="How to write it; by default what the ending of OUT says, else md."),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(name=("--out", "-o"), help="The file to write; by default it is printed."),
    ] = None,
    compaction: Annotated[int | None, Parameter(help="Only this one, by its number.")] = None,
    at: Annotated[
        str | None, Parameter(help=f"As the session was there: {POSITIONS.rstrip('.')}.")
    ] = None,
    no_redact: Annotated[
        bool,
        Parameter(
            name="--no-redact",
            negative="",
            show_default=False,
            help="Leave keys, tokens, passwords and home folders in.",
        ),
    ] = False,
    force: Annotated[
        bool,
        Parameter(
            name="--force", negative="", show_default=False, help="Replace OUT if it exists."
        ),
    ] = False,
) -> int:
    """Write a report: every compaction with its reason, what it changed and what was lost.

    Keys, tokens, passwords and home folders are taken out unless --no-redact is given; what was
    found is told on standard error and in the report. The HTML form is one file without scripts.
    """
    from thresher.core.insight.export import Form, export, save
    from thresher.core.insight.wording import taken_out

    if out is not None and out.is_dir():
        raise ThresherError("Not a file", f"--out {out} is a folder: name a file in it.")
    if out is not None and out.exists() and not force:
        # Asked before the work, and again when the file is opened.
        raise ThresherError(
            "File exists", f"{out} is there already: give another name, or --force to replace it."
        )
    form = Form(format) if format is not None else (out and Form.of(out)) or Form.MARKDOWN
    history = replay(located(file))
    position = None if at is None else _position(history, at)
    text, made = export(history, form, only=compaction, redact=not no_redact, position=position)
    if out is None:
        output.say(text.rstrip("\n"))
    else:
        save(text, out, force=force)
        output.say(f"Wrote {out} ({len(text.encode(errors='replace')):,} bytes).")
    output.remark(taken_out(made.redacted))
    remark_problems(history.state)
    return 0


def _position(history: History, at: str) -> int:
    found = named_position(history, at)
    if found is None:
        raise ThresherError("No such place", f"--at {at} is not in the session: {POSITIONS}")
    return found
