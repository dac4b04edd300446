"""A Claude Code transcript, line by line, as our events: a `Translator` is one pass over a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from .. import events as e
from ..items import FunctionCallOutput, Item
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
    user_items,
)
from .claude_known import SILENT, SILENT_SYSTEM
from .claude_oddities import Oddities
from .claude_reading import AGENT, OnRequest, Reading, is_prompt
from .claude_start import Start
from .claude_turns import Turns
from .claude_usage import Meter
from .codex_items import dict_of, json_of, text_of
from .lines import Line

_ENDS: Final = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})
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
        self._odd = Oddities(self.reading)
        self._start = Start(self.reading, title)
        self._turns = Turns(self.reading)
        self._saved = saved
        self._side: tuple[bool, str] | None = None
        self._responses: set[str] = set()
        self._family = ""
        self._stop = ""

    def feed(self, line: Line) -> list[e.Record]:
        """Take one line and give the records that are ready."""
        r = self.reading
        if line.value is not None:
            r.out.at = _seconds(line.value.get("timestamp")) or r.out.at
        self._start.line(line.number)
        if line.fault:
            self._odd.bad(line)
        if line.value is not None:
            try:
                self._line(line.number, line.value)
            except RecursionError:
                # Decoding has more room on the stack than what reads the result.
                fault = "it is nested too deeply to be read"
                self._odd.bad(msgspec.structs.replace(line, value=None, fault=fault))
        return r.out.ready()

    def flush(self) -> list[e.Record]:
        """Give everything that is held back, with what is known of it now."""
        self._odd.tell_repeats()
        self._close_block()
        self._settle()
        self.reading.out.release()
        return self.reading.out.ready()

    def _line(self, n: int, value: dict[str, Any]) -> None:
        kind = text_of(value.get("type"))
        self._odd.fields(n, kind, value)
        uuid = text_of(value.get("uuid"))
        if uuid and uuid in self.reading.tree.nodes:
            self._odd.repeated(n)
            return
        self._odd.tell_repeats()
        match kind:
            case "user" | "assistant":
                self._record(n, kind, uuid or f"line {n}", value)
            case "attachment" | "system" if uuid:
                self._record(n, kind, uuid, value)
            case "summary" | "custom-title" | "ai-title":
                self._start.titled(n, value)
            case _ if uuid and "parentUuid" in value:
                if kind not in SILENT:
                    self._odd.unknown(n, kind, value)
                self._record(n, kind, uuid, value)
            case _ if kind not in SILENT:
                self._odd.unknown(n, kind, value)
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
            self._start.record(value)
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
        self._odd.blocks(n, content)
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
            self._turns.prompt(n)
            self._meter.prompted()
            self._start.prompt(first_text(content))
        self._append(node, parent)
        if role is Role.RESULT:
            self._turns.result(n, items, dict_of(value.get("toolUseResult")))
        if is_interruption(content):
            self._turns.end(n, "interrupted")

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
                self.reading.note(n, "informational", text)
            case _ if kind not in SILENT_SYSTEM:
                self._odd.unknown(n, f"system/{kind}" if kind else "system", value)
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
        self._odd.blocks(n, content)
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
                self._start.model(n, model)
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
            self.reading.note(node.line, "chain", text)
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
        self.reading.agents.add(agent)
        match kind:
            case "user":
                items = user_items(content)
            case "assistant":
                items = assistant_items(content)
            case "attachment":
                items = attachment_items(dict_of(value.get("attachment")))
            case _:
                items = ()
        self._odd.blocks(n, content)
        where = f"subagent {agent}".strip()
        self.reading.beside(n, items, f"{where}: a conversation of its own")

    def _api_error(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        """A request that failed for good. The record is on the way, but the model never sees it."""
        text = first_text(message.get("content"))
        node = Node(uuid, n, Role.OTHER)
        self._add(node, parent)
        if text_of(value.get("requestId")):
            self.reading.request(node, number=len(self._responses) + 1, failed=text)
        details, kind = text_of(value.get("errorDetails")), text_of(value.get("error"))
        self._turns.failed(n, text, details, kind)

    def _settle(self) -> None:
        """What a response leaves to say once it is over."""
        self._meter.settle()
        stop, self._stop, self._family = self._stop, "", ""
        last = self.reading.tree.last
        if stop in _ENDS and last is not None:
            self._turns.end(last.line, "completed")

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


def _seconds(timestamp: object) -> float | None:
    try:
        moment = datetime.fromisoformat(text_of(timestamp))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
