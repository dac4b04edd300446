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

- A summary that another policy made counts as an earlier compaction.
- OpenCode asks for no focus; by hand a focus is put behind the template.
- It takes a cut summary as it is. Here a cut or an empty one is a failure.
- A check at the start of a turn is an option of the engine; this system looks when the message is
  in, before the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from ...context import Context, Inserted, Replaced, Segment
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
from .opencode.tool_output import Bounds, Form, bound

STAGE, PRUNE, LEFT_BEHIND = "compaction", "prune", "failed compaction"


class OpenCodeV1Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the rule, in tokens where nothing else is said."""

    auto: bool = True
    """Compact by itself. Config `compaction.auto`."""
    reserved: int | None = None
    """What is kept free of a max input. Config `compaction.reserved`; without it `reserve`."""
    reserve: int = 20_000
    """The same, where nothing is set, and at most the model's output."""
    output_cap: int = 32_000
    """The largest output that is reckoned with. Env `OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX`."""
    tail_turns: int | None = None
    """How many turns the tail may reach back; 0 is none. Config `compaction.tail_turns`."""
    preserve_recent_tokens: int | None = None
    """The budget of the tail. Config `compaction.preserve_recent_tokens`; without it a share."""
    tail_share: float = 0.25
    """The share of the usable tokens that the tail may have."""
    tail_least: int = 2_000
    """The budget by share is never below this ..."""
    tail_most: int = 15_000
    """... and never above this."""
    tool_chars: int = 2_000
    """UTF-16 code units of a tool result that the summariser sees."""
    summary_model: str = ""
    """The model that summarises, whose limits then count. Config `agent.compaction.model`."""
    autocontinue: bool = True
    """Tell the model to go on after a summary. A plugin hook can veto it."""
    recap: str = "What did we do so far?"
    """The question that the summary answers."""
    continue_text: str = ""
    """What tells the model to go on; empty: our own words."""
    keep_refused_turn: bool = False
    """After an overflow, keep the refused turn behind the tail, as the order of messages would
    have it if taken literally. No recording has that case."""
    prune: bool = False
    """Clear old outputs when a turn has ended. Config `compaction.prune`."""
    prune_protect: int = 40_000
    """The newest tokens of outputs that stay."""
    prune_minimum: int = 20_000
    """Prune only if more than this would go."""
    prune_turns: int = 2
    """Everything after this many newest user messages stays."""
    prune_protected_tools: str = "skill"
    """Tools whose outputs neither count nor go, with commas between them."""
    placeholder: str = "[Old tool result content cleared]"
    """What stands in place of a pruned output."""
    max_lines: int = 2_000
    """Lines of a tool output that enter. Config `tool_output.max_lines`."""
    max_bytes: int = 51_200
    """Bytes of a tool output that enter. Config `tool_output.max_bytes`."""
    output_form: Form = Form.HEAD
    """What of a longer one is kept: its head or its tail."""
    shell_tools: str = "bash"
    """Tools of which the tail is kept, with commas between them."""

    def __post_init__(self) -> None:
        for name in (
            "reserve", "output_cap", "tail_least", "tool_chars", "prune_protect",
            "prune_minimum", "prune_turns",
        ):  # fmt: skip
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if not 0 < self.tail_share <= 1:
            raise ValueError(f"tail_share must be above 0 and at most 1, not {self.tail_share}")
        if self.tail_most < self.tail_least:
            raise ValueError("tail_most must not be below tail_least")
        if self.max_lines < 1 or self.max_bytes < 1:
            raise ValueError("max_lines and max_bytes must be at least 1")
        if not self.recap or not self.placeholder:
            raise ValueError("recap and placeholder must not be empty")


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
        limits = self._limits(budget)
        if not limits.context or not self.params.auto:
            return ()
        return (Mark("threshold", self.usable(limits), self._usable_words(limits)),)

    def plan(self, situation: Situation) -> Plan:
        """What is due at this moment."""
        if situation.moment is Moment.TOOL_OUTPUT:
            yield from self._bound(situation)
        elif situation.trigger is Trigger.MANUAL:
            words = f"Asked for by hand, with {len(situation.context)} items in the history."
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

    def _limits(self, budget: Budget) -> Limits:
        return Limits.of(budget)

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
        limits = self._limits(situation.budget)
        if not self.params.auto:
            return False, "Compacting by itself is off (auto)."
        if not limits.context:
            return False, "The window is unknown, so nothing is ever due."
        if situation.moment is Moment.TURN_START:
            return False, "The new message is not in yet; the check is before the request."
        if situation.moment is Moment.BEFORE_REQUEST and not _begins_turn(situation.context):
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
        words = f"The provider refused the request as too long ({len(situation.context)} items)."
        yield from self._compact(situation, words)

    def _compact(self, situation: Situation, why: str) -> Plan:
        seen = self._view(situation)
        replay = _replay(seen.pieces) if situation.trigger is Trigger.OVERFLOW else None
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
        staying = _tail_as_stored(seen, kept, replay, self.params.keep_refused_turn)
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
        """The text of the last earlier summary, in the order in which the model sees them."""
        texts = [i.content for i in seen.items(done) if isinstance(i, CompactionSummary)]
        return texts[-1].strip() if texts else ""

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
        tail = _places(staying)
        after, staying_after = self._afterwards(situation, seen, replay, staying)
        stays = {*range(seen.lead), *tail, *staying_after}
        gone = context.span(entry.id for at, entry in enumerate(context) if at not in stays)
        lost = _loses_newest_user(context, stays)
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
        behind = _places(seen.stored[seen.stored.index(staying[0]) :])
        stays = {*range(seen.lead), *behind}
        yield Edit(
            stage=LEFT_BEHIND,
            reason="The failed compaction had already said where its tail begins.",
            segments=(*context.keep(range(seen.lead)), question, *context.keep(behind)),
            follow=Follow.WAIT,
            memory={MEMORY_TAIL: 0, MEMORY_WINDOW: 0},
            drops_newest_user=_loses_newest_user(context, stays),
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
            protected_tools=_names(params.prune_protected_tools),
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
            segments=_cleared(context, set(found.places), params.placeholder),
        )

    def _bound(self, situation: Situation) -> Plan:
        params = self.params
        name = situation.fresh_output.name if situation.fresh_output else ""
        form = Form.SHELL if name in _names(params.shell_tools) else params.output_form
        yield from bound(situation, Bounds(params.max_lines, params.max_bytes), form)


def _begins_turn(context: Context) -> bool:
    """Whether the newest entry is something that the user said."""
    newest = context.entries[-1].item if len(context) else None
    return isinstance(newest, Message) and newest.role is Role.USER and not newest.synthetic


def _replay(pieces: Sequence[Piece]) -> int | None:
    """The newest user message, unless nothing but compactions lies before it."""
    at = next((at for at in reversed(range(len(pieces))) if pieces[at].who is Who.USER), None)
    if at is None or all(p.who in (Who.MARKER, Who.SUMMARY) for p in pieces[:at]):
        return None
    return at


def _tail_as_stored(
    seen: View, kept: Sequence[Piece], replay: int | None, refused_too: bool
) -> tuple[Piece, ...]:
    """What lies between the start of the tail and the compaction, in the order of storage.

    An earlier compaction that was stored in between is among it.
    """
    if not kept:
        return ()
    stored = seen.stored[seen.stored.index(kept[0]) :]
    if replay is None or refused_too:
        return stored
    return stored[: stored.index(seen.pieces[replay])]


def _places(pieces: Sequence[Piece]) -> list[int]:
    """The positions of their items. A late output stays where it is, behind other messages."""
    places: list[int] = []
    run: list[int] = []
    for piece in pieces:
        if piece.who in (Who.MARKER, Who.SUMMARY):
            places += [*sorted(run), *piece.places]
            run = []
        else:
            run += piece.places
    return places + sorted(run)


def _loses_newest_user(context: Context, stays: set[int]) -> bool:
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        if isinstance(item, Message) and item.role is Role.USER and not item.synthetic:
            return at not in stays
    return False


def _cleared(context: Context, places: set[int], placeholder: str) -> tuple[Segment, ...]:
    """The context with the outputs at these positions replaced."""
    segments: list[Segment] = []
    run: list[int] = []
    for at, entry in enumerate(context):
        if at not in places:
            run.append(at)
            continue
        segments += context.keep(run)
        run = []
        item = msgspec.structs.replace(entry.item, output=placeholder)
        segments.append(Replaced(entry.id.bare, item))
    return (*segments, *context.keep(run))


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))
