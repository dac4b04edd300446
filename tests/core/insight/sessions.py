"""Small sessions for the tests of this room, and the random ones of the folder above."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from thresher.core import events as e
from thresher.core.compaction.policy import Moment, Trigger
from thresher.core.context import EntryId, Inserted, Segment
from thresher.core.history import History
from thresher.core.items import CompactionSummary, FunctionCall, FunctionCallOutput, Item
from thresher.core.models import Budget, Fact, Origin
from thresher.core.tokens import Basis, Scope, Tokens, Usage

# importlib mode puts no folder of tests on sys.path, so the neighbour is run by its place.
RANDOM: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[1] / "random_sessions.py"), run_name="random_sessions"
)
UNKNOWN = Fact(None, "nobody says so")


def random_history(script: Sequence[Any]) -> History:
    """A session of these random steps."""
    to = RANDOM["InMemory"]()
    RANDOM["begin"](to)
    RANDOM["play"](to, script)
    history: History = to.history
    return history


class Writer:
    """Writes a session line by line."""

    def __init__(
        self,
        *,
        policy: str = "teaching",
        threshold: int = 8_000,
        cwd: str = "/w",
        agent: str = "thresher",
    ) -> None:
        self.history = History()
        window = Fact(12_000, "the settings file", Origin.USER)
        self.emit(
            e.SessionStarted(
                session_id="s1",
                agent=agent,
                title="A session",
                model="m",
                cwd=cwd,
                policy=policy,
                policy_params={"threshold": threshold} if policy == "teaching" else {},
                budget=Budget(window, UNKNOWN, Fact(2_000, "the endpoint"), UNKNOWN),
            )
        )

    def emit(self, event: e.Event) -> int:
        """Returns the line."""
        line = len(self.history)
        self.history.append(e.Record(line, 1_700_000_000.0 + line, event))
        return line

    def item(self, item: Item, **more: Any) -> EntryId:
        return EntryId(self.emit(e.ItemAppended(item=item, **more)))

    def call(self, name: str, arguments: str, output: str, **more: Any) -> tuple[EntryId, EntryId]:
        """A call with its output."""
        id = f"c{len(self.history)}"
        call = self.item(FunctionCall(id, name, arguments))
        return call, self.item(FunctionCallOutput(id, output, name=name, **more))

    def usage(self, total: int) -> int:
        return self.emit(e.UsageReported(usage=Usage(total, 0)))

    def compact(self, segments: Sequence[Segment], **more: Any) -> int:
        """Returns the ordinal."""
        state = self.history.state
        ordinal, line = state.compactions + 1, len(self.history)
        before, change = (
            state.context,
            state.context.apply(segments, line, ordinal, state.known),
        )
        after_summary = next((s.item for s in segments if isinstance(s, Inserted)), None)
        summary = after_summary.content if isinstance(after_summary, CompactionSummary) else None
        said: dict[str, Any] = {
            "pass_id": f"p{line}",
            "policy": state.policy,
            "stage": "compaction",
            "moment": Moment.AFTER_ROUND,
            "trigger": Trigger.AUTO,
            "reason": "Reported token usage 9,000 reached the compaction threshold 8,000.",
            "before": Tokens(9_000, Basis.ESTIMATED, Scope.MESSAGES),
            "after": Tokens(900, Basis.ESTIMATED, Scope.MESSAGES),
            "summary": summary,
            "digest": change.after.digest(),
        }
        self.emit(
            e.HistoryCompacted(
                ordinal=ordinal,
                segments=tuple(segments),
                items_before=len(before),
                items_after=len(change.after),
                kept=len(change.kept),
                removed=len(change.removed),
                replaced=len(change.replaced),
                inserted=len(change.inserted),
                usage=state.usage,
                **(said | more),
            )
        )
        return ordinal

    def summarise(self, keep: Sequence[EntryId], text: str, **more: Any) -> int:
        """A compaction that keeps these, in their order, behind a summary of all others."""
        context = self.history.state.context
        places = [place for id in keep if (place := context.place(id)) is not None]
        gone = [id for id in context.ids if id not in keep]
        summary = Inserted(CompactionSummary(text), context.span(gone))
        return self.compact([summary, *context.keep(places)], **more)
