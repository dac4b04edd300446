"""From a file, or a session that is being made, to something the console can show.

Reading and folding the whole file happens in a thread; what is appended later comes in batches over
a bus, exactly as from a live agent. Token figures are estimates until a thread has counted, and
those of very large files stay estimates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from thresher.core.bodies import Bodies, NoBodies
from thresher.core.bus import EventBus
from thresher.core.compaction.policy import Mark
from thresher.core.errors import ThresherError
from thresher.core.items import Item
from thresher.core.state import SessionState

from .indexing import Indexing, newest_of
from .model import ConsoleModel, Feed, all_indexed

if TYPE_CHECKING:
    from thresher.core.events import Record
    from thresher.core.hold.past import Among
    from thresher.core.sessions.bookmarks import Bookmarks
    from thresher.core.sources.base import Tail, WireItem
    from thresher.core.tokens import Counter

LAG = 1_000
"""Records that may wait for the screen before no more of a file is read."""
SLICE = 200
"""Items counted between two breaths."""
COUNTED_UP_TO = 32_000_000
"""Bytes of a file read in the slim way up to which its texts are counted. The figures of a larger
one stay estimates, from the heads and samples of the texts: to count them, all of the file would be
read a second time, and a vocabulary takes as much memory as everything else together."""

Background = Callable[[], Awaitable[None]]
"""Work that goes on while a session is open, until it is cancelled."""


@dataclass
class Opened:
    """A session on the screen, and what goes on behind it.

    `background` is started when the session is shown and cancelled when it is closed; `close` then
    puts everything in order. `recounted` is called when the token figures have changed as a whole,
    `failed` with the error of something that the user began; whoever shows the session sets both.
    """

    model: ConsoleModel
    path: Path | None = None
    background: list[Background] = field(default_factory=list)
    closing: Background | None = None
    recounted: Callable[[], None] = lambda: None
    failed: Callable[[BaseException], None] | None = None

    @property
    def live(self) -> bool:
        """True for a session of our own agent in this process."""
        return self.model.actor is not None

    @property
    def title(self) -> str:
        """What to call it. Foreign text, not clean."""
        state = self.model.history.state
        return state.title or state.session_id or (self.path.name if self.path else "session")

    async def close(self) -> None:
        """End it in order. A second call does nothing."""
        closing, self.closing = self.closing, None
        if closing is not None:
            await closing()


def tail_of(path: Path, server: str = "", *, remote: bool = False) -> Tail:
    """The tail for the format of a file, and for OpenCode with what its server tells.

    Raises ThresherError when the format is none that is known, or has no server.
    """
    from thresher.core.sources.opening import open_source

    source = open_source(path)
    if not server:
        return source.tail()
    from thresher.core.sources.opencode import OpenCodeSource

    if not isinstance(source, OpenCodeSource):
        raise ThresherError(
            "No server", f"{path} is a session of {source.agent}: only OpenCode's have a server."
        )
    return source.tail_beside(server, remote=remote)


async def open_file(
    path: Path,
    *,
    tail: Tail | None = None,
    follow: bool = True,
    count: bool = True,
    breaks: Sequence[str] = (),
) -> Opened:
    """Open any session file. Raises ThresherError when that is not possible.

    Returns when everything that is in the file now has been read and folded, in a thread; of a
    large file as soon as its end has been, while the rest is read in the background. `tail` is how
    it is read; the default is that of its format. With `breaks` the program that goes on with it is
    held there, if it can be.
    """
    from thresher.core.hold.past import Among, AmongTail, on_record
    from thresher.core.sources.following import follow_tail

    file: Tail = await asyncio.to_thread(tail_of, path) if tail is None else tail
    among = Among(await asyncio.to_thread(on_record, path))
    news = AmongTail(file, among)
    indexing = Indexing(news if among.waiting else file, path)
    early = await asyncio.to_thread(newest_of, path, indexing) if tail is None else None
    if early is None:
        await asyncio.to_thread(indexing.run)
    history = indexing.history if early is None else early
    if not len(history):
        raise ThresherError("Empty session", f"{path} holds no record that can be shown.")
    bookmarks = await asyncio.to_thread(kept_bookmarks, history.state)
    model = ConsoleModel(
        history,
        read_only="this is a recorded session: it can be watched, not continued",
        marks_of=Marks(),
        bookmarks=bookmarks,
        wire_of=lambda state: wire_at(path, state),
        indexed=indexing.percent if early is not None else all_indexed,
    )
    opened = Opened(model, path)
    if breaks:
        require_held(path, model.history.state)
    whole = asyncio.Event()

    def connect() -> tuple[list[Record], EventBus]:
        seen = list(history.records)
        bus = EventBus(len(seen))
        model.feed = Feed(bus.subscribe(), lambda position: seen[position:])

        def publish(record: Record) -> None:
            seen.append(record)
            bus.publish(record)

        among.read_to(seen[-1].n if seen else 0)
        if follow:
            attach(opened, path, among, publish, breaks)
        whole.set()
        return seen, bus

    async def the_rest() -> None:
        await asyncio.to_thread(indexing.run, asyncio.get_running_loop())
        indexing.finish()
        model.become(indexing.history)
        opened.recounted()
        await following(*connect())

    async def following(seen: list[Record], bus: EventBus) -> None:
        if not follow:
            return
        subscription = model.feed.subscription if model.feed is not None else None
        async for batch in follow_tail(news, path=path):
            for record in batch:
                if not record.ephemeral:
                    seen.append(record)
                bus.publish(record)
            # While the screen lags, the reader waits.
            if subscription is not None:
                await subscription.room(LAG)

    if early is not None:
        opened.background.append(the_rest)
    else:
        seen, bus = connect()
        opened.background.append(lambda: following(seen, bus))

    async def holding() -> None:
        await whole.wait()
        if model.outside is not None:
            await model.outside.run()

    opened.background.append(holding)

    async def counting() -> None:
        await whole.wait()
        await recount(opened)

    held_whole = isinstance(indexing.bodies, NoBodies)
    if count and (held_whole or indexing.size <= COUNTED_UP_TO):
        opened.background.append(counting)
    return opened


def require_held(path: Path, state: SessionState) -> None:
    """Raises ThresherError where the program of a session cannot be held from outside."""
    from thresher.core.hold.programs import PROGRAMS, program_of

    if program_of(state.agent) is None:
        known = " and ".join(program.title for program in PROGRAMS.values())
        raise ThresherError(
            "Not held",
            f"{path} is a session of {state.agent or 'an unknown program'}, which waits for nobody "
            f"before it compacts; {known} do, and so does `thresher run`.",
        )


def attach(
    opened: Opened,
    path: Path,
    among: Among,
    publish: Callable[[Record], None],
    breaks: Sequence[str],
) -> None:
    """Be there for the program that goes on with this session, if it is one that can be held.
    Raises ThresherError where a breakpoint cannot be set."""
    from thresher.core.hold.programs import program_of

    model = opened.model
    program = program_of(model.history.state.agent)
    if program is None:
        return
    from .outside import OutsideActor, desk_for

    def report(error: Exception) -> None:
        if opened.failed is not None:
            opened.failed(error)

    desk = desk_for(path, program, model.history.state, among, publish)
    actor = OutsideActor(desk, lambda: model.history.state, report=report)
    for text in breaks:
        actor.set_break(text)
    model.outside = actor

    async def closing() -> None:
        actor.close()

    opened.closing = closing


def kept_bookmarks(state: SessionState) -> Bookmarks:
    """The user's bookmarks of a session. A file that is damaged is left alone and is
    no reason to refuse the session: the fault is told when bookmarks are wanted."""
    from thresher.core.sessions.bookmarks import Bookmarks, bookmarks_of

    try:
        return bookmarks_of(state.agent, state.session_id)
    except ThresherError as error:
        none = Bookmarks()
        none.fault = error.msg
        return none


def wire_at(path: Path, state: SessionState) -> list[WireItem]:
    """What the model is sent after the last record of a state, read from the session's file."""
    from thresher.core.sources.opening import open_source

    return open_source(path).context_raw(state.position)


class CachedCost:
    """The tokens of items, each counted once; a thread may count ahead of the screen."""

    def __init__(self, counter: Counter, bodies: Bodies | None = None) -> None:
        self._counter = counter
        self._bodies = NoBodies() if bodies is None else bodies
        # Kept with its item: an id is only unique while the object lives.
        self._known: dict[int, tuple[Item, int]] = {}

    def __call__(self, item: Item) -> int:
        """The tokens of one item."""
        from thresher.core.ledger import item_tokens

        found = self._known.get(id(item))
        if found is None:
            found = self._known[id(item)] = (item, item_tokens(self._counter, item))
        return found[1]

    def prime(self, items: Sequence[Item]) -> None:
        """Count these now, with all of their text, which may have to be read."""
        from thresher.core.ledger import item_tokens

        for item in items:
            if item.body is None or id(item) in self._known:
                self(item)
                continue
            try:
                tokens = item_tokens(self._counter, self._bodies.whole(item))
            except ThresherError:
                # The file has changed: the head alone has to do.
                tokens = item_tokens(self._counter, item)
            self._known[id(item)] = (item, tokens)


async def recount(opened: Opened) -> None:
    """Load a vocabulary and count every item in a thread, in slices; then exchange the figures."""
    from thresher.core.tokenizer import counter_for

    model = opened.model
    counter = await asyncio.to_thread(counter_for, model.history.state.model)
    cost = CachedCost(counter, model.history.state.bodies)
    done = 0
    while done < len(known := model.history.state.known):
        # A dict keeps the order of insertion, so what is new is at its end.
        items = [entry.item for entry in islice(known.values(), done, done + SLICE)]
        await asyncio.to_thread(cost.prime, items)
        done += len(items)
    model.history.recount(cost, counter.basis)
    opened.recounted()


class Marks:
    """Where the recorded policy fires, if it is one of ours and the budget is known.

    Asked at every drawing, so the last answer is kept.
    """

    def __init__(self) -> None:
        self._asked: tuple[object, ...] = ()
        self._marks: tuple[Mark, ...] = ()

    def __call__(self, state: SessionState) -> tuple[Mark, ...]:
        """The marks for the state in view."""
        asked = (state.policy, state.policy_params, state.budget)
        if asked != self._asked:
            self._asked, self._marks = asked, self._ask(state)
        return self._marks

    def _ask(self, state: SessionState) -> tuple[Mark, ...]:
        if state.budget is None or not state.policy:
            return ()
        from thresher.core.compaction.policies.registry import make, names

        if state.policy not in names():
            return ()
        try:
            return make(state.policy, state.policy_params).marks(state.budget)
        except ThresherError:
            # Recorded by another version: its constants are not ours, so no line is drawn.
            return ()
