"""Every key of the console in one table.

The table makes the bindings, the footer, the entries of the command palette, the help screen and
the table in the README, so none of them can differ from the others. A key is named by its id in a
user's own key map (`App.set_keymap`).

`python -m thresher.tui.keys` prints the README's table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Where(StrEnum):
    """The place a key works in; the value is how people read it."""

    APP = "everywhere"
    CONSOLE = "console"
    ROWS = "lists and texts"
    LIST = "lists"
    PICKER = "sessions"
    READER = "full text"
    APPROVAL = "a tool that asks"
    MODAL = "dialogs"
    HELP = "help"


class Group(StrEnum):
    """What keys belong together on the help screen and in the palette."""

    MOVE = "Move"
    VIEW = "View"
    TIME = "Time"
    COMPACTION = "Compaction"
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


KEYS: tuple[Key, ...] = (
    # -- lists: the timeline, the sessions, a full text -----------------------------------------
    Key("rows.up", "up,k", "cursor_up", "Up", "One row up", Where.ROWS, Group.MOVE),
    Key("rows.down", "down,j", "cursor_down", "Down", "One row down", Where.ROWS, Group.MOVE),
    Key(
        "rows.page_up", "pageup,ctrl+b", "page_up", "Page up", "One page up",
        Where.ROWS, Group.MOVE,
    ),
    Key(
        "rows.page_down", "pagedown,ctrl+f,space", "page_down", "Page down", "One page down",
        Where.ROWS, Group.MOVE,
    ),
    Key("rows.top", "home,g", "scroll_home", "Top", "To the first row", Where.ROWS, Group.MOVE),
    Key(
        "rows.bottom", "end,G", "scroll_end", "End", "To the last row, and follow it",
        Where.ROWS, Group.MOVE,
    ),
    Key(
        "list.open", "enter", "select", "Open", "Open or fold the selected row",
        Where.LIST, Group.VIEW,
    ),
    # -- console ----------------------------------------------------------------------------------
    Key(
        "console.follow", "f", "follow", "Follow", "Follow the newest row, or stop",
        Where.CONSOLE, Group.VIEW, footer=True, palette="Follow the newest row",
    ),
    Key(
        "console.expand", "e", "expand_all", "Expand", "Open all cards, or fold them",
        Where.CONSOLE, Group.VIEW, palette="Expand all cards",
    ),
    Key(
        "console.detail", "d", "detail", "Detail", "Show or hide the detail pane",
        Where.CONSOLE, Group.VIEW, palette="Toggle the detail pane",
    ),
    Key(
        "console.chart", "v", "chart", "Chart", "Show or hide the token chart",
        Where.CONSOLE, Group.VIEW, palette="Toggle the token chart",
    ),
    Key(
        "console.previous", "left_square_bracket", "previous_compaction", "Previous",
        "Back to the previous compaction",
        Where.CONSOLE, Group.TIME, footer=True, palette="Previous compaction",
    ),
    Key(
        "console.next", "right_square_bracket", "next_compaction", "Next",
        "To the next compaction, or live",
        Where.CONSOLE, Group.TIME, footer=True, palette="Next compaction",
    ),
    Key(
        "console.back", "comma,left", "step(-1)", "Step back", "One record back in time",
        Where.CONSOLE, Group.TIME, palette="Step back",
    ),
    Key(
        "console.forward", "full_stop,right", "step(1)", "Step on", "One record forward in time",
        Where.CONSOLE, Group.TIME, palette="Step on",
    ),
    Key(
        "console.live", "L", "live", "Live", "Back to the newest record",
        Where.CONSOLE, Group.TIME, footer=True, palette="Back to live",
    ),
    Key(
        "console.compact", "c", "compact", "Compact", "Compact now, or with a focus",
        Where.CONSOLE, Group.COMPACTION, footer=True, palette="Compact now...",
    ),
    Key(
        "console.breaker", "b", "close_breaker", "Close breaker",
        "Let compaction run again",
        Where.CONSOLE, Group.COMPACTION, palette="Close the breaker",
    ),
    Key(
        "console.prompt", "i", "focus_prompt", "Message", "Go to the input line",
        Where.CONSOLE, Group.AGENT, palette="Write a message",
    ),
    Key(
        "console.escape", "escape", "back", "Interrupt",
        "Close what is open, or interrupt",
        Where.CONSOLE, Group.AGENT, palette="Interrupt",
    ),
    Key(
        "approval.once", "y", "answer('once')", "Once", "Allow this call",
        Where.APPROVAL, Group.AGENT,
    ),
    Key(
        "approval.session", "a", "answer('session')", "This session",
        "Allow it for this session", Where.APPROVAL, Group.AGENT,
    ),
    Key(
        "approval.never", "n", "answer('never')", "Never", "Refuse it and calls like it",
        Where.APPROVAL, Group.AGENT,
    ),
    # -- sessions -----------------------------------------------------------------------------
    Key(
        "picker.open", "enter", "open", "Open", "Open the selected session",
        Where.PICKER, Group.SESSION, footer=True,
    ),
    Key(
        "picker.path", "ctrl+o", "open_path", "Open a file", "Open a session file by its path",
        Where.PICKER, Group.SESSION, footer=True, palette="Open a file...",
    ),
    Key(
        "picker.reload", "f5,ctrl+r", "reload", "Reload", "Look for sessions again",
        Where.PICKER, Group.SESSION, footer=True, palette="Look again",
    ),
    Key(
        "picker.back", "escape", "back", "Back", "Clear the filter, or go back",
        Where.PICKER, Group.SESSION, footer=True,
    ),
    # -- dialogs and full texts ---------------------------------------------------------------
    Key(
        "reader.close", "escape,q", "close", "Close", "Close the text", Where.READER, Group.VIEW,
        footer=True,
    ),
    Key("modal.close", "escape", "close", "Close", "Close the dialog", Where.MODAL, Group.APP),
    Key(
        "help.close", "question_mark,f1,q", "close", "Close", "Close the help",
        Where.HELP, Group.APP,
    ),
    # -- everywhere ---------------------------------------------------------------------------
    Key(
        "app.sessions", "o", "sessions", "Sessions", "List the sessions of this machine",
        Where.APP, Group.SESSION, palette="Open another...",
    ),
    Key(
        "app.theme", "t", "toggle_theme", "Theme", "Light or dark",
        Where.APP, Group.VIEW, palette="Toggle theme",
    ),
    Key(
        "app.help", "question_mark,f1", "help", "Help", "Keys and signs",
        Where.APP, Group.APP, footer=True, palette="Show help",
    ),
    Key(
        "app.palette", "ctrl+p", "command_palette", "Commands", "Find a command by its name",
        Where.APP, Group.APP, footer=True, priority=True,
    ),
    Key("app.focus", "tab", "app.focus_next", "Focus", "To the next part", Where.APP, Group.MOVE),
    Key(
        "app.focus_back", "shift+tab", "app.focus_previous", "Focus back", "To the part before",
        Where.APP, Group.MOVE,
    ),
    Key(
        "app.quit", "q,ctrl+q", "quit", "Quit", "End; every session is kept",
        Where.APP, Group.APP, footer=True, palette="Quit",
    ),
    Key(
        "app.interrupt", "ctrl+c", "interrupt", "Interrupt",
        "Copy, or interrupt; twice quits",
        Where.APP, Group.AGENT, priority=True,
    ),
)  # fmt: skip


def bindings(*places: Where) -> list[BindingType]:
    """What a screen, a widget or the app in these places binds."""
    return [
        Binding(
            key.keys,
            key.action,
            key.label,
            show=key.footer,
            tooltip=key.tip,
            id=key.id,
            priority=key.priority,
        )
        for key in KEYS
        if key.where in places
    ]


_SHOWN = {
    "up": "\u2191", "down": "\u2193", "left": "\u2190", "right": "\u2192",
    "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "enter": "Enter",
    "escape": "Esc", "tab": "Tab", "space": "Space", "comma": ",", "full_stop": ".",
    "left_square_bracket": "[", "right_square_bracket": "]", "question_mark": "?",
}  # fmt: skip


def shown(key: str) -> str:
    """One key as people read it: "ctrl+p" is Ctrl+P, "comma" is a comma."""
    *held, last = key.split("+")
    name = _SHOWN.get(last, last)
    if (len(name) == 1 and held) or (name.startswith("f") and name[1:].isdigit()):
        name = name.upper()
    return "+".join([*(part.capitalize() for part in held), name])


def shown_keys(key: Key, separator: str = " ") -> str:
    """All keys of a row as people read them."""
    return separator.join(shown(name) for name in key.keys.split(","))


def grouped(places: Iterable[Where]) -> list[tuple[Group, list[Key]]]:
    """The rows of these places by group, in the table's order."""
    wanted = set(places)
    return [
        (group, rows)
        for group in Group
        if (rows := [key for key in KEYS if key.group is group and key.where in wanted])
    ]


README_BEGIN = "<!-- keys: begin (python -m thresher.tui.keys) -->"
README_END = "<!-- keys: end -->"


def markdown() -> str:
    """The table as the README shows it, between its two markers."""
    lines = [README_BEGIN, "| Keys | What it does | Where |", "|---|---|---|"]
    for _, rows in grouped(Where):
        for key in rows:
            names = " ".join(f"`{shown(name)}`" for name in key.keys.split(","))
            lines.append(f"| {names} | {key.tip} | {key.where.value} |")
    return "\n".join([*lines, README_END])


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
