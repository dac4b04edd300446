"""V1 as it is at one change: the messages, the view of them, and what of it has been told."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..compaction.policy import Trigger
from .base import RebuiltRequest
from .opencode_fold import Telling, error_of
from .opencode_v1 import Piece, Stored, pieces_of, visible

POLICY: Final = "opencode-v1"
OVERFLOW: Final = "ContextOverflowError"


class Pending:
    """A compaction whose outcome is not told yet."""

    def __init__(self, marker: Stored, part: dict[str, Any], n: int) -> None:
        self.marker = marker
        self.part = part
        self.n = n
        self.summary: Stored | None = None
        self.quiet = 0
        self.request: RebuiltRequest | None = None
        self.head: list[tuple[str, str]] = []
        self.previous = ""

    @property
    def pass_id(self) -> str:
        """The id of the pass, which all its events carry."""
        return f"opencode-{self.marker.id}"

    @property
    def trigger(self) -> Trigger:
        """What set it off, by the marks on its part."""
        if self.part.get("overflow") is True:
            return Trigger.OVERFLOW
        return Trigger.AUTO if self.part.get("auto") is not False else Trigger.MANUAL


class V1State:
    """The store, and what was told of it. `ending` is the end of a turn that waits to be sure."""

    def __init__(self, telling: Telling) -> None:
        self.telling = telling
        self.messages: dict[str, Stored] = {}
        self.order: list[tuple[tuple[int, str], Stored]] = []
        self.pending: Pending | None = None
        self.ending: tuple[int, str, str] | None = None
        self.last: Stored | None = None
        """The last answer that is no summary's."""
        self.replay = ""
        """What was said in the turn that a provider refused: it is said again after the summary."""
        self.request: tuple[str, RebuiltRequest] | None = None
        """The last request of a turn, until its outcome is known."""

    @property
    def ordered(self) -> list[Stored]:
        """The messages in the order of the store."""
        return [message for _, message in self.order]

    def view(self) -> list[Stored]:
        """The messages that a request would carry."""
        return visible(self.ordered)

    def before(self, marker: Stored) -> list[Stored]:
        """The messages older than this one."""
        return [message for message in self.ordered if message.key < marker.key]

    def is_hidden(self, message: Stored) -> bool:
        """The message belongs to a compaction whose outcome is not told yet."""
        pending = self.pending
        return pending is not None and message in (pending.marker, pending.summary)

    def is_shown(self, message: Stored) -> bool:
        """A part of it is in the context."""
        return any(id in self.telling.shown for id in message.parts)

    def grow(self, message: Stored, *, calls_only: bool = False) -> None:
        """Tell the items of a message that are complete and were not told."""
        if self.is_hidden(message):
            return
        for piece in pieces_of(message):
            if piece.key in self.telling.shown or (calls_only and piece.key.endswith("/output")):
                continue
            self.telling.append(piece)

    def grow_users(self) -> None:
        """Tell the newest messages in the user's name: an answer shows that they are complete."""
        waiting: list[Stored] = []
        for _, message in reversed(self.order):
            if not message.is_user or message.id in self.telling.shown or self.is_hidden(message):
                break
            waiting.append(message)
        for message in reversed(waiting):
            for piece in pieces_of(message):
                typed = message.typed
                note = ""
                if typed and typed == self.replay:
                    note, self.replay = "sent again after the overflow", ""
                elif typed:
                    self.telling.begin_turn(piece.n)
                self.telling.append(piece, note)

    def pieces(self) -> list[Piece]:
        """The items of the view."""
        return [
            piece
            for message in self.view()
            if not self.is_hidden(message)
            for piece in pieces_of(message)
        ]

    def rebase(self, n: int, why: str, turns: int = 0) -> None:
        """The store changed behind what was told."""
        edit = self.telling.shown.edit(n, self.pieces(), 0)
        self.telling.rewritten(edit, why, turns)

    def keep_request(self) -> None:
        """Give out the last request: what became of it is known now."""
        if self.request is not None:
            id, request = self.request
            self.request = None
            message = self.messages.get(id)
            failed = error_of(message.error)[0] if message is not None and message.error else ""
            failed = failed or self._refused(id)
            self.telling.requests.append(msgspec.structs.replace(request, failed=failed))

    def _refused(self, id: str) -> str:
        """A refused request leaves an empty answer; only the compaction after it says why."""
        message = self.messages.get(id)
        if message is None or message.parts or message.info.get("finish"):
            return ""
        later = [each for _, each in self.order if each.key > message.key][:1]
        part = later[0].compaction if later and later[0].is_user else None
        return OVERFLOW if part is not None and part.get("overflow") is True else ""
