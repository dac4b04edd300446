"""Copying a text: to the terminal's clipboard and to the desktop's, as it is, and said how much.

A text goes out as it was recorded; of the sequence only the form is ours (base64). Halves of
surrogate pairs, which no encoding of text can hold, are the one exception, and are told.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, NamedTuple

from textual.app import App

from . import figures
from .clipboard import TERMINAL_TAKES, program, put


class Copied(NamedTuple):
    """What goes to the clipboard: the bytes, and how many characters could not be encoded."""

    data: bytes
    broken: int


def encoded(text: str) -> Copied:
    """The text in UTF-8; a lone surrogate becomes U+FFFD."""
    try:
        return Copied(text.encode(), 0)
    except UnicodeEncodeError:
        broken = sum("\ud800" <= sign <= "\udfff" for sign in text)
        whole = "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
        return Copied(whole.encode(), broken)


def told(what: str, text: str, copied: Copied, desktop: str) -> str:
    """How much was copied, and where to; `desktop` names the program that took it, if one did."""
    size = f"{figures.count(len(text), 'character')}, {figures.count(len(copied.data), 'byte')}"
    where = f"the terminal's clipboard and, by {desktop}, the desktop's" if desktop else (
        "the terminal's clipboard"
    )  # fmt: skip
    words = f"Copied {what}: {size}, to {where}."
    if copied.broken:
        many = figures.count(copied.broken, "half of a surrogate pair", "halves of surrogate pairs")
        words += f" {many} stand as U+FFFD: no text can hold them."
    if len(copied.data) > TERMINAL_TAKES and not desktop:
        words += (
            f" Many terminals take no more than {TERMINAL_TAKES:,} bytes: if nothing arrives, "
            "export it to a file."
        )
    return words


def copy_text(app: App[Any], text: str, what: str) -> None:
    """Copy a text, and tell how much. `what` is our own word for it, or an entry's id."""
    copied = encoded(text)
    app.copy_to_clipboard(copied.data.decode())
    command = program(os.environ)

    async def desktop() -> None:
        taken = command is not None and await asyncio.to_thread(put, copied.data, command)
        name = command[0] if command is not None and taken else ""
        app.notify(told(what, text, copied, name), markup=False)

    app.run_worker(desktop(), name="copy", group="copy", exit_on_error=False)
