"""A session file of pi, line by line, as our events: one `Translator` is one pass over one file."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from ..amounts import count
from ..compaction.policy import Trigger
from ..items import Item, Message, Role
from ..tokens import Basis, Scope, Tokens, Usage
from .codex_items import dict_of, int_of, json_of, text_of
from .lines import Line
from .opencode_v1 import Piece
from .outbox import Outbox, Slot
from .pi_items import is_failed, is_sent, items_of
from .pi_overflow import overflow_of
from .pi_tree import KNOWN, PiEntry, PiTree, WireMessage
from .shown import Edit, Shown
from .times import seconds_of

AGENT: Final = "pi"
POLICY: Final = "pi"
TITLE: Final = 200
"""Characters of the first message that make the title."""
HELD_BACK: Final = 50
"""Records after which the start of the session no longer waits for its model and title."""
_WIRES: Final = {
    "openai-completions": "chat",
    "anthropic-messages": "anthropic",
    "openai-responses": "responses",
}
_ENDS: Final = {"stop": "completed", "length": "limit", "error": "failed", "aborted": "interrupted"}


class Translator:
    """The fold. `feed` gives the records that are ready; `flush` those that are held back.

    `tree` is the file in pi's own terms.
    """

    def __init__(self) -> None:
        self.tree = PiTree()
        self._out = Outbox()
        self._shown = Shown(self._out)
        self._first: Slot | None = None
        self._turn = 0
        self._in_turn = False
        self._sent = 0
        self._ordinal = 0
        self._ordinals: dict[str, int] = {}
        self._model = ""
        self._reported: int | None = None
        """The last total the provider gave for this context."""
        self._passed: dict[str, int] = {}
        """By model: the largest total after which the conversation went on uncompacted."""
        self._overflow = False

    def feed(self, line: Line) -> list[e.Record]:
        """Take one line and give the records that are ready."""
        if line.value is not None:
            self._out.at = seconds_of(line.value.get("timestamp")) or self._out.at
        if self._first is None:
            self._first = self._out.emit(
                line.number,
                e.SessionStarted(session_id="", agent=AGENT, system_recorded=False),
                hold=True,
            )
        if line.fault:
            self._bad(line)
        if line.value is not None:
            try:
                self._line(line)
            except RecursionError:
                fault = "it is nested too deeply to be read"
                self._bad(msgspec.structs.replace(line, value=None, fault=fault))
        if len(self._out) > HELD_BACK:
            self._first.held = False
        return self._out.ready()

    def flush(self) -> list[e.Record]:
        """Give everything that is held back, with what is known of it now."""
        self._out.release()
        return self._out.ready()

    # -- lines -----------------------------------------------------------------------------------

    def _line(self, line: Line) -> None:
        value, n = line.value or {}, line.number
        kind = text_of(value.get("type"))
        if kind == "session":
            self._head(n, value)
            return
        if kind not in KNOWN:
            size = len(json_of(value))
            self._emit(n, e.UnknownRecord(type=kind[:60] or "(no type)", line=n, size=size))
            if not isinstance(value.get("id"), str):
                return
        added = self.tree.add(line)
        if added is None:
            self._note(n, "duplicate", f"line {n + 1} repeats an entry that is there already")
            return
        if added.fault:
            message = f"line {n + 1}: {added.fault}"
            self._emit(n, e.ErrorRaised(kind="chain", message=message, line=n))
        if added.left is not None:
            self._branch(n, added.entry)
        self._entry(added.entry)

    def _entry(self, entry: PiEntry) -> None:
        n, value = entry.n, entry.value
        match entry.kind:
            case "message":
                self._message(entry, dict_of(value.get("message")))
            case "custom_message" | "branch_summary":
                self._append(entry)
            case "compaction":
                self._compacted(entry)
            case "model_change":
                self._model_is(n, text_of(value.get("modelId")))
            case "thinking_level_change":
                self._note(n, "setting", f"thinking level: {text_of(value.get('thinkingLevel'))}")
            case "session_info":
                self._note(n, "title", f"named {text_of(value.get('name'))}")
            case "label":
                self._note(n, "label", f"label: {text_of(value.get('label')) or '(taken off)'}")
            case _:
                pass

    def _head(self, n: int, value: dict[str, Any]) -> None:
        if self.tree.leaf is not None:
            self._note(n, "head", "a second head of a session, which changes nothing")
            return
        version = value.get("version")
        self._describe(
            session_id=text_of(value.get("id")),
            cwd=text_of(value.get("cwd")),
            version=str(version) if isinstance(version, int) else "1",
            parent=text_of(value.get("parentSession")),
        )

    def _describe(self, **told: Any) -> None:
        if self._first is not None and self._first.held:
            self._first.exchange(msgspec.structs.replace(self._first.event, **told))

    def _model_is(self, n: int, model: str) -> None:
        if not model or model == self._model:
            return
        before, self._model = self._model, model
        if before or self._first is None or not self._first.held:
            self._emit(n, e.ModelChanged(model=model, previous=before))
        else:
            self._describe(model=model)

    def _bad(self, line: Line) -> None:
        fate = "is left out" if line.value is None else "was mended"
        message = f"line {line.number + 1} (byte {line.offset:,}) {fate}: {line.fault}"
        event = e.ErrorRaised(
            kind="bad_line", message=message, line=line.number, offset=line.offset
        )
        self._emit(line.number, event)

    def _note(self, n: int, kind: str, text: str) -> None:
        self._emit(n, e.Note(kind=kind, text=text))

    def _emit(self, n: int, event: e.Event) -> None:
        self._out.emit(self._out.not_before(n), event)

    # -- messages --------------------------------------------------------------------------------

    def _message(self, entry: PiEntry, message: WireMessage) -> None:
        match text_of(message.get("role")):
            case "user":
                self._user(entry, message)
            case "assistant":
                self._answer(entry, message)
            case _:
                self._append(entry)

    def _user(self, entry: PiEntry, message: WireMessage) -> None:
        if self._in_turn:
            self._turn_ends(entry.n, "interrupted")
        self._turn += 1
        self._in_turn = True
        self._emit(entry.n, e.TurnStarted(turn=self._turn))
        self._append(entry)
        if self._first is not None and self._first.held and self._turn == 1:
            said = next(items_of(message), None)
            self._describe(title=" ".join((said.text if said else "").split())[:TITLE])

    def _answer(self, entry: PiEntry, message: WireMessage) -> None:
        n, model = entry.n, text_of(message.get("model"))
        if not self._sent:
            api = text_of(message.get("api"))
            self._describe(wire=_WIRES.get(api, api))
        self._model_is(n, model)
        if self._reported is not None:
            self._passed[self._model] = max(self._passed.get(self._model, 0), self._reported)
        self._sent += 1
        sent = e.RequestSent(
            request=self._sent, model=self._model, turn=self._turn, round=self._sent
        )
        self._emit(n, sent)
        self._append(entry)
        if self._first is not None:
            self._first.held = False
        self._overflow = False
        if is_failed(message):
            self._failure(n, message)
        elif (usage := usage_of(message)) is not None:
            self._reported = usage.total
            event = e.UsageReported(
                usage=usage,
                model=self._model,
                request=self._sent,
                response_id=text_of(message.get("responseId")),
            )
            self._emit(n, event)
        end = _ENDS.get(text_of(message.get("stopReason")))
        if end is not None and self._in_turn:
            self._turn_ends(n, end, text_of(message.get("errorMessage")))

    def _failure(self, n: int, message: WireMessage) -> None:
        said = text_of(message.get("errorMessage"))
        refused = overflow_of(said) if message.get("stopReason") == "error" else None
        if refused is not None:
            self._overflow = True
            event = e.ContextOverflowed(
                message=said, used=refused.used, limit=refused.limit, request=self._sent
            )
            self._emit(n, event)
        elif said:
            self._emit(n, e.ErrorRaised(kind="provider", message=said, where="request"))

    def _turn_ends(self, n: int, outcome: str, message: str = "") -> None:
        self._in_turn = False
        self._emit(n, e.TurnFinished(turn=self._turn, outcome=outcome, message=message))

    def _append(self, entry: PiEntry) -> None:
        message = entry.message or {}
        for piece in pieces_of(entry):
            if is_sent(message):
                self._shown.append(piece, turn=self._turn, round=self._sent)
            else:
                note = "the answer failed, so it is not sent" if is_failed(message) else "not sent"
                self._shown.aside(piece.item, entry.n, turn=self._turn, round=self._sent, note=note)

    # -- edits -----------------------------------------------------------------------------------

    def _branch(self, n: int, entry: PiEntry) -> None:
        """The user went to another entry, which the parent of this one is."""
        if self._in_turn:
            self._turn_ends(n, "interrupted")
        parent = self.tree.parent_of(entry)
        edit = self._shown.edit(n, self._view(parent), 0)
        here = {each.id for each in self.tree.path(parent)}
        gone = [self._ordinals[id] for id in self._ordinals if id not in here]
        undone = tuple(ordinal for ordinal in gone if ordinal)
        place = f"back to line {parent.n + 1}" if parent is not None else "back to the beginning"
        if edit.nothing:
            self._note(n, "branch", f"went {place}; the context is the same")
            return
        change = edit.change
        came = f", {len(change.inserted)} came back" if change.inserted else ""
        self._reported = None
        why = f"another branch: went {place}, {count(len(change.removed), 'item')} left{came}"
        event = edit.taken_back(turns=_turns_in(edit), undone=undone, reason=why)
        self._out.emit(edit.n, event)

    def _compacted(self, entry: PiEntry) -> None:
        n, value = entry.n, entry.value
        path = self.tree.path(entry)
        kept = self.tree.first_kept(path, len(path) - 1)
        self._ordinal += 1
        self._ordinals[entry.id] = self._ordinal
        edit = self._shown.edit(n, self._view(entry), self._ordinal, _key(entry, 0))
        change, tokens = edit.change, int_of(value.get("tokensBefore"))
        trigger, reason, known = self._cause(tokens)
        marks = []
        if kept == len(path) - 1:
            marks.append("the first entry it keeps is not on its branch: nothing before it is kept")
        if not change.removed:
            marks.append("nothing left: the context grew by the summary")
        basis = Basis.REPORTED if tokens == self._reported else Basis.ESTIMATED
        self._reported, self._overflow = None, False
        event = e.HistoryCompacted(
            ordinal=self._ordinal,
            pass_id=f"pi-{entry.id}",
            policy=POLICY,
            stage="extension" if value.get("fromHook") is True else "summary",
            moment=None,
            trigger=trigger,
            reason=reason,
            segments=edit.segments,
            items_before=edit.before,
            items_after=len(change.after),
            kept=len(change.kept),
            removed=len(change.removed),
            replaced=len(change.replaced),
            inserted=len(change.inserted),
            removed_ids=edit.removed_ids,
            before=Tokens(tokens, basis, Scope.REQUEST) if tokens is not None else None,
            summary=text_of(value.get("summary")),
            window=self._ordinal,
            marks=tuple(marks),
            reason_evidence=known,
        )
        self._out.emit(edit.n, event)

    def _cause(self, tokens: int | None) -> tuple[Trigger, str, str]:
        """What set it off, why, and how that is known: pi does not write it down."""
        if self._overflow:
            why = "the request before it was refused as too long; pi compacts and asks again"
            return Trigger.OVERFLOW, why, "inferred from two signals"
        passed = self._passed.get(self._model, 0)
        if tokens is not None and 0 < tokens < passed:
            why = (
                f"{tokens:,} tokens, and {passed:,} had passed with this model without one: "
                "the user or an extension asked for it"
            )
            return Trigger.MANUAL, why, "inferred from two signals"
        why = "whether pi's limit or the user set it off is not in the file"
        return Trigger.AUTO, why, "unknown"

    def _view(self, leaf: PiEntry | None) -> list[Piece]:
        shown = self.tree.shown(leaf)
        return [
            piece for entry in shown if is_sent(entry.message or {}) for piece in pieces_of(entry)
        ]


def pieces_of(entry: PiEntry) -> list[Piece]:
    """The items of an entry's message, each under a name of its own."""
    items: list[Item] = list(items_of(entry.message)) if entry.message is not None else []
    return [Piece(_key(entry, at), item, entry.n) for at, item in enumerate(items)]


def usage_of(message: WireMessage) -> Usage | None:
    """What an answer cost; None where nothing was reported. Here cached tokens stand beside the
    input."""
    told = dict_of(message.get("usage"))
    fresh, output = int_of(told.get("input")), int_of(told.get("output"))
    if fresh is None or output is None:
        return None
    read, write = int_of(told.get("cacheRead")) or 0, int_of(told.get("cacheWrite")) or 0
    total = int_of(told.get("totalTokens")) or fresh + read + write + output
    if not total:
        return None
    return Usage(
        input_tokens=fresh + read + write,
        output_tokens=output,
        cached_tokens=read,
        cache_write_tokens=write,
        total_tokens=total,
    )


def _key(entry: PiEntry, at: int) -> str:
    return f"{entry.id}/{at}"


def _turns_in(edit: Edit) -> int:
    gone = set(edit.change.removed)
    left = [each.item for each in edit.before_entries if each.id in gone]
    return sum(isinstance(i, Message) and i.role is Role.USER and not i.synthetic for i in left)
