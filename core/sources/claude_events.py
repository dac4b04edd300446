"""A Claude Code transcript, line by line, as our events: a `Translator` is one pass over a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from .. import events as e
from ..items import FunctionCallOutput, Item
from ..models import Budget, resolve
from .claude_chain import Node, Role
from .claude_compactions import Compactions
from .claude_items import (
    SYNTHETIC,
    assistant_items,
    attachment_items,
    attachment_text,
    blocks_of,
    first_text,
    has_results,
    is_echo,
    is_interruption,
    saved_name,
    summary_item,
    unknown_blocks,
    user_items,
)
from .claude_known import FIELDS, SILENT, SILENT_SYSTEM
from .claude_reading import OnRequest, Reading, is_prompt
from .claude_usage import Meter
from .codex_items import dict_of, int_of, json_of, text_of
from .lines import Line
from .outbox import Slot

AGENT: Final = "claude-code"
HELD_BACK: Final = 400
"""Records after which the start of the session no longer waits for its model and title."""
TITLE: Final = 200
"""Characters of the first prompt that make the title."""

_ENDS: Final = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
_TOO_LONG: Final = "prompt is too long"
_THRASHING: Final = "Autocompact is thrashing"
_THRASH_LIMIT: Final = 3

Saved = Callable[[str], str]
"""The path of a persisted output by its name; empty when there is none."""


class Translator:
    """The fold. `feed` gives the records that are ready; `flush` those that are held back."""

    def __init__(
        self,
        *,
        on_request: OnRequest | None = None,
        keep_raw: bool = False,
        saved: Saved | None = None,
        title: str = "",
    ) -> None:
        self.reading = Reading(on_request, keep_raw=keep_raw)
        self._meter = Meter(self.reading)
        self._compactions = Compactions(self.reading)
        self._saved = saved
        self._title = title
        self._first: Slot | None = None
        self._side: tuple[bool, str] | None = None
        self._responses: set[str] = set()
        self._family = ""
        self._stop = ""
        self._broken = False
        self._fields: set[str] = set()
        self._repeats: tuple[int, int] | None = None
        self.agents: set[str] = set()
        """The subagents that the file itself tells of."""

    def feed(self, line: Line) -> list[e.Record]:
        """Take one line and give the records that are ready."""
        r = self.reading
        if line.value is not None:
            r.out.at = _seconds(line.value.get("timestamp")) or r.out.at
        if self._first is None:
            started = e.SessionStarted(session_id="", agent=AGENT, wire="anthropic")
            self._first = r.out.emit(line.number, started, hold=True)
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
        return r.out.ready()

    def flush(self) -> list[e.Record]:
        """Give everything that is held back, with what is known of it now."""
        self._tell_repeats()
        self._close_block()
        self._settle()
        self.reading.out.release()
        return self.reading.out.ready()

    def _line(self, n: int, value: dict[str, Any]) -> None:
        kind = text_of(value.get("type"))
        self._unknown_fields(n, kind, value)
        uuid = text_of(value.get("uuid"))
        if uuid and uuid in self.reading.tree.nodes:
            self._repeats = (self._repeats[0] if self._repeats else n, n)
            return
        self._tell_repeats()
        match kind:
            case "user" | "assistant":
                self._record(n, kind, uuid or f"line {n}", value)
            case "attachment" | "system" if uuid:
                self._record(n, kind, uuid, value)
            case "summary":
                self._summary_title(n, value)
            case "custom-title" | "ai-title":
                title = text_of(value.get("customTitle")) or text_of(value.get("aiTitle"))
                self._note(n, "title", f"title of the session: {title}")
            case _ if uuid and "parentUuid" in value:
                if kind not in SILENT:
                    self._unknown(n, kind, value)
                self._record(n, kind, uuid, value)
            case _ if kind not in SILENT:
                self._unknown(n, kind, value)
            case "queue-operation" | "last-prompt" | "mode":
                # These come between a compaction and what is done next.
                if self._compactions.open and self._compactions.complete:
                    self._close_block()
            case _:
                pass

    # -- records -----------------------------------------------------------------------------------

    def _record(self, n: int, kind: str, uuid: str, value: dict[str, Any]) -> None:
        side = (value.get("isSidechain") is True, text_of(value.get("agentId")))
        if self._side is None:
            self._side = side
            self._describe_first(value)
        if side[0] != self._side[0] or (side[0] and side[1] != self._side[1]):
            self._sidechain(n, kind, side[1], value)
            return
        self.reading.version = text_of(value.get("version")) or self.reading.version
        message = dict_of(value.get("message"))
        if kind != "assistant" or text_of(message.get("id")) != self._family:
            self._settle()
        parent = text_of(value.get("parentUuid"))
        match kind:
            case "user":
                self._user(n, uuid, parent, value, message)
            case "assistant":
                self._assistant(n, uuid, parent, value, message)
            case "attachment":
                self._attachment(n, uuid, parent, dict_of(value.get("attachment")))
            case "system":
                self._system(n, uuid, parent, value)
            case _:
                self._add(Node(uuid, n, Role.OTHER), parent)

    def _user(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        content = message.get("content")
        summary = value.get("isCompactSummary") is True
        meta = value.get("isMeta") is True
        self._unknown_blocks(n, content)
        items: tuple[Item, ...]
        if summary:
            items = (summary_item(content),)
        else:
            stopped = is_interruption(content)
            items = self._with_saved(user_items(content, meta=meta or stopped))
        role = Role.RESULT if has_results(content) else Role.USER
        node = Node(uuid, n, role, items, raw=self.reading.raw(content))
        written_along = summary or (role is Role.USER and (meta or is_echo(content)))
        if self._along(node, parent, content, belongs=written_along, summary=summary):
            return
        prompt = is_prompt(node)
        if prompt:
            self._prompt(n, content)
        self._append(node, parent)
        if role is Role.RESULT:
            self._tool_result(n, content, value.get("toolUseResult"))
        if is_interruption(content):
            self._end_turn(n, "interrupted")

    def _attachment(self, n: int, uuid: str, parent: str, attachment: dict[str, Any]) -> None:
        items = attachment_items(attachment)
        text = attachment_text(attachment)
        raw = f"<system-reminder>\n{text}\n</system-reminder>" if items else None
        node = Node(uuid, n, Role.ATTACHMENT, items, raw=self.reading.raw(raw))
        if not self._along(node, parent, None, belongs=True):
            self._append(node, parent)

    def _system(self, n: int, uuid: str, parent: str, value: dict[str, Any]) -> None:
        kind = text_of(value.get("subtype"))
        text = text_of(value.get("content"))
        match kind:
            case "compact_boundary":
                self._close_block()
                self._settle()
                boundary = Node(uuid, n, Role.BOUNDARY)
                metadata = dict_of(value.get("compactMetadata"))
                self._compactions.begin(boundary, metadata, self._meter.usage)
                return
            case "local_command":
                items = user_items(text, meta=True)
                node = Node(uuid, n, Role.COMMAND, items, raw=self.reading.raw(text))
                if not self._along(node, parent, text, belongs=True):
                    self._append(node, parent)
                return
            case "microcompact_boundary":
                self._add(Node(uuid, n, Role.OTHER), parent)
                metadata = dict_of(value.get("microcompactMetadata"))
                self._compactions.micro(n, metadata, self._meter.usage)
                self._meter.compacted()
                return
            case "api_error":
                error = json_of(value.get("error")) if "error" in value else text
                event = e.ErrorRaised(kind="api_error", message=error, where=AGENT)
                self.reading.out.emit(n, event)
            case "informational" if text:
                self._note(n, "informational", text)
            case _ if kind not in SILENT_SYSTEM:
                self._unknown(n, f"system/{kind}" if kind else "system", value)
            case _:
                pass
        self._add(Node(uuid, n, Role.OTHER), parent)

    def _assistant(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        self._close_block()
        request_id = text_of(value.get("requestId"))
        if value.get("isApiErrorMessage") is True:
            self._api_error(n, uuid, parent, value, message)
            return
        content = message.get("content")
        self._unknown_blocks(n, content)
        id = text_of(message.get("id"))
        model = text_of(message.get("model"))
        family = id or request_id or uuid
        items = assistant_items(content)
        raw = self.reading.raw(blocks_of(content))
        node = Node(uuid, n, Role.ASSISTANT, items, family, raw)
        self._family, self._stop = id, text_of(message.get("stop_reason"))
        used = self._add(node, parent)
        if model != SYNTHETIC:
            if family not in self._responses:
                self._responses.add(family)
                self._model(n, model)
                self._meter.judge(node, message, unrecorded=self._compactions.unrecorded)
                self.reading.request(node, number=len(self._responses))
            self._meter.response(n, family, message)
        note = "written by Claude Code itself" if model == SYNTHETIC else ""
        self.reading.append(node, used, note=note)

    def _append(self, node: Node, parent: str) -> None:
        self._close_block()
        used = self._add(node, parent)
        self._meter.added(node)
        self.reading.append(node, used)

    def _add(self, node: Node, parent: str) -> int:
        self._close_block()
        r = self.reading
        r.tree.add(node, parent)
        if node.orphan and node.parent is not None:
            text = (
                f"the parent of line {node.line + 1} is not in the file: it is taken to follow "
                f"line {node.parent.line + 1}"
            )
            self._note(node.line, "chain", text)
        used, moved = r.place(node, r.tree.tip)
        if moved:
            self._meter.moved()
        return used

    def _along(
        self, node: Node, parent: str, content: Any, *, belongs: bool, summary: bool = False
    ) -> bool:
        """Take a record as part of the compaction that is being told, if it is."""
        if not self._compactions.open:
            return False
        if not belongs or (summary and self._compactions.complete):
            self._close_block()
            return False
        self.reading.tree.add(node, parent, after_boundary=True)
        self._compactions.take(node, content, summary=summary)
        return True

    def _close_block(self) -> None:
        if self._compactions.close():
            self._meter.compacted()

    def _sidechain(self, n: int, kind: str, agent: str, value: dict[str, Any]) -> None:
        """A record of a subagent inside its parent's file (1.0.x), or the other way round."""
        message = dict_of(value.get("message"))
        content = message.get("content")
        self.agents.add(agent)
        match kind:
            case "user":
                items = user_items(content)
            case "assistant":
                items = assistant_items(content)
            case "attachment":
                items = attachment_items(dict_of(value.get("attachment")))
            case _:
                items = ()
        self._unknown_blocks(n, content)
        where = f"subagent {agent}".strip()
        self.reading.beside(n, items, f"{where}: a conversation of its own")

    # -- turns, tools, errors ----------------------------------------------------------------------

    def _prompt(self, n: int, content: Any) -> None:
        r = self.reading
        if r.in_turn:
            left = "the file holds no end of this turn"
            r.out.emit(n, e.TurnFinished(turn=r.turn, outcome="interrupted", message=left))
        if self._broken:
            self._broken = False
            r.out.emit(n, e.BreakerClosed(by="a new prompt"))
        r.turn += 1
        r.in_turn = True
        r.out.emit(n, e.TurnStarted(turn=r.turn))
        self._meter.prompted(n)
        if self._first is not None and isinstance(self._first.event, e.SessionStarted):
            title = " ".join(first_text(content).split())[:TITLE]
            self._describe(title=self._first.event.title or title)

    def _end_turn(self, n: int, outcome: str, message: str = "") -> None:
        r = self.reading
        if r.in_turn:
            r.in_turn = False
            event = e.TurnFinished(turn=r.turn, outcome=outcome, message=message)
            r.out.emit(r.out.not_before(n), event)

    def _settle(self) -> None:
        """What a response leaves to say once it is over."""
        self._meter.settle()
        stop, self._stop, self._family = self._stop, "", ""
        last = self.reading.tree.last
        if stop in _ENDS and last is not None:
            self._end_turn(last.line, "completed")

    def _tool_result(self, n: int, content: Any, told: object) -> None:
        result = dict_of(told)
        call_ids = [
            text_of(dict_of(block).get("tool_use_id"))
            for block in blocks_of(content)
            if dict_of(block).get("type") == "tool_result"
        ]
        agent = text_of(result.get("agentId"))
        if agent:
            self.agents.add(agent)
            self._note(n, "subagent", _subagent_words(agent, result))
        if len(call_ids) != 1 or not result:
            return
        size = len(text_of(result.get("stdout"))) + len(text_of(result.get("stderr")))
        milliseconds = int_of(result.get("totalDurationMs")) or int_of(result.get("durationMs"))
        if not size and milliseconds is None:
            return
        failed = any(dict_of(block).get("is_error") is True for block in blocks_of(content))
        items = self._with_saved(user_items(content))
        outputs = [item for item in items if isinstance(item, FunctionCallOutput)]
        self.reading.out.emit(
            n,
            e.ToolFinished(
                call_id=call_ids[0],
                ok=not failed,
                seconds=(milliseconds or 0) / 1000,
                size=size,
                saved=outputs[0].saved if outputs else "",
            ),
        )

    def _with_saved(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The outputs that were persisted, with the file that holds the whole of them."""
        if self._saved is None:
            return items
        found: list[Item] = []
        for item in items:
            name = saved_name(item.output) if isinstance(item, FunctionCallOutput) else ""
            path = self._saved(name) if name else ""
            found.append(msgspec.structs.replace(item, saved=path) if path else item)
        return tuple(found)

    def _api_error(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        """A request that failed for good. The record is on the way, but the model never sees it."""
        r = self.reading
        text = first_text(message.get("content"))
        details = text_of(value.get("errorDetails"))
        told = f"{text} ({details})" if details else text
        node = Node(uuid, n, Role.OTHER)
        self._add(node, parent)
        if text_of(value.get("requestId")):
            r.request(node, number=len(self._responses) + 1, failed=text)
        if text.startswith(_THRASHING):
            self._broken = True
            r.out.emit(n, e.BreakerOpened(failures=_THRASH_LIMIT, reason=text))
        elif _TOO_LONG in told.lower():
            used, limit = _figures(details)
            r.out.emit(n, e.ContextOverflowed(message=told, used=used, limit=limit))
        else:
            kind = text_of(value.get("error")) or "api_error"
            r.out.emit(n, e.ErrorRaised(kind=kind, message=told, where=AGENT))
        self._end_turn(n, "failed", text)

    # -- the session -------------------------------------------------------------------------------

    def _describe_first(self, value: dict[str, Any]) -> None:
        session = text_of(value.get("sessionId"))
        agent = text_of(value.get("agentId")) if value.get("isSidechain") is True else ""
        self.reading.session = session
        self._describe(
            session_id=agent or session,
            parent=session if agent else "",
            cwd=text_of(value.get("cwd")),
            version=text_of(value.get("version")),
            title=self._title,
        )

    def _describe(self, **known: Any) -> None:
        """Add to the first record, while it is held back."""
        slot = self._first
        if slot is None or not slot.held or not isinstance(slot.event, e.SessionStarted):
            return
        started = msgspec.structs.replace(slot.event, **known)
        slot.exchange(started)
        slot.held = not (started.title and started.model)

    def _model(self, n: int, model: str) -> None:
        r = self.reading
        if not model or model == r.model:
            return
        old, r.model = r.model, model
        if not old:
            self._describe(model=model, budget=_budget(model))
        else:
            event = e.ModelChanged(model=model, budget=_budget(model), previous=old)
            r.out.emit(n, event)

    def _summary_title(self, n: int, value: dict[str, Any]) -> None:
        text = text_of(value.get("summary"))
        try:
            text = text_of(dict_of(json.loads(text)).get("title")) or text
        except (ValueError, RecursionError):
            pass  # The usual case: plain text, not JSON.
        self._note(n, "title", f"title of a session: {text} (not a compaction)")

    # -- what is not known -------------------------------------------------------------------------

    def _note(self, n: int, kind: str, text: str) -> None:
        self.reading.out.emit(n, e.Note(kind=kind, text=text))

    def _unknown(self, n: int, kind: str, value: object) -> None:
        size = len(json_of(value))
        self.reading.out.emit(n, e.UnknownRecord(type=kind or "(no type)", line=n, size=size))

    def _unknown_blocks(self, n: int, content: object) -> None:
        for kind in unknown_blocks(content):
            self._unknown(n, f"block {kind}", content)

    def _unknown_fields(self, n: int, kind: str, value: dict[str, Any]) -> None:
        known = FIELDS.get(kind)
        if known is None or value.keys() <= known:
            return
        for field in value.keys() - known:
            name = f"field {kind}.{field}"
            if name not in self._fields:
                # Named once: a field of every record would else fill the timeline.
                self._fields.add(name)
                self._unknown(n, name, value[field])

    def _tell_repeats(self) -> None:
        repeats, self._repeats = self._repeats, None
        if repeats is not None:
            first, last = repeats[0] + 1, repeats[1] + 1
            span = f"line {first}" if first == last else f"lines {first} to {last}"
            text = f"{span}: records that the file holds already; the first of each counts"
            self._note(self.reading.out.not_before(repeats[1]), "duplicate", text)

    def _bad(self, line: Line) -> None:
        fate = "is left out" if line.value is None else "was mended"
        message = f"line {line.number + 1} (byte {line.offset:,}) {fate}: {line.fault}"
        self.reading.out.emit(
            line.number,
            e.ErrorRaised(kind="bad_line", message=message, line=line.number, offset=line.offset),
        )


def _budget(model: str) -> Budget:
    """The model's limits as the table has them: the file holds none."""
    return resolve(model).budget()


def _subagent_words(agent: str, result: dict[str, Any]) -> str:
    kind = text_of(result.get("agentType"))
    facts = [
        text_of(result.get("status")),
        _count(result.get("totalToolUseCount"), "tool calls"),
        _count(result.get("totalTokens"), "tokens"),
    ]
    told = ", ".join(filter(None, facts))
    return f"subagent {agent}" + (f" ({kind})" if kind else "") + (f": {told}" if told else "")


def _count(value: object, what: str) -> str:
    number = int_of(value)
    return "" if number is None else f"{number:,} {what}"


def _figures(details: str) -> tuple[int | None, int | None]:
    """The figures of "N tokens > M maximum"."""
    found = re.search(r"(\d{1,12}) tokens > (\d{1,12})", details)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _seconds(timestamp: object) -> float | None:
    try:
        moment = datetime.fromisoformat(text_of(timestamp))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
