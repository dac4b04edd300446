"""V1 as it is at one change: the messages, the view of them, and what of it has been told."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ..compaction.policy import Trigger
from .base import RebuiltRequest
from .opencode_fold import Telling, error_of
from .opencode_v1 import Model, Piece, Stored, pieces_of, visible

POLICY: Final = "opencode-v1"
OVERFLOW: Final = "ContextOverflowError"


_BEHIND: Final = ("/output", "/media")
"""The ends of the keys of what stands behind the calls of a message."""


class Pending:
    """A compaction whose outcome is not told yet."""

    def __init__(self, marker: Stored, part: dict[str, Any], n: int, again: str = "") -> None:
        self.marker = marker
        self.again = again
        """The summary that tries a compaction once more whose first one failed."""
        self.part = part
        self.n = n
        self.summary: Stored | None = None
        self.quiet = 0
        self.request: RebuiltRequest | None = None
        self.head: list[tuple[str, str]] = []
        self.history: list[Stored] = []
        self.previous = ""
        self.tail, self.tail_unclear = "", False
        """Where the tail of one that is tried again begins, which is not stored."""

    @property
    def pass_id(self) -> str:
        """The id of the pass, which all its events carry."""
        return f"opencode-{self.again or self.marker.id}"

    @property
    def trigger(self) -> Trigger:
        """What set it off, by the marks on its part."""
        if self.part.get("overflow") is True:
            return Trigger.OVERFLOW
        return Trigger.AUTO if self.part.get("auto") is not False else Trigger.MANUAL


class V1State:
    """The store, and what was told of it. `ending` is the end of a turn that waits to be sure."""

    def __init__(self, telling: Telling, version: tuple[int, ...] = ()) -> None:
        self.telling = telling
        self.version = version
        """The release of OpenCode, () when it is not known: taken to be a new one."""
        self.messages: dict[str, Stored] = {}
        self.order: list[tuple[tuple[int, str], Stored]] = []
        self.pending: Pending | None = None
        self.failed: Pending | None = None
        """The last one, when it failed: its mark stays open."""
        self.ending: tuple[int, str, str] | None = None
        self.last: Stored | None = None
        """The last answer that is no summary's."""
        self.replay = ""
        """What was said in the turn that a provider refused: it is said again after the summary."""
        self.told: set[str] = set()
        """The keys of the items that were in the context at any time: none enters twice."""
        self.request: tuple[str, RebuiltRequest] | None = None
        """The last request of a turn, until its outcome is known."""

    @property
    def ordered(self) -> list[Stored]:
        """The messages in the order of the store."""
        return [message for _, message in self.order]

    def older_than(self, *release: int) -> bool:
        """The session was made by an older release than this one."""
        return bool(self.version) and self.version < release

    def view(self) -> list[Stored]:
        """The messages that a request would carry."""
        return visible(self.ordered)

    @property
    def model(self) -> Model:
        """The model that is talked to now."""
        return next((m.model for m in reversed(self.ordered) if any(m.model)), ("", ""))

    def before(self, marker: Stored) -> list[Stored]:
        """The messages older than this one."""
        return [message for message in self.ordered if message.key < marker.key]

    def is_hidden(self, message: Stored) -> bool:
        """The message belongs to a compaction whose outcome is not told yet."""
        pending = self.pending
        if pending is None:
            return False
        # The mark of one that failed before is in sight.
        return message is pending.summary or (message is pending.marker and not pending.again)

    def is_shown(self, message: Stored) -> bool:
        """A part of it is in the context."""
        return any(id in self.telling.shown for id in message.parts)

    def grow(self, message: Stored, *, calls_only: bool = False) -> None:
        """Tell the items of a message that are complete and were not told."""
        if self.is_hidden(message):
            return
        for piece in pieces_of(message):
            if piece.key in self.told or (calls_only and piece.key.endswith(_BEHIND)):
                continue
            self.told.add(piece.key)
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
                self.told.add(piece.key)
                self.telling.append(piece, note)

    def pieces(self) -> list[Piece]:
        """The items of the view, which are told with the edit that they are for."""
        found = [
            piece
            for message in self.view()
            if not self.is_hidden(message)
            for piece in pieces_of(message)
        ]
        self.told.update(piece.key for piece in found)
        return found

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
            # A program that was killed may have made the answer and never have asked.
            asked = failed or message is None or message.parts or message.info.get("finish")
            self.telling.requests.append(
                msgspec.structs.replace(
                    request, failed=failed, evidence="derived" if asked else "inferred"
                )
            )

    def _refused(self, id: str) -> str:
        """A refused request leaves an empty answer; only the compaction after it says why."""
        message = self.messages.get(id)
        if message is None or message.parts or message.info.get("finish"):
            return ""
        later = [each for _, each in self.order if each.key > message.key][:1]
        part = later[0].compaction if later and later[0].is_user else None
        return OVERFLOW if part is not None and part.get("overflow") is True else ""
