"""A Codex rollout, line by line, as our events: one `Translator` is one pass over one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from sys import intern
from typing import Any, Final

import msgspec

from .. import events as e
from ..context import EntryId
from ..errors import ThresherError
from ..items import Message
from .base import WireItem
from .codex_compactions import Compactions
from .codex_items import KNOWN, dict_of, int_of, is_model_made, is_real_user, text_of, type_of
from .codex_lines import (
    Anything,
    Applied,
    Call,
    Completed,
    Count,
    Done,
    ItemLine,
    KnownLine,
    Output,
    Payload,
    Said,
    Started,
    Thought,
    TurnSettings,
    UsageRecord,
)
from .codex_messages import Messages
from .codex_meter import Meter
from .codex_past import Past, past_file, past_lines, past_of
from .codex_reading import Reading
from .codex_replay import Held, held_item
from .codex_slim import Slimmer
from .codex_start import Start
from .lines import Line, read_lines
from .times import seconds_of

MOST_PASTS: Final = 100
"""Files that go on from one another; more is taken for a circle."""
TAKEN_OVER: Final = "taken over from the file that this one goes on from"

_SILENT: Final = frozenset(
    {"world_state", "retained_context", "inter_agent_communication_metadata"}
)


class Translator:
    """The fold. `feed` gives the records that are ready; `flush` those that are held back.

    `reading` is the state of the file in Codex's own terms.
    """

    def __init__(
        self,
        slimmer: Slimmer | None = None,
        *,
        forget: bool = True,
        path: Path | None = None,
        seen: frozenset[Path] = frozenset(),
    ) -> None:
        """`path` is the file: one that it goes on from is looked for there, and not at all without
        it; `seen` are the files that go on from this one."""
        self._path = path
        self._seen = seen
        forgets = slimmer is not None and forget
        self.reading = Reading(slimmer, self._before if forgets else None)
        self._meter = Meter(self.reading)
        self._compactions = Compactions(self.reading, self._meter)
        self._start = Start(self.reading, self._compactions)
        self._messages = Messages(self.reading, self._meter, self._compactions)
        self._ids = False
        self._begun = False
        """The first record is held back no longer, and the version is known to be modern."""
        self._known_as: dict[type[Payload], Callable[[Line, Any, Any], None]] = {
            Thought: self._known_item, Call: self._known_item, Output: self._known_item,
            Said: self._known_message, Count: self._known_count, Done: self._known_done,
            UsageRecord: self._known_usage, TurnSettings: self._known_settings,
            Started: self._known_start, Completed: self._known_end,
            Applied: self._known_silent, Anything: self._known_silent,
        }  # fmt: skip
        """What takes a line that was decoded into its own form, by the type of its payload."""

    def feed(self, line: Line) -> list[e.Record]:
        """Take one line and give the records that are ready."""
        return self.feed_all((line,))

    def feed_all(self, lines: Iterable[Line]) -> list[e.Record]:
        """Take several lines and give the records that are ready."""
        r, known_as = self.reading, self._known_as
        for line in lines:
            known = line.known
            if known is None or not self._begun:
                self._take(line)
            else:
                # Nearly all lines of a large file.
                r.out.at = known.timestamp.timestamp() or r.out.at
                known_as[type(known.payload)](line, known, known.payload)
        return r.out.ready()

    def _take(self, line: Line) -> None:
        r = self.reading
        if r.slimmer is not None:
            r.slimmer.begin(line)
        if line.value is not None:
            r.out.at = seconds_of(line.value.get("timestamp")) or r.out.at
        known = line.known
        if isinstance(known, KnownLine):
            r.out.at = known.timestamp.timestamp() or r.out.at
        self._start.line(line.number)
        if isinstance(known, KnownLine):
            r.modern = r.modern or known.ordinal is not msgspec.UNSET
            self._known_as[type(known.payload)](line, known, known.payload)
        if line.fault:
            self._bad(line)
        if line.value is not None:
            try:
                self._line(line.number, line.value)
            except RecursionError:
                # Decoding has more room on the stack than what reads the result.
                fault = "it is nested too deeply to be read"
                self._bad(msgspec.structs.replace(line, value=None, fault=fault))
        self._start.wait_no_longer()
        self._begun = r.modern and not self._start.waits

    def _before(self, line: int) -> list[Held]:
        """The history before a compacted line, read anew: a slim reading does not keep what only
        a rollback over a compaction can ask for."""
        slimmer = self.reading.slimmer
        if slimmer is None:
            return []
        path = slimmer.bodies.path
        twin = Translator(slimmer.twin(), forget=False, path=path, seen=self._seen)
        for each in read_lines(path):
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
            self.reading.unknown(n, kind, value)
            return
        is_count = kind == "event_msg" and payload.get("type") == "token_count"
        if kind not in ("compacted", "token_usage_record") and not is_count:
            self._meter.settle()
        match kind:
            case "response_item":
                self._item(n, payload, dict_of(value.get("metadata")))
            case "event_msg":
                self._messages.message(n, payload)
            case "token_usage_record":
                self._meter.usage_record(n, payload)
            case "compacted":
                self._compactions.compacted(n, payload)
            case "turn_context":
                model, comp_hash = payload.get("model"), payload.get("comp_hash")
                self._start.settings(n, text_of(model), text_of(comp_hash))
            case "session_meta":
                self._session_meta(n, payload)
            case _ if kind not in _SILENT:
                self.reading.unknown(n, kind, value)
            case _:
                pass

    def _bad(self, line: Line) -> None:
        fate = "is left out" if line.value is None else "was mended"
        message = f"line {line.number + 1} (byte {line.offset:,}) {fate}: {line.fault}"
        self.reading.out.add(
            line.number,
            e.ErrorRaised(kind="bad_line", message=message, line=line.number, offset=line.offset),
        )

    # -- what the file goes on from ----------------------------------------------------------------

    def _session_meta(self, n: int, payload: dict[str, Any]) -> None:
        if not self._start.meta(n, payload):
            return
        if self._path is not None and (past := past_of(payload)) is not None:
            self._go_on(n, self._path, past)

    def _go_on(self, n: int, path: Path, past: Past) -> None:
        """The file goes on from another one: take over what that one says of the context. It is
        held whole, since its texts are not in this file."""
        r = self.reading
        file = past_file(path, past) if len(self._seen) < MOST_PASTS else None
        if file is None or file in self._seen:
            text = (
                f"what came before is in the rollout {past.rollout}, as far as its ordinal "
                f"{past.end - 1}; it is not here, so the context is not known"
            )
            r.out.add(n, e.ErrorRaised(kind="file", message=text, where="codex"))
            return
        base = Translator(path=file, seen=self._seen | {file})
        try:
            for line in past_lines(file, past):
                base.feed(line)
        except ThresherError as error:
            text = f"what came before is not known: {error.msg}"
            r.out.add(n, e.ErrorRaised(kind="file", message=text, where="codex"))
            return
        base.flush()
        old = base.reading
        r.take_over(old)
        self._meter.take_over(base._meter)
        self._start.take_over(base._start)
        held = [
            held_item(EntryId(n, part), each.raw, answer=each.answer)
            for part, each in enumerate(old.history.held)
        ]
        text = (
            f"goes on from {file.name}, as far as its ordinal {past.end - 1}: "
            f"{len(held):,} items, {old.made:,} compactions behind it"
        )
        r.out.add(n, e.Note(kind="fork", text=text))
        for each in held:
            if is_real_user(each.raw):
                self._start.entitle(each.raw)
            r.append(n, each, TAKEN_OVER)

    # -- items -------------------------------------------------------------------------------------

    def _item(self, n: int, raw: WireItem, metadata: dict[str, Any]) -> None:
        r = self.reading
        answer = metadata.get("compaction_output") is True
        if not answer:
            self._compactions.failures.settle_answer(n)
            self._compactions.went_on(made=is_model_made(raw))
        sampled = int_of(metadata.get("sampled_through_sequence"))
        kind, made = type_of(raw), is_model_made(raw)
        self._meter.settle(sure=not made, by_item=made)
        for sent in r.requests.item(n, made, sampled, answer):
            r.request(sent)
        if kind not in KNOWN:
            self.reading.unknown(n, f"response_item/{kind}", raw)
        if kind == "message" and not made and not self._ids:
            # What Codex itself makes has an id from the version on that sends them.
            self._ids = "id" in raw
            r.head = msgspec.structs.replace(r.head, ids=self._ids)
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
        self._start.entitle(raw)

    def entitle(self, raw: WireItem) -> None:
        """Take what the user said first as the title, while the first record is held back."""
        self._start.entitle(raw)

    # -- lines that are decoded into their own form ------------------------------------------------

    def _known_silent(self, line: Line, known: KnownLine, payload: object) -> None:
        if self.reading.requests.doubtful is not None:
            self._meter.settle()

    def _known_count(self, line: Line, known: KnownLine, count: Count) -> None:
        self._meter.known_count(line.number, count.info)

    def _known_usage(self, line: Line, known: KnownLine, told: UsageRecord) -> None:
        self._meter.known_response(line.number, told)

    def _known_settings(self, line: Line, known: KnownLine, told: TurnSettings) -> None:
        if self.reading.requests.doubtful is not None:
            self._meter.settle()
        self._start.settings(line.number, told.model or "", told.comp_hash or "")

    def _known_start(self, line: Line, known: KnownLine, told: Started) -> None:
        if self.reading.requests.doubtful is not None:
            self._meter.settle()
        attributed = told.turn_attribution is not None
        self._messages.task_started(line.number, told.model_context_window, attributed=attributed)

    def _known_end(self, line: Line, known: KnownLine, told: Completed) -> None:
        if self.reading.requests.doubtful is not None:
            self._meter.settle()
        self._messages.task_ended(line.number, {}, "completed")

    def _known_done(self, line: Line, known: KnownLine, done: Done) -> None:
        if self.reading.requests.doubtful is not None:
            self._meter.settle()
        item = done.item
        if item.type != "CommandExecution" or item.id not in self.reading.calls:
            return
        took = item.duration
        seconds = 0.0 if took is None else took.secs + took.nanos / 1e9
        ok, size = item.status != "failed", len(item.aggregated_output or "")
        code, begun = item.exit_code, done.started_at_ms
        self._messages.ran(line.number, intern(item.id), seconds, code, ok, size, begun)

    def _known_item(self, line: Line, known: ItemLine, payload: Thought | Call | Output) -> None:
        r, n = self.reading, line.number
        made = type(payload) is not Output
        self._next_item(n, made, known.metadata.sampled_through_sequence)
        if r.slimmer is not None:
            r.append(n, r.slimmer.known(EntryId(n), line, payload))

    def _known_message(self, line: Line, known: ItemLine, said: Said) -> None:
        r, n = self.reading, line.number
        self._next_item(n, said.role == "assistant", known.metadata.sampled_through_sequence)
        if r.slimmer is not None:
            raw, item = r.slimmer.said(line, said)
            by_user = said.role == "user" and type(item) is Message and not item.synthetic
            if by_user:
                self._spoken(n, raw)
            r.append(n, Held(EntryId(n), raw, item), said=by_user)

    def _next_item(self, n: int, made: bool, sampled: int | None) -> None:
        r = self.reading
        if r.requests.doubtful is not None:
            self._meter.settle(sure=not made, by_item=made)
        if r.requests.answering is not None:
            self._compactions.failures.settle_answer(n)
        self._compactions.went_on(made=made)
        for sent in r.requests.item(n, made, sampled, False):
            r.request(sent)
