"""The console's side of a hold: it watches for requests, records what happens, and answers.

All calls come from one event loop and return at once. A request that nobody answers is none of our
errors: its hook lets the program go on by itself before its time is over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from .. import events as e
from ..debug import breakpoints as b
from ..errors import ThresherError, storage_error
from ..sessions.journal import JOURNAL_NAME, Journal, running
from . import messages as m
from . import place
from .past import CLOSED, FAILED, GO_ON, GONE, SKIPPED, TIME_OVER, on_record
from .programs import Program

POINT = "program"
"""What a DebuggerStopped of ours says of where it stands."""
BREAKPOINT = str(b.Breakpoint(b.BreakKind.COMPACTION))
"""The one breakpoint there is: a hook says nothing of stages and sizes."""


class Held(msgspec.Struct, frozen=True):
    """A program that waits: its requests (more than one when its settings name the hook twice) and
    since when."""

    requests: tuple[m.Request, ...]
    at: float

    @property
    def first(self) -> m.Request:
        """The one that is answered; the others just go on."""
        return self.requests[0]

    @property
    def pass_id(self) -> str:
        """What its events are known by."""
        return f"hold-{self.first.id}"


class Desk:
    """The holds of one session. `publish` is told every event as it is recorded."""

    def __init__(
        self,
        transcript: Path,
        program: Program,
        *,
        version: str = "",
        session: str = "",
        publish: Callable[[e.Record], None] = lambda record: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.program, self.version = program, version
        self.held: Held | None = None
        """The program stands still now."""
        self.ended = ""
        """How the last hold ended, in words."""
        self._real = os.path.realpath(transcript)
        self._folder = place.folder_of(self._real)
        self._session = session
        self._publish, self._clock = publish, clock
        self._journal: Journal | None = None
        self._kept = _still_set(on_record(transcript))
        self._over: set[str] = set()
        """The requests that ended here; their hooks may need a moment to notice."""

    # -- breakpoints ---------------------------------------------------------------------------

    @property
    def breakpoints(self) -> tuple[b.Breakpoint, ...]:
        """Where the program is held."""
        return tuple(b.known(self._kept))

    @property
    def watching(self) -> bool:
        """Whether hooks find this console."""
        return self._journal is not None

    def set_break(self, text: str) -> None:
        """Hold the program there from now on. Raises ThresherError."""
        found = b.parse(text)
        if str(found) != BREAKPOINT:
            raise ThresherError(
                "Not here",
                f"{self.program.title} can be held before a compaction and nowhere else: the "
                f"breakpoint is {BREAKPOINT}.",
            )
        self.watch()
        if BREAKPOINT not in self._kept:
            self._record(e.BreakpointSet(text=BREAKPOINT))
            self._kept = (BREAKPOINT,)

    def clear_break(self, text: str) -> None:
        """Hold it there no more; if it waits now, it goes on."""
        plain = text.strip()
        if plain not in self._kept:
            raise ThresherError("Not set", f"there is no breakpoint {plain} in this session.")
        self.watch()
        if self.held is not None:
            self.go_on()
        self._record(e.BreakpointCleared(text=plain))
        self._kept = ()
        self._leave()

    def watch(self) -> None:
        """Let hooks find this console. Raises ThresherError where another one holds this one."""
        if self._journal is not None:
            return
        folder = place.private(self._folder)
        if not place.is_private(folder):
            raise ThresherError(
                "Not held", f"{folder} belongs to somebody else, or others can write there."
            )
        file = folder / JOURNAL_NAME
        new = not file.exists()
        if not new and running(file):
            raise ThresherError(
                "Held elsewhere",
                f"another console is there for this session of {self.program.title}: decide there, "
                "or close it.",
            )
        journal = Journal.create(file) if new else Journal.take_up(file)[0]
        self._journal = journal
        try:
            if new:
                started = e.SessionStarted(
                    session_id=self._session, agent=self.program.agent, title="holds"
                )
                self._record(started)
            self._forget()
            m.put(folder / place.WATCH, m.Watch(self._real, self.program.agent, self.version))
        except OSError as error:
            self._leave()
            raise storage_error("Not held", "write into", folder, error) from error
        except BaseException:
            self._leave()
            raise

    # -- requests ------------------------------------------------------------------------------

    def look(self) -> None:
        """See what hooks want, and whether the one that is held still waits."""
        if self._journal is None:
            return
        held = self.held
        if held is not None and self._ended(held):
            return
        known = {request.id for request in held.requests} if held is not None else set()
        for file in sorted(self._folder.glob(f"{place.REQUEST}*.json")):
            id = place.id_of(file)
            if not id or id in known:
                continue
            request = m.get(file, m.Request)
            if request is None or request.id != id or m.abandoned(file):
                file.unlink(missing_ok=True)
            elif id in self._over:
                continue
            elif self.held is None:
                self._stop(request)
            else:
                self.held = msgspec.structs.replace(
                    self.held, requests=(*self.held.requests, request)
                )

    def _ended(self, held: Held) -> bool:
        """Notice that the program waits no longer, whatever was decided here."""
        if self._clock() >= held.first.until:
            self._end(TIME_OVER)
        elif m.abandoned(place.request_file(self._folder, held.first.id)):
            self._end(GONE)
        else:
            return False
        return True

    def _stop(self, request: m.Request) -> None:
        self.held = Held((request,), self._clock())
        who = f"{self.program.title} waits before a compaction ({request.trigger or 'no trigger'})"
        self._record(
            e.DebuggerStopped(
                breakpoint=BREAKPOINT, point=POINT, reason=who, pass_id=self.held.pass_id
            )
        )

    # -- decisions -----------------------------------------------------------------------------

    def go_on(self, text: str = "") -> None:
        """Let the program compact; `text` is what its model is asked to keep."""
        held = self._waiting()
        text = text.strip() if self.program.focus else ""
        if text:
            self._decided(held, e.Choice.FOCUS, text)
        self._decided(held, e.Choice.APPLY)
        self._answer(held, m.Answer(m.Verdict.GO_ON, text))
        self._end(GO_ON)

    def skip(self) -> None:
        """Have the program not compact this time. Raises ThresherError where it would anyway."""
        held = self._waiting()
        if not self.program.may_skip(self.version):
            raise ThresherError(
                "Not skipped", self.program.consequence(held.first.trigger, self.version)
            )
        self._decided(held, e.Choice.SKIP)
        self._answer(held, m.Answer(m.Verdict.SKIP))
        self._end(SKIPPED)

    def fail(self) -> None:
        """Something went wrong here: the program goes on, whether that can be recorded or not."""
        held = self.held
        if held is None:
            return
        with suppress(ThresherError):
            self._answer(held, m.Answer(m.Verdict.GO_ON))
            self._end(FAILED)
        self.held = None
        self._over.update(request.id for request in held.requests)

    def close(self) -> None:
        """The console is closed: whatever waits goes on."""
        if self.held is not None:
            self._answer(self.held, m.Answer(m.Verdict.GO_ON))
            self._end(CLOSED)
        self._leave()

    def _waiting(self) -> Held:
        if self.held is None:
            raise ThresherError("Not stopped", f"{self.program.title} does not wait here.")
        return self.held

    def _answer(self, held: Held, answer: m.Answer) -> None:
        """Raises ThresherError; then the hook goes on when its time is over."""
        first, *others = held.requests
        try:
            m.put(place.answer_file(self._folder, first.id), answer)
            for other in others:
                m.put(place.answer_file(self._folder, other.id), m.Answer(m.Verdict.GO_ON))
        except OSError as error:
            raise storage_error("Not told", "write into", self._folder, error) from error

    def _decided(self, held: Held, choice: e.Choice, text: str = "") -> None:
        self._record(e.CompactionDecided(pass_id=held.pass_id, choice=choice, text=text))

    def _end(self, how: str) -> None:
        held, self.held, self.ended = self.held, None, how
        if held is not None:
            self._over.update(request.id for request in held.requests)
            self._record(e.DebuggerContinued(how=how, pass_id=held.pass_id))

    # -- the record ----------------------------------------------------------------------------

    def _record(self, event: e.Event) -> None:
        """Write an event down, then tell of it. Raises ThresherError."""
        if self._journal is None:
            return
        record = e.Record(self._journal.next_line, self._clock(), event)
        self._journal.append(e.encode(record))
        if not isinstance(event, e.SessionStarted):
            self._publish(record)

    def _leave(self) -> None:
        """Hooks find this console no more."""
        journal, self._journal = self._journal, None
        if journal is None:
            return
        try:
            (self._folder / place.WATCH).unlink(missing_ok=True)
        finally:
            journal.close()

    def _forget(self) -> None:
        """Take away what processes left that were killed."""
        for file in self._folder.glob(f"{place.REQUEST}*.json"):
            if m.abandoned(file):
                file.unlink(missing_ok=True)
        for file in self._folder.glob(f"{place.ANSWER}*.json"):
            file.unlink(missing_ok=True)


def _still_set(records: Iterable[e.Record]) -> tuple[str, ...]:
    kept: tuple[str, ...] = ()
    for record in records:
        match record.event:
            case e.BreakpointSet(text=text):
                kept = (*(each for each in kept if each != text), text)
            case e.BreakpointCleared(text=text):
                kept = tuple(each for each in kept if each != text)
            case _:
                pass
    return kept
