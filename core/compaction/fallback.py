"""The chain of summarisers: each is tried, with retries, until one of them has written something.

The usual chain is: the summariser model, the agent's own model, the extractive summariser. What
goes out, what it costs and every failure is on the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from .. import events as e
from ..digest import wire_digests
from ..models import resolve
from ..tokens import Scope, Tokens
from .fitting import fitted
from .policy import Failure, FailureKind, Measure, Summarise, Summary
from .recorder import Recorder
from .settings import EngineSettings
from .summariser import Summariser, SummaryFailed, Written


class Chain:
    """Writes summaries for one session. `clock` and waits are in seconds."""

    def __init__(
        self,
        summarisers: Sequence[Summariser],
        *,
        recorder: Recorder,
        measure: Measure,
        settings: EngineSettings,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.summarisers = tuple(summarisers)
        self._recorder = recorder
        self._measure = measure
        self._settings = settings
        self._clock = clock
        self._sleep = sleep

    async def write(self, ask: Summarise, pass_id: str) -> Summary | Failure:
        """The first summary that any link writes, or the last link's failure."""
        began, attempts = self._clock(), 0
        last = SummaryFailed(FailureKind.UNSUPPORTED, "No summariser is set up.")
        for place, summariser in enumerate(self.summarisers):
            # A model that the policy names is asked for once, by the first link.
            turn = ask if place == 0 else msgspec.structs.replace(ask, model="")
            turn, note = fitted(turn, self._window(summariser, turn), self._measure)
            for retry in range(self._settings.retries + 1):
                attempts += 1
                try:
                    written = await self._attempt(summariser, turn, pass_id)
                except SummaryFailed as failed:
                    last = failed
                    smaller = ask.own_retry and failed.kind is FailureKind.OVERFLOW
                    again = failed.passing and retry < self._settings.retries and not smaller
                    wait = self._wait(retry, failed.retry_after) if again else 0.0
                    step = f"again in {wait:.1f} s" if again else self._next(place, turn)
                    step = "the policy asks with less" if smaller else step
                    self._recorder.emit(
                        e.SummaryAttemptFailed(
                            pass_id=pass_id,
                            model=summariser.label(turn),
                            kind=failed.kind.value,
                            message=failed.message,
                            attempt=attempts,
                            next_step=step,
                        )
                    )
                    if smaller:
                        return Failure(last.kind, last.message, attempts, last.used, last.limit)
                    if not again:
                        break
                    await self._sleep(wait)
                else:
                    return Summary(
                        text=written.text,
                        model=written.model,
                        usage=written.usage,
                        attempts=attempts,
                        seconds=self._clock() - began,
                        note=note,
                    )
        return Failure(last.kind, last.message, attempts, last.used, last.limit)

    def _window(self, summariser: Summariser, ask: Summarise) -> int | None:
        """The window of the model that a link asks: what is in force for the session's own model,
        what is known of any other; None where nothing leaves this program or nobody knows."""
        if summariser.wire(ask) is None:
            return None
        label, state = summariser.label(ask), self._recorder.state
        if label == state.model:
            return None if state.budget is None else state.budget.window.value
        return resolve(label).window.value

    async def _attempt(self, summariser: Summariser, ask: Summarise, pass_id: str) -> Written:
        request = self._sent(summariser, ask, pass_id)
        model = summariser.label(ask)

        def on_delta(text: str) -> None:
            self._recorder.emit(e.MessageDelta(text=text, channel="summary", pass_id=pass_id))

        try:
            async with asyncio.timeout(self._settings.summary_timeout):
                written = await summariser.write(
                    ask, on_delta if self._settings.stream_summaries else None
                )
        except TimeoutError as late:
            raise SummaryFailed(
                FailureKind.TIMEOUT,
                f"{model} gave no summary within {self._settings.summary_timeout:g} s.",
                passing=True,
            ) from late
        except SummaryFailed as failed:
            if failed.usage is not None:
                self._used(e.UsageReported(usage=failed.usage, model=model, request=request))
            raise
        if written.usage is not None:
            self._used(
                e.UsageReported(
                    usage=written.usage,
                    model=written.model,
                    response_id=written.response_id,
                    request=request,
                )
            )
        return written

    def _sent(self, summariser: Summariser, ask: Summarise, pass_id: str) -> int:
        messages = summariser.wire(ask)
        if messages is None:
            return 0
        state = self._recorder.state
        request = state.requests + 1
        digests, digest = wire_digests(messages)
        size = self._measure.text(ask.instructions) + sum(map(self._measure.item, ask.items))
        self._recorder.emit(
            e.RequestSent(
                request=request,
                purpose=e.Purpose.COMPACTION,
                model=summariser.label(ask),
                turn=state.turn,
                round=state.rounds,
                digests=digests,
                digest=digest,
                estimate=Tokens(size, self._measure.basis, Scope.REQUEST),
                pass_id=pass_id,
            )
        )
        return request

    def _used(self, report: e.UsageReported) -> None:
        self._recorder.emit(msgspec.structs.replace(report, purpose=e.Purpose.COMPACTION))

    def _wait(self, retry: int, retry_after: float | None) -> float:
        wait = self._settings.backoff * 2.0**retry
        return min(self._settings.max_backoff, max(wait, retry_after or 0.0))

    def _next(self, place: int, ask: Summarise) -> str:
        if place + 1 < len(self.summarisers):
            return (
                f"next: {self.summarisers[place + 1].label(msgspec.structs.replace(ask, model=''))}"
            )
        return "no summariser is left"
