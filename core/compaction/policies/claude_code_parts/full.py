"""The full compaction: what is summarised, and the requests for it, each smaller than the last."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from ....context import Context
from ....items import Kind
from ...policy import (
    Answer,
    Failure,
    FailureKind,
    Moment,
    Situation,
    Step,
    Summarise,
    Summary,
)
from . import texts
from .params import ClaudeCodeParams
from .rounds import estimate, rounds


class Cut(NamedTuple):
    """What is summarised: the items from `head` up to `end`; `starts` are the rounds in them."""

    head: int
    end: int
    starts: tuple[int, ...]


class Written(NamedTuple):
    """What was summarised in the end, the answer, and the text for the context."""

    cut: Cut
    summary: Summary
    text: str


def cut_of(situation: Situation, context: Context, gap: int | None, keep_last: bool) -> Cut | None:
    """What to summarise, or None when that is not enough. `gap` is by how many tokens a refused
    request was too long: so many of the newest rounds stay, and at least the last."""
    items = context.items
    head, starts = rounds(items)
    end = len(items)
    if not keep_last:
        return Cut(head, end, starts) if starts else None
    if len(starts) < 2:
        refused = situation.moment is Moment.OVERFLOW
        return Cut(head, end, starts) if refused and end > head else None
    kept, size = 1, estimate(items[starts[-1] :])
    while gap and size < gap and kept < len(starts) - 1:
        kept += 1
        size += estimate(items[starts[-kept] : starts[-kept + 1]])
    return Cut(head, starts[-kept], starts[:-kept])


def summarised(
    situation: Situation, context: Context, cut: Cut, params: ClaudeCodeParams
) -> Generator[Step, Answer, Written | Failure]:
    """Ask for the summary, with a smaller part after each refusal."""
    items = context.items
    for attempt in range(1, params.summary_attempts + 1):
        part = items[cut.head : cut.end]
        last = attempt == params.summary_attempts or len(cut.starts) < 2
        answer = yield Summarise(
            items=(*items[: cut.head], *texts.request(part, situation.focus)),
            source=part,
            focus=situation.focus,
            max_output=params.summary_max_output,
            own_retry=not last,
        )
        if isinstance(answer, Summary):
            text = texts.summary_of(answer.text, params.keep_analysis)
            if text:
                return Written(cut, answer, text)
            return Failure(FailureKind.EMPTY, "The reply holds no summary.", answer.attempts)
        if not isinstance(answer, Failure):
            return Failure(FailureKind.PROVIDER, "There is no summary.")
        if last or answer.kind is not FailureKind.OVERFLOW:
            return answer
        cut = _smaller(context, cut, gap_of(answer.used, answer.limit))
    return Failure(FailureKind.OVERFLOW, "No attempt is left.")


def gap_of(used: int | None, limit: int | None) -> int | None:
    """By how many tokens a request was too long, where the provider said so."""
    return used - limit if used is not None and limit is not None and used > limit else None


def typed_last(context: Context, start: int) -> int:
    """Where what the user typed last begins: files come before it, as in the recordings."""
    at = len(context)
    while at > start and context.entries[at - 1].kind is Kind.USER:
        at -= 1
    return at


def _smaller(context: Context, cut: Cut, gap: int | None) -> Cut:
    """The same without its newest rounds: as many as make up the gap, else half of them."""
    left = size = 0
    if gap is not None:
        left, end = len(cut.starts), cut.end
        while left > 0 and size < gap:
            left -= 1
            size += estimate(context.items[cut.starts[left] : end])
            end = cut.starts[left]
    left = left or len(cut.starts) // 2
    return Cut(cut.head, cut.starts[left], cut.starts[:left])
