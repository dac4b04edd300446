"""Claude Code: microcompact at the warning level, a full compaction at the threshold.

Source: recordings of the npm package @anthropic-ai/claude-code, versions 1.0.128, 2.0.76, 2.1.70
and 2.1.197, in print mode against a scripted server; its documentation. Before every model call:

1. microcompact: when the last report reaches the warning level (threshold - 20,000), old tool
   results give way to a placeholder. The newest that fit into about 40,000 tokens stay, and it must
   free at least 20,000, else nothing happens (versions 1.0.128 to 2.1.20)
2. full compaction: when the size reaches the threshold, the conversation without its last turn is
   summarised in nine sections. The size is the last report, with a quarter of the characters of
   what it does not cover. The threshold is window - 20,000 reserve - 13,000 buffer: 167,000 of
   200,000. Two settings of the environment move it: another window, and a percentage of the
   effective window, which can only lower it

After it the model sees: system, summary (its analysis stripped; with the path of the whole
transcript and the instruction to go on), the last assistant turn with its results word for word,
and up to five of the files that were read, the newest first. A file of more than 5,000 tokens is
only named; all together have 50,000. What a read in the kept turn shows anyway does not come back.

- reactive: a refused request is compacted the same way and sent again; as many of the newest rounds
  are kept as the provider said it was too long by, at least the last
- a summary request that is refused as too long is asked again with a smaller part: less by what it
  was too long by, or else half of the rounds; three attempts. What is not summarised is kept
- thrash breaker: if the context is full again within three rounds of the previous compaction, three
  times in a row, the turn ends
- an output of more than 30,000 characters goes to a file; a preview of 2 KB stays

Older versions are other constants: 2.0.76 and 1.0.128 have summary_reserve 32000, count_after
none, keep_last_turn no, keep_analysis yes, files_first yes, cat_is_reading no, thrash_refills 0;
2.1.70 has count_after last, micro no, keep_last_turn no, files_first yes, cat_is_reading no.

What the recordings leave open, and what is done here:

- 2.1.197 made no check of its own unless a window was set, and had no microcompact; here both are
  on (`proactive`, `micro`).
- With fewer than two rounds there is not enough to compact. After a refusal all of it is
  summarised, even the last turn: else nothing could go.
- Results that the model has not seen are never cleared, and a path that is known stays readable.
- The transcript is a text file in the session's own folder: the journal is no text for a model.
- Skills, agent listings, hooks and CLAUDE.md belong to that program and are not here.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import msgspec

from ...amounts import count
from ...context import Context, Inserted, Replaced, Segment
from ...items import CompactionSummary, FunctionCallOutput, Message
from ...models import Budget
from ..policy import (
    Answer,
    Applied,
    Edit,
    Failure,
    Files,
    Follow,
    Mark,
    Moment,
    Persist,
    Plan,
    Reread,
    Situation,
    Skip,
    SkipKind,
    Start,
    Step,
    Stored,
    Trigger,
)
from ..summaries import written_out
from .claude_code_parts import micro, texts
from .claude_code_parts.full import Cut, cut_of, gap_of, summarised, typed_last
from .claude_code_parts.limits import Figure, Limits, figure, limits
from .claude_code_parts.params import ClaudeCodeParams
from .claude_code_parts.reads import candidates
from .claude_code_parts.rounds import boundary, rounds_since

MICRO, FULL, PERSIST = "microcompact", "compact", "persisted output"

_FILES, _REFILLS = "claude_code_files", "claude_code_refills"
_CHARS_PER_TOKEN = 8
"""Of a file that is too large no more than this is read to know it."""


class ClaudeCode:
    """Microcompact, full, reactive, persisted outputs."""

    name: ClassVar[str] = "claude-code"
    title: ClassVar[str] = "Claude Code"
    moments: ClassVar[frozenset[Moment]] = frozenset(
        {Moment.BEFORE_REQUEST, Moment.TOOL_OUTPUT, Moment.OVERFLOW, Moment.MANUAL}
    )
    Params: ClassVar[type[msgspec.Struct]] = ClaudeCodeParams

    def __init__(self, params: ClaudeCodeParams | None = None) -> None:
        self.params = params or ClaudeCodeParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """Warning level, threshold, and where the reserve for the answer begins."""
        found = self._limits(budget)
        if found is None or not self.params.proactive:
            return ()
        warning = Mark("warning", found.warning, f"threshold - {self.params.warning_margin:,}")
        return (
            *((warning,) if self.params.micro and found.warning else ()),
            Mark("threshold", found.threshold, found.words),
            Mark("reserve", found.effective, f"window - {self.params.summary_reserve:,}"),
        )

    def plan(self, situation: Situation) -> Plan:
        """The entry points."""
        match situation.moment:
            case Moment.BEFORE_REQUEST:
                yield from self._before_request(situation)
            case Moment.TOOL_OUTPUT if situation.fresh_output is not None:
                yield from self._persist(situation.fresh_output)
            case Moment.MANUAL:
                words = f"Asked for by hand, with {len(situation.context):,} items."
                yield from self._full(situation, situation.context, words)
            case Moment.OVERFLOW:
                words = f"The provider refused {len(situation.context):,} items as too long."
                if (gap := gap_of(situation.refused_size, situation.refused_limit)) is not None:
                    words = f"{words[:-1]}: {gap:,} tokens above its limit."
                yield from self._full(situation, situation.context, words, gap)
            case _:
                yield Skip(SkipKind.NOT_DUE, "Claude Code compacts before each request.")

    def _limits(self, budget: Budget) -> Limits | None:
        p = self.params
        return limits(
            budget.window.value,
            override=p.auto_compact_window,
            reserve=p.summary_reserve,
            buffer=p.buffer,
            percent=p.pct_override,
            warning=p.warning_margin,
        )

    def _before_request(self, situation: Situation) -> Plan:
        p, context = self.params, situation.context
        found = self._limits(situation.budget)
        if found is None or not p.proactive:
            why = (
                "The window is unknown, or no room is left in it" if p.proactive else "Switched off"
            )
            yield Skip(SkipKind.NOT_DUE, f"{why}: compaction only after a refusal.", FULL)
            return
        size = figure(context.items, situation.usage, p.count_after)
        freed = 0
        if p.micro and size.reported is not None and size.reported >= found.warning:
            context, freed = yield from self._micro(context, size, found)
        used = size.tokens - freed
        less = f" - {freed:,} just cleared" if freed else ""
        limit = f"{found.threshold:,} ({found.words})"
        if used < found.threshold:
            words = f"{size.words}{less} is below the threshold {limit}."
            yield Skip(SkipKind.NOT_DUE, words, FULL)
            return
        words = f"{size.words}{less} reached the threshold {limit}."
        refills = self._refills(situation, context)
        if p.thrash_refills and refills >= p.thrash_refills:
            thrash = (
                f"{words} That is within {p.thrash_rounds} rounds of the previous compaction, "
                f"{refills} times in a row: compacting again would not help. A file or an output "
                "is too large for this window: read it in parts, or begin a new session."
            )
            yield Skip(SkipKind.FAILED, thrash, FULL, follow=Follow.WAIT)
            return
        yield from self._full(situation, context, words, refills=refills)

    def _refills(self, situation: Situation, context: Context) -> int:
        """How often in a row, with this time, the context was full again so soon."""
        line = boundary(context)
        if line < 0 or rounds_since(context, line) >= self.params.thrash_rounds:
            return 0
        match situation.memory.get(_REFILLS):
            case [int(turn), int(times)] if turn == situation.turn:
                return times + 1
            case _:
                return 0

    # -- cheap ---------------------------------------------------------------------------------

    def _micro(
        self, context: Context, size: Figure, found: Limits
    ) -> Generator[Step, Answer, tuple[Context, int]]:
        p = self.params
        old = micro.old_results(context, p.micro_keep)
        if not old.places or old.freed < p.micro_min_saving:
            return context, 0
        results: dict[int, FunctionCallOutput] = {}
        for at in old.places:
            item = context.entries[at].item
            if not isinstance(item, FunctionCallOutput):
                continue
            if p.micro_to_file and not item.saved:
                answer = yield Persist(f"{item.call_id[:60]}.txt", item.output)
                if not isinstance(answer, Stored):
                    continue
                item = msgspec.structs.replace(item, saved=answer.path)
            results[at] = micro.cleared(item)
        segments: list[Segment] = []
        done = 0
        for at, result in results.items():
            segments.extend(context.keep(range(done, at)))
            segments.append(Replaced(context.entries[at].id.bare, result))
            done = at + 1
        segments.extend(context.keep(range(done, len(context))))
        ids = context.span(context.entries[at].id for at in results)
        reason = (
            f"{size.reported or 0:,} reported tokens reached the warning level {found.warning:,} "
            f"(threshold {found.threshold:,} - {p.warning_margin:,}): {len(results)} old results "
            f"are cleared (#{ids}), about {old.freed:,} tokens; the newest of about "
            f"{old.kept:,} stay."
        )
        answer = yield Edit(stage=MICRO, reason=reason, segments=tuple(segments))
        if isinstance(answer, Applied):
            return answer.context, old.freed
        return context, 0

    def _persist(self, output: FunctionCallOutput) -> Plan:
        p, size = self.params, len(output.output)
        words = f"The output of {output.call_id} has {size:,} characters"
        if size <= p.persist_above:
            yield Skip(SkipKind.NOT_DUE, f"{words}.", PERSIST)
            return
        answer = yield Persist(f"{output.call_id[:60]}.txt", output.output)
        if not isinstance(answer, Stored):
            failure = answer if isinstance(answer, Failure) else None
            why = failure.message if failure else "There is no file."
            yield Skip(SkipKind.FAILED, f"{words} and stays as it is. {why}", PERSIST, failure)
            return
        text = texts.persisted(output.output, answer.path, p.preview)
        if len(text) >= size:
            yield Skip(SkipKind.NO_OP, f"{words}; its preview would be no shorter.", PERSIST)
            return
        reason = f"{words}, above {p.persist_above:,}: the whole is in {answer.path}."
        new = msgspec.structs.replace(output, output=text, saved=answer.path)
        yield Edit(stage=PERSIST, reason=reason, output=new)

    # -- full ----------------------------------------------------------------------------------

    def _full(
        self,
        situation: Situation,
        context: Context,
        words: str,
        gap: int | None = None,
        refills: int = 0,
    ) -> Plan:
        p = self.params
        cut = cut_of(situation, context, gap, p.keep_last_turn)
        if cut is None:
            yield Skip(SkipKind.NO_OP, f"{words} Not enough messages to compact.", FULL)
            return
        yield Start(FULL, words)
        written = yield from summarised(situation, context, cut, p)
        if isinstance(written, Failure):
            yield Skip(SkipKind.FAILED, f"{words} No summary: {written.message}", FULL, written)
            return
        cut, summary, body = written
        archive = yield from self._transcript(situation, context)
        files, paths = yield from self._restored(situation, context, cut)
        go_on = p.continue_after_manual or situation.trigger is not Trigger.MANUAL
        whole = texts.continued(body, archive, go_on)
        gone = context.span(entry.id for entry in context.entries[cut.head : cut.end])
        shown = [Inserted(message) for message in files]
        answered = typed_last(context, cut.end)
        segments: list[Segment] = [
            *context.keep(range(cut.head)),
            *(Inserted(item) for item in situation.fresh),
            *(shown if p.files_first else ()),
            Inserted(CompactionSummary(whole, texts.PREFIX), gone),
            *context.keep(range(cut.end, answered)),
            *(() if p.files_first else shown),
            *context.keep(range(answered, len(context))),
        ]
        reason = (
            f"{words} {cut.end - cut.head:,} items are summarised, "
            f"{len(context) - cut.end:,} stay, "
            f"{count(len(files), 'file')} put in again{': ' if paths else ''}{', '.join(paths)}."
        )
        yield Edit(
            stage=FULL,
            reason=reason,
            segments=tuple(segments),
            summary=summary,
            memory={_FILES: list(paths), _REFILLS: [situation.turn, refills]},
            follow=Follow.RETRY if situation.moment is Moment.OVERFLOW else Follow.GO_ON,
            drops_newest_user=True,
        )

    def _transcript(self, situation: Situation, context: Context) -> Generator[Step, Answer, str]:
        if not self.params.transcript:
            return ""
        text = written_out(context.items)
        answer = yield Persist(f"transcript-{situation.window + 1}.txt", text)
        return answer.path if isinstance(answer, Stored) else ""

    def _restored(
        self, situation: Situation, context: Context, cut: Cut
    ) -> Generator[Step, Answer, tuple[list[Message], tuple[str, ...]]]:
        """The messages of the files that come back, and the paths of these files."""
        p = self.params
        known: Any = situation.memory.get(_FILES)
        before = [str(path) for path in known] if isinstance(known, list) else None
        tail = context.entries[cut.end :]
        paths = candidates(context, tail, before, boundary(context), p.cat_is_reading)
        paths = paths[: p.restore_files]
        if not paths:
            return [], ()
        limit = p.restore_file_tokens * _CHARS_PER_TOKEN
        answer = yield Reread(paths, limit)
        if not isinstance(answer, Files):
            return [], ()
        messages: list[Message] = []
        total = 0
        for path, content in answer.contents:
            size = situation.measure.text(content)
            fits = len(content) < limit and size <= p.restore_file_tokens
            if fits and total + size <= p.restore_total_tokens:
                total += size
                messages.append(texts.restored(path, content))
            else:
                messages.append(texts.too_large(path))
        return messages, tuple(path for path, _ in answer.contents)


__all__ = ["ClaudeCode", "ClaudeCodeParams"]
