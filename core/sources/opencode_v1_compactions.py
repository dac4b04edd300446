"""The compactions of V1: summaries that were written, that failed, and prunes.

A compaction is recorded piece by piece: a user message with a compaction part, an answer marked as
summary, and, when that has come to its end, the message where the kept tail begins. Only with the
next message is it sure that all of it has been written, so what it did is told then.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from ..compaction.policies.opencode.estimate import tokens, units
from ..compaction.policies.opencode.limits import count
from ..compaction.policies.opencode.serialise import Writing, joined, written
from ..compaction.policy import Moment, Trigger
from .base import RebuiltRequest, WireItem
from .codex_items import dict_of, text_of
from .opencode_changes import stamp
from .opencode_fold import error_of, usage_of
from .opencode_v1 import CLEARED, Piece, Stored, left_out, pieces_of, visible, wire
from .opencode_v1_state import POLICY, Pending, V1State

COMPACTION, PRUNE, LEFT_BEHIND = "compaction", "prune", "failed compaction"
LEAD: Final = "Here is the conversation so far:"
"""What a summary request begins with; it is part of the wire form."""
NO_INSTRUCTION: Final = (
    "the instruction behind the conversation, and the system text: they are not in the record"
)
_TOOL_CHARS: Final = 2000


class Compactions:
    """The fold over the marks of compactions."""

    def __init__(self, state: V1State) -> None:
        self._s = state
        self._t = state.telling
        self._pruned: dict[str, tuple[int, str]] = {}
        self._moment: Moment | None = None
        self._reason = ""

    def settle(self) -> None:
        """Tell what waited for the change after it."""
        self._prune()
        self._resolve()

    def pruned(self, key: str, n: int, text: str) -> None:
        """An output was marked as pruned; `text` is what was sent of it until now."""
        self._pruned[key] = (n, text)

    def part(self, message: Stored, part: dict[str, Any], n: int) -> None:
        """A compaction part, or what it has become."""
        pending = self._s.pending
        if pending is not None and pending.marker is message:
            pending.part, pending.n, pending.quiet = part, n, 0
            return
        if not message.is_user or message.id in self._t.shown or message.compaction is not part:
            return
        pending = self._s.pending = Pending(message, part, n)
        self._s.ending = None
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
        pruned = {key: found for key, found in self._pruned.items() if key in self._t.shown}
        self._pruned = {}
        if not pruned:
            return
        shown = self._t.shown
        view = self._s.view()
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

    def _resolve(self) -> None:
        pending = self._s.pending
        if pending is None:
            return
        summary = pending.summary
        done = summary is not None and summary.finished
        before = wire([each for each in self._s.view() if not self._s.is_hidden(each)])
        if done:
            before = wire(visible(self._s.before(pending.marker)))
        self._keep_summary_request(pending)
        self._s.pending = None
        if summary is not None and done:
            self._done(pending, summary, before)
        else:
            self._failed(pending, before)

    def _done(self, pending: Pending, summary: Stored, before: list[WireItem]) -> None:
        if pending.trigger is Trigger.OVERFLOW:
            self._s.replay = next(
                (m.typed for m in reversed(self._s.ordered) if m.is_user and m.typed), ""
            )
        view = self._s.view()
        tail = text_of(pending.part.get("tail_start_id"))
        kept = f"a tail from {tail} on is kept" if tail else "no tail is kept"
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
        self._s.ending = (pending.n, "failed" if summary is not None else "interrupted", text)
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

    def collect_summary(self, pending: Pending, request: RebuiltRequest) -> None:
        """The history that is summarised, message by message, as it is now: the tail that is cut
        off it is stored later."""
        before = self._s.before(pending.marker)
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

    def _keep_summary_request(self, pending: Pending) -> None:
        request, tail = pending.request, text_of(pending.part.get("tail_start_id"))
        if request is None:
            return
        self._s.keep_request()
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
