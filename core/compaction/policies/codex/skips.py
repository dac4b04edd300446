"""What Codex says when it does nothing, and whether that ends the turn."""

from __future__ import annotations

from ...policy import Answer, Failure, Follow, Skip, SkipKind
from .due import Due, Phase


def failed(due: Due, answer: Answer, stage: str) -> Skip:
    """Nothing came of it: the turn is given up, unless it was over anyway."""
    failure = answer if isinstance(answer, Failure) else None
    why = failure.message if failure else "there is no answer."
    over = due.phase in (Phase.POST_TURN, Phase.STANDALONE)
    return Skip(
        SkipKind.FAILED,
        f"{due.reason} It failed: {why}",
        stage,
        failure,
        Follow.GO_ON if over else Follow.WAIT,
    )


def not_after_a_refusal(stage: str) -> Skip:
    """Codex's answer to a refused request."""
    return Skip(
        SkipKind.NO_OP,
        "Codex does not compact after a refused request: the turn fails, the count is filled up "
        "to the usable window, and the next turn may compact.",
        stage,
    )
