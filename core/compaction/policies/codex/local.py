"""Codex, local: a summary by the same model, and what the user said.

Source: OpenAI's Codex CLI 0.171.0, from its recorded sessions and source (`core/src/compact.rs`).

When. The count is the last reported total, plus an estimate (4 bytes a token) of all items after
the last one that the model made, plus sealed reasoning from before the user's last message. A
compaction is due when the count reaches the limit, the smaller of `auto_limit` and 90 % of the raw
window, or the usable window (95 %):

- pre_turn: before the user's new message is recorded, which is neither counted nor sent
- mid_turn: after a response with tool calls, with their outputs
- post_turn: after the last answer of a turn, only with `post_turn_percent`
- by hand (standalone_turn); and before a turn when the model has changed for one with another
  compaction hash, or with a smaller window that the context is too large for. The summary is then
  asked of the model before, and only if that fails of the new one.

How. The whole history and one more user message, the prompt, go to the model without tools. If the
request is too long the oldest item is left out, with the other half of its pair, and it is sent
again, down to the prompt alone. The new history is, in this order:

1. what the user said, newest first up to 20,000 tokens; the first message that does not fit is cut
   in the middle, into head, marker and tail; the fresh initial context stands before the last one
2. the summary, behind a fixed prefix, as a message of the user

Everything else goes: answers, reasoning, calls, outputs, harness text and earlier summaries. An
empty answer leaves the prefix alone; only after a turn is it a failure. A failed compaction changes
nothing and ends the turn, but not after its last answer.

Codex does not compact when a request is refused as too long: the turn fails, the count is filled
up, and the next turn may compact. Nothing stops it from compacting again and again. A tool's output
is cut to 10,000 tokens when it enters. The system message of our own agent is what Codex calls base
instructions: it stays, and is no part of the history that is trimmed.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import ClassVar

import msgspec

from ....context import Context, Inserted, Replaced, Segment
from ....items import (
    CompactionSummary,
    Item,
    Message,
    Role,
    TextPart,
    user,
)
from ....models import Budget
from ...policy import (
    Answer,
    Edit,
    Failure,
    FailureKind,
    Mark,
    Moment,
    Plan,
    Situation,
    Step,
    Summarise,
    Summary,
)
from ...summaries import prompt
from .due import ESTIMATED, Due, Phase, asked_models, estimate_after, limit_marks
from .estimate import estimate_all, is_real_user, text_tokens
from .history import USER_BUDGET, Stay, descent, newest_within
from .opening import opened
from .params import CodexParams
from .pieces import as_sent, divided, half_of, is_text, joined, placed
from .skips import failed
from .truncation import cut
from .windows import following

STAGE = "local"


class CodexLocalParams(CodexParams, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The constants of the rule."""

    user_budget: int = USER_BUDGET
    """Tokens of the user's messages that stay."""
    prompt: str = ""
    """What the summary is asked for with (compact_prompt); empty: our own words."""
    summary_prefix: str = ""
    """What stands before a summary, on a line of its own; empty: our own words."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.user_budget < 1:
            raise ValueError(f"user_budget must be at least 1, not {self.user_budget}")


class Codex:
    """The rule for any provider but OpenAI's own."""

    name: ClassVar[str] = "codex"
    title: ClassVar[str] = "Codex CLI, local"
    moments: ClassVar[frozenset[Moment]] = frozenset(
        {
            Moment.TURN_START,
            Moment.TOOL_OUTPUT,
            Moment.AFTER_ROUND,
            Moment.TURN_END,
            Moment.MODEL_CHANGE,
            Moment.OVERFLOW,
            Moment.MANUAL,
        }
    )
    Params: ClassVar[type[msgspec.Struct]] = CodexLocalParams

    def __init__(self, params: CodexLocalParams | None = None) -> None:
        self.params = params or CodexLocalParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The limit and the usable window."""
        return limit_marks(budget, self.params)

    def plan(self, situation: Situation) -> Plan:
        """The entry cap, or the triggers, the summary and the new history."""
        due = yield from opened(situation, self.params, STAGE)
        if due is None:
            return
        answer, left_out = yield from self._summary(situation, due)
        empty = isinstance(answer, Failure) and answer.kind is FailureKind.EMPTY
        if isinstance(answer, Summary):
            summary = answer
        elif empty and due.phase is not Phase.POST_TURN:
            summary = Summary("", situation.model)
        else:
            yield failed(due, answer, STAGE)
            return
        yield self._edit(situation, due, summary, left_out)

    def _summary(
        self, situation: Situation, due: Due
    ) -> Generator[Step, Answer, tuple[Answer, int]]:
        """The model's answer, and how many items were left out of the request it answered."""
        answer: Answer = None
        left_out = 0
        for model in asked_models(situation, due):
            answer, left_out = yield from self._asked_of(model, situation)
            if isinstance(answer, Summary) or _is_empty(answer):
                break
        return answer, left_out

    def _asked_of(
        self, model: str, situation: Situation
    ) -> Generator[Step, Answer, tuple[Answer, int]]:
        head, history = divided(situation.context.items)
        sent = as_sent(history)
        asked = user(summary_prompt(self.params.prompt, situation.focus))
        smaller = descent(sent, half_of)
        rest = sent
        while True:
            answer = yield Summarise(
                items=(*head, *rest, asked),
                instructions=situation.shape.instructions,
                model=model,
                source=situation.context.items,
                focus=situation.focus,
                own_retry=True,
            )
            too_long = isinstance(answer, Failure) and answer.kind is FailureKind.OVERFLOW
            if not too_long or not rest:
                return answer, len(sent) - len(rest)
            rest = next(smaller)

    def _edit(self, situation: Situation, due: Due, summary: Summary, left_out: int) -> Edit:
        prefix = (self.params.summary_prefix or prompt("codex_summary_prefix")) + "\n"
        item = CompactionSummary(summary.text, prefix)
        segments, contents = compacted(
            situation.context, situation.fresh, item, self.params.user_budget
        )
        notes = [due.reason]
        if left_out:
            notes.append(
                f"The {left_out} oldest items were left out of the request for the summary, which "
                "was too long with them."
            )
        if not summary.text:
            notes.append("The answer was empty, so the prefix stands alone.")
        return Edit(
            stage=STAGE,
            reason=" ".join(notes),
            segments=segments,
            summary=summary,
            phase=due.phase,
            memory={
                **following(situation).memory,
                ESTIMATED: estimate_after(situation, contents),
            },
        )


def compacted(
    context: Context, fresh: tuple[Item, ...], summary: CompactionSummary, budget: int
) -> tuple[tuple[Segment, ...], int]:
    """The new history as segments, and its estimate in tokens without a system message at its
    head: what the user said, with the `fresh` initial context before the last of it, and the
    summary."""
    stays, said = kept_messages(context, budget)
    kept = {place for place, _ in stays}
    head = len(divided(context.items)[0])
    gone = (entry.id for at, entry in enumerate(context) if at not in kept and at >= head)
    new: list[tuple[Item, Segment]] = [*said, (summary, Inserted(summary, context.span(gone)))]
    at = placed(tuple(item for item, _ in new))
    new[at:at] = [(item, Inserted(item)) for item in fresh]
    return (
        (*context.keep(range(head)), *(segment for _, segment in new)),
        estimate_all(item for item, _ in new),
    )


def kept_messages(context: Context, budget: int) -> tuple[list[Stay], list[tuple[Item, Segment]]]:
    """The user's own messages within the budget: their places in the context, and each as it
    stands in the new history. Pictures go; a message that is cut or had one is rewritten."""
    places = [at for at, entry in enumerate(context) if is_real_user(entry.item)]
    texts = [joined(context.entries[at].item) for at in places]
    stays = newest_within([text_tokens(text) for text in texts], budget)
    found: list[tuple[Item, Segment]] = []
    for place, room in stays:
        entry, text = context.entries[places[place]], texts[place]
        parts = None if room is None else cut(text, room)
        if parts is not None:
            item: Item = Message(Role.USER, tuple(TextPart(part) for part in parts))
        elif is_text(entry.item):
            found.extend((entry.item, kept) for kept in context.keep([places[place]]))
            continue
        else:
            item = user(text)
        found.append((item, Replaced(entry.id.bare, item)))
    return [Stay(places[place], room) for place, room in stays], found


def summary_prompt(own: str, focus: str) -> str:
    """What the summary is asked for with; the user's focus is ours, Codex takes none."""
    asked = own or prompt("codex_summary")
    return f"{asked}\n\n{prompt('focus')}\n\n{focus.strip()}" if focus.strip() else asked


def _is_empty(answer: Answer) -> bool:
    return isinstance(answer, Failure) and answer.kind is FailureKind.EMPTY
