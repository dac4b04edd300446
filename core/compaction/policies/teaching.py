"""The teaching harness: one threshold, one summary, and the user's newest messages.

Source: Liang-HZ/inspectable-agent-harness (MIT), `lib/agent-compaction.ts` at e08b1409c1a6, and the
loop around it in `lib/agent.ts`. After a round with tool calls the checks are, in this order:

1. no usage was reported: do nothing
2. the usage is below the threshold: do nothing
3. the history has fewer than four items: do nothing
4. else: summarise the whole history, and let the new one be
   [the system message, if the history begins with one] + [the summary]
   + [the newest user messages, as many as fit into the budget, oldest of them first]

The user messages are walked from the newest to the oldest. The newest always stays, whatever its
size; the walk ends at the first other one that does not fit, even if a smaller one lies behind it.
Assistant messages, calls, outputs, earlier summaries and system messages further down all go.
No pair can be torn, since no call and no output ever stays.

What the seed leaves open, and what is done here:

- By hand and after an overflow, checks 1 and 2 do not apply; check 3 does.
- The seed has no messages that a harness wrote in the user's name. Those are not kept: nobody
  typed them, and the next one is written when it is needed.
- Pictures in a user message cost nothing in the budget, which counts text only.
- A check at the start of a turn is an option of the engine (`also_at`), not of this rule.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ...context import Context, Inserted, Segment
from ...items import CompactionSummary, Item, Kind, Message, Role, system, user
from ...models import Budget
from ..policy import (
    Edit,
    Failure,
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
from ..summaries import prompt, written_out

SUMMARY_PREFIX = "Earlier conversation summary (older turns were compacted to save context):\n\n"
"""What the model reads before the summary, in a user message."""

STAGE = "compaction"


class TeachingParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the rule. Defaults are the seed's, except where None means "not used"."""

    threshold: int = 8_000
    """Tokens of the last report (input and output) at which the rule fires."""
    threshold_share: float | None = None
    """A share of the model's window, in place of `threshold`; where the window is unknown,
    `threshold` stays in force. Not in the seed."""
    min_items: int = 4
    """A shorter history is left alone; items of every kind count."""
    user_budget: int = 20_000
    """UTF-16 code units of the user messages that stay."""
    estimate_when_unreported: bool = False
    """Where the provider reports no usage, take our own figure of the whole request. Not in the
    seed, which does nothing then."""

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise ValueError(f"threshold must be at least 1, not {self.threshold}")
        if self.threshold_share is not None and not 0 < self.threshold_share <= 1:
            raise ValueError(
                f"threshold_share must be above 0 and at most 1, not {self.threshold_share}"
            )
        if self.min_items < 0 or self.user_budget < 0:
            raise ValueError("min_items and user_budget must not be negative")


class Teaching:
    """The rule of the teaching harness."""

    name: ClassVar[str] = "teaching"
    title: ClassVar[str] = "Teaching harness"
    moments: ClassVar[frozenset[Moment]] = frozenset({Moment.AFTER_ROUND, Moment.MANUAL})
    Params: ClassVar[type[msgspec.Struct]] = TeachingParams

    def __init__(self, params: TeachingParams | None = None) -> None:
        self.params = params or TeachingParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The threshold."""
        return (self._threshold(budget),)

    def plan(self, situation: Situation) -> Plan:
        """The checks, the summary, the new history."""
        reason, due = self._why(situation)
        if not due:
            yield Skip(SkipKind.NOT_DUE, reason, STAGE)
            return
        context = situation.context
        if len(context) < self.params.min_items:
            few = (
                f"{reason} But the history has only {len(context):,} items; it is left alone below "
                f"{self.params.min_items:,}."
            )
            yield Skip(SkipKind.NO_OP, few, STAGE)
            return
        yield Start(STAGE, reason)
        answer = yield Summarise(
            items=summary_request(context.items, situation.focus),
            source=context.items,
            focus=situation.focus,
        )
        if not isinstance(answer, Summary):
            failure = answer if isinstance(answer, Failure) else None
            why = failure.message if failure else "there is no summary"
            yield Skip(SkipKind.FAILED, f"{reason} No summary: {why}", STAGE, failure)
            return
        retry = situation.moment is Moment.OVERFLOW
        yield Edit(
            stage=STAGE,
            reason=reason,
            segments=compacted(context, answer.text, self.params.user_budget),
            summary=answer,
            follow=Follow.RETRY if retry else Follow.GO_ON,
        )

    def _why(self, situation: Situation) -> tuple[str, bool]:
        """The reason in words, and whether the rule fires."""
        size = len(situation.context)
        if situation.trigger is Trigger.MANUAL:
            return f"Asked for by hand, with {size:,} items in the history.", True
        if situation.trigger is Trigger.OVERFLOW:
            return f"The provider refused the request as too long ({size:,} items).", True
        threshold = self._threshold(situation.budget).tokens
        note = ""
        if situation.usage is not None:
            kind, used = "Reported", situation.usage.total
        elif self.params.estimate_when_unreported:
            kind, used = situation.measure.basis.capitalize(), _request_size(situation)
            note = " The provider reported none."
        else:
            return "No token usage was reported since the last compaction.", False
        if used < threshold:
            words = f"{kind} token usage {used:,} is below the compaction threshold {threshold:,}."
        else:
            words = f"{kind} token usage {used:,} reached the compaction threshold {threshold:,}."
        return words + note, used >= threshold

    def _threshold(self, budget: Budget) -> Mark:
        share, window = self.params.threshold_share, budget.window.value
        if share is None:
            return Mark("threshold", self.params.threshold, "threshold")
        if window is None:
            return Mark(
                "threshold",
                self.params.threshold,
                f"threshold, since the window is unknown ({budget.window.source})",
            )
        tokens = max(1, int(share * window))
        return Mark("threshold", tokens, f"{share:.0%} of the window {window:,}")


def summary_request(history: tuple[Item, ...], focus: str = "") -> tuple[Item, ...]:
    """The conversation of the summary request: what to keep, then the history as text."""
    asked = prompt("teaching_system")
    if focus.strip():
        asked = f"{asked}\n\n{prompt('focus')}\n\n{focus.strip()}"
    return system(asked), user(written_out(history))


def compacted(context: Context, summary: str, user_budget: int) -> tuple[Segment, ...]:
    """The new history as segments: head, summary, the user messages that stay."""
    head = [0] if len(context) and context.entries[0].kind is Kind.SYSTEM else []
    staying = _newest_user_messages(context, user_budget)
    stays = {*head, *staying}
    gone = (entry.id for at, entry in enumerate(context) if at not in stays)
    return (
        *context.keep(head),
        Inserted(CompactionSummary(summary, SUMMARY_PREFIX), context.span(gone)),
        *context.keep(staying),
    )


def utf16_units(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    return len(text) + sum(character > "\uffff" for character in text)


def _newest_user_messages(context: Context, budget: int) -> list[int]:
    """Positions, in order."""
    kept: list[int] = []
    total = 0
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        if not (isinstance(item, Message) and item.role is Role.USER) or item.synthetic:
            continue
        total += utf16_units(item.text)
        if kept and total > budget:
            break
        kept.append(at)
    return kept[::-1]


def _request_size(situation: Situation) -> int:
    """The whole request by the engine's own measure."""
    measure, shape = situation.measure, situation.shape
    tools = msgspec.json.encode(shape.tools).decode() if shape.tools else ""
    return (
        measure.context(situation.context).value
        + measure.text(shape.instructions)
        + measure.text(tools)
    )
