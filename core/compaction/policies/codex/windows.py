"""The chain of context windows, kept in the policy's memory.

Codex gives each window a UUID of its own. A policy draws nothing at random, so here a window is
named after its number and the newest entry of the context at the moment it was opened.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...policy import Situation

FIRST = "w0"


class Window(msgspec.Struct, frozen=True):
    """A window's place in the chain; the first one has the number 0 and nothing before it."""

    window_number: int = 0
    first_window_id: str = FIRST
    previous_window_id: str = ""
    window_id: str = FIRST

    @property
    def memory(self) -> dict[str, Any]:
        """The form in which it is remembered."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


def current(situation: Situation) -> Window:
    """The window that the situation is in."""
    known = {
        name: situation.memory[name]
        for name in Window.__struct_fields__
        if name in situation.memory
    }
    return msgspec.convert(known, Window)


def following(situation: Situation) -> Window:
    """The window that a compaction opens: the number grows, the first id stays."""
    now = current(situation)
    number = now.window_number + 1
    entries = situation.context.entries
    newest = entries[-1].id.bare if entries else "0"
    return Window(number, now.first_window_id, now.window_id, f"w{number}-{newest}")
