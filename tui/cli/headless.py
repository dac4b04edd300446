"""An agent at work without a screen: its record goes by as text, or as JSON lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from thresher.core import events as e
from thresher.core.items import FunctionCall, FunctionCallOutput, Message, Role
from thresher.core.text import clean_line

from ..figures import change, count
from ..spans import Line, Tone, span
from . import output

if TYPE_CHECKING:
    from thresher.core.agent.loop import Agent, TurnOutcome
    from thresher.core.sessions.session import Session

Work = Callable[["Agent"], Awaitable[Sequence["TurnOutcome"]]]


def run(agent: Agent, work: Work, *, json: bool) -> int:
    """Let the agent work and print its record as it grows; closes the session.

    Returns 0 when every turn was completed, else 1.
    """
    if set_before := agent.session.state.breakpoints:
        output.remark(
            f"Breakpoints of this session ({_one(', '.join(set_before), 200)}) stop nothing here, "
            "since without a screen nobody could go on from them."
        )
    outcomes = asyncio.run(_run(agent, work, json))
    return 0 if outcomes and all(each.value == "completed" for each in outcomes) else 1


async def _run(agent: Agent, work: Work, json: bool) -> Sequence[TurnOutcome]:
    session = agent.session
    printer = _Printer(session, json)
    subscription = session.bus.subscribe()
    task = asyncio.ensure_future(work(agent))
    try:
        while not task.done():
            waiting = asyncio.ensure_future(subscription.wait())
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            subscription.take()
            printer.print_new()
            # Only a waker is wanted of the bus: the records are read from the session itself.
            subscription.caught_up(len(session.history) - 1)
        return await task
    finally:
        task.cancel()
        await asyncio.wait({task})
        await agent.asker.gateway.aclose()
        try:
            session.close("the work is done")
        finally:
            printer.end()


class _Printer:
    def __init__(self, session: Session, json: bool) -> None:
        self._session = session
        self._json = json
        self._printed = 0

    def print_new(self) -> None:
        """Print the records that were not printed yet."""
        records = self._session.history.records[self._printed :]
        self._printed += len(records)
        for record in records:
            if self._json:
                output.put_json(record)
            else:
                output.put(_lines(record))

    def end(self) -> None:
        """Print the rest, and where all of it is."""
        self.print_new()
        state = self._session.state
        output.remark(
            f"{count(state.rounds, 'round')}, {count(state.tool_calls, 'tool call')}, "
            f"{count(state.compactions, 'compaction')}; recorded in {self._session.path}"
        )


def _lines(record: e.Record) -> Iterator[Line]:
    match record.event:
        case e.SessionStarted() as event:
            told = " · ".join(part for part in (event.model, event.wire, event.policy) if part)
            yield [span("session ", Tone.MUTED), span(_one(event.session_id)), span(f"  {told}")]
        case e.ItemAppended(item=Message(role=Role.USER) as message):
            yield []
            yield from _paragraph("> ", message.text, Tone.STRONG)
        case e.ItemAppended(item=Message(role=Role.ASSISTANT) as message):
            yield from _paragraph("", message.text, Tone.PLAIN)
        case e.ItemAppended(item=FunctionCall() as call):
            yield [span("  • ", Tone.ACCENT), span(_one(call.text))]
        case e.ItemAppended(item=FunctionCallOutput() as result):
            tone = Tone.FAILED if result.is_error else Tone.MUTED
            yield [span(f"    {_one(result.name, 40)} → ", Tone.MUTED), span(_result(result), tone)]
        case e.HistoryCompacted() as event:
            # Where the number stayed what it was, it is told once.
            sizes = dict.fromkeys((event.items_before, event.items_after))
            items = f"{' → '.join(map(str, sizes))} items"
            yield [
                span(f"── compaction {event.ordinal} ", Tone.SUMMARY),
                span(_one(f"{event.policy}, {event.stage}: {items}, "), Tone.SUMMARY),
                span(change(event.before, event.after), Tone.SUMMARY),
            ]
            yield [span("   "), span(_one(event.reason), Tone.MUTED)]
        case e.CompactionFailed() | e.CompactionSkipped() as event:
            told = f"── no compaction ({event.outcome}): {event.reason}"
            yield [span(_one(told), Tone.FAILED)]
        case e.ErrorRaised() | e.ContextOverflowed() as event:
            yield [span("! ", Tone.FAILED), span(_one(event.message), Tone.FAILED)]
        case e.BreakerOpened() as event:
            yield [span(_one(f"! breaker open: {event.reason}"), Tone.FAILED)]
        case e.TurnFinished(outcome=outcome, message=message) if outcome != "completed":
            why = f": {message}" if message != outcome else ""
            yield [span(_one(f"the turn ended, {outcome}{why}"), Tone.FAILED)]
        case e.Note() as event:
            yield [span(_one(f"· {event.text}"), Tone.MUTED)]
        case _:
            return


def _paragraph(sign: str, text: str, tone: Tone) -> Iterator[Line]:
    for line in text.strip("\n").split("\n"):
        yield [span(sign + _one(line), tone)]
        sign = " " * len(sign)


def _result(result: FunctionCallOutput) -> str:
    lines = result.output.strip("\n").split("\n")
    more = f"  (+{count(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    return _one(lines[0], 200) + more


def _one(text: str, limit: int = 2_000) -> str:
    return clean_line(text, limit)
