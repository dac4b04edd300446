"""The program `thresher`: its command line, and before that the one command that must be quick."""

from __future__ import annotations

import sys

from thresher.core.hold import hook


def main() -> int:
    """Run the command line of this process; returns the exit code."""
    arguments = sys.argv[1:]
    if hook.is_wanted(arguments):
        # Another program waits for it: nothing else is loaded.
        return hook.main(arguments[1:])
    from .cli import main as command_line

    return command_line(arguments)
