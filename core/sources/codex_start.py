"""The first record of a rollout, and what later lines add to it: titles, models and settings."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from ..models import Budget, Fact, Origin
from .base import WireItem
from .codex_cards import Setup
from .codex_compactions import Compactions
from .codex_items import dict_of, text_of, texts_of
from .codex_reading import AGENT, Reading
from .codex_replay import KINDS, TOLD, Head
from .outbox import Slot

HELD_BACK: Final = 400
"""Records after which the start of the session no longer waits for its model and title."""
TITLE: Final = 200
"""Characters of the first message that make the title."""

IN_INPUT: Final = (0, 162)
"""From this version on the base instructions are an item of the input."""
UNHEADED: Final = (0, 131)
"""Before it, every response begins with a token_count of its own (see codex_requests)."""


class Start:
    """The start of a session, held back until its model and its title are known."""

    def __init__(self, reading: Reading, compactions: Compactions) -> None:
        self._r = reading
        self._compactions = compactions
        self._slot: Slot | None = None
        self._announced: tuple[str, int | None] = ("", None)

    @property
    def waits(self) -> bool:
        """Whether a further line may let the start go."""
        return self._slot is None or self._slot.held

    def line(self, n: int) -> None:
        """Any line: the first one begins the session."""
        if self._slot is None:
            started = e.SessionStarted(session_id="", agent=AGENT, wire="responses")
            self._slot = self._r.out.emit(n, started, hold=True)

    def wait_no_longer(self) -> None:
        """Let the start go when too much waits behind it."""
        if self._slot is not None and self._slot.held and len(self._r.out) > HELD_BACK:
            self._slot.held = False

    def meta(self, n: int, payload: dict[str, Any]) -> bool:
        """A session_meta; false for the one of another thread, which the file came from."""
        r = self._r
        thread = text_of(payload.get("id")) or text_of(payload.get("session_id"))
        if r.head.thread:
            text = f"from here on the file tells of thread {thread}, which this one came from"
            r.out.add(n, e.Note(kind="fork", text=text))
            return False
        base = payload.get("base_instructions")
        text = text_of(dict_of(base).get("text")) or text_of(base)
        text = text or text_of(payload.get("instructions"))
        r.version = text_of(payload.get("cli_version"))
        r.head = Head(
            thread,
            text,
            in_input=r.version_numbers >= IN_INPUT,
            told=_told(text_of(payload.get("model_provider")), r.version_numbers),
        )
        r.requests.headed = r.version_numbers < UNHEADED
        self.describe(
            session_id=thread,
            cwd=text_of(payload.get("cwd")),
            version=r.version,
            parent=text_of(payload.get("forked_from_id")),
            instructions=text,
        )
        return True

    def take_over(self, other: Start) -> None:
        """What was announced in a file that this one goes on from."""
        self._announced = other._announced
        if self._announced[0]:
            self.describe(model=self._announced[0], budget=_budget(self._announced[1]))

    def settings(self, n: int, model: str, comp_hash: str) -> None:
        """What a turn is run with. The first model belongs to the start, another is a change."""
        r = self._r
        window = r.task.window if r.task and r.task.window else r.window
        new = Setup(model, comp_hash, window)
        if r.task is not None:
            r.task.settings = True
        self._compactions.settings(new)
        if not new.model:
            return
        r.settings = new
        old, self._announced = self._announced, (new.model, window)
        if not old[0]:
            self.describe(model=new.model, budget=_budget(window))
        elif old != self._announced:
            r.out.add(n, e.ModelChanged(model=new.model, budget=_budget(window), previous=old[0]))

    def entitle(self, raw: WireItem) -> None:
        """Take what the user said first as the title, while the first record is held back."""
        slot = self._slot
        if slot is not None and slot.held and isinstance(slot.event, e.SessionStarted):
            title = " ".join("\n".join(texts_of(raw.get("content"))).split())[:TITLE]
            self.describe(title=slot.event.title or title)

    def describe(self, **known: Any) -> None:
        """Add to the first record, while it is held back."""
        slot = self._slot
        if slot is None or not slot.held or not isinstance(slot.event, e.SessionStarted):
            return
        started = msgspec.structs.replace(slot.event, **known)
        slot.exchange(started)
        slot.held = not (started.title and started.model)


def _told(provider: str, version: tuple[int, ...]) -> tuple[str, ...]:
    """The metadata that is sent with each item."""
    if provider != "openai":
        return ()
    return (*TOLD, KINDS) if version >= (0, 151) else TOLD


def _budget(window: int | None) -> Budget | None:
    if window is None:
        return None
    absent = Fact(None, "not in the file")
    return Budget(
        window=Fact(
            window,
            "model_context_window in the file: what Codex uses, by default 95% of the raw window, "
            "which is not stored",
            Origin.SESSION,
        ),
        max_input=absent,
        max_output=absent,
        reserve=Fact(None, "not in the file: Codex has taken it off the window already"),
    )
