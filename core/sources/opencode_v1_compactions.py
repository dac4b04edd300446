"""The compactions of V1: summaries that were written, that failed, and prunes.

A compaction is recorded piece by piece: a user message with a compaction part, an answer marked as
summary, and, when that has come to its end, the message where the kept tail begins. Only with the
next message is it sure that all of it has been written, so what it did is told then.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from ..amounts import count as counted
from ..compaction.policies.opencode.estimate import tokens, units
from ..compaction.policies.opencode.limits import count
from ..compaction.policies.opencode.serialise import joined
from ..compaction.policy import Moment, Trigger
from .base import RebuiltRequest, WireItem
from .codex_items import dict_of, text_of
from .opencode_changes import stamp
from .opencode_fold import error_of, estimated, usage_of
from .opencode_v1 import Piece, Stored, media_key, pieces_of, tool_text, visible
from .opencode_v1_serialise import written
from .opencode_v1_state import POLICY, Pending, V1State
from .opencode_v1_wire import wire

COMPACTION, PRUNE, LEFT_BEHIND = "compaction", "prune", "failed compaction"
LEAD: Final = "Here is the conversation so far:"
"""What a summary request begins with; it is part of the wire form."""
BEFORE: Final = "Here is the summary of the conversation before the <conversation> above:"
"""What stands before the last summary in one; it is part of the wire form."""
NO_INSTRUCTION: Final = (
    "the instruction behind the conversation, and the system text: they are not in the record"
)


NO_TAIL: Final = "; where the tail that is not summarised begins is not in the record either"
COPIED: Final = "it happened in the session that this one was forked from"
AS_TEXT: Final = (1, 18, 17)
"""The release from which on the history is summarised as one text (1.18.16 sent the messages)."""
MEDIA_STAYS_OUT: Final = (1, 2)
"""The release from which on the summariser is told of pictures in words."""
LEAST_TAIL: Final = 2_000
"""Tokens of the newest turns that are always kept as they are (with a tail at all)."""


class Compactions:
    """The fold over the marks of compactions."""

    def __init__(self, state: V1State) -> None:
        self._s = state
        self._t = state.telling
        self._pruned: dict[str, tuple[int, Stored, dict[str, Any]]] = {}
        self._moment: Moment | None = None
        self._reason = ""

    def settle(self) -> None:
        """Tell what waited for the change after it."""
        self._prune()
        self._resolve()

    def pruned(self, message: Stored, before: dict[str, Any], n: int) -> None:
        """An output was marked as pruned; `before` is its part as it was until now."""
        pending = self._s.pending
        if pending is not None and pending.summary is not None and pending.summary.over:
            # A prune runs behind a summary: what that did comes first.
            self._resolve()
        self._pruned[text_of(before.get("id"))] = (n, message, before)

    def part(self, message: Stored, part: dict[str, Any], n: int) -> None:
        """A compaction part, or what it has become."""
        pending = self._s.pending
        if pending is not None and pending.marker is message:
            pending.part, pending.n, pending.quiet = part, n, 0
            return
        if message.id in self._t.shown and text_of(part.get("tail_start_id")):
            self._s.rebase(n, "the tail that the compaction keeps was stored late")
            return
        if not message.is_user or message.id in self._t.shown or message.compaction is not part:
            return
        pending = self._s.pending = Pending(message, part, n)
        self._s.ending = None
        self._moment, self._reason = self._why(pending)
        if pending.trigger is Trigger.OVERFLOW:
            told = "the provider refused the request as too long; its words are not in the record"
            self._t.tell(n, e.ContextOverflowed(message=told, request=self._t.sent))
        self._t.tell(n, self._started(pending))

    def _started(self, pending: Pending) -> e.CompactionStarted:
        return e.CompactionStarted(
            pass_id=pending.pass_id,
            policy=POLICY,
            stage=COMPACTION,
            moment=self._moment or Moment.AFTER_ROUND,
            trigger=pending.trigger,
            reason=self._reason,
        )

    def _why(self, pending: Pending) -> tuple[Moment | None, str]:
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
        if self._s.last is None:
            return None, reason
        goes_on = self._s.last.info.get("finish") == "tool-calls"
        return (Moment.AFTER_ROUND if goes_on else Moment.TURN_END), reason

    def _prune(self) -> None:
        shown = self._t.shown
        pruned = {id: found for id, found in self._pruned.items() if f"{id}/output" in shown}
        unseen = [found[0] for id, found in self._pruned.items() if id not in pruned]
        self._pruned = {}
        if unseen:
            outputs = counted(len(unseen), "output")
            told = f"prune: {outputs} that the model no longer saw got the mark too"
            self._t.tell(max(unseen), e.Note(kind="prune", text=told))
        if not pruned:
            return
        view = self._s.view()
        after = wire(view)
        before = _before_prune(view, pruned)
        owners = {message.id: message for _, message, _ in pruned.values()}
        now = {piece.key: piece for each in owners.values() for piece in pieces_of(each)}
        media = {media_key(each) for each in owners.values()}
        target = [
            now.get(held.key, Piece(held.key, held.item, 0))
            for held in shown.held
            if held.key in now or held.key not in media
        ]
        self._t.ordinal += 1
        n = max(at for at, _, _ in pruned.values())
        usage = self._t.usage
        edit = shown.edit(n, target, self._t.ordinal)
        gone = sum(tokens(units(tool_text(part)[0])) for _, _, part in pruned.values())
        self._t.compacted(
            edit,
            pass_id=f"opencode-prune-{n}",
            policy=POLICY,
            stage=PRUNE,
            moment=Moment.TURN_END,
            trigger=Trigger.AUTO,
            reason=(
                f"prune: {counted(len(pruned), 'output')} of about {gone:,} tokens, behind the "
                "newest tool outputs, which stay"
            ),
            before=before,
            after=after,
            reason_evidence="derived",
        )
        self._t.usage = usage

    def _resolve(self) -> None:
        pending = self._s.pending
        if pending is None:
            return
        summary = pending.summary
        done = summary is not None and summary.finished
        before = wire([each for each in self._s.view() if not self._s.is_hidden(each)])
        if done and not pending.again:
            before = wire(visible(self._s.before(pending.marker)))
        self._keep_summary_request(pending)
        self._s.pending = None
        if summary is not None and done:
            self._done(pending, summary, before)
        else:
            self._failed(pending, before)

    def _done(self, pending: Pending, summary: Stored, before: list[WireItem]) -> None:
        self._s.failed = None
        if pending.trigger is Trigger.OVERFLOW:
            self._s.replay = next(
                (m.typed for m in reversed(self._s.ordered) if m.is_user and m.typed), ""
            )
        view = self._s.view()
        tail = text_of(pending.part.get("tail_start_id"))
        kept = f"a tail from {tail} on is kept" if tail else "no tail is kept"
        if pending.again:
            kept = (
                "the one before had failed, and its summary is stored as the answer to another "
                "message than its mark: nothing leaves"
            )
        self._t.ordinal += 1
        edit = self._t.shown.edit(pending.n, self._s.pieces(), self._t.ordinal, summary.id)
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
            marks=(COPIED,) if pending.marker.copied else (),
        )

    def _failed(self, pending: Pending, before: list[WireItem]) -> None:
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
        self._s.failed = pending
        self._s.ending = (pending.n, "failed" if summary is not None else "interrupted", text)
        if pending.again:
            return
        if not text_of(pending.part.get("tail_start_id")):
            self._s.grow(pending.marker)
            return
        # A known fault of 1.18: the tail is stored although the summary failed: the view is cut.
        self._t.ordinal += 1
        edit = self._t.shown.edit(pending.n, self._s.pieces(), self._t.ordinal)
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
            after=wire(self._s.view()),
            evidence="unannounced",
            reason_evidence="derived",
            marks=("what left was not summarised",),
        )

    def again(self, summary: Stored, n: int) -> Pending | None:
        """The failed compaction that this summary tries once more; None when it tries none.

        The mark of a compaction whose summary ended with an error of the provider stays open: with
        the next prompt OpenCode tries again, and stores the summary as the answer to that prompt.
        """
        failed = self._s.failed
        if failed is None or failed.marker.id not in self._s.messages:
            return None
        pending = self._s.pending = Pending(failed.marker, failed.part, n, again=summary.id)
        self._moment, self._reason = self._why(pending)
        self._reason = f"the one before it failed; {self._reason}"
        self._t.tell(n, self._started(pending))
        return pending

    def collect_summary(self, pending: Pending, request: RebuiltRequest) -> None:
        """The history that is summarised, message by message, as it is now: the tail that is cut
        off it is stored later."""
        before = self._s.before(pending.marker)
        history = visible(before)
        if pending.again:
            history = self._s.view()
            pending.tail, pending.tail_unclear = _least_tail(history)
        elif pending.trigger is Trigger.OVERFLOW:
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
        markers = {m.id for m in history if m.is_user and m.compaction is not None}
        answered = {
            m.parent: m for m in history if m.is_summary and m.finished and m.parent in markers
        }
        for message in history:
            if message.id in answered:
                pending.previous = answered[message.id].written
            elif message not in answered.values():
                pending.head.append((message.id, written(message)))
        pending.request = request
        pending.history = history

    def _keep_summary_request(self, pending: Pending) -> None:
        request = pending.request
        tail = pending.tail if pending.again else text_of(pending.part.get("tail_start_id"))
        if request is None:
            return
        self._s.keep_request()
        ids = [id for id, _ in pending.head]
        end = ids.index(tail) if tail in ids else len(ids)
        failed = ""
        if pending.summary is not None and pending.summary.error:
            failed = error_of(pending.summary.error)[0]
        if self._s.older_than(*AS_TEXT):
            # The messages themselves were sent, and behind them the instruction.
            first = next((at for at, m in enumerate(pending.history) if m.id == tail), None)
            kept = [*pending.history[:first], pending.marker]
            model = pending.summary.model if pending.summary is not None else ("", "")
            sent = wire(kept, model, media=self._s.older_than(*MEDIA_STAYS_OUT))
            self._t.requests.append(
                msgspec.structs.replace(request, input=sent, missing=NO_INSTRUCTION, failed=failed)
            )
            return
        conversation = joined(text for _, text in pending.head[:end])
        text = summary_text(conversation, pending.previous.strip())
        self._t.requests.append(
            msgspec.structs.replace(
                request,
                input=[{"role": "user", "content": text}],
                missing=NO_INSTRUCTION + (NO_TAIL if pending.tail_unclear else ""),
                failed=failed,
            )
        )


def summary_text(conversation: str, previous: str) -> str:
    """The user message of a summary request, as far as the record tells it."""
    text = f"{LEAD}\n\n<conversation>\n{conversation}\n</conversation>"
    return (
        f"{text}\n\n{BEFORE}\n\n<prior-summary>\n{previous}\n</prior-summary>" if previous else text
    )


def _least_tail(history: list[Stored]) -> tuple[str, bool]:
    """Where the tail begins that every window has room for, and whether a larger window may have
    kept more. A tail that would be the whole history is none."""
    starts = [at for at, m in enumerate(history) if m.is_user and m.compaction is None]
    end, start, room = len(history), len(history), LEAST_TAIL
    for at in reversed(starts):
        room -= estimated(wire(history[at:end])).value
        if room < 0:
            return (history[start].id if 0 < start < len(history) else ""), True
        start = end = at
    return (history[start].id if 0 < start < len(history) else ""), False


def _seconds(message: Stored) -> float:
    times = dict_of(message.info.get("time"))
    begun, ended = stamp(times.get("created")), stamp(times.get("completed"))
    return max(0.0, ended - begun) if begun and ended else 0.0


def _before_prune(
    view: list[Stored], pruned: dict[str, tuple[int, Stored, dict[str, Any]]]
) -> list[WireItem]:
    """The messages with the pruned outputs, which were sent until now."""
    now = {id: message.parts[id] for id, (_, message, _) in pruned.items()}
    for id, (_, message, before) in pruned.items():
        message.parts[id] = before
    sent = wire(view)
    for id, (_, message, _) in pruned.items():
        message.parts[id] = now[id]
    return sent
