"""The fold of V1: messages and parts as they change, told as items, requests and compactions.

A compaction is recorded piece by piece: a user message with a compaction part, an answer marked as
summary, and, when that has come to its end, the message where the kept tail begins. Only with the
next message is it sure that all of it has been written, so what it did is told then.
"""

from __future__ import annotations

import bisect
from typing import Any, Final

import msgspec

from .. import events as e
from ..compaction.policies.opencode.estimate import tokens, units
from ..compaction.policies.opencode.limits import count
from ..compaction.policies.opencode.serialise import Writing, joined, written
from ..compaction.policy import Moment, Trigger
from .base import RebuiltRequest, WireItem
from .codex_items import dict_of, int_of, json_of, text_of
from . import opencode_changes as changes
from .opencode_changes import Change, stamp
from .opencode_fold import Telling, error_of, usage_of
from .opencode_v1 import (
    ABORTED,
    CLEARED,
    KNOWN_PARTS,
    N,
    Piece,
    Stored,
    is_pruned,
    left_out,
    pieces_of,
    tool_text,
    visible,
    wire,
)

POLICY: Final = "opencode-v1"
COMPACTION, PRUNE, LEFT_BEHIND = "compaction", "prune", "failed compaction"
OVERFLOW: Final = "ContextOverflowError"
LEAD: Final = "Here is the conversation so far:"
"""What a summary request begins with; it is part of the wire form."""
NO_INSTRUCTION: Final = (
    "the instruction behind the conversation, and the system text: they are not in the record"
)
PATIENCE: Final = 2
"""Quiet looks after which a compaction is taken to be written to its end."""
_TOOL_CHARS: Final = 2000
_ENDED: Final = frozenset({"stop", "length", "content-filter", "other", "error", "unknown"})


class _Pending:
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
        return f"opencode-{self.marker.id}"

    @property
    def trigger(self) -> Trigger:
        if self.part.get("overflow") is True:
            return Trigger.OVERFLOW
        return Trigger.AUTO if self.part.get("auto") is not False else Trigger.MANUAL


class V1:
    """The fold over one session."""

    def __init__(self, telling: Telling) -> None:
        self._t = telling
        self._messages: dict[str, Stored] = {}
        self._order: list[tuple[tuple[int, str], Stored]] = []
        self._pending: _Pending | None = None
        self._pruned: dict[str, tuple[int, str]] = {}
        self._reported: set[str] = set()
        self._orphans: dict[str, list[Change]] = {}
        self._ending: tuple[int, str, str] | None = None
        self._replay = ""
        self._last: Stored | None = None
        self._request: tuple[str, RebuiltRequest] | None = None
        self._moment: Moment | None = None
        self._reason = ""

    @property
    def empty(self) -> bool:
        """Nothing was stored by V1."""
        return not self._messages

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
        if self._pending is not None:
            self._pending.quiet += 1
            if self._pending.quiet < PATIENCE or not self._is_written(self._pending):
                return
        self._settle()
        self._close_turn()

    def flush(self) -> None:
        """Nothing more comes."""
        self._settle()
        self._close_turn()
        self._keep_request()

    def context(self) -> list[WireItem]:
        """What a request would carry now."""
        return wire(self._view())

    # -- messages --------------------------------------------------------------------------------

    def _message(self, change: Change) -> None:
        id = text_of(change.data.get("id"))
        message = self._messages.get(id)
        if message is not None:
            self._update(message, change)
            return
        message = Stored(id, change.data, change.n)
        pending = self._pending
        answers = pending is not None and message.is_summary and message.parent == pending.marker.id
        if not answers:
            self._settle()
        if not message.is_user:
            self._begin(message, change.n, pending if answers else None)
        self._messages[id] = message
        bisect.insort(self._order, (message.key, message), key=lambda pair: pair[0])
        for late in self._orphans.pop(id, ()):
            self._part(late)
        if message.over and not message.is_user:
            self._over(message, change)

    def _begin(self, message: Stored, n: int, pending: _Pending | None) -> None:
        """An answer begins: its request has just gone out."""
        model = text_of(message.info.get("modelID"))
        self._ending = None
        self._last = message
        purpose = e.Purpose.COMPACTION if message.is_summary else e.Purpose.TURN
        self._t.request(n, purpose, model, pending.pass_id if pending else "")
        if pending is not None:
            pending.summary = message
        if not self._t.collect:
            return
        self._keep_request()
        request = RebuiltRequest(position=n - 1, kind=purpose, input=[])
        if message.is_summary:
            if pending is not None:
                self._collect_summary(pending, request)
            return
        sent = wire(self._view())
        self._request = (message.id, msgspec.structs.replace(request, input=sent))

    def _keep_request(self) -> None:
        if self._request is not None:
            id, request = self._request
            self._request = None
            message = self._messages.get(id)
            failed = error_of(message.error)[0] if message is not None and message.error else ""
            failed = failed or self._refused(id)
            self._t.requests.append(msgspec.structs.replace(request, failed=failed))

    def _refused(self, id: str) -> str:
        """A refused request leaves an empty answer; only the compaction after it says why."""
        message = self._messages.get(id)
        if message is None or message.parts or message.info.get("finish"):
            return ""
        later = [each for _, each in self._order if each.key > message.key][:1]
        part = later[0].compaction if later and later[0].is_user else None
        return OVERFLOW if part is not None and part.get("overflow") is True else ""

    def _update(self, message: Stored, change: Change) -> None:
        was_over, was_left_out = message.over, left_out(message)
        message.info = change.data
        if message.is_user:
            return
        if message.over and not was_over:
            self._over(message, change)
        elif message.error and not was_left_out:
            self._error(message, change.n)
        if left_out(message) and not was_left_out and self._is_shown(message):
            name, _ = error_of(message.error)
            self._rebase(change.n, f"the answer ended with {name}: it is not sent again")
        if self._pending is not None and message is self._pending.summary:
            self._pending.n = change.n

    def _over(self, message: Stored, change: Change) -> None:
        if message.id not in self._reported:
            self._report(message, change.n, message.info.get("tokens"))
        if message.error:
            self._error(message, change.n)
        self._grow(message)
        finish = text_of(message.info.get("finish"))
        if not message.is_summary and finish in _ENDED:
            self._ending = (change.n, "completed", "")

    def _error(self, message: Stored, n: int) -> None:
        name, text = error_of(message.error)
        if self._pending is not None and message is self._pending.summary:
            if name == OVERFLOW:
                event = e.ContextOverflowed(message=text, purpose=e.Purpose.COMPACTION)
                self._t.tell(n, event)
            return
        if name == OVERFLOW:
            self._t.tell(n, e.ContextOverflowed(message=text, request=self._t.sent))
        elif name != ABORTED:
            self._t.tell(n, e.ErrorRaised(kind=name, message=text, where="opencode"))
        self._ending = (n, "interrupted" if name == ABORTED else "failed", text)

    def _report(self, message: Stored, n: int, told: object) -> None:
        purpose = e.Purpose.COMPACTION if message.is_summary else e.Purpose.TURN
        if self._t.report(n, told, purpose) is not None:
            self._reported.add(message.id)

    # -- parts -----------------------------------------------------------------------------------

    def _part(self, change: Change) -> None:
        part = dict(change.data)
        id, owner = text_of(part.get("id")), text_of(part.get("messageID"))
        message = self._messages.get(owner)
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
                self._compaction_part(message, part, change.n)
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
                event = e.UnknownRecord(
                    type=f"part/{kind or '(no type)'}", line=change.n, size=size
                )
                self._t.tell(change.n, event)
            case _:
                pass
        if not message.is_user:
            self._grow(message)

    def _tool(
        self,
        message: Stored,
        id: str,
        part: dict[str, Any],
        before: dict[str, Any] | None,
        change: Change,
    ) -> None:
        if is_pruned(part) and before is not None and not is_pruned(before):
            self._pruned[f"{id}/output"] = (change.n, tool_text(before)[0])
            return
        state, was = dict_of(part.get("state")), dict_of(dict_of(before).get("state"))
        status = state.get("status")
        if status == was.get("status"):
            return
        call, name = text_of(part.get("callID")), text_of(part.get("tool"))
        times = dict_of(state.get("time"))
        started, ended = stamp(times.get("start")), stamp(times.get("end"))
        self._grow(message, calls_only=True)
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

    def _delta(self, change: Change) -> None:
        text = text_of(change.data.get("delta"))
        message = self._messages.get(text_of(change.data.get("messageID")))
        if not text or change.data.get("field") != "text":
            return
        pending = self._pending
        if message is not None and pending is not None and message is pending.summary:
            self._t.ephemeral(e.MessageDelta(text=text, channel="summary", pass_id=pending.pass_id))
        else:
            self._t.ephemeral(e.MessageDelta(text=text))

    def _removed(self, change: Change) -> None:
        id = text_of(change.data.get("messageID"))
        message = self._messages.get(id)
        if message is None:
            return
        self._settle()
        if change.type == changes.PART_GONE:
            message.drop(text_of(change.data.get("partID")))
        else:
            del self._messages[id]
            self._order = [pair for pair in self._order if pair[1] is not message]
            if self._pending is not None and self._pending.marker is message:
                self._pending = None
        turns = (
            1 if message.is_user and message.typed and change.type == changes.MESSAGE_GONE else 0
        )
        self._rebase(change.n, "taken back: OpenCode removed it from the session", turns)

    # -- the context -----------------------------------------------------------------------------

    def _view(self) -> list[Stored]:
        return visible([message for _, message in self._order])

    def _is_hidden(self, message: Stored) -> bool:
        pending = self._pending
        return pending is not None and message in (pending.marker, pending.summary)

    def _is_shown(self, message: Stored) -> bool:
        return any(id in self._t.shown for id in message.parts)

    def _grow(self, message: Stored, *, calls_only: bool = False) -> None:
        """Tell the items of a message that are complete and were not told."""
        if self._is_hidden(message):
            return
        for piece in pieces_of(message):
            if piece.key in self._t.shown or (calls_only and piece.key.endswith("/output")):
                continue
            self._t.append(piece)

    def _grow_users(self) -> None:
        """Tell the newest messages in the user's name: an answer shows that they are complete."""
        waiting: list[Stored] = []
        for _, message in reversed(self._order):
            if not message.is_user or message.id in self._t.shown or self._is_hidden(message):
                break
            waiting.append(message)
        for message in reversed(waiting):
            for piece in pieces_of(message):
                typed = message.typed
                note = ""
                if typed and typed == self._replay:
                    note, self._replay = "sent again after the overflow", ""
                elif typed:
                    self._t.begin_turn(piece.n)
                self._t.append(piece, note)

    def _pieces(self) -> list[Piece]:
        return [
            piece
            for message in self._view()
            if not self._is_hidden(message)
            for piece in pieces_of(message)
        ]

    def _rebase(self, n: int, why: str, turns: int = 0) -> None:
        """The store changed behind what was told."""
        edit = self._t.shown.edit(n, self._pieces(), 0)
        self._t.rewritten(edit, why, turns)

    def _settle(self) -> None:
        """Tell what waited for the change after it."""
        self._prune()
        self._resolve()
        self._grow_users()

    def _close_turn(self) -> None:
        if self._ending is not None:
            self._t.end_turn(*self._ending)
            self._ending = None

    # -- prune -----------------------------------------------------------------------------------

    def _prune(self) -> None:
        pruned = {key: found for key, found in self._pruned.items() if key in self._t.shown}
        self._pruned = {}
        if not pruned:
            return
        shown = self._t.shown
        view = self._view()
        after = wire(view)
        cleared = {key.removesuffix("/output") for key in pruned}
        before = _restored(view, after, {id: pruned[f"{id}/output"][1] for id in cleared})
        target = [
            Piece(held.key, _cleared(held.item) if held.key in pruned else held.item, 0)
            for held in shown.held
        ]
        self._t.ordinal += 1
        n = max(at for at, _ in pruned.values())
        usage = self._t.usage
        edit = shown.edit(n, target, self._t.ordinal)
        gone = sum(tokens(units(text)) for _, text in pruned.values())
        self._t.compacted(
            edit,
            pass_id=f"opencode-prune-{n}",
            policy=POLICY,
            stage=PRUNE,
            moment=Moment.TURN_END,
            trigger=Trigger.AUTO,
            reason=(
                f"prune: {len(pruned)} outputs of about {gone:,} tokens lie behind the newest "
                "tool outputs, which stay"
            ),
            before=before,
            after=after,
            reason_evidence="derived",
        )
        self._t.usage = usage

    # -- compaction ------------------------------------------------------------------------------

    def _compaction_part(self, message: Stored, part: dict[str, Any], n: int) -> None:
        pending = self._pending
        if pending is not None and pending.marker is message:
            pending.part, pending.n = part, n
            return
        if not message.is_user or message.id in self._t.shown or message.compaction is not part:
            return
        pending = self._pending = _Pending(message, part, n)
        self._ending = None
        self._moment, self._reason = self._why(pending)
        if pending.trigger is Trigger.OVERFLOW:
            told = "the provider refused the request as too long; its words are not in the record"
            self._t.tell(n, e.ContextOverflowed(message=told, request=self._t.sent))
        event = e.CompactionStarted(
            pass_id=pending.pass_id,
            policy=POLICY,
            stage=COMPACTION,
            moment=self._moment or Moment.AFTER_ROUND,
            trigger=pending.trigger,
            reason=self._reason,
        )
        self._t.tell(n, event)

    def _why(self, pending: _Pending) -> tuple[Moment | None, str]:
        match pending.trigger:
            case Trigger.OVERFLOW:
                return Moment.OVERFLOW, "overflow: the provider refused the request as too long"
            case Trigger.MANUAL:
                return Moment.MANUAL, "the user asked for it"
            case _:
                pass
        usage = self._t.usage
        told = f"{count(usage):,} tokens reported" if usage else "no usage was reported"
        reason = f"{told} for the last request; the limit is not in the record"
        if self._last is None:
            return None, reason
        goes_on = self._last.info.get("finish") == "tool-calls"
        return (Moment.AFTER_ROUND if goes_on else Moment.TURN_END), reason

    def _is_written(self, pending: _Pending) -> bool:
        return pending.summary is not None and pending.summary.over

    def _resolve(self) -> None:
        pending = self._pending
        if pending is None:
            return
        summary = pending.summary
        done = summary is not None and summary.finished
        before = wire([each for each in self._view() if not self._is_hidden(each)])
        if done:
            before = wire(visible([m for _, m in self._order if m.key < pending.marker.key]))
        self._keep_summary_request(pending)
        self._pending = None
        if summary is not None and done:
            self._done(pending, summary, before)
        else:
            self._failed(pending, before)

    def _done(self, pending: _Pending, summary: Stored, before: list[WireItem]) -> None:
        if pending.trigger is Trigger.OVERFLOW:
            self._replay = next(
                (m.typed for _, m in reversed(self._order) if m.is_user and m.typed), ""
            )
        view = self._view()
        tail = text_of(pending.part.get("tail_start_id"))
        kept = f"a tail from {tail} on is kept" if tail else "no tail is kept"
        self._t.ordinal += 1
        edit = self._t.shown.edit(pending.n, self._pieces(), self._t.ordinal, summary.id)
        usage = usage_of(summary.info.get("tokens"))
        self._t.compacted(
            edit,
            pass_id=pending.pass_id,
            policy=POLICY,
            stage=COMPACTION,
            moment=self._moment,
            trigger=pending.trigger,
            reason=f"{self._reason}; {kept}",
            before=before,
            after=wire(view),
            summary=summary.written,
            summariser=e.Summariser(
                model=text_of(summary.info.get("modelID")), usage=usage, seconds=_seconds(summary)
            ),
            reason_evidence="derived" if pending.trigger is Trigger.AUTO else "recorded",
            seconds=_seconds(summary),
        )

    def _failed(self, pending: _Pending, before: list[WireItem]) -> None:
        summary = pending.summary
        name, text = error_of(summary.error) if summary is not None and summary.error else ("", "")
        if not name:
            name = "interrupted"
            text = "the record holds no end of the summary" if summary else "no summary was begun"
        event = e.CompactionFailed(
            pass_id=pending.pass_id,
            policy=POLICY,
            stage=COMPACTION,
            moment=self._moment,
            trigger=pending.trigger,
            outcome=e.Outcome.FAILED
            if summary is not None and summary.error
            else e.Outcome.ABORTED,
            reason=text,
            kind=name,
            next_step="the recap question stays in the session and is sent without an answer",
        )
        self._t.tell(pending.n, event)
        self._ending = (pending.n, "failed" if summary is not None else "interrupted", text)
        if not text_of(pending.part.get("tail_start_id")):
            self._grow(pending.marker)
            return
        # A known fault of 1.18: the tail is stored although the summary failed, and the view is cut.
        self._t.ordinal += 1
        edit = self._t.shown.edit(pending.n, self._pieces(), self._t.ordinal)
        if not edit.change.removed:
            self._t.ordinal -= 1
            self._t.rewritten(
                edit, "the recap question of a failed compaction is sent from here on"
            )
            return
        self._t.compacted(
            edit,
            pass_id=f"{pending.pass_id}-left-behind",
            policy=POLICY,
            stage=LEFT_BEHIND,
            moment=self._moment,
            trigger=pending.trigger,
            reason="the summary failed, and yet nothing older than its tail is sent any more",
            before=before,
            after=wire(self._view()),
            evidence="unannounced",
            reason_evidence="derived",
            marks=("what left was not summarised",),
        )

    # -- the summary's own request -----------------------------------------------------------------

    def _collect_summary(self, pending: _Pending, request: RebuiltRequest) -> None:
        """The history that is summarised, message by message, as it is now: the tail that is cut
        off it is stored later."""
        before = [m for _, m in self._order if m.key < pending.marker.key]
        history = visible(before)
        if pending.trigger is Trigger.OVERFLOW:
            at = next(
                (
                    at
                    for at in range(len(history) - 1, -1, -1)
                    if history[at].is_user and history[at].compaction is None
                ),
                0,
            )
            if any(m.is_user and m.compaction is None for m in history[:at]):
                history = history[:at]
        answered = {m.parent: m for m in history if m.is_summary and m.finished}
        how = Writing(tool_chars=_TOOL_CHARS, placeholder=CLEARED)
        for message in history:
            if message.id in answered:
                pending.previous = answered[message.id].written
            elif message not in answered.values():
                # The recap question of a compaction that failed is no text of its message.
                bare = message.is_user and message.compaction is not None and not message.typed
                items = [] if bare else [piece.item for piece in pieces_of(message)]
                text = written(items, how)
                pending.head.append((message.id, text))
        pending.request = request

    def _keep_summary_request(self, pending: _Pending) -> None:
        request, tail = pending.request, text_of(pending.part.get("tail_start_id"))
        if request is None:
            return
        self._keep_request()
        ids = [id for id, _ in pending.head]
        end = ids.index(tail) if tail in ids else len(ids)
        conversation = joined(text for _, text in pending.head[:end])
        text = summary_text(conversation, pending.previous)
        failed = ""
        if pending.summary is not None and pending.summary.error:
            failed = error_of(pending.summary.error)[0]
        self._t.requests.append(
            msgspec.structs.replace(
                request,
                input=[{"role": "user", "content": text}],
                missing=NO_INSTRUCTION,
                failed=failed,
            )
        )


def summary_text(conversation: str, previous: str) -> str:
    """The user message of a summary request, as far as the record tells it."""
    text = f"{LEAD}\n\n<conversation>\n{conversation}\n</conversation>"
    return f"{text}\n\n<prior-summary>\n{previous}\n</prior-summary>" if previous else text


def _seconds(message: Stored) -> float:
    times = dict_of(message.info.get("time"))
    begun, ended = stamp(times.get("created")), stamp(times.get("completed"))
    return max(0.0, ended - begun) if begun and ended else 0.0


def _has_step(message: Stored, id: str) -> bool:
    return any(
        each != id and part.get("type") == "step-start" for each, part in message.parts.items()
    )


def _cleared(item: Any) -> Any:
    return msgspec.structs.replace(item, output=CLEARED)


def _restored(view: list[Stored], after: list[WireItem], outputs: dict[str, str]) -> list[WireItem]:
    """The messages of `after` with the pruned outputs, which were sent until now."""
    results = iter(
        [
            id
            for message in view
            if not left_out(message)
            for id, part in message.ordered
            if part.get("type") == "tool"
        ]
    )
    before: list[WireItem] = []
    for each in after:
        id = next(results, "") if each.get("role") == "tool" else ""
        before.append({**each, "content": outputs[id]} if id in outputs else each)
    return before
