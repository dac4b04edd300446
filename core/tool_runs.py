"""The tool calls of a session with all that became of them, as a fold of their events."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from . import events as e
from .context import EntryId
from .items import FunctionCall, FunctionCallOutput
from .views import ToolRun, ToolStatus

LIVE_TAIL = 4_000
"""Characters of a running tool's output that are kept for the screen."""

# Looking a member up in its enum takes as long as exchanging a run.
_WAITING: Final = ToolStatus.WAITING
_RUNNING: Final = ToolStatus.RUNNING
_DONE: Final = ToolStatus.DONE
_FAILED: Final = ToolStatus.FAILED


class ToolRuns:
    """Runs by key, in the order in which they began.

    The key of a run is its call id. Some providers use a call id again: such a later run has the
    key "<call id> <entry id>", so that the row of the earlier one keeps showing it.
    """

    def __init__(self) -> None:
        self.by_key: dict[str, ToolRun] = {}
        self.calls = 0
        self.failures = 0
        self._latest: dict[str, str] = {}

    def copy(self) -> ToolRuns:
        """An independent copy."""
        twin = ToolRuns()
        twin.by_key, twin._latest = self.by_key.copy(), self._latest.copy()
        twin.calls, twin.failures = self.calls, self.failures
        return twin

    def latest(self, call_id: str) -> ToolRun | None:
        """The latest run of a call id, or None when no call and no start had it."""
        key = self._latest.get(call_id)
        return None if key is None else self.by_key.get(key)

    def call(self, id: EntryId, call: FunctionCall) -> str:
        """Enter a call; returns the key of a new run, or "" when its start was recorded first."""
        self.calls += 1
        run = self.latest(call.call_id)
        if run is not None and run.call is None:
            self.by_key[self._latest[call.call_id]] = replace(
                run, name=call.name, arguments=call.arguments, call=id
            )
            return ""
        key = call.call_id if run is None else f"{call.call_id} {id}"
        self._latest[call.call_id] = key
        self.by_key[key] = ToolRun(
            call_id=call.call_id, name=call.name, arguments=call.arguments, call=id
        )
        return key

    def output(self, id: EntryId, output: FunctionCallOutput) -> bool:
        """Enter an output; False when there is no call for it."""
        key = self._latest.get(output.call_id)
        run = None if key is None else self.by_key.get(key)
        if run is None:
            return False
        status = run.status
        if status is _WAITING or status is _RUNNING:
            status = _FAILED if output.is_error else _DONE
        self._put(output.call_id, replace(run, output=id, status=status, live=""))
        return True

    def started(self, event: e.ToolStarted, at: float) -> str:
        """A tool begins to run; returns the key of a new run, or "" when it was known."""
        run, key = self._run(event.call_id, event.name)
        self._put(
            event.call_id,
            replace(run, status=_RUNNING, started=at),
        )
        return key

    def finished(self, event: e.ToolFinished) -> str:
        """A tool ended; returns the key of a new run, or "" when it was known."""
        run, key = self._run(event.call_id, event.name)
        self._put(
            event.call_id,
            replace(
                run,
                status=_DONE if event.ok else _FAILED,
                seconds=event.seconds,
                exit_code=event.exit_code,
                size=event.size,
                saved=event.saved,
                live="",
            ),
        )
        return key

    def streamed(self, event: e.ToolOutput) -> bool:
        """Live output; False when nothing of that call is known."""
        run = self.latest(event.call_id)
        if run is None:
            return False
        live = (run.live + event.text)[-LIVE_TAIL:]
        self.by_key[self._latest[event.call_id]] = replace(run, live=live)
        return True

    def settle(self) -> None:
        """Forget live output: a replay of the record would not have it."""
        for key, run in self.by_key.items():
            if run.live:
                self.by_key[key] = replace(run, live="")

    def _run(self, call_id: str, name: str) -> tuple[ToolRun, str]:
        run = self.latest(call_id)
        if run is not None:
            return run, ""
        self._latest[call_id] = call_id
        return ToolRun(call_id=call_id, name=name), call_id

    def _put(self, call_id: str, run: ToolRun) -> None:
        key = self._latest[call_id]
        if run.status is _FAILED:
            before = self.by_key.get(key)
            if before is None or before.status is not _FAILED:
                self.failures += 1
        self.by_key[key] = run
