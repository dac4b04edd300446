"""What both ways of compacting begin with: the entry cap, and the triggers."""

from __future__ import annotations

from collections.abc import Generator

from ...policy import Answer, Moment, Situation, Skip, SkipKind, Start, Step
from . import entry
from .due import Due, decide
from .params import CodexParams
from .skips import not_after_a_refusal


def opened(
    situation: Situation, params: CodexParams, stage: str
) -> Generator[Step, Answer, Due | None]:
    """Cap the fresh output, or begin a compaction and give what it is due to; None where there is
    none to make."""
    if situation.moment is Moment.TOOL_OUTPUT:
        yield from entry.cap(situation, params)
        return None
    if situation.moment is Moment.OVERFLOW:
        yield not_after_a_refusal(stage)
        return None
    due = decide(situation, params)
    if not due.is_due:
        yield Skip(SkipKind.NOT_DUE, due.reason, stage)
        return None
    yield Start(stage, due.reason)
    return due
