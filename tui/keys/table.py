"""The table: every key of the console, one row each, in the order in which people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .vocabulary import Group, Key, Where

KEYS: tuple[Key, ...] = (
    # -- lists: the timeline, the sessions, a full text -----------------------------------------
    Key("rows.up", "up,k", "cursor_up", "Up", "One row up", Where.ROWS, Group.MOVE),
    Key("rows.down", "down,j", "cursor_down", "Down", "One row down", Where.ROWS, Group.MOVE),
    Key(
        "rows.page_up", "pageup,ctrl+b", "page_up", "Page up", "One page up",
        Where.ROWS, Group.MOVE,
    ),
    Key(
        "rows.page_down", "pagedown,ctrl+f", "page_down", "Page down", "One page down",
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
    Key(
        "list.next", "n", "jump(1)", "Next", "To the next match, change or finding",
        Where.LIST, Group.MOVE,
    ),
    Key(
        "list.previous", "N", "jump(-1)", "Back", "To the match, change or finding before",
        Where.LIST, Group.MOVE,
    ),
    # -- console ----------------------------------------------------------------------------------
    Key(
        "console.follow", "f", "follow", "Follow", "Follow the newest row, or stop",
        Where.CONSOLE, Group.VIEW, palette="Follow the newest row",
    ),
    Key(
        "console.expand", "e", "expand_all", "Expand", "Open all cards, or fold them",
        Where.CONSOLE, Group.VIEW, palette="Expand all cards",
    ),
    Key(
        "console.detail", "D", "detail", "Detail", "Show or hide the detail pane",
        Where.CONSOLE, Group.VIEW, palette="Toggle the detail pane",
    ),
    Key(
        "console.chart", "v", "chart", "Chart", "Show or hide the token chart",
        Where.CONSOLE, Group.VIEW, palette="Toggle the token chart",
    ),
    Key(
        "console.copy", "Y", "copy", "Copy", "Copy the text of the selected row",
        Where.CONSOLE, Group.VIEW, palette="Copy the text of the selected row",
    ),
    Key(
        "console.narrower", "less_than_sign", "split(-5)", "Narrower", "More room for the detail",
        Where.CONSOLE, Group.VIEW, palette="Widen the detail",
    ),
    Key(
        "console.wider", "greater_than_sign", "split(5)", "Wider", "More room for the timeline",
        Where.CONSOLE, Group.VIEW, palette="Widen the timeline",
    ),
    Key(
        "console.previous", "left_square_bracket", "previous_compaction", "Back",
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
        Where.CONSOLE, Group.TIME, palette="Back to live",
    ),
    Key(
        "console.find", "slash", "find", "Find", "Find words, tools, ids; with filters",
        Where.CONSOLE, Group.MOVE, footer=True, palette="Find...",
    ),
    Key(
        "console.round_back", "left_curly_bracket", "previous_round", "Round before",
        "Back to the request before", Where.CONSOLE, Group.TIME, palette="Previous round",
    ),
    Key(
        "console.round_on", "right_curly_bracket", "next_round", "Next round",
        "To the next request", Where.CONSOLE, Group.TIME, palette="Next round",
    ),
    Key(
        "console.error_back", "left_parenthesis", "previous_error", "Error before",
        "Back to the error before", Where.CONSOLE, Group.TIME, palette="Previous error",
    ),
    Key(
        "console.error_on", "right_parenthesis", "next_error", "Next error",
        "To the next error", Where.CONSOLE, Group.TIME, palette="Next error",
    ),
    Key(
        "console.play", "space", "play", "Play", "Play the session from here, or pause",
        Where.CONSOLE, Group.TIME, palette="Play the session",
    ),
    Key(
        "console.faster", "plus", "speed(1)", "Faster", "Play twice as fast",
        Where.CONSOLE, Group.TIME,
    ),
    Key(
        "console.slower", "minus", "speed(-1)", "Slower", "Play half as fast",
        Where.CONSOLE, Group.TIME,
    ),
    Key(
        "console.go_back", "backspace", "go_back", "Back", "Back to where a jump began",
        Where.CONSOLE, Group.MOVE, palette="Back to where the jump began",
    ),
    Key(
        "console.bookmark", "m", "bookmark", "Bookmark", "Set a bookmark with a note here",
        Where.CONSOLE, Group.MOVE, palette="Set a bookmark...",
    ),
    Key(
        "console.bookmarks", "apostrophe", "bookmarks", "Bookmarks", "List the bookmarks",
        Where.CONSOLE, Group.MOVE, palette="Bookmarks...",
    ),
    Key(
        "console.outline", "O", "outline", "Outline", "The phases between compactions",
        Where.CONSOLE, Group.MOVE, palette="Outline...",
    ),
    Key(
        "console.diff", "d", "diff", "Diff", "Before and after of the selected compaction",
        Where.CONSOLE, Group.COMPACTION, footer=True, palette="Show before and after",
    ),
    Key(
        "console.context", "x", "context", "Context", "The exact list that the model sees here",
        Where.CONSOLE, Group.COMPACTION, footer=True, palette="Inspect the context",
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
        "console.breakpoints", "B", "breakpoints", "Break", "Set and clear breakpoints",
        Where.CONSOLE, Group.DEBUG, footer=True, palette="Breakpoints...",
    ),
    Key(
        "console.step", "s", "step_round", "Step", "Stop after the next round",
        Where.CONSOLE, Group.DEBUG, palette="Step one round",
    ),
    Key(
        "console.stop", "S", "stop", "Stop", "Look at the stop where the agent waits",
        Where.CONSOLE, Group.DEBUG, palette="Look at the stop",
    ),
    Key(
        "console.go_on", "C", "go_on", "Go on", "Go on from a stop",
        Where.CONSOLE, Group.DEBUG, palette="Go on from the stop",
    ),
    Key(
        "console.pin", "p", "pin", "Pin", "Pin the selected entry: it survives every compaction",
        Where.CONSOLE, Group.DEBUG, palette="Pin or unpin the selected entry",
    ),
    Key(
        "console.undo", "u", "undo", "Undo", "Take the last compaction back",
        Where.CONSOLE, Group.DEBUG, palette="Undo the last compaction...",
    ),
    Key(
        "console.restore", "R", "restore", "Restore", "Bring the selected removed entry back",
        Where.CONSOLE, Group.DEBUG, palette="Restore the selected entry...",
    ),
    Key(
        "console.prompt", "i", "focus_prompt", "Message", "Go to the input line",
        Where.CONSOLE, Group.AGENT, palette="Write a message",
    ),
    Key(
        "prompt.send", "enter", "submit", "Send", "Send what is written, or do what it says",
        Where.PROMPT, Group.AGENT, footer=True,
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
    # -- find, before and after, the context list, bookmarks ------------------------------------
    Key("find.next", "down", "jump(1)", "Next", "To the next match", Where.FIND, Group.MOVE, True),
    Key(
        "find.previous", "up", "jump(-1)", "Before", "To the match before", Where.FIND, Group.MOVE,
        footer=True,
    ),
    Key(
        "find.go", "enter", "go", "To the list", "Go on in the list", Where.FIND, Group.MOVE,
        footer=True,
    ),
    Key(
        "find.close", "escape", "close", "Close", "Close the find line", Where.FIND, Group.MOVE,
        footer=True,
    ),
    Key(
        "diff.filter", "f", "filter", "Filter", "Show only some changes, roles, tools or sizes",
        Where.DIFF, Group.VIEW, footer=True, palette="Filter...",
    ),
    Key(
        "diff.expand", "e", "expand", "Unfold", "Unfold what was kept, or fold it",
        Where.DIFF, Group.VIEW, footer=True, palette="Unfold what was kept",
    ),
    Key(
        "diff.summary", "s", "summary", "Summary", "The summary against the one before, or back",
        Where.DIFF, Group.VIEW, footer=True, palette="Compare the summaries",
    ),
    Key(
        "diff.copy", "y", "copy", "Copy", "Copy the text of the selected row",
        Where.DIFF, Group.VIEW, footer=True, palette="Copy the text",
    ),
    Key(
        "diff.previous", "left_square_bracket", "compaction(-1)", "Previous",
        "The compaction before", Where.DIFF, Group.TIME, palette="Previous compaction",
    ),
    Key(
        "diff.next", "right_square_bracket", "compaction(1)", "Next",
        "The next compaction", Where.DIFF, Group.TIME, palette="Next compaction",
    ),
    Key(
        "diff.close", "escape,q", "close", "Close", "Back to the session", Where.DIFF, Group.APP,
        footer=True,
    ),
    Key(
        "context.sort", "s", "sort", "Sort", "By place, or the largest first",
        Where.CONTEXT, Group.VIEW, footer=True, palette="Sort by place or size",
    ),
    Key(
        "context.wire", "w", "wire", "Wire", "The request in its wire form, or back",
        Where.CONTEXT, Group.VIEW, footer=True, palette="Show the wire form",
    ),
    Key(
        "context.compare", "c", "compare", "Compare", "Compare with another position",
        Where.CONTEXT, Group.TIME, footer=True, palette="Compare with...",
    ),
    Key(
        "context.copy", "y", "copy", "Copy", "Copy the text of the selected row",
        Where.CONTEXT, Group.VIEW, footer=True, palette="Copy the text",
    ),
    Key(
        "context.close", "escape,q", "close", "Close", "Back to the session",
        Where.CONTEXT, Group.APP, footer=True,
    ),
    Key(
        "marks.remove", "delete,x", "remove", "Remove", "Remove the bookmark",
        Where.MARKS, Group.MOVE,
    ),
    # -- dialogs and full texts ---------------------------------------------------------------
    Key(
        "reader.close", "escape,q", "close", "Close", "Close the text", Where.READER, Group.VIEW,
        footer=True,
    ),
    Key(
        "reader.copy", "y", "copy", "Copy", "Copy the whole text", Where.READER, Group.VIEW,
        footer=True,
    ),
    Key(
        "reader.page", "space", "page", "Page down", "One page down", Where.READER, Group.MOVE,
    ),
    Key("modal.close", "escape", "close", "Close", "Close the dialog", Where.MODAL, Group.APP),
    Key("written.copy", "y", "copy", "Copy", "Copy the path", Where.WRITTEN, Group.VIEW),
    Key("written.close", "enter", "close", "Close", "Close it", Where.WRITTEN, Group.APP),
    Key(
        "help.close", "question_mark,f1,q", "close", "Close", "Close the help",
        Where.HELP, Group.APP,
    ),
    Key(
        "help.all", "a", "everything", "All keys", "All keys, or those of this screen",
        Where.HELP, Group.APP,
    ),
    Key(
        "tour.next", "enter,right,space", "next", "Next", "The next step of the tour",
        Where.TOUR, Group.APP, footer=True,
    ),
    Key(
        "tour.back", "left,backspace", "back", "Back", "The step before", Where.TOUR, Group.APP,
        footer=True,
    ),
    Key(
        "tour.skip", "escape,q", "skip", "Skip", "End the tour", Where.TOUR, Group.APP,
        footer=True,
    ),
    # -- the stop -------------------------------------------------------------------------------
    Key(
        "stop.apply", "a", "apply", "Apply", "Ask for the summary, or apply the edit, as shown",
        Where.STOP, Group.DEBUG, footer=True, palette="Apply as shown",
    ),
    Key(
        "stop.skip", "z", "skip_pass", "Skip", "Not this time",
        Where.STOP, Group.DEBUG, footer=True, palette="Skip this time",
    ),
    Key(
        "stop.pin", "p", "pin", "Pin", "Pin the selected entry: it survives every compaction",
        Where.STOP, Group.DEBUG, footer=True, palette="Pin or unpin the selected entry",
    ),
    Key(
        "stop.drop", "minus", "drop", "Drop", "Let the selected entry go, whatever the policy says",
        Where.STOP, Group.DEBUG, footer=True, palette="Drop or keep the selected entry",
    ),
    Key(
        "stop.edit", "e", "edit", "Summary", "Write the summary, or change it",
        Where.STOP, Group.DEBUG, footer=True, palette="Edit the summary...",
    ),
    Key(
        "stop.focus", "f", "focus_text", "Focus", "Say what the summary must keep above all",
        Where.STOP, Group.DEBUG, palette="Focus the summary...",
    ),
    Key(
        "stop.keep", "K", "ask_to_keep", "Keep",
        "Ask another program's model to keep the selected entry word for word",
        Where.STOP, Group.DEBUG, footer=True, palette="Ask to keep the selected entry",
    ),
    Key(
        "stop.fresh", "r", "fresh", "Fresh summary", "Ask for another summary",
        Where.STOP, Group.DEBUG, palette="Ask for a fresh summary",
    ),
    Key(
        "stop.policy", "P", "policy", "Policy", "Let another policy propose, for this time",
        Where.STOP, Group.DEBUG, palette="Let another policy propose...",
    ),
    Key(
        "stop.view", "v", "view", "View", "The entry, the request for the summary, the summary",
        Where.STOP, Group.VIEW, footer=True, palette="Next view of the text",
    ),
    Key(
        "stop.read", "w", "read_all", "Read all", "All of the text, on a screen of its own",
        Where.STOP, Group.VIEW, palette="Read all of the text",
    ),
    Key(
        "stop.copy", "y", "copy", "Copy", "Copy the text of the selected entry, or the summary",
        Where.STOP, Group.VIEW, palette="Copy the text",
    ),
    Key(
        "stop.step", "s", "step_round", "Step", "Go on, and stop after the next round",
        Where.STOP, Group.DEBUG, palette="Step one round",
    ),
    Key(
        "stop.go_on", "c", "go_on", "Go on", "Go on to the next breakpoint",
        Where.STOP, Group.DEBUG, footer=True, palette="Go on",
    ),
    Key(
        "stop.breakpoints", "B", "breakpoints", "Breakpoints", "Set and clear breakpoints",
        Where.STOP, Group.DEBUG, palette="Breakpoints...",
    ),
    Key(
        "stop.undo", "u", "undo", "Undo", "Take the last compaction back",
        Where.STOP, Group.DEBUG, palette="Undo the last compaction...",
    ),
    Key(
        "stop.leave", "escape", "leave", "Back", "Back to the console; the agent goes on waiting",
        Where.STOP, Group.DEBUG, footer=True,
    ),
    Key("write.use", "ctrl+s", "use", "Use it", "Use the text", Where.WRITE, Group.DEBUG,
        priority=True),
    Key("confirm.yes", "enter,y", "yes", "Yes", "Do it", Where.CONFIRM, Group.DEBUG),
    # -- everywhere ---------------------------------------------------------------------------
    Key(
        "app.sessions", "o", "sessions", "Sessions", "List the sessions of this machine",
        Where.APP, Group.SESSION, palette="Open another...",
    ),
    Key(
        "app.export", "E", "export", "Export",
        "Take a compaction, the session or the screen along, as a file",
        Where.APP, Group.SESSION, footer=True, palette="Export...",
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
        "app.tour", "f2", "tour", "Tour", "The tour of the console, in five steps",
        Where.APP, Group.APP, palette="Take the tour",
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


def grouped(places: Iterable[Where], table: Sequence[Key] = KEYS) -> list[tuple[Group, list[Key]]]:
    """The rows of these places by group, in the table's order."""
    wanted = set(places)
    return [
        (group, rows)
        for group in Group
        if (rows := [key for key in table if key.group is group and key.where in wanted])
    ]
