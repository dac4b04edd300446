"""A Claude Code transcript, line by line, as our events: a `Translator` is one pass over a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .. import events as e
from ..items import FunctionCallOutput, Item
from .claude_chain import Node, Role
from .claude_compactions import Compactions
from .claude_fork import Copied
from .claude_items import (
    as_reminder,
    assistant_items,
    attachment_blocks,
    attachment_items,
    blocks_of,
    first_text,
    has_results,
    is_continuation,
    is_echo,
    is_interruption,
    saved_name,
    summary_item,
    user_items,
)
from .claude_known import SILENT, SILENT_SYSTEM
from .claude_lines import Known
from .claude_oddities import Oddities
from .claude_placing import Placing
from .claude_reading import AGENT, OnRequest, Reading, is_prompt
from .claude_responses import Responses
from .claude_side import Sides
from .claude_slim import Slimmer, slim_lines
from .claude_slim_tree import SlimTree
from .claude_start import Start
from .claude_turns import Turns
from .claude_typed import TypedLines
from .claude_usage import Meter, usage_of
from .codex_items import dict_of, json_of, text_of
from .lines import Line, parse
from .times import seconds_of

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
        slimmer: Slimmer | None = None,
        forget: bool = True,
    ) -> None:
        self._tree = SlimTree(self._recall) if slimmer is not None and forget else None
        self.reading = Reading(on_request, keep_raw=keep_raw, slimmer=slimmer, tree=self._tree)
        self._meter = Meter(self.reading)
        self._compactions = Compactions(self.reading)
        self._odd = Oddities(self.reading)
        self._start = Start(self.reading, title)
        self._copied = Copied()
        self._sides = Sides() if on_request is not None else None
        self._on_request = on_request
        self._turns = Turns(self.reading)
        self._saved = saved
        self._placing = Placing(self.reading, self._meter, self._compactions)
        so_far = self.reading, self._meter, self._compactions, self._placing
        self._said = Responses(*so_far, self._start, self._turns)
        self._typed = TypedLines(
            *so_far, self._said, self._start, self._turns, self._odd, self._copied
        )

    def feed(self, line: Line) -> list[e.Record]:
        """Take one line and give the records that are ready."""
        return self.feed_all((line,))

    def feed_all(self, lines: Iterable[Line]) -> list[e.Record]:
        """Take several lines and give the records that are ready."""
        out, take = self.reading.out, self._typed.take
        ready: list[e.Record] = []
        for line in lines:
            known: Known | None = line.known
            if known is None:
                self._take(line)
            elif take(line, known[0]):
                continue
            else:
                value, fault = parse(known[1])
                self._take(msgspec.structs.replace(line, value=value, fault=fault))
            # Here something may have been held back, or be so no longer.
            ready += out.ready()
        return ready + out.ready() if ready else out.ready()

    def _recall(self, line: int) -> None:
        """Read what stands before a line anew: a slim reading does not keep what only a session
        that goes on from before a compaction can ask for."""
        r, tree = self.reading, self._tree
        if r.slimmer is None or tree is None:
            return
        path = r.slimmer.bodies.path
        twin = Translator(saved=self._saved, slimmer=Slimmer(path), forget=False)
        try:
            for each in slim_lines(path):
                if each.number >= line:
                    break
                twin.feed(each)
        except OSError:
            # Then what is asked for is not in the file any more.
            return
        tree.adopt(twin.reading.tree)
        ordinals = twin.reading.compactions
        r.compactions = {tree.nodes[each.uuid]: ordinal for each, ordinal in ordinals.items()}

    def begin_before(self, started: e.Event, *, ordinal: int) -> None:
        """Begin in the middle of the file, before the boundary with this ordinal: what it leaves is
        told as what was there. The session itself has been told: `started`."""
        if isinstance(started, e.SessionStarted):
            self._start.begin_with(started)
        self._compactions.begin_before(ordinal)

    def begin_at(self, n: int, *, turns: int) -> list[e.Record]:
        """The next line, `n`, is that boundary, and so many turns have begun before it. What was
        told before is forgotten; all that is left of it is the model."""
        self.flush()
        r = self.reading
        r.turn, r.in_turn, r.rounds = turns, False, 0
        self._start.resume(n)
        return r.out.ready()

    def _take(self, line: Line) -> None:
        r = self.reading
        if r.slimmer is not None:
            r.slimmer.begin(line)
        if line.value is not None:
            r.out.at = seconds_of(line.value.get("timestamp")) or r.out.at
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

    def flush(self) -> list[e.Record]:
        """Give everything that is held back, with what is known of it now."""
        self._odd.tell_repeats()
        self._placing.close()
        self._said.settle()
        self.reading.out.release()
        return self.reading.out.ready()

    def _line(self, n: int, value: dict[str, Any]) -> None:
        kind = text_of(value.get("type"))
        self._odd.fields(n, kind, value)
        uuid = text_of(value.get("uuid"))
        if uuid and self.reading.tree.knows(uuid):
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
                if kind == "queue-operation":
                    self._copied.began(self.reading.out.at)
                # These come between a compaction and what is done next.
                if self._compactions.open and self._compactions.complete:
                    self._placing.close()
            case _:
                pass

    # -- records -----------------------------------------------------------------------------------

    def _record(self, n: int, kind: str, uuid: str, value: dict[str, Any]) -> None:
        side = (value.get("isSidechain") is True, text_of(value.get("agentId")))
        if self.reading.side is None:
            self.reading.side = side
            self._start.record(value)
        if side[0] != self.reading.side[0] or (side[0] and side[1] != self.reading.side[1]):
            self._sidechain(n, kind, side[1], value)
            return
        self.reading.version = text_of(value.get("version")) or self.reading.version
        if copy := self._copied.record(n, self.reading.out.at):
            self.reading.note(n, "fork", copy)
            self._meter.moved()
        message = dict_of(value.get("message"))
        if kind != "assistant" or text_of(message.get("id")) != self._said.family:
            self._said.settle()
        parent = text_of(value.get("parentUuid"))
        match kind:
            case "user":
                self._user(n, uuid, parent, value, message)
            case "assistant":
                self._assistant(n, uuid, parent, value, message)
            case "attachment":
                attachment = dict_of(value.get("attachment"))
                self._attachment(n, uuid, parent, attachment, value.get("rendered"))
            case "system":
                self._system(n, uuid, parent, value)
            case _:
                self._placing.add(Node(uuid, n, Role.OTHER), parent)

    def _user(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        r, content = self.reading, message.get("content")
        summary = value.get("isCompactSummary") is True or (
            # In the copy that a fork of version 1.0 begins with, the mark is missing.
            self._compactions.is_open_at(parent) and is_continuation(content)
        )
        meta = value.get("isMeta") is True
        self._odd.blocks(n, content)
        items: tuple[Item, ...]
        if summary:
            items = (summary_item(content),)
        else:
            stopped = is_interruption(content)
            items = r.kept(self._with_saved(user_items(content, meta=meta or stopped)))
        role = Role.RESULT if has_results(content) else Role.USER
        node = Node(uuid, n, role, items, raw=self.reading.raw(content))
        written_along = summary or (role is Role.USER and (meta or is_echo(content)))
        if self._placing.along(node, parent, content, belongs=written_along, summary=summary):
            return
        prompt = is_prompt(node)
        if prompt:
            self._turns.prompt(n)
            self._meter.prompted()
            self._start.prompt(first_text(content))
        self._placing.append(node, parent)
        if role is Role.RESULT:
            self._turns.result(n, items, dict_of(value.get("toolUseResult")))
        if is_interruption(content):
            self._turns.end(n, "interrupted")

    def _attachment(
        self, n: int, uuid: str, parent: str, attachment: dict[str, Any], rendered: object
    ) -> None:
        items = self.reading.kept(attachment_items(attachment, rendered))
        raw = None
        if self.reading.keep_raw:
            raw = [as_reminder(each) for each in attachment_blocks(attachment, rendered)]
        node = Node(uuid, n, Role.ATTACHMENT, items, raw=raw)
        if not self._placing.along(node, parent, None, belongs=True):
            self._placing.append(node, parent)

    def _system(self, n: int, uuid: str, parent: str, value: dict[str, Any]) -> None:
        kind = text_of(value.get("subtype"))
        text = text_of(value.get("content"))
        match kind:
            case "compact_boundary":
                self._placing.close()
                self._said.settle()
                boundary = Node(uuid, n, Role.BOUNDARY)
                metadata = dict_of(value.get("compactMetadata"))
                self._compactions.begin(boundary, metadata, self._meter.usage)
                return
            case "local_command":
                items = self.reading.kept(user_items(text, meta=True))
                node = Node(uuid, n, Role.COMMAND, items, raw=self.reading.raw(text))
                if not self._placing.along(node, parent, text, belongs=True):
                    self._placing.append(node, parent)
                return
            case "microcompact_boundary":
                self._placing.add(Node(uuid, n, Role.OTHER), parent)
                metadata = dict_of(value.get("microcompactMetadata"))
                self._compactions.micro(n, metadata, self._meter.usage)
                self._meter.compacted()
                return
            case "api_error":
                error = json_of(value.get("error")) if "error" in value else text
                event = e.ErrorRaised(kind="api_error", message=error, where=AGENT)
                self.reading.out.add(n, event)
            case "informational" if text:
                self.reading.note(n, "informational", text)
            case _ if kind not in SILENT_SYSTEM:
                self._odd.unknown(n, f"system/{kind}" if kind else "system", value)
            case _:
                pass
        self._placing.add(Node(uuid, n, Role.OTHER), parent)

    def _assistant(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        self._placing.close()
        request_id = text_of(value.get("requestId"))
        if value.get("isApiErrorMessage") is True:
            self._api_error(n, uuid, parent, value, message)
            return
        content = message.get("content")
        self._odd.blocks(n, content)
        id = text_of(message.get("id"))
        items = self.reading.kept(assistant_items(content))
        raw = self.reading.raw(blocks_of(content))
        node = Node(uuid, n, Role.ASSISTANT, items, id or request_id or uuid, raw)
        self._said.family, self._said.stop = id, text_of(message.get("stop_reason"))
        model, usage = text_of(message.get("model")), usage_of(message.get("usage"))
        self._said.block(node, parent, model, usage, message.get("context_management"))

    def _sidechain(self, n: int, kind: str, agent: str, value: dict[str, Any]) -> None:
        """A record of a subagent inside its parent's file (1.0.x), or the other way round."""
        message = dict_of(value.get("message"))
        content = message.get("content")
        self.reading.agents.add(agent)
        if self._sides is not None and self._on_request is not None and value.get("isSidechain"):
            asked = self._sides.record(n, kind, value)
            if asked is not None:
                self._on_request(asked)
        match kind:
            case "user":
                items = user_items(content)
            case "assistant":
                items = assistant_items(content)
            case "attachment":
                items = attachment_items(dict_of(value.get("attachment")), value.get("rendered"))
            case _:
                items = ()
        self._odd.blocks(n, content)
        where = f"subagent {agent}".strip()
        self.reading.beside(n, self.reading.kept(items), f"{where}: a conversation of its own")

    def _api_error(
        self, n: int, uuid: str, parent: str, value: dict[str, Any], message: dict[str, Any]
    ) -> None:
        """A request that failed for good. The record is on the way, but the model never sees it,
        except in versions 1.0, which go on sending it as an answer of its own."""
        content = message.get("content")
        text = first_text(content)
        node = Node(uuid, n, Role.OTHER)
        if self.reading.version.startswith("1."):
            items, raw = assistant_items(content), self.reading.raw(blocks_of(content))
            node = Node(uuid, n, Role.ASSISTANT, items, uuid, raw)
        used = self._placing.add(node, parent)
        # Behind an answer it only tells of that answer (a refusal, the output limit).
        answered = node.parent is not None and node.parent.role is Role.ASSISTANT
        if text_of(value.get("requestId")) and not answered:
            self.reading.request(node, number=self._said.count + 1, failed=text)
        self.reading.append(node, used, note="written by Claude Code itself")
        details, kind = text_of(value.get("errorDetails")), text_of(value.get("error"))
        self._turns.failed(n, text, details, kind)

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
