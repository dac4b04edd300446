"""A Codex rollout, line by line, as our events: one `Translator` is one pass over one file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from sys import intern
from typing import Any, Final

import msgspec

from .. import events as e
from ..context import EntryId
from ..models import Budget, Fact, Origin
from .base import WireItem
from .codex_cards import Setup
from .codex_compactions import Compactions
from .codex_items import (
    KNOWN,
    dict_of,
    int_of,
    is_model_made,
    is_real_user,
    json_of,
    text_of,
    texts_of,
    type_of,
)
from .codex_lines import Count, Done, EventLine, ItemLine, Output, UsageLine
from .codex_meter import Meter
from .codex_reading import Reading, Task
from .codex_replay import Head, Held, held_item
from .codex_slim import Slimmer
from .cutting import length
from .lines import Line, read_lines
from .outbox import Slot

AGENT: Final = "codex"
HELD_BACK: Final = 400
"""Records after which the start of the session no longer waits for its model and title."""
TITLE: Final = 200
"""Characters of the first message that make the title."""

_SILENT: Final = frozenset({"world_state", "retained_context"})
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


class Translator:
    """The fold. `feed` gives the records that are ready; `flush` those that are held back.

    `reading` is the state of the file in Codex's own terms.
    """

    def __init__(self, slimmer: Slimmer | None = None, *, forget: bool = True) -> None:
        forgets = slimmer is not None and forget
        self.reading = Reading(slimmer, self._before if forgets else None)
        self._meter = Meter(self.reading)
        self._compactions = Compactions(self.reading, self._meter)
        self._first: Slot | None = None
        self._announced: tuple[str, int | None] = ("", None)
        self._error = ""

    def feed(self, line: Line) -> list[e.Record]:
        """Take one line and give the records that are ready."""
        return self.feed_all((line,))

    def feed_all(self, lines: Iterable[Line]) -> list[e.Record]:
        """Take several lines and give the records that are ready."""
        for line in lines:
            if line.known is not None and self._first is not None:
                self._known(line, line.known)
            else:
                self._take(line)
        return self.reading.out.ready()

    def _take(self, line: Line) -> None:
        r = self.reading
        if r.slimmer is not None:
            r.slimmer.begin(line)
        if line.value is not None:
            r.out.at = _seconds(line.value.get("timestamp")) or r.out.at
        if isinstance(line.known, ItemLine | EventLine | UsageLine):
            r.out.at = _instant(line.known.timestamp) or r.out.at
        if self._first is None:
            started = e.SessionStarted(session_id="", agent=AGENT, wire="responses")
            self._first = r.out.emit(line.number, started, hold=True)
        if line.known is not None:
            self._known(line, line.known)
        if line.fault:
            self._bad(line)
        if line.value is not None:
            try:
                self._line(line.number, line.value)
            except RecursionError:
                # Decoding has more room on the stack than what reads the result.
                fault = "it is nested too deeply to be read"
                self._bad(msgspec.structs.replace(line, value=None, fault=fault))
        if self._first.held and len(r.out) > HELD_BACK:
            self._first.held = False

    def _before(self, line: int) -> list[Held]:
        """The history before a compacted line, read anew: a slim reading does not keep what only
        a rollback over a compaction can ask for."""
        slimmer = self.reading.slimmer
        if slimmer is None:
            return []
        twin = Translator(slimmer.twin(), forget=False)
        for each in read_lines(slimmer.bodies.path):
            if each.number >= line:
                break
            twin.feed(each)
        return twin.reading.visible()

    def begin_at(self, line: Line, *, ordinal: int, turns: int) -> None:
        """Begin in the middle of the file, with what this compacted line holds as the history."""
        r, payload = self.reading, dict_of((line.value or {}).get("payload"))
        if r.slimmer is not None:
            r.slimmer.begin(line)
        self._compactions.begin_at(ordinal)
        r.turn, listed = turns, payload.get("replacement_history")
        shorten = r.shortened(recorded=True)
        items = [raw for raw in listed if isinstance(raw, dict)] if isinstance(listed, list) else []
        for part, raw in enumerate(items):
            held = held_item(EntryId(line.number, part), raw)
            item = held.item if shorten is None else shorten(held.item, raw, part)
            r.append(line.number, Held(held.id, raw, item), said=is_real_user(raw))

    def flush(self) -> list[e.Record]:
        """Give everything that is held back, with what is known of it now."""
        self._meter.settle()
        self._compactions.resolve()
        self.reading.out.release()
        return self.reading.out.ready()

    def _line(self, n: int, value: dict[str, Any]) -> None:
        self.reading.modern = self.reading.modern or "ordinal" in value
        kind, payload = text_of(value.get("type")), value.get("payload")
        if not isinstance(payload, dict):
            self._unknown(n, kind, value)
            return
        is_count = kind == "event_msg" and payload.get("type") == "token_count"
        if kind not in ("compacted", "token_usage_record") and not is_count:
            self._meter.settle()
        match kind:
            case "response_item":
                self._item(n, payload, dict_of(value.get("metadata")))
            case "event_msg":
                self._message(n, payload)
            case "token_usage_record":
                self._meter.usage_record(n, payload)
            case "compacted":
                self._compactions.compacted(n, payload)
            case "turn_context":
                self._turn_context(n, payload)
            case "session_meta":
                self._session_meta(n, payload)
            case _ if kind not in _SILENT:
                self._unknown(n, kind, value)
            case _:
                pass

    def _unknown(self, n: int, kind: str, value: object) -> None:
        size = len(json_of(value))
        self.reading.out.add(n, e.UnknownRecord(type=kind or "(no type)", line=n, size=size))

    def _bad(self, line: Line) -> None:
        fate = "is left out" if line.value is None else "was mended"
        message = f"line {line.number + 1} (byte {line.offset:,}) {fate}: {line.fault}"
        self.reading.out.add(
            line.number,
            e.ErrorRaised(kind="bad_line", message=message, line=line.number, offset=line.offset),
        )

    # -- session and settings ----------------------------------------------------------------------

    def _session_meta(self, n: int, payload: dict[str, Any]) -> None:
        r = self.reading
        thread = text_of(payload.get("id")) or text_of(payload.get("session_id"))
        if r.head.thread:
            text = f"from here on the file tells of thread {thread}, which this one came from"
            r.out.add(n, e.Note(kind="fork", text=text))
            return
        base = payload.get("base_instructions")
        text = text_of(dict_of(base).get("text")) or text_of(base)
        text = text or text_of(payload.get("instructions"))
        r.head = Head(thread, text, in_input=r.modern)
        r.version = text_of(payload.get("cli_version"))
        self._describe(
            session_id=thread,
            cwd=text_of(payload.get("cwd")),
            version=r.version,
            parent=text_of(payload.get("forked_from_id")),
            instructions=text,
        )

    def _describe(self, **known: Any) -> None:
        """Add to the first record, while it is held back."""
        slot = self._first
        if slot is None or not slot.held or not isinstance(slot.event, e.SessionStarted):
            return
        started = msgspec.structs.replace(slot.event, **known)
        slot.exchange(started)
        slot.held = not (started.title and started.model)

    def _turn_context(self, n: int, payload: dict[str, Any]) -> None:
        r = self.reading
        window = r.task.window if r.task and r.task.window else r.window
        new = Setup(text_of(payload.get("model")), text_of(payload.get("comp_hash")), window)
        if r.task is not None:
            r.task.settings = True
        self._compactions.settings(new)
        if not new.model:
            return
        r.settings = new
        old, self._announced = self._announced, (new.model, window)
        if not old[0]:
            self._describe(model=new.model, budget=_budget(window))
        elif old != self._announced:
            r.out.add(n, e.ModelChanged(model=new.model, budget=_budget(window), previous=old[0]))

    # -- items and tools ---------------------------------------------------------------------------

    def _item(self, n: int, raw: WireItem, metadata: dict[str, Any]) -> None:
        r = self.reading
        answer = metadata.get("compaction_output") is True
        if not answer:
            self._compactions.settle_answer(n)
            self._compactions.went_on()
        sampled = int_of(metadata.get("sampled_through_sequence"))
        kind = type_of(raw)
        sent = r.requests.item(n, is_model_made(raw), sampled, answer)
        if sent is not None:
            r.request(sent)
        if kind not in KNOWN:
            self._unknown(n, f"response_item/{kind}", raw)
        said = kind == "message" and not answer and is_real_user(raw)
        if said:
            self._spoken(n, raw)
        held = held_item(EntryId(n), raw, answer=answer)
        r.append(n, held if r.slimmer is None else r.slimmer.held(held), said=said)

    def _spoken(self, n: int, raw: WireItem) -> None:
        r = self.reading
        if r.task is None:
            # Files from before task_started: a turn is what follows a message of the user.
            r.history.start_task()
            r.turn += 1
            r.out.add(n, e.TurnStarted(turn=r.turn))
        self.entitle(raw)

    def entitle(self, raw: WireItem) -> None:
        """Take what the user said first as the title, while the first record is held back."""
        slot = self._first
        if slot is not None and slot.held and isinstance(slot.event, e.SessionStarted):
            title = " ".join("\n".join(texts_of(raw.get("content"))).split())[:TITLE]
            self._describe(title=slot.event.title or title)

    def _command(self, n: int, call_id: str, item: dict[str, Any], started: int | None) -> None:
        """The command of a call has run."""
        if call_id not in self.reading.calls:
            return
        duration = dict_of(item.get("duration"))
        seconds = (int_of(duration.get("secs")) or 0) + (int_of(duration.get("nanos")) or 0) / 1e9
        size = length(text_of(item.get("aggregated_output")))
        code = int_of(item.get("exit_code"))
        self._ran(n, call_id, seconds, code, item.get("status") != "failed", size, started)

    def _ran(
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
        out, name = self.reading.out, self.reading.calls[call_id]
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

    # -- lines that are decoded into their own form ------------------------------------------------

    def _known(self, line: Line, known: object) -> None:
        """The same as `_line`, for the lines that come most often."""
        r, n = self.reading, line.number
        if isinstance(known, ItemLine):
            r.out.at = _instant(known.timestamp) or r.out.at
            if r.requests.doubtful is not None:
                self._meter.settle()
            self._known_item(line, known)
        elif isinstance(known, UsageLine):
            r.out.at = _instant(known.timestamp) or r.out.at
            self._meter.known_response(n, known.payload)
        elif isinstance(known, EventLine):
            r.out.at = _instant(known.timestamp) or r.out.at
            payload = known.payload
            if isinstance(payload, Count):
                self._meter.known_count(n, payload.info)
            else:
                self._meter.settle()
                self._done(n, payload)

    def _done(self, n: int, done: Done) -> None:
        item = done.item
        if item.type != "CommandExecution" or item.id not in self.reading.calls:
            return
        took = item.duration
        seconds = 0.0 if took is None else took.secs + took.nanos / 1e9
        ok, size = item.status != "failed", len(item.aggregated_output or "")
        self._ran(n, intern(item.id), seconds, item.exit_code, ok, size, done.started_at_ms)

    def _known_item(self, line: Line, known: ItemLine) -> None:
        r, n, payload = self.reading, line.number, known.payload
        if r.requests.answering is not None:
            self._compactions.settle_answer(n)
        self._compactions.went_on()
        made = not isinstance(payload, Output)
        sent = r.requests.item(n, made, known.metadata.sampled_through_sequence, False)
        if sent is not None:
            r.request(sent)
        if r.slimmer is not None:
            r.append(n, r.slimmer.known(EntryId(n), line, payload))

    # -- turns and messages ------------------------------------------------------------------------

    def _message(self, n: int, payload: dict[str, Any]) -> None:
        r = self.reading
        kind = text_of(payload.get("type"))
        match kind:
            case "token_count":
                self._meter.token_count(n, payload)
            case _ if kind in _STARTS:
                self._task_started(n, payload)
            case _ if kind in _ENDS:
                self._task_ended(n, payload, _ENDS[kind])
            case "turn_aborted":
                self._task_ended(n, payload, text_of(payload.get("reason")) or "interrupted")
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
            case "warning" | "background_event" | "deprecation_notice":
                r.out.add(n, e.Note(kind=kind, text=text_of(payload.get("message"))))
            case _ if kind not in _SILENT_MESSAGES:
                self._unknown(n, f"event_msg/{kind}" if kind else "event_msg", payload)
            case _:
                pass

    def _task_started(self, n: int, payload: dict[str, Any]) -> None:
        r = self.reading
        self._compactions.ended()
        if r.task is not None:
            left = "the file holds no end of this turn"
            r.out.add(n, e.TurnFinished(turn=r.turn, outcome="interrupted", message=left))
        window = int_of(payload.get("model_context_window"))
        r.window = window or r.window
        attributed = isinstance(payload.get("turn_attribution"), dict)
        r.tasks_are_attributed = r.tasks_are_attributed or attributed
        r.task = Task(attributed=attributed, window=window)
        r.history.start_task()
        r.turn += 1
        r.out.add(n, e.TurnStarted(turn=r.turn))

    def _task_ended(self, n: int, payload: dict[str, Any], outcome: str) -> None:
        r = self.reading
        self._compactions.settle_answer(n)
        self._compactions.ended()
        error = dict_of(payload.get("error"))
        message = text_of(error.get("message"))
        if error:
            self._compactions.error(n, message, _error_kind(error.get("codex_error_info")))
            outcome = "failed"
        elif self._error:
            message, outcome = self._error, "failed"
        self._error = ""
        r.task = None
        r.out.add(n, e.TurnFinished(turn=r.turn, outcome=outcome, message=message))

    def _error_message(self, n: int, kind: str, payload: dict[str, Any]) -> None:
        """Older files have the error as a message of its own, before the end of the turn."""
        message = text_of(payload.get("message"))
        info = _error_kind(payload.get("codex_error_info"))
        if kind == "error" and info:
            self._compactions.error(n, message, info)
        else:
            event = e.ErrorRaised(kind=info or kind, message=message, where="codex")
            self.reading.out.add(n, event)
        if kind == "error":
            self._error = message


def _budget(window: int | None) -> Budget | None:
    if window is None:
        return None
    absent = Fact(None, "not in the file")
    return Budget(
        window=Fact(
            window,
            "model_context_window in the file: what Codex uses, by default 95% of the raw window, "
            "which is not stored",
            Origin.SESSION,
        ),
        max_input=absent,
        max_output=absent,
        reserve=Fact(None, "not in the file: Codex has taken it off the window already"),
    )


def _error_kind(info: object) -> str:
    """Codex's word for an error: a text, or an object with one key."""
    if isinstance(info, dict):
        return next((key for key in info if isinstance(key, str)), "")
    return text_of(info)


def _instant(moment: datetime) -> float | None:
    try:
        return moment.timestamp()
    except (OverflowError, OSError):
        return None


def _seconds(timestamp: object) -> float | None:
    try:
        moment = datetime.fromisoformat(text_of(timestamp))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
