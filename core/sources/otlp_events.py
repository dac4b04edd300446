"""Spans and log records about compaction as our events.

The .NET framework has a span for each pass of a strategy, nested like the strategies: only the
innermost is a compaction, those around it say the same again. The Python framework has a log record
instead. Both give sizes before and after, and neither says which messages went: the context of such
a session is unknown, and so is what stayed, left and came.
"""

from __future__ import annotations

from typing import Final

from .. import events as e
from ..compaction.policy import Moment, Trigger
from ..tokens import Basis, Scope, Tokens, Usage
from .codex_items import json_of
from .lines import Line
from .otlp_read import Signal, is_export, signals
from .outbox import Outbox

AGENT: Final = "agent-framework"
COMPACT: Final = "compaction.compact"
SUMMARISE: Final = "compaction.summarize"
APPLIED: Final = "compaction_strategy"
"""The attribute that the log record of a compaction in Python has."""
_PHASES: Final = {
    "in_run": Moment.BEFORE_REQUEST,
    "before_run": Moment.TURN_START,
    "after_run": Moment.TURN_END,
}
NOT_TOLD: Final = "which messages stayed and which left is not in the export"


class Spans:
    """The fold over the export requests. `Record.n` counts spans and log records."""

    def __init__(self, title: str = "") -> None:
        self._title = title
        self._out = Outbox()
        self._n = -1
        self._begun = False
        self._ordinal = self._sent = 0
        self._model = ""
        self._around: set[str] = set()
        """Spans with a pass inside them."""
        self._told: set[str] = set()
        self._summaries: dict[str, Signal] = {}
        """The span of the summary, by the span of the pass it belongs to."""

    def feed(self, line: Line) -> list[e.Record]:
        """Take one export request."""
        found: list[Signal] = []
        fault = line.fault
        if line.value is not None:
            try:
                found = signals(line.value)
            except RecursionError:
                fault = "it is nested too deeply to be read"
        if not self._begun:
            self._begin(found)
        if fault:
            message = f"line {line.number + 1} (byte {line.offset:,}): {fault}"
            event = e.ErrorRaised(
                kind="bad_line", message=message, line=line.number, offset=line.offset
            )
            self._emit(event)
        if line.value is not None and not is_export(line.value):
            size = len(json_of(line.value))
            self._emit(e.UnknownRecord(type="no export request", line=line.number, size=size))
        for signal in found:
            self._n += 1
            self._out.at = signal.end or self._out.at
            self._signal(signal)
        return self._out.ready()

    def _begin(self, found: list[Signal]) -> None:
        self._begun = True
        first = next(iter(found), None)
        if first is not None:
            self._out.at = first.start
        started = e.SessionStarted(
            session_id=first.trace if first is not None else "",
            agent=AGENT,
            title=(first.service if first is not None else "") or self._title,
        )
        self._emit(started)

    def _emit(self, event: e.Event) -> None:
        self._out.emit(self._out.not_before(max(self._n, 0)), event)

    def _signal(self, signal: Signal) -> None:
        if signal.is_log:
            if APPLIED in signal.attributes:
                self._applied(signal)
            return
        if signal.name == COMPACT:
            self._pass(signal)
        elif signal.name == SUMMARISE:
            self._summaries[signal.parent] = signal
        elif signal.text("gen_ai.operation.name") == "chat":
            self._request(signal)

    def _request(self, signal: Signal) -> None:
        model = signal.text("gen_ai.response.model") or signal.text("gen_ai.request.model")
        if model and model != self._model:
            self._emit(e.ModelChanged(model=model, previous=self._model))
            self._model = model
        self._sent += 1
        self._emit(e.RequestSent(request=self._sent, model=model, round=self._sent))
        if signal.failed:
            self._emit(e.ErrorRaised(kind="provider", message=signal.failed, where="request"))
        used = signal.number("gen_ai.usage.input_tokens")
        if used is None:
            return
        usage = Usage(
            input_tokens=used,
            output_tokens=signal.number("gen_ai.usage.output_tokens") or 0,
            cached_tokens=signal.number("gen_ai.usage.cache_read.input_tokens"),
        )
        self._emit(e.UsageReported(usage=usage, model=model, request=self._sent))

    # -- compactions -----------------------------------------------------------------------------

    def _pass(self, signal: Signal) -> None:
        self._around.add(signal.parent)
        if signal.parent in self._told:
            text = f"the pass of {_strategy(signal)} lies inside one that was told before"
            self._emit(e.Note(kind="compaction", text=text))
            return
        if signal.id in self._around:
            return
        if signal.id:
            self._told.add(signal.id)
        if signal.attributes.get("compaction.triggered") is not True:
            return
        summary = self._summaries.pop(signal.id, None) if signal.id else None
        if signal.attributes.get("compaction.compacted") is True:
            self._compacted(signal, summary)
        elif signal.failed or (summary is not None and _length(summary) is None):
            self._failed(signal, summary)
        else:
            reason = "it fired, and there was nothing to take out"
            event = e.CompactionSkipped(
                pass_id=_name(signal, self._n),
                policy="maf-dotnet",
                moment=Moment.BEFORE_REQUEST,
                trigger=Trigger.AUTO,
                outcome=e.Outcome.NO_OP,
                reason=reason,
                stage=_strategy(signal),
            )
            self._emit(event)

    def _compacted(self, signal: Signal, summary: Signal | None) -> None:
        milliseconds = signal.number("compaction.duration_ms")
        seconds = signal.end - signal.start if milliseconds is None else milliseconds / 1000
        groups = [signal.number(f"compaction.{when}.groups") for when in ("before", "after")]
        # Where the number stayed what it was, it is told once.
        sizes = " → ".join(f"{each:,}" for each in dict.fromkeys(groups) if each is not None)
        told = [] if None in groups else [f"{sizes} groups"]
        if summary is not None:
            number = summary.number("compaction.groups_summarized")
            told += [f"{number:,} groups summarised"] if number is not None else []
            length = _length(summary)
            told += [f"a summary of {length:,} characters"] if length is not None else []
        self._history(
            signal,
            policy="maf-dotnet",
            stage=_strategy(signal),
            sizes=[
                signal.number(f"compaction.{when}.{what}")
                for what in ("messages", "tokens")
                for when in ("before", "after")
            ],
            seconds=max(0.0, seconds),
            told=", ".join(told),
            summarised=summary is not None,
        )

    def _applied(self, signal: Signal) -> None:
        self._history(
            signal,
            policy="maf-python",
            stage=signal.text("compaction_strategy"),
            sizes=[
                signal.number(f"compaction_included_{what}_{when}")
                for what in ("messages", "tokens")
                for when in ("before", "after")
            ],
            phase=signal.text("compaction_phase"),
        )

    def _history(
        self,
        signal: Signal,
        *,
        policy: str,
        stage: str,
        sizes: list[int | None],
        seconds: float = 0.0,
        told: str = "",
        phase: str = "",
        summarised: bool = False,
    ) -> None:
        before, after, tokens_before, tokens_after = sizes
        self._ordinal += 1
        marks = [NOT_TOLD]
        if summarised:
            marks.append("the text of the summary is not in the export")
        event = e.HistoryCompacted(
            ordinal=self._ordinal,
            pass_id=_name(signal, self._n),
            policy=policy,
            stage=stage,
            moment=_PHASES.get(phase) if policy == "maf-python" else Moment.BEFORE_REQUEST,
            trigger=Trigger.AUTO,
            reason=told or "the trigger's values are not in the export",
            segments=(),
            items_before=before or 0,
            items_after=after or 0,
            kept=0,
            removed=0,
            replaced=0,
            inserted=0,
            counts_unknown=True,
            before=_estimated(tokens_before),
            after=_estimated(tokens_after),
            window=self._ordinal,
            marks=tuple(marks),
            reason_evidence="recorded" if told else "unknown",
            phase=phase,
            seconds=seconds,
        )
        self._emit(event)

    def _failed(self, signal: Signal, summary: Signal | None) -> None:
        why = signal.failed or (summary.failed if summary is not None else "")
        reason = f"the summary failed: {why}" if why else "the summary request gave no summary"
        event = e.CompactionFailed(
            pass_id=_name(signal, self._n),
            policy="maf-dotnet",
            moment=Moment.BEFORE_REQUEST,
            trigger=Trigger.AUTO,
            outcome=e.Outcome.FAILED,
            reason=reason,
            stage=_strategy(signal),
            evidence="recorded" if why else "inferred from two signals",
        )
        self._emit(event)


def _name(signal: Signal, n: int) -> str:
    return f"span-{signal.id}" if signal.id and not signal.is_log else f"log-{n}"


def _strategy(signal: Signal) -> str:
    return signal.text("compaction.strategy")


def _length(summary: Signal) -> int | None:
    return summary.number("compaction.summary_length")


def _estimated(tokens: int | None) -> Tokens | None:
    """The frameworks count bytes or characters by default; another tokenizer is not told."""
    return None if tokens is None else Tokens(tokens, Basis.ESTIMATED, Scope.MESSAGES)
