"""What the user holds of a session: breakpoints, pinned entries, and where it stands still."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from .. import events as e
from ..context import Context, EntryId

HeldEvent: TypeAlias = (
    e.BreakpointSet
    | e.BreakpointCleared
    | e.EntriesPinned
    | e.EntriesUnpinned
    | e.DebuggerStopped
    | e.DebuggerContinued
)


class Held(msgspec.Struct, frozen=True):
    """The fold of those events. `breakpoints` are in their text form, in the order they were set;
    `pins` are ids, also of entries that are not in the context at the moment."""

    breakpoints: tuple[str, ...] = ()
    pins: tuple[EntryId, ...] = ()
    stopped: e.DebuggerStopped | None = None

    def after(self, event: HeldEvent, context: Context) -> Held:
        """What is held after an event, over the context at its place. Raises ValueError for pins
        that are not in it."""
        match event:
            case e.BreakpointSet(text=text):
                others = (each for each in self.breakpoints if each != text)
                return msgspec.structs.replace(self, breakpoints=(*others, text))
            case e.BreakpointCleared(text=text):
                left = tuple(each for each in self.breakpoints if each != text)
                return msgspec.structs.replace(self, breakpoints=left)
            case e.EntriesPinned(entries=entries):
                new = (id for id in context.unspan(entries) if id not in self.pins)
                return msgspec.structs.replace(self, pins=(*self.pins, *new))
            case e.EntriesUnpinned(entries=entries):
                gone = set(parsed(entries))
                left_over = tuple(id for id in self.pins if id not in gone)
                return msgspec.structs.replace(self, pins=left_over)
            case e.DebuggerStopped():
                return msgspec.structs.replace(self, stopped=event)
            case e.DebuggerContinued():
                return self.going_on()

    def going_on(self) -> Held:
        """Nothing stands still any more."""
        return self if self.stopped is None else msgspec.structs.replace(self, stopped=None)


def parsed(ids: str) -> tuple[EntryId, ...]:
    """Ids written with commas. Raises ValueError for what is no id."""
    return tuple(EntryId.parse(text) for text in filter(None, ids.split(",")))


def written(ids: tuple[EntryId, ...]) -> str:
    """Ids with commas, whether they are in the context or not."""
    return ",".join(id.bare for id in ids)


def words(event: HeldEvent) -> str:
    """The event as a row of the timeline."""
    match event:
        case e.BreakpointSet(text=text):
            return f"breakpoint set: {text}"
        case e.BreakpointCleared(text=text):
            return f"breakpoint cleared: {text}"
        case e.EntriesPinned(entries=entries):
            return f"pinned: #{_shown(entries)}"
        case e.EntriesUnpinned(entries=entries):
            return f"no longer pinned: #{_shown(entries)}"
        case e.DebuggerStopped(breakpoint=breakpoint, reason=reason):
            return f"stopped ({breakpoint}): {reason}"
        case e.DebuggerContinued(how=how):
            return f"went on: {how}"


def _shown(span: str) -> str:
    return span.replace("-", "-#").replace(",", " #")
