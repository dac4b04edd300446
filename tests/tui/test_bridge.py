from __future__ import annotations

from thresher.core import events as e
from thresher.core.bus import EventBus
from thresher.core.history import History
from thresher.core.state import Changed
from thresher.tui.bridge import PORTION, Bridge
from thresher.tui.model import ConsoleModel, Feed

from . import build


def wired(bound: int = 20_000, budget: float = 10.0) -> tuple[EventBus, list[e.Record], Bridge]:
    bus = EventBus()
    records: list[e.Record] = []
    feed = Feed(bus.subscribe(bound), lambda position: records[position:])
    model = ConsoleModel(History(), feed=feed)
    return bus, records, Bridge(model, budget=budget)


def publish(bus: EventBus, records: list[e.Record], found: list[e.Record]) -> None:
    for record in found:
        if not record.ephemeral:
            records.append(record)
        bus.publish(record)


def test_what_is_published_is_folded_and_named() -> None:
    bus, records, bridge = wired()
    script = build.compacting()
    publish(bus, records, script.emitted)
    changed = bridge.drain()
    assert changed & (Changed.ROWS | Changed.CARDS | Changed.METER | Changed.STREAM)
    state = bridge.model.history.state
    assert state.rows == script.state.rows
    assert state.cards[0].streamed == script.state.cards[0].streamed
    assert bridge.drain() == Changed.NOTHING


def test_one_tick_folds_no_longer_than_its_time() -> None:
    ticks = iter(range(1000))
    bus, records, _ = wired()
    model = ConsoleModel(History(), feed=Feed(bus.subscribe(), lambda at: records[at:]))
    bridge = Bridge(model, budget=2.5, clock=lambda: float(next(ticks)))
    notes = [e.Record(n, 0.0, e.Note(kind="k", text="x")) for n in range(PORTION * 5)]
    publish(bus, records, notes)
    bridge.drain()
    assert len(model.history) == PORTION * 2
    assert model.behind == PORTION * 3
    bridge.drain()
    bridge.drain()
    assert model.history.records == notes
    assert model.behind == 0


def test_a_reader_that_fell_behind_reads_again_and_loses_nothing() -> None:
    bus, records, bridge = wired(bound=10)
    script = build.long_session()
    publish(bus, records, script.emitted)
    assert bridge.model.feed is not None
    assert bridge.model.feed.subscription.behind is not None
    while len(bridge.model.history) < len(records):
        bridge.drain()
    assert bridge.model.history.records == records
    assert bridge.model.feed.subscription.behind is None
    publish(bus, records, [e.Record(script.n, 0.0, e.Note(kind="k", text="live again"))])
    bridge.drain()
    assert bridge.model.history.records == records
    assert bridge.model.history.state.compactions == 2


def test_without_a_feed_there_is_nothing_to_drain() -> None:
    assert Bridge(ConsoleModel(History())).drain() == Changed.NOTHING
