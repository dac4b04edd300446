"""What a row of the key table says, and the places that keys work in."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Where(StrEnum):
    """The place a key works in; the value is how people read it."""

    APP = "everywhere"
    CONSOLE = "console"
    PROMPT = "input line"
    ROWS = "lists and texts"
    LIST = "lists"
    PICKER = "sessions"
    READER = "full text"
    APPROVAL = "a tool that asks"
    MODAL = "dialogs"
    HELP = "help"
    TOUR = "tour"
    STOP = "stop"
    WRITE = "writing"
    CONFIRM = "before a change"
    FIND = "find line"
    DIFF = "before and after"
    CONTEXT = "context list"
    MARKS = "bookmarks"
    WRITTEN = "after an export"


class Group(StrEnum):
    """What keys belong together on the help screen and in the palette."""

    MOVE = "Move"
    VIEW = "View"
    TIME = "Time"
    COMPACTION = "Compaction"
    DEBUG = "Debugger"
    AGENT = "Agent"
    SESSION = "Session"
    APP = "App"


class Key(NamedTuple):
    """One row of the table.

    `keys` are Textual's names, comma separated; `action` a method `action_...` of the place;
    `label` the footer's word; `tip` a sentence without its full stop; `palette` the entry's words
    ("Verb object"), empty when the palette has no such entry.
    """

    id: str
    keys: str
    action: str
    label: str
    tip: str
    where: Where
    group: Group
    footer: bool = False
    palette: str = ""
    priority: bool = False


TOGETHER: tuple[tuple[Where, ...], ...] = (
    (Where.APP, Where.CONSOLE, Where.ROWS, Where.LIST),
    (Where.APP, Where.CONSOLE, Where.APPROVAL),
    (Where.APP, Where.PICKER, Where.ROWS),
    (Where.READER, Where.ROWS),
    (Where.MODAL, Where.HELP),
    (Where.FIND, Where.APP),
    (Where.PROMPT, Where.APP),
    (Where.TOUR,),
    (Where.APP, Where.STOP, Where.ROWS, Where.LIST),
    (Where.MODAL, Where.WRITE),
    (Where.MODAL, Where.CONFIRM),
    (Where.DIFF, Where.ROWS, Where.LIST),
    (Where.CONTEXT, Where.ROWS, Where.LIST),
    (Where.MODAL, Where.MARKS, Where.ROWS, Where.LIST),
    (Where.MODAL, Where.WRITTEN),
)
"""Places whose keys are bound at once, so that one key may mean only one thing there."""
