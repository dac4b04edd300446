"""The commands for other programs: the settings that let them be held, and their hook."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from thresher.core.errors import ThresherError

from ..spans import wrap
from . import output

CELLS = 100


def add_to(app: App) -> None:
    """Register the commands."""
    app.command(hold, help_epilogue="Example: thresher hold claude-code")
    app.command(
        hook, help_epilogue="Example: thresher hook --timeout 600 < what-the-agent-said.json"
    )


def hold(agent: Annotated[str, Parameter(help="claude-code or codex.")], /) -> int:
    """Print the settings with which another agent can be held before it compacts.

    Nothing is written: you paste the lines into that program's own settings.
    """
    from thresher.core.hold.programs import PROGRAMS

    program = PROGRAMS.get(agent.strip().lower())
    if program is None:
        known = ", ".join(PROGRAMS)
        raise ThresherError(
            "Unknown agent", f"{agent!r} cannot be held: there are {known} (`thresher hold NAME`)."
        )
    output.say(program.setting(f"{_command()} hook --timeout {program.timeout}"))
    output.say()
    decide = "go on, go on with a focus, or skip it" if program.focus else "go on, or skip it"
    told = (
        f"These lines belong into {program.settings}. {program.after}From then on {program.title} "
        f"runs `thresher hook` before it compacts, which lets it go on at once unless a console is "
        f"attached to that session with a breakpoint: thresher open latest:{program.word} --break "
        f"compaction. There the program waits until you decide ({decide}), until the console is "
        f"closed, or until {program.timeout} seconds are nearly over; whatever goes wrong here "
        f"lets it go on. What skipping comes to, as measured ({program.measured}): "
        f"{program.consequence('auto', '9999.0.0')}"
    )
    for line in wrap(told, min(CELLS, output.columns())):
        output.say(line)
    return 0


def hook(
    *,
    timeout: Annotated[
        int, Parameter(help="Seconds that the program gives its hook, as in its settings.")
    ] = 60,
) -> int:
    """What another agent runs before it compacts; `thresher hold` prints the settings for it.

    It reads the agent's JSON on standard input, and lets it go on whatever goes wrong.
    """
    from thresher.core.hold import hook as other

    return other.main(["--timeout", str(timeout)])


def _command() -> str:
    """This program as a shell of the agent finds it, with the folder where consoles are found."""
    name = "thresher"
    found, this = shutil.which(name), Path(sys.argv[0])
    if this.name == name and (found is None or Path(found).resolve() != this.resolve()):
        name = shlex.quote(str(this.absolute()))
    elif found is None:
        name = f"{shlex.quote(sys.executable)} -m thresher.tui"
    state = os.environ.get("THRESHER_STATE_DIR")
    return f"THRESHER_STATE_DIR={shlex.quote(state)} {name}" if state else name
