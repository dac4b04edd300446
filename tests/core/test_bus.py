from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import events as e
from thresher.core.bus import MERGE_UP_TO, Behind, EventBus, Subscription


def lasting(n: int) -> e.Record:
    return e.Record(n, 0.0, e.Note(kind="n", text=str(n)))


def delta(text: str, channel: str = "assistant") -> e.Record:
    return e.Record(-1, 0.0, e.MessageDelta(text=text, channel=channel))


def output(text: str, call_id: str = "c") -> e.Record:
    return e.Record(-1, 0.0, e.ToolOutput(call_id=call_id, text=text))


class Reader:
    """A subscriber that does what the contract asks: takes, and catches up from the record."""

    def __init__(self, bus: EventBus, record: list[e.Record], bound: int) -> None:
        self.subscription = bus.subscribe(bound)
        self.record = record
        self.seen: list[e.Record] = []

    def take(self, most: int | None = None) -> None:
        self.seen.extend(self.subscription.take(most))

    def catch_up(self, most: int) -> None:
        behind = self.subscription.behind
        if behind is None or len(self.subscription) > 0:
            return
        last = min(behind.first + most, behind.first + behind.count) - 1
        self.seen.extend(self.record[behind.first : last + 1])
        self.subscription.caught_up(last)

    def finish(self) -> None:
        self.take()
        while self.subscription.behind is not None:
            self.catch_up(3)
            self.take()

    @property
    def numbers(self) -> list[int]:
        return [record.n for record in self.seen if not record.ephemeral]


ACTIONS = st.one_of(
    st.just(("publish", 0)),
    st.just(("publish", 0)),
    st.just(("delta", 0)),
    st.tuples(st.sampled_from(["take", "catch up", "take all"]), st.integers(1, 4)),
)


@given(
    st.lists(st.tuples(ACTIONS, st.integers(0, 1)), max_size=80),
    st.integers(1, 5),
    st.integers(1, 9),
)
def test_no_lasting_record_is_lost_repeated_or_reordered_however_reading_and_writing_mix(
    actions: list[tuple[tuple[str, int], int]], small: int, large: int
) -> None:
    record: list[e.Record] = []
    bus = EventBus()
    readers = [Reader(bus, record, small), Reader(bus, record, large)]
    for (action, amount), who in actions:
        match action:
            case "publish":
                record.append(lasting(len(record)))
                bus.publish(record[-1])
            case "delta":
                bus.publish(delta("x"))
            case "take":
                readers[who].take(amount)
            case "take all":
                readers[who].take()
            case _:
                readers[who].catch_up(amount)
        assert all(len(reader.subscription) <= reader.subscription.bound for reader in readers)
    for reader in readers:
        reader.finish()
        assert reader.numbers == list(range(len(record)))
        assert reader.subscription.behind is None
    assert bus.published == len(record)


PIECES = st.lists(
    st.tuples(st.sampled_from(["assistant", "reasoning", "tool", "note"]), st.text(max_size=5))
)


@given(PIECES)
def test_merged_deltas_hold_the_same_text_in_the_same_order(pieces: list[tuple[str, str]]) -> None:
    def told(records: list[e.Record]) -> list[tuple[str, str]]:
        joined: list[tuple[str, str]] = []
        for record in records:
            match record.event:
                case e.MessageDelta(text=text, channel=channel):
                    key = channel
                case e.ToolOutput(text=text):
                    key = "tool"
                case _:
                    key, text = "note", str(record.n)
            if joined and joined[-1][0] == key != "note":
                joined[-1] = (key, joined[-1][1] + text)
            else:
                joined.append((key, text))
        return joined

    made = {"assistant": delta, "reasoning": lambda t: delta(t, "reasoning"), "tool": output}
    sent = [
        made[kind](text) if kind in made else lasting(n) for n, (kind, text) in enumerate(pieces)
    ]
    bus = EventBus()
    subscription = bus.subscribe()
    for record in sent:
        bus.publish(record)
    taken = subscription.take()
    assert told(taken) == told(sent)
    assert len(taken) == len(told(sent))


def test_deltas_of_different_streams_are_not_merged() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    for record in (output("a", "1"), output("b", "2"), delta("c"), delta("d", "summary")):
        bus.publish(record)
    assert len(subscription.take()) == 4


def test_a_very_long_stream_stays_whole_without_growing_one_text_for_ever() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    for _ in range(5):
        bus.publish(output("x" * MERGE_UP_TO))
    taken = [record.event for record in subscription.take()]
    assert sum(len(event.text) for event in taken if isinstance(event, e.ToolOutput)) == (
        5 * MERGE_UP_TO
    )
    assert len(taken) == 5


def test_a_full_queue_gives_up_deltas_before_it_falls_behind() -> None:
    bus = EventBus()
    subscription = bus.subscribe(3)
    for record in (lasting(0), delta("a"), lasting(1), lasting(2)):
        bus.publish(record)
    assert subscription.behind is None
    assert [record.n for record in subscription.take()] == [0, 1, 2]


def test_a_subscriber_that_falls_behind_is_told_from_where_and_how_far() -> None:
    bus = EventBus(published=100)
    subscription = bus.subscribe(2)
    for n in range(5):
        bus.publish(lasting(n))
    bus.publish(delta("not counted"))
    assert subscription.behind == Behind(first=102, count=3)
    assert not subscription.caught_up(102)
    assert subscription.behind == Behind(first=103, count=2)
    assert subscription.caught_up(104)
    assert subscription.behind is None


def test_one_slow_subscriber_does_not_slow_another() -> None:
    bus = EventBus()
    slow, quick = bus.subscribe(1), bus.subscribe()
    for n in range(50):
        bus.publish(lasting(n))
    assert slow.behind is not None
    assert [record.n for record in quick.take()] == list(range(50))


def test_who_has_left_gets_nothing_more() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    bus.unsubscribe(subscription)
    bus.unsubscribe(subscription)
    bus.publish(lasting(0))
    assert subscription.take() == []


def test_a_subscription_holds_at_least_one_record() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Subscription(0)


def test_a_reader_in_another_thread_gets_every_record_in_order() -> None:
    record: list[e.Record] = []
    bus = EventBus()
    readers = [Reader(bus, record, 7), Reader(bus, record, 10_000)]
    done = threading.Event()

    def read(reader: Reader) -> None:
        while not done.is_set():
            reader.take()
            reader.catch_up(5)
        reader.finish()

    threads = [threading.Thread(target=read, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    for n in range(5_000):
        record.append(lasting(n))
        bus.publish(record[-1])
        if n % 3 == 0:
            bus.publish(delta("x"))
    done.set()
    for thread in threads:
        thread.join()
    assert [reader.numbers for reader in readers] == [list(range(5_000))] * 2


async def test_waiting_ends_with_a_record_from_another_thread() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    waiting = asyncio.create_task(subscription.wait())
    await asyncio.sleep(0)
    await asyncio.to_thread(bus.publish, lasting(0))
    await asyncio.wait_for(waiting, 10)
    assert [record.n for record in subscription.take()] == [0]


async def test_waiting_ends_at_once_when_there_is_something_to_take_or_to_catch_up() -> None:
    bus = EventBus()
    subscription = bus.subscribe(1)
    bus.publish(lasting(0))
    await asyncio.wait_for(subscription.wait(), 10)
    bus.publish(lasting(1))
    subscription.take()
    await asyncio.wait_for(subscription.wait(), 10)
    assert subscription.behind == Behind(1, 1)


async def test_a_wait_that_was_given_up_does_not_spoil_the_next_one() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    given_up = asyncio.create_task(subscription.wait())
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    waiting = asyncio.create_task(subscription.wait())
    await asyncio.sleep(0)
    bus.publish(lasting(0))
    await asyncio.wait_for(waiting, 10)


def test_publishing_survives_a_subscriber_whose_loop_is_gone() -> None:
    bus = EventBus()
    subscription = bus.subscribe()

    async def begin_to_wait() -> None:
        # The loop is closed without giving this task a chance to clean up.
        loop.call_soon(loop.stop)
        await subscription.wait()

    loop = asyncio.new_event_loop()
    task = loop.create_task(begin_to_wait())
    loop.run_forever()
    loop.close()
    bus.publish(lasting(0))
    assert Counter(record.n for record in subscription.take()) == {0: 1}
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be abandoned


async def test_a_publisher_that_can_wait_goes_on_when_there_is_room() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    for n in range(5):
        bus.publish(lasting(n))
    await asyncio.wait_for(subscription.room(5), 10)
    waiting = asyncio.create_task(subscription.room(2))
    await asyncio.sleep(0)
    subscription.take(2)
    await asyncio.sleep(0)
    assert not waiting.done()
    subscription.take(1)
    await asyncio.wait_for(waiting, 10)
    assert len(subscription) == 2
