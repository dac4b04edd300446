"""OpenCode, engine V2: one checkpoint message in place of the history, its newest part as text.

Source: OpenCode 1.18.33 (npm `opencode-ai`); the engine of its `/api/session`, which neither its
terminal nor its command line uses.

When it compacts. Before every request the request itself is estimated: a quarter of the UTF-16
units of the JSON of system, messages and tools. If that is above window - max(output, buffer), the
history is compacted and the request made anew; if the compaction is refused, the request is sent
all the same. After a request that the provider refused as too long it is compacted once, whatever
`auto` says; a second refusal ends the turn.

What it does. All messages since the last compaction are written out as text, tool results at most
2,000 characters each. From the newest backwards whole messages are "recent" while their estimates
stay within `keep`; the others are the head. The summary request holds the last compaction's recent
text and the head, the last summary to be merged, and the template. Then one user message stands for
everything: a checkpoint with the summary and the recent text, even the user's newest question only
if it is in one of them.

It refuses, and says why only here: no window is known; there is nothing to write out; everything is
recent and there was no compaction before; the summary request itself would not fit; the provider
failed; the reply is blank. By hand it refuses as well: that came with a later version (`manual`).

Every tool output is bound at entry to 2,000 lines and 51,200 bytes: half of that from its head,
half from its tail.

A known fault: a tool whose result is structured data only (its own `read`) is written out as
nothing, so a session that mostly reads never compacts. `structured_tools` names such tools.

What the system leaves open, and what is done here:

- A summary that another policy made counts as a last summary, without a recent text.
- By hand, where that is allowed, everything is summarised, and a focus is put behind the template.
- A check at the start of a turn is an option of the engine; this system looks before the request.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ...context import Inserted
from ...items import Message, user
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
from ..summaries import prompt
from .opencode.checkpoint import Checkpoint, last_checkpoint
from .opencode.estimate import compact_json, tokens, units
from .opencode.limits import Limits
from .opencode.messages import View, Who, view
from .opencode.model_json import Size, size
from .opencode.request import request_text
from .opencode.serialise import Writing, joined, written
from .opencode.tool_output import Bounds, Form, bound, tool_names

STAGE = "compaction"


class OpenCodeV2Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the rule, in tokens where nothing else is said."""

    auto: bool = True
    """Compact before a request that is too large. Config `compaction.auto`."""
    buffer: int = 20_000
    """What stays free of the window, if the output is not larger. Config `compaction.buffer`."""
    keep: int = 8_000
    """The recent text at most. Config `compaction.keep.tokens`; 15,000 in later versions."""
    summary_output: int = 4_096
    """The longest summary, if the model can write as much."""
    tool_chars: int = 2_000
    """UTF-16 code units of a tool result that are written out."""
    structured_tools: str = "read"
    """Tools whose results are written out as nothing, with commas between them."""
    checkpoint_text: str = ""
    """The sentence that opens a checkpoint; empty: our own words."""
    manual: bool = False
    """Compact by hand, as later versions do; 1.18.33 answers that it is not available yet."""
    max_lines: int = 2_000
    """Lines of a tool output that enter. Config `tool_output.max_lines`."""
    max_bytes: int = 51_200
    """Bytes of a tool output that enter. Config `tool_output.max_bytes`."""

    def __post_init__(self) -> None:
        if self.buffer < 0 or self.keep < 0 or self.tool_chars < 0:
            raise ValueError("buffer, keep and tool_chars must not be negative")
        if self.summary_output < 1 or self.max_lines < 1 or self.max_bytes < 1:
            raise ValueError("summary_output, max_lines and max_bytes must be at least 1")


class OpenCodeV2:
    """The rule of OpenCode's engine V2."""

    name: ClassVar[str] = "opencode-v2"
    title: ClassVar[str] = "OpenCode V2"
    moments: ClassVar[frozenset[Moment]] = frozenset(
        {Moment.TOOL_OUTPUT, Moment.BEFORE_REQUEST, Moment.OVERFLOW, Moment.MANUAL}
    )
    Params: ClassVar[type[msgspec.Struct]] = OpenCodeV2Params

    def __init__(self, params: OpenCodeV2Params | None = None) -> None:
        self.params = params or OpenCodeV2Params()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The largest request that is sent as it is, if the window is known."""
        limits = Limits.of(budget)
        if not limits.context or not self.params.auto:
            return ()
        return (Mark("threshold", max(0, self.most(limits)), self._most_words(limits)),)

    def plan(self, situation: Situation) -> Plan:
        """What is due at this moment."""
        if situation.moment is Moment.TOOL_OUTPUT:
            bounds = Bounds(self.params.max_lines, self.params.max_bytes)
            yield from bound(situation, bounds, Form.BOTH)
        elif situation.trigger is Trigger.MANUAL:
            yield from self._by_hand(situation)
        elif situation.trigger is Trigger.OVERFLOW:
            words = (
                f"The provider refused the request as too long ({len(situation.context):,} items)."
            )
            yield from self._compact(situation, words, self.params.keep)
        elif situation.moment is not Moment.BEFORE_REQUEST:
            yield Skip(SkipKind.NOT_DUE, "The check is before the request.", STAGE)
        else:
            due, words = self._due(situation)
            if due:
                yield from self._compact(situation, words, self.params.keep)
            else:
                yield Skip(SkipKind.NOT_DUE, words, STAGE)

    # -- when ----------------------------------------------------------------------------------

    def most(self, limits: Limits) -> int:
        """The largest request that is sent as it is."""
        return limits.context - max(limits.output, self.params.buffer)

    def _most_words(self, limits: Limits) -> str:
        output, buffer = limits.output, self.params.buffer
        return f"window {limits.context:,} - the larger of output {output:,} and buffer {buffer:,}"

    def _due(self, situation: Situation) -> tuple[bool, str]:
        limits = Limits.of(situation.budget)
        if not self.params.auto:
            return False, "Compacting by itself is off (auto)."
        if not limits.context:
            return False, "The window is unknown, so nothing is ever due."
        need, most = request_tokens(situation), self.most(limits)
        return need > most, (
            f"The request is estimated at {need:,} tokens, {'above' if need > most else 'within'} "
            f"{most:,} ({self._most_words(limits)})."
        )

    def _by_hand(self, situation: Situation) -> Plan:
        if not self.params.manual:
            words = "This engine has no compaction by hand in 1.18.33 (manual)."
            yield Skip(SkipKind.NO_OP, words, STAGE)
            return
        words = f"Asked for by hand, with {len(situation.context):,} items in the history."
        yield from self._compact(situation, words, 0)

    # -- the compaction ------------------------------------------------------------------------

    def _compact(self, situation: Situation, why: str, keep: int) -> Plan:
        params, limits = self.params, Limits.of(situation.budget)
        seen = view(situation.context, "", {})
        last = last_checkpoint(situation.context)
        head, recent, lost = self._divided(seen, keep)
        asked = request_text(
            joined([last.recent if last else "", *head]),
            last.summary if last else "",
            situation.focus,
        )
        output = min(limits.output or params.summary_output, params.summary_output)
        size, room = tokens(units(asked)), limits.context - output
        if refusal := _refusal(limits, head, recent, last, size, room):
            yield Skip(SkipKind.NO_OP, f"{why} Refused: {refusal}.", STAGE)
            return
        why = (
            f"{why} {len(head):,} messages are summarised, {len(recent):,} stay as text "
            f"(at most {keep:,} tokens)."
        )
        if lost:
            why = f"{why} The newest user message is among what is summarised."
        yield Start(STAGE, why)
        answer = yield Summarise(
            items=(user(asked),),
            max_output=output,
            source=situation.context.items[seen.lead :],
            focus=situation.focus,
        )
        if not isinstance(answer, Summary):
            failure = answer if isinstance(answer, Failure) else None
            told = failure.message if failure else "there is no summary"
            yield Skip(SkipKind.FAILED, f"{why} Refused: {told}", STAGE, failure)
            return
        checkpoint = Checkpoint(answer.text, joined(recent))
        yield self._edit(situation, seen, answer, checkpoint, why)

    def _divided(self, seen: View, keep: int) -> tuple[list[str], list[str], bool]:
        """All messages as text: the head, the recent ones, and whether the user's newest message
        is in the head."""
        params = self.params
        how = Writing(
            params.tool_chars,
            synthetic=True,
            empty_tools=tool_names(params.structured_tools),
        )
        texts = [
            (piece.who, text)
            for piece in seen.pieces
            if piece.who is not Who.SUMMARY and (text := written(seen.items([piece]), how))
        ]
        start, total = len(texts), 0
        while start and (total := total + tokens(units(texts[start - 1][1]))) <= keep:
            start -= 1
        lost = all(who is not Who.USER for who, _ in texts[start:])
        head, recent = ([text for _, text in part] for part in (texts[:start], texts[start:]))
        return head, recent, lost

    def _edit(
        self,
        situation: Situation,
        seen: View,
        summary: Summary,
        checkpoint: Checkpoint,
        why: str,
    ) -> Edit:
        context = seen.context
        gone = context.span(entry.id for entry in context.entries[seen.lead :])
        opening = self.params.checkpoint_text or prompt("opencode_checkpoint")
        overflow = situation.trigger is Trigger.OVERFLOW
        return Edit(
            stage=STAGE,
            reason=why,
            segments=(
                *context.keep(range(seen.lead)),
                Inserted(checkpoint.item(opening), gone),
            ),
            summary=summary,
            follow=Follow.RETRY if overflow else Follow.GO_ON,
            drops_newest_user=True,
        )


def request_tokens(situation: Situation) -> int:
    """The estimate of the request that would be sent: a quarter of the units of its JSON."""
    seen = view(situation.context, "", {})
    lead = [situation.shape.instructions, *(item.text for item in _lead(seen))]
    sizes = sum((size(seen.items([piece])) for piece in seen.pieces), Size())
    outside: dict[str, Any] = {
        "system": [text for text in lead if text],
        "messages": [],
        "tools": msgspec.to_builtins(situation.shape.tools),
    }
    return tokens(units(compact_json(outside)) + sizes.list_units - 2)


def _lead(seen: View) -> tuple[Message, ...]:
    items = seen.context.items[: seen.lead]
    return tuple(item for item in items if isinstance(item, Message))


def _refusal(
    limits: Limits,
    head: list[str],
    recent: list[str],
    last: Checkpoint | None,
    size: int,
    room: int,
) -> str:
    """Why there can be no compaction, or an empty text."""
    if not limits.context:
        return "the window is unknown"
    if not head and not recent:
        return "there is nothing to write out since the last compaction"
    if not head and last is None:
        return (
            f"all {len(recent):,} messages count as recent, so nothing is left to summarise, and "
            "there was no compaction before"
        )
    if size > room:
        return f"the summary request of {size:,} tokens would not fit into the {room:,} there are"
    return ""
