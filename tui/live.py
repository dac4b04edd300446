"""The way back to our own agent: what the console's user does to it, and what it asks the user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from thresher.core import events as e
from thresher.core.agent.approvals import ApprovalRequest, Decision
from thresher.core.agent.loop import Agent
from thresher.core.compaction.policy import Mark
from thresher.core.context import EntryId
from thresher.core.debug.breakpoints import Breakpoint
from thresher.core.debug.debugger import Debugger
from thresher.core.debug.restore import Preview, preview_restore, preview_undo
from thresher.core.debug.stop import Stop
from thresher.core.errors import ThresherError
from thresher.core.events import Choice
from thresher.core.history import History
from thresher.core.state import SessionState

from .model import ConsoleModel, Feed
from .opening import Marks, Opened, kept_bookmarks, recount

PATIENCE = 1.0
"""Seconds for an interrupted turn to put its history in order."""


class Asking:
    """The approver of a console: waits for the user's word. The agent keeps the record of it."""

    def __init__(self) -> None:
        self._answer: asyncio.Future[Decision] | None = None

    async def ask(self, request: ApprovalRequest) -> Decision:
        """Wait for the answer."""
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        finally:
            self._answer = None

    def answer(self, decision: Decision) -> bool:
        """Give the user's word; False when nothing is asked."""
        if self._answer is None or self._answer.done():
            return False
        self._answer.set_result(decision)
        return True


class AgentActor:
    """What a console may do to an agent of this process. All calls return at once."""

    def __init__(self, agent: Agent, asking: Asking) -> None:
        self.agent = agent
        self.failed: Callable[[BaseException], None] | None = None
        self._asking = asking
        self._tasks: set[asyncio.Task[object]] = set()
        self._waiting: list[str] = []

    def send(self, text: str) -> None:
        """Begin a turn with this text, or let it wait for the end of what is running."""
        if self._tasks:
            self._waiting.append(text)
            told = "a message waits for the end of this turn"
            self.agent.session.emit(e.Note(kind="queued", text=told))
        else:
            self._run(self.agent.run_turn(text))

    def play(self, work: Coroutine[Any, Any, object]) -> None:
        """Let something act in the user's place, such as the script of a demo."""
        self._run(work)

    def interrupt(self) -> None:
        """Stop what is running, and what has not begun to."""
        if not self.agent.interrupt():
            for task in self._tasks:
                task.cancel()

    def compact(self, focus: str) -> None:
        """Compact now, or after the running round."""
        self._run(self.agent.compact(focus))

    def answer(self, decision: str) -> None:
        """The user's word on the call that waits for approval."""
        self._asking.answer(Decision(decision))

    def close_breaker(self) -> None:
        """Let automatic compaction run again."""
        self.agent.engine.close_breaker()

    # -- the debugger --------------------------------------------------------------------------

    @property
    def debugger(self) -> Debugger:
        """The agent's debugger. Raises ThresherError for an agent without one."""
        if self.agent.debugger is None:
            raise ThresherError("No debugger", "this agent cannot be held.")
        return self.agent.debugger

    @property
    def setting_up(self) -> str:
        """Nothing: the agent is in this process."""
        return ""

    def breakpoints(self) -> tuple[Breakpoint, ...]:
        """Where the session stops."""
        return self.debugger.breakpoints

    def set_break(self, text: str) -> None:
        """Stop there from now on."""
        self.debugger.set_break(text)

    def clear_break(self, text: str) -> None:
        """Stop there no more."""
        self.debugger.clear_break(text)

    def step(self) -> None:
        """Stop after the next round."""
        self.debugger.step()

    def go_on(self) -> None:
        """Go on to the next breakpoint."""
        self.debugger.go_on()

    def decide(self, choice: str) -> None:
        """Apply or skip the compaction that is held."""
        match Choice(choice):
            case Choice.APPLY:
                self.debugger.apply()
            case Choice.SKIP:
                self.debugger.skip()
            case other:
                raise ValueError(f"{other} has a method of its own")

    def pin(self, ids: Iterable[EntryId]) -> None:
        """Let these entries survive every compaction."""
        self.debugger.pin(ids)

    def unpin(self, ids: Iterable[EntryId]) -> None:
        """Let these entries go again."""
        self.debugger.unpin(ids)

    def drop(self, ids: Iterable[EntryId]) -> None:
        """Let these entries go with the edit that is held."""
        self.debugger.drop(ids)

    def keep(self, ids: Iterable[EntryId]) -> None:
        """Take drops back."""
        self.debugger.keep(ids)

    def focus(self, text: str) -> None:
        """Ask for the summary anew, with this focus."""
        self.debugger.focus(text)

    def write_summary(self, text: str) -> None:
        """Let this text be the summary."""
        self.debugger.write_summary(text)

    def fresh_summary(self) -> None:
        """Ask for another summary."""
        self.debugger.fresh_summary()

    def choose_policy(self, name: str) -> None:
        """Let another policy make the proposal that is held."""
        self.debugger.choose_policy(name)

    def set_policy(self, name: str) -> None:
        """Another policy from the next moment on."""
        self.agent.set_policy(name)

    def preview_undo(self) -> Preview:
        """What `undo` would do."""
        return preview_undo(self.agent.session.state, self.agent.asker.dialect)

    def undo(self) -> None:
        """Take the newest compaction back."""
        self.agent.undo()

    def preview_restore(self, id: EntryId) -> Preview:
        """What `restore` would do."""
        return preview_restore(self.agent.session.state, id, self.agent.asker.dialect)

    def restore(self, id: EntryId) -> None:
        """Bring an entry back into the context."""
        self.agent.restore(id)

    def proposal(self) -> Stop | None:
        """Where the agent stands still."""
        return self.debugger.stop

    @property
    def busy(self) -> bool:
        """True while something that the user began is not finished."""
        return bool(self._tasks)

    async def finish(self) -> None:
        """Interrupt, and wait until the history is in order. Messages that wait are dropped."""
        self._waiting.clear()
        while self._tasks:
            self.interrupt()
            # A script that plays may have gone on to its next step: then it is stopped there.
            await asyncio.wait(set(self._tasks), timeout=PATIENCE)

    def _run(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if self._waiting and not self._tasks:
            self.send(self._waiting.pop(0))
        error = None if task.cancelled() else task.exception()
        if error is not None:
            if self.failed is None:
                raise error
            self.failed(error)


class LiveMarks(Marks):
    """The marks of an agent's own policy, which may come from the user's file; those of a policy
    that was in force before, by its name."""

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self._agent = agent

    def _ask(self, state: SessionState) -> tuple[Mark, ...]:
        policy, share = self._agent.engine.policy, self._agent.engine.settings.threshold_share
        if state.budget is None or state.policy != policy.name:
            return super()._ask(state)
        window = state.budget.window.value
        if share is None or window is None:
            return policy.marks(state.budget)
        own = Mark("share", int(share * window), f"{share:.0%} of the window {window:,}")
        return (*policy.marks(state.budget), own)


def open_live(agent: Agent, asking: Asking, *, count: bool = True) -> Opened:
    """Show a session of our own agent. Must be called in the event loop that runs the agent.

    Closing it interrupts the agent and closes the session.
    """
    session = agent.session
    history = History()
    history.extend(session.history.records)
    actor = AgentActor(agent, asking)
    if agent.debugger is not None:
        agent.debugger.attended = True
    feed = Feed(session.bus.subscribe(), lambda position: session.history.records[position:])
    model = ConsoleModel(
        history,
        actor=actor,
        feed=feed,
        marks_of=LiveMarks(agent),
        bookmarks=kept_bookmarks(history.state),
    )

    async def closing() -> None:
        await actor.finish()
        session.bus.unsubscribe(feed.subscription)
        session.close("left the console")

    def failed(error: BaseException) -> None:
        if opened.failed is None:
            raise error
        opened.failed(error)

    opened = Opened(model, session.path, closing=closing)
    actor.failed = failed
    if count:
        opened.background.append(lambda: recount(opened))
    return opened


__all__ = ["AgentActor", "Asking", "open_live"]
