"""The first record of a Claude Code session, and what later lines add to it: titles and models."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from .. import events as e
from ..models import resolve
from .claude_reading import AGENT, Reading
from .codex_items import dict_of, text_of
from .outbox import Slot

HELD_BACK: Final = 400
"""Records after which the start of the session no longer waits for its model and title."""
TITLE: Final = 200
"""Characters of the first prompt that make the title."""


class Start:
    """The start of a session, held back until its model and its title are known."""

    def __init__(self, reading: Reading, title: str = "") -> None:
        self._r = reading
        self._title = title
        self._slot: Slot | None = None
        self._first_model = ""

    def begin_with(self, started: e.SessionStarted) -> None:
        """The session has begun elsewhere, with this."""
        self._slot = Slot(e.Record(0, 0.0, started))
        self._title = started.title
        self._r.model = self._first_model = started.model

    def resume(self, n: int) -> None:
        """The model of the last response, where it is another than that of the first."""
        model, self._r.model = self._r.model, self._first_model
        self.model(n, model)

    @property
    def waits(self) -> bool:
        """Whether a further line may let the start go."""
        return self._slot is None or self._slot.held

    def line(self, n: int) -> None:
        """Any line: the first one begins the session."""
        if self._slot is None:
            started = e.SessionStarted(
                session_id="", agent=AGENT, wire="anthropic", system_recorded=False
            )
            self._slot = self._r.out.emit(n, started, hold=True)
        elif self._slot.held and len(self._r.out) > HELD_BACK:
            self._slot.held = False

    def record(self, value: dict[str, Any]) -> None:
        """The first record of the conversation."""
        session = text_of(value.get("sessionId"))
        agent = text_of(value.get("agentId")) if value.get("isSidechain") is True else ""
        self._describe(
            session_id=agent or session,
            parent=session if agent else "",
            cwd=text_of(value.get("cwd")),
            version=text_of(value.get("version")),
            title=self._title,
        )

    def prompt(self, text: str) -> None:
        """Something that the user said: the first one is the title, unless there is another."""
        if not self._title:
            self._title = " ".join(text.split())[:TITLE]
            self._describe(title=self._title)

    def model(self, n: int, model: str) -> None:
        """The model of a response. The file holds no limits, so they are those of the table."""
        r = self._r
        if not model or model == r.model:
            return
        old, r.model = r.model, model
        budget = resolve(model).budget()
        if not old:
            self._describe(model=model, budget=budget)
        else:
            r.out.add(n, e.ModelChanged(model=model, budget=budget, previous=old))

    def titled(self, n: int, value: dict[str, Any]) -> None:
        """A title that was given to this session, or by older versions to any session."""
        if value.get("type") != "summary":
            title = text_of(value.get("customTitle")) or text_of(value.get("aiTitle"))
            self._r.note(n, "title", f"title of the session: {title}")
            return
        text = text_of(value.get("summary"))
        try:
            text = text_of(dict_of(json.loads(text)).get("title")) or text
        except (ValueError, RecursionError):
            pass  # The usual case: plain text, not JSON.
        self._r.note(n, "title", f"title of a session: {text} (not a compaction)")

    def _describe(self, **known: Any) -> None:
        """Add to the first record, while it is held back."""
        slot = self._slot
        if slot is None or not slot.held or not isinstance(slot.event, e.SessionStarted):
            return
        started = msgspec.structs.replace(slot.event, **known)
        slot.exchange(started)
        slot.held = not (started.title and started.model)
