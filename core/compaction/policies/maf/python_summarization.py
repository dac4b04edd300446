"""The Python design's summarisation strategy.

It acts when more than `target_count + threshold` messages outside system are included. Groups are
kept from the newest back until at least `target_count` messages are kept; the others are
candidates. Of these, the oldest first, go into the request as long as the prompt and the transcript
fit into `max_summary_input_tokens`: groups that do not fit are passed over while none has been
taken yet, and end the choice afterwards. The summary stands in the place of the first summarised
group. An error, a blank reply, or nothing that fits: nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...policy import Failure, FailureKind, Start, Summary
from ...summaries import prompt
from .messages import ChatMessage, Text, written
from .python_messages import Marked, MarkedGroup, MessageList
from .python_strategies import Single
from .python_text import CharacterEstimator, Tokenizer, transcript
from .steps import Changed, Core, Generated, Log, Request, Untouched

INPUT_TOKENS = 8_000
FAILURES = 3
"""Failures in a row after which the log says so as an error, once until a success."""

_Candidate = tuple[MarkedGroup, list[Marked]]


class Summarization(Single):
    """Older messages become one summary by a model. It counts its failures from run to run."""

    name = "SummarizationStrategy"
    stage = "summarized"

    def __init__(
        self,
        *,
        target_count: int = 4,
        threshold: int | None = 2,
        instructions: str = "",
        max_summary_input_tokens: int | None = INPUT_TOKENS,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        if target_count <= 0:
            raise ValueError(f"target_count must be above 0, not {target_count}")
        if threshold is not None and threshold < 0:
            raise ValueError(f"threshold must not be negative, not {threshold}")
        if max_summary_input_tokens is not None and max_summary_input_tokens <= 0:
            raise ValueError(
                f"max_summary_input_tokens must be above 0, not {max_summary_input_tokens}"
            )
        self.target_count = target_count
        self.threshold = threshold or 0
        self.instructions = instructions or prompt("maf_python_summary")
        self.most = max_summary_input_tokens
        self.tokenizer: Tokenizer = tokenizer or CharacterEstimator()
        self._failures = 0
        self._told = False

    def _core(self, messages: MessageList) -> Core:
        included = [
            (group, [each for each in group.members if not each.excluded])
            for group in messages.included_groups()
            if not group.system
        ]
        count = sum(len(members) for _, members in included)
        most = self.target_count + self.threshold
        arithmetic = f"{most:,} = target_count {self.target_count:,} + threshold {self.threshold:,}"
        if count <= most:
            yield Untouched(self.stage, f"{count:,} messages do not exceed {arithmetic}")
            return None
        reason = f"{count:,} messages exceed {arithmetic}"
        candidates = self._candidates(included)
        if not candidates:
            yield Untouched(self.stage, f"{reason}, but the newest group holds them all", due=True)
            return None
        chosen = self._fitting(candidates)
        about = [each for _, members in chosen for each in members]
        if not about:
            words = f"{reason}, but no group fits into {self.most:,} tokens of summary input"
            yield Log("warning", "summary-nothing-fits", words, self.stage)
            yield from self._failed()
            return None
        texts = tuple(each.message for each in about)
        words = f"{reason}. {len(chosen):,} of the {len(candidates):,} older groups are summarised"
        yield Start(self.stage, f"{words}.")
        answer = yield Request(
            (
                ChatMessage("system", (Text(self.instructions),)),
                ChatMessage("user", (Text(transcript(texts)),)),
            ),
            texts,
        )
        failure = answer if isinstance(answer, Failure) else None
        blank = failure is not None and failure.kind is FailureKind.EMPTY
        text = answer.text.strip() if isinstance(answer, Summary) else ""
        if not text:
            code = "summary-blank" if blank or failure is None else "summary-failed"
            why = failure.message if failure else "the summariser returned no text"
            failed = f"{words}, but no summary was written: {why}"
            yield Log("warning", code, failed, self.stage, failure=failure)
            yield from self._failed()
            return None
        self._failures, self._told = 0, False
        summary = self._summary(messages, text, [group for group, _ in chosen], about)
        return Changed(
            self.stage,
            f"{words}; {messages.included_messages:,} messages stay.",
            (Generated(summary, texts),),
            answer if isinstance(answer, Summary) else None,
        )

    def _candidates(self, included: Sequence[_Candidate]) -> list[_Candidate]:
        kept = at = 0
        for at in range(len(included) - 1, -1, -1):
            kept += len(included[at][1])
            if kept >= self.target_count:
                break
        return list(included[:at])

    def _fitting(self, candidates: list[_Candidate]) -> list[_Candidate]:
        if self.most is None:
            return candidates
        separator = self.tokenizer.count("\n")
        used = self.tokenizer.count(self.instructions)
        chosen: list[_Candidate] = []
        number = 1
        for group, members in candidates:
            text = transcript((each.message for each in members), number)
            cost = self.tokenizer.count(text) + (separator if chosen else 0)
            if used + cost > self.most:
                if chosen:
                    break
                continue
            chosen.append((group, members))
            used += cost
            number += len(members)
        return chosen

    def _summary(
        self, messages: MessageList, text: str, groups: list[MarkedGroup], about: list[Marked]
    ) -> ChatMessage:
        summary = Marked(
            written(text, id=f"summary_{len(messages.entries)}"),
            summary_of_messages=tuple(each.id for each in about),
            summary_of_groups=tuple(group.id for group in groups),
        )
        for each in about:
            each.summarized_by = summary.id
            messages.exclude(each, self.stage)
        messages.insert([(min(group.first for group in groups), summary)])
        return summary.message

    def _failed(self) -> Core:
        self._failures += 1
        if self._failures >= FAILURES and not self._told:
            self._told = True
            words = f"summaries have failed {self._failures} times in a row"
            yield Log("error", "summary-failing-repeatedly", words, self.stage)
        return None
