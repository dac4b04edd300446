"""OpenCode, engine V1: prune old outputs; else one summary, and the newest messages as they were.

Source: OpenCode 1.18.33 (npm `opencode-ai`); the engine of its terminal and of `opencode run`.

When it compacts. The provider's own figure is compared with what is usable, nothing is estimated:

- usable = max input - reserved, where the model has a max input (reserved: the setting, or the
  smaller of 20,000 and the output); else window - output. Output is at most 32,000; without a
  window nothing ever fires.
- A: after a step whose usage reached that, its tools have run; also if the step was the final
  answer, in which case the model is called once more.
- B: before the first request of a turn, if the step before it had reached that.
- C: the provider refused a request as too long.
- By hand; then nothing is said to the model afterwards.

What is summarised. A message is the user's, or one step of the model with all its outputs:

1. After an overflow the newest user message is set aside, to be said again, and everything behind
   it is dropped. If nothing lies before it, it is summarised with the rest.
2. Earlier compactions leave the history; the text of the last one is merged into the new summary.
3. The tail is chosen: whole turns from the newest on, while the estimate of their JSON stays within
   a budget (a quarter of the usable, between 2,000 and 15,000); of the first turn that does not
   fit, its longest end that does. If that would be everything, there is no tail.
4. The rest is written out as text, tool results at most 2,000 characters each, and summarised.

What the model sees then: the question "What did we do so far?", the summary as its own answer, the
tail, and, unless it was by hand, the user's message again or a word to go on.

Prune (a switch, off as shipped) runs when a turn has ended without a summary: outputs older than
the newest two user messages and 40,000 tokens of outputs give way to a placeholder, if that clears
more than 20,000.

Every tool output is bound at entry to 2,000 lines and 51,200 bytes.

Known faults, which happen in report mode and are refused in enforce mode: a summary that failed
leaves its question behind without an answer; if a tail had been chosen and the provider's error was
no overflow, everything before that tail is gone as well, without a summary.

What the system leaves open, and what is done here:

- A summary that another policy made counts as an earlier compaction; of those none is lost.
- OpenCode asks for no focus; by hand a focus is put behind the template.
- It takes a cut summary as it is. Here a cut or an empty one is a failure.
- A check at the start of a turn is an option of the engine; this system looks when the message is
  in, before the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from ...context import Inserted, Replaced, Segment
from ...items import CompactionSummary, Message, Role, user
from ...models import Budget
from ..policy import (
    Edit,
    Failure,
    FailureKind,
    Follow,
    Mark,
    Moment,
    Plan,
    Situation,
    Skip,
    SkipKind,
    Start,
    Summarise,
    Summary,
    Trigger,
)
from ..summaries import prompt
from .opencode.limits import Limits, count
from .opencode.media import has_media, without_media
from .opencode.messages import MEMORY_TAIL, MEMORY_WINDOW, Piece, View, Who, completed, view
from .opencode.model_json import Size, size
from .opencode.prune import candidates
from .opencode.request import request_text
from .opencode.serialise import Writing, joined, written
from .opencode.tail import Tail, select
from .opencode.tool_output import Bounds, Form, bound, tool_names
from .opencode.v1_params import OpenCodeV1Params
from .opencode.v1_shape import (
    begins_turn,
    cleared,
    loses_newest_user,
    places_of,
    replayed,
    tail_as_stored,
)

__all__ = ["OpenCodeV1", "OpenCodeV1Params"]

STAGE, PRUNE, LEFT_BEHIND = "compaction", "prune", "failed compaction"


class OpenCodeV1:
    """The rule of OpenCode's engine V1."""

    name: ClassVar[str] = "opencode-v1"
    title: ClassVar[str] = "OpenCode V1"
    moments: ClassVar[frozenset[Moment]] = frozenset(
        {
            Moment.TOOL_OUTPUT,
            Moment.BEFORE_REQUEST,
            Moment.AFTER_ROUND,
            Moment.TURN_END,
            Moment.OVERFLOW,
            Moment.MANUAL,
        }
    )
    Params: ClassVar[type[msgspec.Struct]] = OpenCodeV1Params

    def __init__(self, params: OpenCodeV1Params | None = None) -> None:
        self.params = params or OpenCodeV1Params()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The usable tokens, if the window is known and it compacts by itself."""
        limits = Limits.of(budget)
        if not limits.context or not self.params.auto:
            return ()
        return (Mark("threshold", self.usable(limits), self._usable_words(limits)),)

    def plan(self, situation: Situation) -> Plan:
        """What is due at this moment."""
        if situation.moment is Moment.TOOL_OUTPUT:
            yield from self._bound(situation)
        elif situation.trigger is Trigger.MANUAL:
            words = f"Asked for by hand, with {len(situation.context):,} items in the history."
            yield from self._compact(situation, words)
        elif situation.trigger is Trigger.OVERFLOW:
            yield from self._after_overflow(situation)
        else:
            due, words = self._due(situation)
            if due:
                yield from self._compact(situation, words)
            elif situation.moment is Moment.TURN_END and self.params.prune:
                yield from self._prune(situation)
            else:
                yield Skip(SkipKind.NOT_DUE, words, STAGE)

    # -- when ----------------------------------------------------------------------------------

    def max_output(self, limits: Limits) -> int:
        """The output that is reckoned with, and asked for."""
        return min(limits.output or self.params.output_cap, self.params.output_cap)

    def usable(self, limits: Limits) -> int:
        """The size of a request at which it is compacted; 0 where the window is not known."""
        if not limits.context:
            return 0
        if limits.input:
            return max(0, limits.input - self._reserved(limits))
        return max(0, limits.context - self.max_output(limits))

    def overflows(self, limits: Limits, used: int) -> bool:
        """Whether so many reported tokens are too many."""
        return self.params.auto and limits.context != 0 and used >= self.usable(limits)

    def tail_budget(self, limits: Limits) -> int:
        """The estimated tokens that the tail may have."""
        params = self.params
        if params.preserve_recent_tokens is not None:
            return params.preserve_recent_tokens
        share = int(self.usable(limits) * params.tail_share)
        return min(params.tail_most, max(params.tail_least, share))

    def _reserved(self, limits: Limits) -> int:
        if self.params.reserved is not None:
            return self.params.reserved
        return min(self.params.reserve, self.max_output(limits))

    def _usable_words(self, limits: Limits) -> str:
        if limits.input:
            return f"max input {limits.input:,} - reserved {self._reserved(limits):,}"
        return f"window {limits.context:,} - output {self.max_output(limits):,}"

    def _due(self, situation: Situation) -> tuple[bool, str]:
        """Triggers A and B: whether the last report is too large, in words."""
        limits = Limits.of(situation.budget)
        if not self.params.auto:
            return False, "Compacting by itself is off (auto)."
        if not limits.context:
            return False, "The window is unknown, so nothing is ever due."
        if situation.moment is Moment.TURN_START:
            return False, "The new message is not in yet; the check is before the request."
        if situation.moment is Moment.BEFORE_REQUEST and not begins_turn(situation.context):
            return False, "This step belongs to a turn that was looked at after its last round."
        if situation.usage is None:
            return False, "No usage was reported since the last compaction; nothing is estimated."
        used, usable = count(situation.usage), self.usable(limits)
        due = self.overflows(limits, used)
        words = (
            f"The provider reported {used:,} tokens, which {'reaches' if due else 'is below'} the "
            f"usable {usable:,} ({self._usable_words(limits)})."
        )
        return due, words

    # -- the summary ---------------------------------------------------------------------------

    def _after_overflow(self, situation: Situation) -> Plan:
        if not self.params.auto:
            words = "The request was refused as too long, and compacting by itself is off (auto)."
            yield Skip(SkipKind.NO_OP, words, STAGE)
            return
        words = f"The provider refused the request as too long ({len(situation.context):,} items)."
        yield from self._compact(situation, words)

    def _compact(self, situation: Situation, why: str) -> Plan:
        seen = self._view(situation)
        replay = replayed(seen.pieces) if situation.trigger is Trigger.OVERFLOW else None
        history = seen.pieces if replay is None else seen.pieces[:replay]
        done = completed(history)
        rest = [piece for at, piece in enumerate(history) if at not in done]
        if not any(piece.who is not Who.MARKER for piece in rest):
            yield Skip(SkipKind.NO_OP, f"{why} But there is nothing left to summarise.", STAGE)
            return
        previous = self._previous(seen, [history[at] for at in sorted(done)])
        limits = Limits.of(situation.budget, self.params.summary_model)
        tail = self._tail(seen, rest, limits)
        head, kept = rest[: tail.start], rest[tail.start :] if tail.start is not None else []
        why = f"{why} {len(head):,} of {len(rest):,} messages are summarised; {tail.words}."
        yield Start(STAGE, why)
        answer = yield Summarise(
            items=(user(self._request(seen, head, previous, situation.focus)),),
            instructions=prompt("opencode_system"),
            model=self.params.summary_model,
            max_output=self.max_output(limits),
            source=(*([CompactionSummary(previous)] if previous else []), *seen.items(head)),
            focus=situation.focus,
        )
        staying = tail_as_stored(seen, kept, replay, self.params.keep_refused_turn)
        if not isinstance(answer, Summary):
            yield from self._failed(seen, answer, why, replay, staying)
            return
        yield self._edit(situation, seen, answer, why, replay, staying)

    def _view(self, situation: Situation) -> View:
        return view(situation.context, self.params.recap, situation.memory)

    def _tail(self, seen: View, rest: Sequence[Piece], limits: Limits) -> Tail:
        def cost(piece: Piece) -> Size:
            return size(seen.items([piece]))

        return select(rest, cost, self.tail_budget(limits), self.params.tail_turns)

    def _previous(self, seen: View, done: Sequence[Piece]) -> str:
        """The text of the last earlier summary, in the order in which the model sees them.

        Summaries of another policy, which no question precedes, are all put before it.
        """
        own, foreign = "", []
        for at, piece in enumerate(done):
            if piece.who is not Who.SUMMARY:
                continue
            (item,) = seen.items([piece])
            text = item.content.strip() if isinstance(item, CompactionSummary) else ""
            if at and done[at - 1].who is Who.MARKER:
                own = text
            else:
                foreign.append(text)
        return joined([*foreign, own])

    def _request(self, seen: View, head: Sequence[Piece], previous: str, focus: str) -> str:
        how = Writing(self.params.tool_chars, self.params.placeholder)
        texts = (written(seen.items([piece]), how) for piece in head if piece.who is not Who.MARKER)
        return request_text(joined(texts), previous, focus)

    def _edit(
        self,
        situation: Situation,
        seen: View,
        summary: Summary,
        why: str,
        replay: int | None,
        staying: Sequence[Piece],
    ) -> Edit:
        """The new context: question, summary, tail, and what comes after."""
        context = seen.context
        tail = places_of(staying)
        after, staying_after = self._afterwards(situation, seen, replay, staying)
        stays = {*range(seen.lead), *tail, *staying_after}
        gone = context.span(entry.id for at, entry in enumerate(context) if at not in stays)
        lost = loses_newest_user(context, stays)
        if lost:
            why = f"{why} The newest user message is among what went."
        follow = Follow.GO_ON
        if situation.moment is Moment.OVERFLOW:
            follow = Follow.RETRY
        elif situation.moment is Moment.TURN_END and after:
            follow = Follow.RUN_AGAIN
        return Edit(
            stage=STAGE,
            reason=why,
            segments=(
                *context.keep(range(seen.lead)),
                Inserted(Message(Role.USER, self.params.recap, synthetic=True)),
                Inserted(CompactionSummary(summary.text, role=Role.ASSISTANT), gone),
                *context.keep(tail),
                *after,
            ),
            summary=summary,
            follow=follow,
            memory={MEMORY_TAIL: len(tail), MEMORY_WINDOW: situation.window + 1},
            drops_newest_user=lost,
        )

    def _afterwards(
        self, situation: Situation, seen: View, replay: int | None, staying: Sequence[Piece]
    ) -> tuple[list[Segment], list[int]]:
        """The user's message again, or a word to go on; and the positions that stay for it."""
        if situation.trigger is Trigger.MANUAL:
            return [], []
        if replay is not None:
            (at,) = seen.pieces[replay].places
            entry = seen.context.entries[at]
            again = entry.item
            if not isinstance(again, Message):
                raise TypeError(f"{entry.id} is no message")
            if seen.pieces[replay] in staying:
                return [Inserted(without_media(again), seen.context.span([entry.id]))], []
            if has_media(again):
                return [Replaced(entry.id.bare, without_media(again))], [at]
            return list(seen.context.keep([at])), [at]
        if not self.params.autocontinue:
            return [], []
        words = self.params.continue_text or prompt("opencode_continue")
        if situation.trigger is Trigger.OVERFLOW:
            words = f"{prompt('opencode_media_removed')}\n\n{words}"
        return [Inserted(Message(Role.USER, words, synthetic=True))], []

    def _failed(
        self, seen: View, answer: object, why: str, replay: int | None, staying: Sequence[Piece]
    ) -> Plan:
        """The run stops; and the fault: what the attempt leaves in the history."""
        failure = answer if isinstance(answer, Failure) else None
        told = failure.message if failure else "there is no summary"
        too_large = failure is not None and failure.kind is FailureKind.OVERFLOW
        if too_large:
            what = "session" if replay is None else "conversation"
            told = f"the {what} is too large to be summarised ({told})"
        # What the engine itself would not send ends no run.
        refused = failure is not None and failure.kind is FailureKind.REFUSED
        follow = Follow.GO_ON if refused else Follow.WAIT
        yield Skip(SkipKind.FAILED, f"{why} No summary: {told}", STAGE, failure, follow)
        if refused:
            return
        context = seen.context
        question = Inserted(Message(Role.USER, self.params.recap, synthetic=True))
        if too_large or not staying:
            places = list(range(len(context)))
            yield Edit(
                stage=LEFT_BEHIND,
                reason="The question of the failed compaction stays without an answer.",
                segments=(*context.keep(places), question),
                follow=Follow.WAIT,
                fault="a failed compaction leaves its question behind without an answer",
            )
            return
        behind = places_of(seen.stored[seen.stored.index(staying[0]) :])
        stays = {*range(seen.lead), *behind}
        yield Edit(
            stage=LEFT_BEHIND,
            reason="The failed compaction had already said where its tail begins.",
            segments=(*context.keep(range(seen.lead)), question, *context.keep(behind)),
            follow=Follow.WAIT,
            memory={MEMORY_TAIL: 0, MEMORY_WINDOW: 0},
            drops_newest_user=loses_newest_user(context, stays),
            fault="a failed compaction drops everything before its tail without a summary",
        )

    # -- prune and bounds ----------------------------------------------------------------------

    def _prune(self, situation: Situation) -> Plan:
        params = self.params
        context = situation.context
        found = candidates(
            self._view(situation),
            protect=params.prune_protect,
            turns=params.prune_turns,
            protected_tools=tool_names(params.prune_protected_tools),
            placeholder=params.placeholder,
        )
        words = (
            f"{found.tokens:,} of {found.seen:,} tokens of older outputs lie beyond the newest "
            f"{params.prune_protect:,}"
        )
        if found.tokens <= params.prune_minimum:
            few = f"{words}; it clears only more than {params.prune_minimum:,}."
            yield Skip(SkipKind.NOT_DUE, few, PRUNE)
            return
        yield Edit(
            stage=PRUNE,
            reason=f"{words}, which is more than {params.prune_minimum:,}.",
            segments=cleared(context, set(found.places), params.placeholder),
        )

    def _bound(self, situation: Situation) -> Plan:
        params = self.params
        name = situation.fresh_output.name if situation.fresh_output else ""
        form = Form.SHELL if name in tool_names(params.shell_tools) else params.output_form
        yield from bound(situation, Bounds(params.max_lines, params.max_bytes), form)
