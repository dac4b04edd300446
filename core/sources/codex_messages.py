"""What a rollout tells beside the items: turns, commands, errors, notes (its event_msg lines)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from .codex_compactions import Compactions
from .codex_items import dict_of, int_of, text_of
from .codex_meter import Meter
from .codex_reading import Reading, Task
from .cutting import length

_SILENT_MESSAGES: Final = frozenset(
    {"user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"}
    | {"agent_reasoning_section_break", "context_compacted", "thread_settings_applied"}
    | {"item_started", "exec_command_begin", "mcp_tool_call_begin", "mcp_tool_call_end"}
    | {"patch_apply_begin", "patch_apply_end", "web_search_begin", "web_search_end"}
    | {"turn_diff", "plan_update", "view_image_tool_call"}
)
"""Messages for Codex's own screen that say nothing beyond the items."""
_ERRORS: Final = frozenset({"error", "stream_error"})
_ENDS: Final = {"task_complete": "completed", "turn_complete": "completed"}
_STARTS: Final = frozenset({"task_started", "turn_started"})


class Messages:
    """The fold over messages."""

    def __init__(self, reading: Reading, meter: Meter, compactions: Compactions) -> None:
        self._r = reading
        self._meter = meter
        self._compactions = compactions
        self._error = ""

    def message(self, n: int, payload: dict[str, Any]) -> None:
        """Any event_msg."""
        r = self._r
        kind = text_of(payload.get("type"))
        match kind:
            case "token_count":
                self._meter.token_count(n, payload)
            case _ if kind in _STARTS:
                attributed = isinstance(payload.get("turn_attribution"), dict)
                window = int_of(payload.get("model_context_window"))
                self.task_started(n, window, attributed=attributed)
            case _ if kind in _ENDS:
                self.task_ended(n, dict_of(payload.get("error")), _ENDS[kind])
            case "turn_aborted":
                outcome = text_of(payload.get("reason")) or "interrupted"
                self.task_ended(n, dict_of(payload.get("error")), outcome)
            case "thread_rolled_back":
                self._compactions.roll_back(n, int_of(payload.get("num_turns")) or 0)
            case "item_completed":
                item = dict_of(payload.get("item"))
                if item.get("type") == "CommandExecution":
                    started = int_of(payload.get("started_at_ms"))
                    self._command(n, text_of(item.get("id")), item, started)
            case "exec_command_end":
                self._command(n, text_of(payload.get("call_id")), payload, None)
            case _ if kind in _ERRORS:
                self._error_message(n, kind, payload)
            case "thread_goal_updated":
                goal = dict_of(payload.get("goal"))
                text = f"goal ({text_of(goal.get('status'))}): {text_of(goal.get('objective'))}"
                r.out.add(n, e.Note(kind="goal", text=text))
            case "warning" | "background_event" | "deprecation_notice":
                r.out.add(n, e.Note(kind=kind, text=text_of(payload.get("message"))))
            case _ if kind not in _SILENT_MESSAGES:
                r.unknown(n, f"event_msg/{kind}" if kind else "event_msg", payload)
            case _:
                pass

    def task_started(self, n: int, window: int | None, *, attributed: bool) -> None:
        """A turn begins, or the task of a compaction by hand."""
        r = self._r
        self._meter.settle(sure=True)
        self._compactions.failures.lost(n)
        self._over(n)
        if r.task is not None:
            left = "the file holds no end of this turn"
            r.out.add(n, e.TurnFinished(turn=r.turn, outcome="interrupted", message=left))
        r.window = window or r.window
        if attributed and not r.tasks_are_attributed:
            # From 0.162 on. A newer version may go on with the file of an older one.
            r.tasks_are_attributed = True
            r.requests.headed = False
            r.head = msgspec.structs.replace(r.head, in_input=True, ids=True)
        r.task = Task(n, attributed=attributed, window=window)
        r.history.start_task()
        r.turn += 1
        r.out.add(n, e.TurnStarted(turn=r.turn))

    def task_ended(self, n: int, error: dict[str, Any], outcome: str) -> None:
        """The task has ended, with an error or without."""
        r = self._r
        if outcome not in _ENDS.values() and not error:
            self._compactions.failures.interrupted(n)
        message = text_of(error.get("message"))
        if not error:
            self._over(n)
        else:
            self._meter.settle(sure=True)
            self._compactions.failures.settle_answer(n)
            self._compactions.error(n, message, _error_kind(error.get("codex_error_info")))
            r.requests.ended()
            outcome = "failed"
        if self._error and not error:
            message, outcome = self._error, "failed"
        self._error = ""
        r.task = None
        r.out.add(n, e.TurnFinished(turn=r.turn, outcome=outcome, message=message))

    def _over(self, n: int) -> None:
        """Nothing more comes of what has begun."""
        self._meter.settle(sure=True)
        self._compactions.failures.settle_answer(n)
        self._compactions.ended(n)
        self._r.requests.ended()

    def _error_message(self, n: int, kind: str, payload: dict[str, Any]) -> None:
        """Older files have the error as a message of its own, before the end of the turn."""
        message = text_of(payload.get("message"))
        info = _error_kind(payload.get("codex_error_info"))
        if kind == "error" and info:
            self._compactions.error(n, message, info)
        else:
            event = e.ErrorRaised(kind=info or kind, message=message, where="codex")
            self._r.out.add(n, event)
        if kind == "error":
            self._error = message

    def _command(self, n: int, call_id: str, item: dict[str, Any], started: int | None) -> None:
        """The command of a call has run."""
        if call_id not in self._r.calls:
            return
        duration = dict_of(item.get("duration"))
        seconds = (int_of(duration.get("secs")) or 0) + (int_of(duration.get("nanos")) or 0) / 1e9
        size = length(text_of(item.get("aggregated_output")))
        code = int_of(item.get("exit_code"))
        self.ran(n, call_id, seconds, code, item.get("status") != "failed", size, started)

    def ran(
        self,
        n: int,
        call_id: str,
        seconds: float,
        code: int | None,
        ok: bool,
        size: int,
        started: int | None,
    ) -> None:
        """How long a command ran and how it ended; its output is in the item that follows."""
        out, name = self._r.out, self._r.calls[call_id]
        begun = out.at - seconds if started is None else started / 1000
        out.add(n, e.ToolStarted(call_id=call_id, name=name), begun)
        finished = e.ToolFinished(
            call_id=call_id,
            name=name,
            ok=ok if code is None else code == 0,
            exit_code=code,
            seconds=seconds,
            size=size,
        )
        out.add(n, finished)


def _error_kind(info: object) -> str:
    """Codex's word for an error: a text, or an object with one key."""
    if isinstance(info, dict):
        return next((key for key in info if isinstance(key, str)), "")
    return text_of(info)
