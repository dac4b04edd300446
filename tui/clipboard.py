"""The clipboard of this machine, beside the terminal's own.

Textual writes the OSC 52 sequence, which reaches the clipboard of whoever sits at the terminal,
over SSH too, where the terminal allows it. Several do not (Terminal.app) or cut long ones, so the
program that a desktop brings for it is asked as well. It is run by us and not by a library: it must
not write on the screen, nor wait for ever.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping

TERMINAL_TAKES = 74_994
"""Bytes of text in a sequence of 100,000 bytes, the limit that many terminals keep (hterm, and
those that took it from there); others have less or none."""

_SECONDS = 5.0


def program(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """What puts its input on the clipboard of the desktop that the user sits at; None for none."""
    remote = bool(environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))
    known: list[tuple[str, ...]] = []
    if not remote and sys.platform == "darwin":
        known.append(("pbcopy",))
    if not remote and environ.get("WAYLAND_DISPLAY"):
        known.append(("wl-copy",))
    # A display that is named over SSH is the user's own, forwarded.
    if environ.get("DISPLAY"):
        known += [("xclip", "-selection", "clipboard", "-in"), ("xsel", "--clipboard", "--input")]
    path = environ.get("PATH")
    return next((command for command in known if shutil.which(command[0], path=path)), None)


def put(text: bytes, command: tuple[str, ...]) -> bool:
    """Give the bytes to the program; whether it took them. Blocking, a few seconds at most."""
    try:
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
