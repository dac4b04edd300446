"""A recorded Codex session, driven once more through our engine with one of our policies.

Every item, report and refusal of the recording is put on a record of our own, and the engine is
asked at the moments at which Codex looked. What the model said (summary text, sealed item) and the
harness's own messages are taken from the recording; everything else is the policy's own doing. The
guards only report: the usage of some recordings is scripted, and their history too small to shrink.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from thresher.core import events as e
from thresher.core.compaction.engine import Engine
from thresher.core.compaction.policies import registry
from thresher.core.compaction.policies.codex.due import ESTIMATED
from thresher.core.compaction.policy import (
    CompactRemotely,
    Failure,
    FailureKind,
    Moment,
    RequestShape,
    Summary,
    Trigger,
)
from thresher.core.compaction.recorder import MemoryRecorder
from thresher.core.compaction.settings import EngineSettings, Guard, Verdict
from thresher.core.compaction.summariser import OnDelta, SummaryFailed, Written
from thresher.core.items import CompactionSummary, Item, Message
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact, Origin
from thresher.core.sources.codex import CodexSource
from thresher.core.sources.codex_items import item_of
from thresher.core.tokens import CharClassCounter

WINDOWS = {"toy-large": 64_000, "toy-medium": 20_000, "toy-other": 20_000}
HASHES = {"toy-large": "7", "toy-medium": "7", "toy-other": "8"}
LIMIT = 5_000
"""model_auto_compact_token_limit of the recordings, unless a session says otherwise."""


class Asked(NamedTuple):
    """A request for a summary: the model and the items it carried."""

    model: str
    items: tuple[Item, ...]


class Pair(NamedTuple):
    """A compaction of the recording and ours at the same place; None where there is none."""

    theirs: e.HistoryCompacted | e.CompactionFailed | None
    ours: Verdict | None
    after: tuple[Item, ...]
    estimate: int | None


@dataclass
class Answers:
    """A summariser that fails as often as it is told, and else writes what the recording says."""

    failures: list[SummaryFailed] = field(default_factory=list)
    text: str = ""
    asked: list[Asked] = field(default_factory=list)

    def label(self, ask: Any) -> str:
        return ask.model or "m"

    def wire(self, ask: Any) -> list[dict[str, Any]]:
        return []

    async def write(self, ask: Any, on_delta: OnDelta | None) -> Written:
        self.asked.append(Asked(ask.model, ask.items))
        if self.failures:
            raise self.failures.pop(0)
        if not self.text:
            raise SummaryFailed(FailureKind.EMPTY, "nothing was written")
        return Written(self.text, "m")


class Replay:
    """One session. `pairs` holds what came of each place at which one of the two compacted."""

    def __init__(
        self,
        path: Path,
        policy: str,
        *,
        failures: Sequence[SummaryFailed] = (),
        auto_limit: int | None = LIMIT,
        guard: Guard = Guard.REPORT,
        **params: Any,
    ) -> None:
        self.source = CodexSource(path)
        self.records = list(self.source.read())
        self.raw = lines(path)
        self.answers = Answers(list(failures))
        self.remote_asks: list[tuple[Item, ...]] = []
        self.pairs: list[Pair] = []
        self.checks = 0
        self.to = MemoryRecorder()
        meta = self.raw[0]["payload"]
        self.shape = RequestShape(meta["base_instructions"]["text"])
        self.model = self._model_from(0)
        self.to.emit(
            e.SessionStarted(
                session_id="s", agent="thresher", policy=policy, budget=budget(self.model)
            )
        )
        summaries = [s for s in map(summary_of, self.compacted()) if s is not None]
        if policy == "codex":
            params["summary_prefix"] = next((s.prefix[:-1] for s in summaries if s.prefix), "")
        settings = {"auto_limit": auto_limit, "comp_hashes": HASHES, **params}
        self.engine = Engine(
            self.to,
            registry.make(policy, settings),
            summarisers=[self.answers],
            settings=EngineSettings(guard=guard, retries=0),
            measure=Ledger(CharClassCounter()),
            store=None,
            remote=self._remote,
            clock=lambda: 0.0,
        )

    def compacted(self) -> Iterator[e.HistoryCompacted]:
        """The compactions of the recording."""
        for record in self.records:
            if isinstance(record.event, e.HistoryCompacted):
                yield record.event

    async def run(self) -> list[Pair]:
        """Play all of it."""
        expected: Verdict | None = None
        first = True
        for at, record in enumerate(self.records):
            event = record.event
            match event:
                case e.TurnStarted():
                    self.to.emit(event)
                    self.engine.new_turn()
                    first, expected = True, await self._turn_start(at, record.n)
                case e.RequestSent(purpose=e.Purpose.TURN):
                    if not first and not self._compacted_since_output(at):
                        await self._expect_nothing(at)
                    first = False
                case e.HistoryCompacted():
                    if event.trigger is Trigger.MANUAL:
                        verdict = await self._offer(Moment.MANUAL, at, Trigger.MANUAL)
                    elif event.phase == "pre_turn":
                        assert expected is not None
                        verdict = expected
                    else:
                        verdict = await self._offer(Moment.AFTER_ROUND, at)
                    self._pair(event, verdict)
                case e.CompactionFailed(phase="pre_turn"):
                    assert expected is not None
                    self._pair(event, expected)
                case e.ErrorRaised() if (failed := self._told_later(at)) is not None:
                    self._pair(failed, await self._offer(Moment.AFTER_ROUND, at))
                case e.CompactionFailed() if any(p.theirs == event for p in self.pairs):
                    pass
                case e.CompactionFailed():
                    self._pair(event, await self._offer(Moment.AFTER_ROUND, at))
                case e.ItemAppended(in_context=True) if not event.note:
                    self.to.emit(e.ItemAppended(item=event.item))
                case e.UsageReported(estimated=False):
                    self.to.emit(e.UsageReported(usage=event.usage, purpose=event.purpose))
                case e.ContextOverflowed(purpose=e.Purpose.TURN):
                    self.to.emit(event)
                case _:
                    pass
        return self.pairs

    async def _turn_start(self, at: int, line: int) -> Verdict | None:
        """The checks before a turn; a task of nothing but a manual compaction makes none."""
        upcoming = self._next_compaction(at)
        if upcoming is not None and upcoming.trigger is Trigger.MANUAL:
            return None
        model, previous = self._model_from(line), self.model
        self.model = model
        if model != previous:
            old = budget(previous)
            self.to.emit(e.ModelChanged(model=model, budget=budget(model), previous=previous))
            verdict = await self._offer(
                Moment.MODEL_CHANGE, at, previous_model=previous, previous_budget=old
            )
            if verdict.compacted:
                return verdict
        verdict = await self._offer(Moment.TURN_START, at)
        if not self._expected_before_turn(at):
            self._expect_none(verdict)
        return verdict

    async def _expect_nothing(self, at: int) -> None:
        self._expect_none(await self._offer(Moment.AFTER_ROUND, at))

    def _expect_none(self, verdict: Verdict) -> None:
        self.checks += 1
        if verdict.outcome is not None:
            self.pairs.append(Pair(None, verdict, self.to.state.context.items, None))

    async def _offer(
        self, moment: Moment, at: int, trigger: Trigger = Trigger.AUTO, **more: Any
    ) -> Verdict:
        upcoming = self._next_compaction(at - 1)
        fresh: tuple[Item, ...] = ()
        if upcoming is not None:
            summary = summary_of(upcoming)
            self.answers.text = summary.content if summary else ""
            fresh = fresh_of(upcoming)
        return await self.engine.offer(
            moment, shape=self.shape, model=self.model, trigger=trigger, fresh=fresh, **more
        )

    async def _remote(self, ask: CompactRemotely, pass_id: str) -> Summary | Failure:
        self.remote_asks.append(ask.items)
        done = sum(pair.theirs is not None for pair in self.pairs)
        sealed = [s.encrypted for s in map(summary_of, self.compacted()) if s is not None]
        return Summary("", "m", encrypted=sealed[done])

    def _pair(self, theirs: e.HistoryCompacted | e.CompactionFailed, verdict: Verdict) -> None:
        state = self.to.state
        self.pairs.append(Pair(theirs, verdict, state.context.items, state.memory.get(ESTIMATED)))

    def _next_compaction(self, at: int) -> e.HistoryCompacted | None:
        """The next one, up to the next request of a turn."""
        for record in self.records[at + 1 :]:
            match record.event:
                case e.HistoryCompacted() as found:
                    return found
                case e.RequestSent(purpose=e.Purpose.TURN):
                    return None
        return None

    def _expected_before_turn(self, at: int) -> bool:
        for record in self.records[at + 1 :]:
            match record.event:
                case e.HistoryCompacted(phase="pre_turn") | e.CompactionFailed(phase="pre_turn"):
                    return True
                case e.RequestSent(purpose=e.Purpose.TURN) | e.TurnFinished():
                    return False
        return False

    def _told_later(self, at: int) -> e.CompactionFailed | None:
        """A failure in the middle of a turn that the reader could tell only from the next one."""
        for record in self.records[at + 1 :]:
            match record.event:
                case e.CompactionFailed(phase="mid_turn") as failed:
                    return failed
                case e.RequestSent(purpose=e.Purpose.TURN):
                    return None
        return None

    def _compacted_since_output(self, at: int) -> bool:
        for record in reversed(self.records[:at]):
            match record.event:
                case e.HistoryCompacted():
                    return True
                case e.ItemAppended(in_context=True):
                    return False
        return False

    def _model_from(self, line: int) -> str:
        """The model that the task at this line works with, at its end."""
        found = getattr(self, "model", "")
        for each in self.raw[line:]:
            if each["type"] == "event_msg" and each["payload"].get("type") == "task_complete":
                break
            if each["type"] == "turn_context":
                found = each["payload"]["model"]
        return found


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a recorded file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def summary_of(event: e.HistoryCompacted) -> CompactionSummary | None:
    """The summary that a compaction of the recording put in."""
    for segment in event.segments:
        item = getattr(segment, "item", None)
        if isinstance(item, CompactionSummary):
            return item
    return None


def fresh_of(event: e.HistoryCompacted) -> tuple[Item, ...]:
    """The harness's own messages that it put in."""
    items = (getattr(segment, "item", None) for segment in event.segments)
    return tuple(item for item in items if isinstance(item, Message) and item.synthetic)


def budget(model: str) -> Budget:
    """The raw window of a model of the recordings' catalogue."""
    unknown = Fact(None, "not said")
    window = Fact(WINDOWS[model], "the catalogue of the recordings", Origin.SESSION)
    return Budget(window, unknown, unknown, unknown)


def replacements(replay: Replay) -> list[tuple[Item, ...]]:
    """What each compacted line holds, as our items."""
    found = []
    for line in replay.raw:
        if line["type"] == "compacted":
            payload = line["payload"]
            found.append(
                tuple(
                    item_of(raw, summary=bool(payload["message"]) and _is(raw, payload["message"]))
                    for raw in payload["replacement_history"]
                )
            )
    return found


def estimates(replay: Replay) -> list[int]:
    """Codex's own count after each compacted line."""
    found: list[int] = []
    waiting = False
    for line in replay.raw:
        payload = line["payload"]
        if line["type"] == "compacted":
            waiting = True
        elif waiting and payload.get("type") == "token_count" and payload.get("info"):
            found.append(payload["info"]["last_token_usage"]["total_tokens"])
            waiting = False
    return found


def _is(raw: dict[str, Any], message: str) -> bool:
    return "".join(part.get("text", "") for part in raw.get("content") or []) == message
