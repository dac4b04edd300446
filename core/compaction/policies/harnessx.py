"""HarnessX: four layers before every request, from free to costly, and three ways beside them.

Source: the HarnessX lesson on context compaction, and its ancestor shareAI-lab/learn-claude-code
(MIT), `s08_context_compact` at 12a93854e5ff, dec5b0eb6be3 and 182c6582c329. Before each model call,
in this order, which must not change:

1. tool result budget: while the newest batch of results is above 200,000 characters, the largest of
   them goes to a file and a preview stays; results of up to 30,000 never do
2. snip: above 50 messages the first 3 and the last 46 stay, and a marker says how many went
3. micro: all results but the newest 3 that are longer than 120 characters become one line each
4. history: if the JSON of what is left is above 50,000 characters, everything is written to a
   transcript and summarised, and the new list is [system message] + [summary]

The budget comes before micro, because micro would destroy what the budget saves. Beside these:

- fresh output: a result of more than 30,000 characters goes to a file as soon as it comes back
- manual: the same as 4, with the focus, by hand or by the compact tool; after the whole batch of
  results is in the history
- reactive: after a refused request, everything but the last 5 messages is summarised, and the
  request is sent once more; a second refusal ends it

Sizes are in characters. A message is one of Chat Completions: the assistant's text and its calls
are one, each result is one. Pairs stay whole: the head is extended over the results that follow it,
the tail begins with the message that made its calls, where they meet nothing happens, the system
message always stays, and a snip that would tear a pair all the same is undone.

Faults of the ancestor that are not here: a snip that fires again every turn and forgets the count
(the tail is 46, and the marker adds up); a preview whose path is lost when micro replaces it; a
micro that clears results the model has not seen; a placeholder compacted again because its id is
long; a parallel batch cut in two; a tail repeated in the reactive summary; results appended after
the compaction that dropped their calls; a focus that is ignored; transcripts of one second that
overwrite each other; call ids used as file names unseen.

What the seed leaves open, and what is done here:

- Snip and history drop the user's newest message too, as in the seed; the head keeps the first.
  With `repeat_request` it stays behind the summary, as in a later version of the ancestor.
- An empty summary is a failure, and the history stays; the ancestor goes on with "(empty summary)".
- Where the last 5 messages are all there is, reactive summarises them too: else nothing would go.
- The conversation is given to the summariser as labelled text, not as JSON, cut in the middle.
- Three failed summaries in a row stop automatic compaction: that is the engine's breaker.
- Files lie in the session's own folder, not in `.task_outputs/` and `.transcripts/`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import ClassVar, TypeAlias

import msgspec

from ...amounts import count
from ...context import Context, Replaced, Segment
from ...items import FunctionCallOutput, Kind, Message, Role
from ...models import Budget
from ..policy import (
    Answer,
    Applied,
    Edit,
    Failure,
    Follow,
    Mark,
    Moment,
    Persist,
    Plan,
    Refused,
    Situation,
    Skip,
    SkipKind,
    Start,
    Step,
    Stored,
    Summarise,
    Summary,
)
from .harnessx_layers import history, micro, persisted
from .harnessx_layers.chat import chat_messages, tail_start
from .harnessx_layers.snip import snip

BUDGET, SNIP, MICRO = "tool result budget", "snip", "micro"
HISTORY, FRESH, REACTIVE = "history", "fresh output", "reactive"

_Layer: TypeAlias = Generator[Step, Answer, Context]
_RETRIED = "harnessx_retried"


class HarnessXParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of all layers. Sizes are in characters."""

    large_result: int = 30_000
    """A result above this goes to a file (LARGE_TOOL_RESULT_THRESHOLD; ancestor: 30,000)."""
    batch_budget: int = 200_000
    """The newest results together, above which the largest go to files (ancestor)."""
    preview: int = 2_000
    """What stays of a result in a file (seed)."""
    snip_above: int = 50
    """Messages above which the middle goes (ancestor)."""
    snip_head: int = 3
    """Messages kept at the beginning (ancestor)."""
    snip_tail: int = 46
    """Messages kept at the end: 50 - 3 - 1 for the marker (later ancestor; the first had 47)."""
    keep_results: int = 3
    """Newest results that micro leaves alone (seed)."""
    micro_above: int = 120
    """Results up to this length stay (ancestor)."""
    threshold: int = 50_000
    """Characters of JSON above which the history is summarised (CONTEXT_COMPACT_THRESHOLD; the seed
    gives no number, the ancestor 50,000)."""
    summary_head: int = 20_000
    """Of a longer history, what the summariser gets of its beginning (later ancestor)."""
    summary_tail: int = 60_000
    """And of its end (later ancestor)."""
    summary_max_output: int = 2_000
    """Tokens of the summary at most (ancestor)."""
    auto_focus: str = "the goal, the actions done, the key files, the constraints, the next step"
    """What an automatic summary is asked to keep above all (seed, in our words)."""
    reactive_tail: int = 5
    """Messages kept after a refused request (ancestor)."""
    reactive_retries: int = 1
    """Compactions for one refused request (seed: retry once)."""
    repeat_request: bool = False
    """Keep the user's newest message behind the summary (later ancestor; not in the seed)."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, int) and value < 0:
                raise ValueError(f"{name} must not be negative, not {value}")
        if self.threshold < 1:
            raise ValueError(f"threshold must be at least 1, not {self.threshold}")
        if self.summary_head + self.summary_tail < 1:
            raise ValueError("summary_head and summary_tail leave nothing to summarise")


class HarnessX:
    """The four layers, fresh output, manual and reactive."""

    name: ClassVar[str] = "harnessx"
    title: ClassVar[str] = "HarnessX"
    moments: ClassVar[frozenset[Moment]] = frozenset(
        {Moment.BEFORE_REQUEST, Moment.TOOL_OUTPUT, Moment.OVERFLOW, Moment.MANUAL}
    )
    Params: ClassVar[type[msgspec.Struct]] = HarnessXParams

    def __init__(self, params: HarnessXParams | None = None) -> None:
        self.params = params or HarnessXParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The threshold, which is in characters, roughly in tokens."""
        chars = self.params.threshold
        return (Mark("threshold", max(1, chars // 4), f"{chars:,} characters, about 4 to a token"),)

    def plan(self, situation: Situation) -> Plan:
        """The entry points."""
        match situation.moment:
            case Moment.BEFORE_REQUEST:
                yield from self._before_request(situation)
            case Moment.TOOL_OUTPUT if situation.fresh_output is not None:
                yield from self._fresh(situation.fresh_output)
            case Moment.MANUAL:
                words = f"Asked for by hand, with {_messages(situation.context)}."
                yield from self._history(situation, situation.context, "manual", words)
            case Moment.OVERFLOW:
                yield from self._reactive(situation)
            case _:
                yield Skip(SkipKind.NOT_DUE, "HarnessX compacts before each request.")

    def _before_request(self, situation: Situation) -> Plan:
        context = yield from self._budget(situation.context)
        context = yield from self._snip(context)
        context = yield from self._micro(context)
        size = history.size(context.items)
        words = (
            f"{size:,} characters of JSON in {_messages(context)}; "
            f"the history threshold is {self.params.threshold:,}."
        )
        if size <= self.params.threshold:
            yield Skip(SkipKind.NOT_DUE, words, HISTORY)
            return
        yield from self._history(situation, context, "auto", words)

    # -- the layers that cost no model call ----------------------------------------------------

    def _budget(self, context: Context) -> _Layer:
        p = self.params
        places = persisted.newest_batch(context)
        results = [context.entries[at].item for at in places]
        outputs = [item.output for item in results if isinstance(item, FunctionCallOutput)]
        total = sum(map(len, outputs))
        if total <= p.batch_budget:
            return context
        over = f"{len(outputs):,} results of {total:,} characters are above {p.batch_budget:,}"
        chosen = persisted.over_budget(outputs, p.batch_budget, p.large_result, p.preview)
        replaced: dict[int, FunctionCallOutput] = {}
        told: list[str] = []
        for number in chosen:
            at = places[number]
            new = yield from self._persist(results[number], BUDGET)
            if new is not None:
                replaced[at] = new
                told.append(f"{context.entries[at].id} {len(outputs[number]):,} -> {new.saved}")
        if not replaced:
            if not chosen:
                words = f"{over}, but none is larger than {p.large_result:,}."
                yield Skip(SkipKind.NO_OP, words, BUDGET)
            return context
        edit = Edit(
            stage=BUDGET,
            reason=f"{over}: {'; '.join(told)}.",
            segments=_with(context, replaced),
        )
        return _after((yield edit), context)

    def _snip(self, context: Context) -> _Layer:
        p = self.params
        found = snip(context, most=p.snip_above, head=p.snip_head, tail=p.snip_tail)
        if isinstance(found, str):
            return context
        gone = [context.entries[at] for at in found.gone]
        newest = _newest_user(context)
        loses = newest is not None and newest in found.gone
        before = f", {found.total:,} with earlier ones" if found.total != found.now else ""
        chars = sum(len(entry.item.text) for entry in gone)
        reason = (
            f"{_messages(context)} are above {p.snip_above:,}: {found.now:,} from the middle go"
            f"{before} ({gone[0].id} to {gone[-1].id}, {chars:,} characters)"
        )
        if loses and newest is not None:
            reason += f", and with them the user's newest message {context.entries[newest].id}"
        edit = Edit(
            stage=SNIP, reason=f"{reason}.", segments=found.segments, drops_newest_user=loses
        )
        return _after((yield edit), context)

    def _micro(self, context: Context) -> _Layer:
        p = self.params
        replaced = micro.compacted(context, keep=p.keep_results, longer_than=p.micro_above)
        if not replaced:
            return context
        ids = context.span(context.entries[at].id for at in replaced)
        old = sum(len(context.entries[at].item.text) for at in replaced)
        new = sum(len(item.output) for item in replaced.values())
        reason = (
            f"All but the newest {p.keep_results} results: {len(replaced):,} of more than "
            f"{p.micro_above} characters become a line each (#{ids}; {old:,} -> {new:,})."
        )
        edit = Edit(stage=MICRO, reason=reason, segments=_with(context, replaced))
        return _after((yield edit), context)

    def _fresh(self, output: FunctionCallOutput) -> Plan:
        p, size = self.params, len(output.output)
        if size <= p.large_result or persisted.is_persisted(output.output, p.preview):
            words = f"The result of {output.call_id} has {size:,} characters."
            yield Skip(SkipKind.NOT_DUE, words, FRESH)
            return
        new = yield from self._persist(output, FRESH)
        if new is not None:
            reason = (
                f"The result of {output.call_id} has {size:,} characters, above "
                f"{p.large_result:,}: the whole is in {new.saved}, {len(new.output):,} stay."
            )
            yield Edit(stage=FRESH, reason=reason, output=new)

    def _persist(
        self, item: object, stage: str
    ) -> Generator[Step, Answer, FunctionCallOutput | None]:
        """A result with its text in a file; None when that failed, or would free nothing."""
        if not isinstance(item, FunctionCallOutput):
            return None
        answer = yield Persist(persisted.file_name(item.call_id), item.output)
        if not isinstance(answer, Stored):
            failure = answer if isinstance(answer, Failure) else None
            why = failure.message if failure else "there is no file"
            words = f"The result of {item.call_id} stays as it is. {why}"
            yield Skip(SkipKind.FAILED, words, stage, failure)
            return None
        text = persisted.preview(item.output, answer.path, self.params.preview)
        if len(text) >= len(item.output):
            words = f"A preview of {item.call_id} would be no shorter than the result."
            yield Skip(SkipKind.NO_OP, words, stage)
            return None
        return msgspec.structs.replace(item, output=text, saved=answer.path)

    # -- the layers with a summary -------------------------------------------------------------

    def _reactive(self, situation: Situation) -> Plan:
        context, p = situation.context, self.params
        done = 0
        match situation.memory.get(_RETRIED):
            # The refused request is the very one that was sent after the last reactive compaction.
            case [int(round), int(times)] if situation.round - round <= 1:
                done = times
        refused = f"The provider refused {_messages(context)} as too long"
        if done >= p.reactive_retries:
            words = f"{refused} again, after {done} reactive compaction(s): given up."
            yield Skip(SkipKind.FAILED, words, REACTIVE)
            return
        messages = chat_messages(context.items)
        start = tail_start(messages, p.reactive_tail)
        cut = messages[start].start if start < len(messages) else len(context)
        old = [at for at in range(cut) if context.entries[at].kind is not Kind.SYSTEM]
        if not old:
            cut = len(context)
        kept = range(cut, len(context))
        words = f"{refused}; kept at the end: {count(len(kept), 'item')} (retry {done + 1})."
        memory = {_RETRIED: [situation.round, done + 1]}
        yield from self._history(situation, context, REACTIVE, words, kept, memory)

    def _history(
        self,
        situation: Situation,
        context: Context,
        reason: str,
        words: str,
        kept: Sequence[int] = (),
        memory: dict[str, list[int]] | None = None,
    ) -> Plan:
        p = self.params
        stage = REACTIVE if reason == REACTIVE else HISTORY
        staying = set(kept)
        old = tuple(entry.item for at, entry in enumerate(context) if at not in staying)
        if all(isinstance(i, Message) and i.role in (Role.SYSTEM, Role.DEVELOPER) for i in old):
            yield Skip(SkipKind.NO_OP, f"{words} There is nothing to summarise.", stage)
            return
        yield Start(stage, words)
        stored = yield Persist(
            f"transcript-{situation.window + 1}.jsonl", history.json_lines(context.items)
        )
        archive = stored.path if isinstance(stored, Stored) else "none (it could not be written)"
        focus = situation.focus or (p.auto_focus if reason == "auto" else "")
        answer = yield Summarise(
            items=history.summary_request(old, focus, head=p.summary_head, tail=p.summary_tail),
            source=old,
            focus=situation.focus,
            max_output=p.summary_max_output,
        )
        if not isinstance(answer, Summary):
            failure = answer if isinstance(answer, Failure) else None
            why = failure.message if failure else "there is no summary"
            yield Skip(SkipKind.FAILED, f"{words} No summary: {why}", stage, failure)
            return
        newest = _newest_user(context)
        if p.repeat_request and newest is not None and newest not in staying:
            kept = [newest, *kept]
        focused = f" Focus: {focus}." if focus else ""
        yield Edit(
            stage=stage,
            reason=f"{words} reason={reason}, transcript={archive}.{focused}",
            segments=history.new_history(context, kept, answer.text, reason, archive),
            summary=answer,
            memory=memory or {},
            follow=Follow.RETRY if situation.moment is Moment.OVERFLOW else Follow.GO_ON,
            drops_newest_user=True,
        )


def _messages(context: Context) -> str:
    return f"{len(chat_messages(context.items)):,} messages"


def _with(context: Context, replaced: dict[int, FunctionCallOutput]) -> tuple[Segment, ...]:
    """The same order, with other items at some positions."""
    segments: list[Segment] = []
    done = 0
    for at in sorted(replaced):
        segments.extend(context.keep(range(done, at)))
        segments.append(Replaced(context.entries[at].id.bare, replaced[at]))
        done = at + 1
    segments.extend(context.keep(range(done, len(context))))
    return tuple(segments)


def _after(answer: Answer, before: Context) -> Context:
    return answer.context if isinstance(answer, Applied | Refused) else before


def _newest_user(context: Context) -> int | None:
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        if isinstance(item, Message) and item.role is Role.USER and not item.synthetic:
            return at
    return None
