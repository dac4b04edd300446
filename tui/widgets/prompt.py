"""The input line: a message for the agent, or a command."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Input

from thresher.core.text import clean_line

from ..keys import Where, bindings, sign_of
from ..theme import keyed
from .text_line import TextLine

COMPACT = "/compact"
READY = "message, or /compact [what to keep in focus]   <app.focus> to the timeline"


class Prompt(TextLine):
    """One line of input. Disabled with its reason in a session that can only be watched."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.PROMPT)

    DEFAULT_CSS = """
    Prompt {
        height: 1;
        border: none;
        border-left: blank;
        padding: 0;
        background: $raised;
        color: $foreground;
        &:focus {
            border: none;
            border-left: outer $primary;
            background: $raised;
            background-tint: transparent;
        }
        &:disabled { opacity: 100%; color: $muted; background: $background; }
        & > .input--placeholder, &:disabled > .input--placeholder { color: $muted; }
    }
    """

    class Said(Message):
        """A message for the agent."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class CompactWanted(Message):
        """A manual compaction; the focus may be empty."""

        def __init__(self, focus: str) -> None:
            super().__init__()
            self.focus = focus

    class CommandUnknown(Message):
        """A command that the console does not have."""

        def __init__(self, command: str) -> None:
            super().__init__()
            self.command = command

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(words="message", select_on_focus=False, compact=False, id=id)
        self._ready = False

    def check_consume_key(self, key: str, character: str | None = None) -> bool:
        """What is typed here is no key of the screen, so the footer must not name it as one."""
        return super().check_consume_key(key, character or sign_of(key) or None)

    def allow(self, why_not: str = "") -> None:
        """Take input, or say why not."""
        self.disabled = bool(why_not)
        self.say(clean_line(why_not, 200) if why_not else keyed(self.app, READY))

    def ask_focus(self) -> None:
        """Begin a manual compaction; what was typed becomes its focus."""
        text = self.value.strip()
        if not text.startswith(COMPACT):
            self.value = f"{COMPACT} {text}"
        self.cursor_position = len(self.value)
        self.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """An empty line cannot be sent."""
        if action == "submit":
            return bool(self.value.strip())
        return super().check_action(action, parameters)

    @on(Input.Changed)
    def _changed(self) -> None:
        ready = bool(self.value.strip())
        if ready != self._ready:
            self._ready = ready
            self.refresh_bindings()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = self.value.strip()
        if not text:
            return
        word, _, rest = text.partition(" ")
        if word == COMPACT:
            self.post_message(self.CompactWanted(rest.strip()))
        elif word.startswith("/") and "/" not in word[1:]:
            # Not sent and not lost: a slip in a command is no message for the model.
            self.post_message(self.CommandUnknown(word))
            return
        else:
            self.post_message(self.Said(text))
        self.value = ""
