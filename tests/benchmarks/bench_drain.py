"""10,000 events a second into the live console: how late the event loop gets.

    python tests/benchmarks/bench_drain.py [seconds]

A task asks every 5 ms to be woken and notes how late it is. The same is done in an app with one
empty widget. The claim: 99 of 100 wake-ups in the console are less than 33 ms late.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

os.environ["TEXTUAL_ANIMATIONS"] = "none"

from textual.app import App, ComposeResult
from textual.widgets import Static

from thresher.core import events as e
from thresher.core.bus import EventBus
from thresher.core.history import History
from thresher.core.items import FunctionCall, FunctionCallOutput, Message, Role
from thresher.core.tokens import Usage
from thresher.tui.model import ConsoleModel, Feed
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.theme import ThemedApp

RATE = 10_000
CLAIM = 0.033
EVERY = 0.005
BURSTS = 100
"""Bursts a second in which the events come."""


class OneWidget(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("nothing")


class Console(ThemedApp):
    def __init__(self, model: ConsoleModel) -> None:
        super().__init__()
        self.shown = ConsoleScreen(model)

    def on_mount(self) -> None:
        self.push_screen(self.shown)


class Agent:
    """Publishes what an agent at work publishes, at a steady rate."""

    def __init__(self) -> None:
        self.records: list[e.Record] = []
        self.bus = EventBus()
        self.feed = Feed(self.bus.subscribe(), lambda position: self.records[position:])
        self.published = 0
        self._call = 0
        self._emit(e.SessionStarted(session_id="bench", agent="thresher"))

    def _emit(self, event: e.Event) -> None:
        ephemeral = isinstance(event, e.EPHEMERAL)
        record = e.Record(-1 if ephemeral else len(self.records), time.time(), event)
        if not ephemeral:
            self.records.append(record)
        self.bus.publish(record)
        self.published += 1

    def burst(self, count: int) -> None:
        """About this many events: rounds with their deltas, tool calls and usage."""
        until = self.published + count
        while self.published < until:
            self._call += 1
            name = f"c{self._call}"
            self._emit(e.RequestSent(request=self._call))
            for _ in range(4):
                self._emit(e.MessageDelta(text="some words "))
            self._emit(e.ItemAppended(item=Message(Role.ASSISTANT, "I look at the next file.")))
            arguments = f'{{"path": "src/{self._call}.py"}}'
            self._emit(e.ItemAppended(item=FunctionCall(name, "read_file", arguments)))
            self._emit(e.ToolStarted(call_id=name, name="read_file"))
            self._emit(e.ToolFinished(call_id=name, name="read_file", seconds=0.01, size=100))
            self._emit(e.ItemAppended(item=FunctionCallOutput(name, "text " * 20)))
            self._emit(e.UsageReported(usage=Usage(1_000 + self._call % 9_000, 100)))


async def lag(seconds: float, agent: Agent | None) -> list[float]:
    """How late wake-ups were, in seconds, while the agent publishes at the rate."""
    late = []
    begin = last_burst = time.perf_counter()
    while (now := time.perf_counter()) < begin + seconds:
        if agent is not None and now - last_burst >= 1 / BURSTS:
            agent.burst(round(RATE * (now - last_burst)))
            last_burst = now
        asked = time.perf_counter()
        await asyncio.sleep(EVERY)
        late.append(time.perf_counter() - asked - EVERY)
    return sorted(late)


def at(late: list[float], share: float) -> float:
    return late[min(len(late) - 1, int(len(late) * share))]


async def main(seconds: float) -> None:
    plain = OneWidget()
    async with plain.run_test(size=(120, 40)):
        empty = await lag(seconds, None)
    agent = Agent()
    console = Console(ConsoleModel(History(), feed=agent.feed))
    async with console.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        cpu, begin = time.process_time(), time.perf_counter()
        busy = await lag(seconds, agent)
        took = time.perf_counter() - begin
        cpu = time.process_time() - cpu
        model = console.shown.model
        behind = len(agent.records) - len(model.history)
        while len(model.history) < len(agent.records):
            console.shown.drain()
    rate = agent.published / took
    print(f"{rate:,.0f} events a second for {took:.1f} s, {behind:,} behind at the end")
    print(f"CPU {100 * cpu / took:.0f} % of one core, the publisher's own work included")
    print(f"{'late by':12}{'one widget':>14}{'console':>14}{'ratio':>8}")
    for name, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99), ("worst", 1.0)):
        a, b = at(empty, share), at(busy, share)
        print(f"{name:12}{a * 1000:>11.2f} ms{b * 1000:>11.2f} ms{b / max(a, 1e-6):>8.1f}")
    print(f"p99 / 33 ms: {at(busy, 0.99) / CLAIM:.2f}   (claim: below 1)")


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 6.0))
