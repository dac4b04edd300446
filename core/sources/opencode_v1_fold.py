"""The fold of V1: messages and parts as they change, told as items and requests."""

from __future__ import annotations

import bisect
from typing import Any, Final

import msgspec

from .. import events as e
from . import opencode_changes as changes
from .base import RebuiltRequest, WireItem
from .codex_items import dict_of, int_of, json_of, text_of
from .opencode_changes import Change, created, stamp
from .opencode_fold import SessionInfo, Telling, error_of
from .opencode_v1 import (
    ABORTED,
    KNOWN_PARTS,
    OLD_MEDIA,
    OWN_MEDIA,
    SUBTASK,
    N,
    Stored,
    is_pruned,
    left_out,
    release,
)
from .opencode_v1_compactions import Compactions
from .opencode_v1_state import OVERFLOW, Pending, V1State
from .opencode_v1_wire import doubt, wire

PATIENCE: Final = 2
"""Quiet looks after which a compaction is taken to be written to its end."""
_ENDED: Final = frozenset({"stop", "length", "content-filter", "other", "error", "unknown"})


class V1:
    """The fold over one session."""

    def __init__(self, telling: Telling, info: SessionInfo) -> None:
        self._made = info.made
        self._t = telling
        self._s = V1State(telling, release(info.version))
        self._compactions = Compactions(self._s)
        self._reported: set[str] = set()
        self._orphans: dict[str, list[Change]] = {}

    @property
    def empty(self) -> bool:
        """Nothing was stored by V1."""
        return not self._s.messages

    def feed(self, change: Change) -> bool:
        """Take a change; False when it is none of V1."""
        match change.type:
            case changes.MESSAGE:
                self._message(change)
            case changes.PART:
                self._part(change)
            case changes.DELTA:
                self._delta(change)
            case changes.MESSAGE_GONE | changes.PART_GONE:
                self._removed(change)
            case _:
                return False
        return True

    def quiet(self) -> None:
        """Nothing has come for a while."""
        pending = self._s.pending
        if pending is not None:
            if pending.summary is None or not pending.summary.over:
                return
            pending.quiet += 1
            if pending.quiet < PATIENCE:
                return
        self._settle()
        self._close_turn()

    def flush(self) -> None:
        """Nothing more comes."""
        self._settle()
        self._close_turn()
        self._s.keep_request()

    def context(self) -> list[WireItem]:
        """What a request would carry now."""
        return wire(self._s.view(), self._s.model)

    # -- messages --------------------------------------------------------------------------------

    def _message(self, change: Change) -> None:
        id = text_of(change.data.get("id"))
        message = self._s.messages.get(id)
        if message is not None:
            self._update(message, change)
            return
        message = Stored(id, change.data, change.n)
        if self._s.older_than(*OWN_MEDIA):
            message.media_label = OLD_MEDIA
        message.copied = 0 < created(change.data) / 1000 < self._made
        pending = self._s.pending
        answers = pending is not None and message.is_summary and message.parent == pending.marker.id
        if not answers:
            self._close(self._s.last)
            self._settle()
            pending = self._compactions.again(message, change.n) if message.is_summary else None
        if not message.is_user:
            self._begin(message, change.n, pending if message.is_summary else None)
        self._s.messages[id] = message
        bisect.insort(self._s.order, (message.key, message), key=lambda pair: pair[0])
        for late in self._orphans.pop(id, ()):
            self._part(late)
        if message.over and not message.is_user:
            self._over(message, change)

    def _begin(self, message: Stored, n: int, pending: Pending | None) -> None:
        """An answer begins: its request has just gone out."""
        model = text_of(message.info.get("modelID"))
        self._s.ending = None
        self._s.last = message
        if pending is not None:
            pending.summary = message
        if message.copied or self._of_the_user(message):
            return
        purpose = e.Purpose.COMPACTION if message.is_summary else e.Purpose.TURN
        self._t.request(n, purpose, model, pending.pass_id if pending else "")
        if not self._t.collect:
            return
        self._s.keep_request()
        request = RebuiltRequest(position=n - 1, kind=purpose, input=[])
        if message.is_summary:
            if pending is not None:
                self._compactions.collect_summary(pending, request)
            return
        sent = wire(self._s.view(), message.model)
        self._s.request = (
            message.id,
            msgspec.structs.replace(request, input=sent, missing=doubt(sent)),
        )

    def _of_the_user(self, message: Stored) -> bool:
        """No model was asked for this answer: it holds a command of the user's, or a task for a
        subagent that the user gave."""
        asked = self._s.messages.get(message.parent)
        if asked is None or message.is_summary:
            return False
        answers = [m for m in self._s.ordered if not m.is_user and m.parent == asked.id]
        # Of several tasks in one message OpenCode runs the last one, and then goes on.
        task = any(part.get("type") == "subtask" for part in asked.parts.values())
        command = not asked.typed and asked.written == SUBTASK
        return not answers and (task or command)

    def _close(self, message: Stored | None) -> None:
        """Something newer begins: what is not complete by now is sent as it is."""
        if message is not None and not message.closed:
            message.closed = True
            self._s.grow(message)

    def _update(self, message: Stored, change: Change) -> None:
        was_over, was_left_out = message.over, left_out(message)
        message.info = change.data
        if message.is_user:
            return
        if message.over and not was_over:
            self._over(message, change)
        elif message.error and not was_left_out:
            self._error(message, change.n)
        if left_out(message) and not was_left_out and self._s.is_shown(message):
            name, _ = error_of(message.error)
            self._s.rebase(change.n, f"the answer ended with {name}: it is not sent again")
        if self._s.pending is not None and message is self._s.pending.summary:
            self._s.pending.n, self._s.pending.quiet = change.n, 0

    def _over(self, message: Stored, change: Change) -> None:
        if message.id not in self._reported:
            self._report(message, change.n, message.info.get("tokens"))
        if message.error:
            self._error(message, change.n)
        self._s.grow(message)
        finish = text_of(message.info.get("finish"))
        if not message.is_summary and finish in _ENDED:
            self._s.ending = (change.n, "completed", "")

    def _error(self, message: Stored, n: int) -> None:
        name, text = error_of(message.error)
        if self._s.pending is not None and message is self._s.pending.summary:
            if name == OVERFLOW:
                event = e.ContextOverflowed(message=text, purpose=e.Purpose.COMPACTION)
                self._t.tell(n, event)
            return
        if name == OVERFLOW:
            self._t.tell(n, e.ContextOverflowed(message=text, request=self._t.sent))
        elif name != ABORTED:
            self._t.tell(n, e.ErrorRaised(kind=name, message=text, where="opencode"))
        self._s.ending = (n, "interrupted" if name == ABORTED else "failed", text)

    def _report(self, message: Stored, n: int, told: object) -> None:
        if message.copied:
            return
        purpose = e.Purpose.COMPACTION if message.is_summary else e.Purpose.TURN
        if self._t.report(n, told, purpose) is not None:
            self._reported.add(message.id)

    # -- parts -----------------------------------------------------------------------------------

    def _part(self, change: Change) -> None:
        part = dict(change.data)
        id, owner = text_of(part.get("id")), text_of(part.get("messageID"))
        message = self._s.messages.get(owner)
        if message is None:
            if owner:
                self._orphans.setdefault(owner, []).append(change)
            return
        before = message.parts.get(id)
        part[N] = change.n
        if message.is_user and before is None:
            message.n = max(message.n, change.n)
        message.put(id, part)
        kind = text_of(part.get("type"))
        match kind:
            case "compaction":
                self._compactions.part(message, part, change.n)
            case "tool":
                self._tool(message, id, part, before, change)
            case "step-finish" if before is None:
                self._report(message, change.n, part.get("tokens"))
            case "step-start" if before is None and _has_step(message, id):
                # Older versions: a further step in the same message is a request of its own.
                model = text_of(message.info.get("modelID"))
                self._t.request(change.n, e.Purpose.TURN, model)
            case "retry" if before is None:
                name, text = error_of(dict_of(part.get("error")))
                event = e.ErrorRaised(
                    kind=name, message=f"tried again after: {text}", where="opencode"
                )
                self._t.tell(change.n, event)
            case _ if kind not in KNOWN_PARTS and before is None:
                size = len(json_of(change.data))
                named = f"part/{kind or '(no type)'}"
                self._t.tell(change.n, e.UnknownRecord(type=named, line=change.n, size=size))
            case _:
                pass
        if not message.is_user:
            self._s.grow(message)

    def _tool(
        self,
        message: Stored,
        id: str,
        part: dict[str, Any],
        before: dict[str, Any] | None,
        change: Change,
    ) -> None:
        if is_pruned(part) and before is not None and not is_pruned(before):
            self._compactions.pruned(message, before, change.n)
            return
        state, was = dict_of(part.get("state")), dict_of(dict_of(before).get("state"))
        self._subagent(message, state, was, change.n)
        status = state.get("status")
        if status == was.get("status"):
            return
        call, name = text_of(part.get("callID")), text_of(part.get("tool"))
        times = dict_of(state.get("time"))
        started, ended = stamp(times.get("start")), stamp(times.get("end"))
        self._s.grow(message, calls_only=True)
        if message.copied:
            return
        if status in ("running", "completed", "error") and was.get("status") not in ("running",):
            self._t.tell(change.n, e.ToolStarted(call_id=call, name=name), started or None)
        if status in ("completed", "error"):
            metadata = dict_of(state.get("metadata"))
            event = e.ToolFinished(
                call_id=call,
                name=name,
                ok=status == "completed" and int_of(metadata.get("exit")) in (None, 0),
                exit_code=int_of(metadata.get("exit")),
                seconds=max(0.0, ended - started) if started and ended else 0.0,
                size=len(text_of(state.get("output")) or text_of(state.get("error"))),
                saved=text_of(metadata.get("outputPath")),
            )
            self._t.tell(change.n, event)

    def _subagent(
        self, message: Stored, state: dict[str, Any], was: dict[str, Any], n: int
    ) -> None:
        """A call of the task tool has begun a session of its own."""
        session = text_of(dict_of(state.get("metadata")).get("sessionId"))
        if not session or dict_of(was.get("metadata")).get("sessionId") or message.copied:
            return
        input = dict_of(state.get("input"))
        names = (text_of(input.get("subagent_type")), text_of(input.get("description")))
        told = ": ".join(filter(None, names))
        text = f"subagent ({told}) has a session of its own: {session}" if told else session
        self._t.tell(n, e.Note(kind="subagent", text=text))

    def _delta(self, change: Change) -> None:
        text = text_of(change.data.get("delta"))
        message = self._s.messages.get(text_of(change.data.get("messageID")))
        if not text or change.data.get("field") != "text":
            return
        pending = self._s.pending
        if message is not None and pending is not None and message is pending.summary:
            self._t.ephemeral(e.MessageDelta(text=text, channel="summary", pass_id=pending.pass_id))
        else:
            self._t.ephemeral(e.MessageDelta(text=text))

    def _removed(self, change: Change) -> None:
        id = text_of(change.data.get("messageID"))
        message = self._s.messages.get(id)
        if message is None:
            return
        self._settle()
        if change.type == changes.PART_GONE:
            message.drop(text_of(change.data.get("partID")))
        else:
            del self._s.messages[id]
            self._s.order = [pair for pair in self._s.order if pair[1] is not message]
            if self._s.pending is not None and self._s.pending.marker is message:
                self._s.pending = None
        turns = (
            1 if message.is_user and message.typed and change.type == changes.MESSAGE_GONE else 0
        )
        self._s.rebase(change.n, "taken back: OpenCode removed it from the session", turns)

    def _settle(self) -> None:
        """Tell what waited for the change after it."""
        self._compactions.settle()
        self._s.grow_users()

    def _close_turn(self) -> None:
        if self._s.ending is not None:
            self._t.end_turn(*self._s.ending)
            self._s.ending = None


def _has_step(message: Stored, id: str) -> bool:
    return any(
        each != id and part.get("type") == "step-start" for each, part in message.parts.items()
    )
