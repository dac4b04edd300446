"""What the keys of the console can do in a session: now, at another time, or never.

The palette, the footer and the help ask here, so that none of them names a key in vain. A key that
is pressed all the same says why it can do nothing.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from .model import ConsoleModel, DebugActor


@runtime_checkable
class Offering(Protocol):
    """A screen that knows which of its keys can do something."""

    def offers(self, id: str) -> bool | None:
        """Of a key of the table: True if it can do something now, None if it can at another time,
        False if it never can here."""
        ...


def offers(id: str, model: ConsoleModel) -> bool | None:
    """What a key of the console can do in a session, in the sense of `Offering`."""
    match id:
        case "console.compact" | "console.prompt" | "prompt.send":
            return model.actor is not None
        case "console.escape":
            return model.actor is not None or None
        case "console.breaker":
            return _now(model.actor is not None, model.history.state.breaker_open)
        case "console.live" | "console.next" | "console.forward":
            return model.rewound or None
        case "console.previous":
            return bool(model.compaction_stops()) or None
        case "console.breakpoints":
            return model.holder is not None
        case "console.step" | "console.pin" | "console.restore":
            return isinstance(model.actor, DebugActor)
        case "console.stop" | "console.go_on":
            holder = model.holder
            return _now(holder is not None, holder is not None and holder.proposal() is not None)
        case "console.undo":
            return _now(isinstance(model.actor, DebugActor), bool(model.history.state.compactions))
        case "console.diff":
            return any(card.context_after is not None for card in model.state.cards) or None
        case _:
            return True


def _now(ever: bool, now: bool) -> bool | None:
    return False if not ever else True if now else None
