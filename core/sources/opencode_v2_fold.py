"""The fold of V2: its events, or its rows where there are no events, told as ours.

A step of the model is one request. A compaction that was begun and has no end is a refusal: nothing
in the record says why. A request that the provider refused before any answer left no row at all.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from ..compaction.policies.opencode.serialise import Writing, joined, written
from ..compaction.policy import Moment, Trigger
from .base import RebuiltRequest, WireItem
from .codex_items import dict_of, int_of, json_of, text_of
from .opencode_changes import ROW, Change
from .opencode_fold import Telling, error_of
from .opencode_v1 import Model, Piece
from .opencode_v1_compactions import NO_INSTRUCTION, summary_text
from .opencode_v2 import (
    KNOWN_ROWS,
    Row,
    pieces_of,
    reverted,
    row_event,
    tool_text,
    touched,
    window,
)
from .opencode_v2_wire import wire

POLICY: Final = "opencode-v2"
COMPACTION: Final = "compaction"
_WHY: Final = (
    "before a request, or after one that was refused as too long: the record does not tell which"
)
NOT_SURE: Final = (
    "whether it was sent: the compaction came either because it was refused, or before it"
)
_SILENT: Final = frozenset(
    {"prompt.admitted", "text.started", "text.ended", "reasoning.started", "reasoning.ended"}
    | {"tool.input.started", "tool.input.ended", "tool.progress", "step.ended", "step.failed"}
    | {"revert.staged", "revert.cleared", "moved", "shell.ended"}
    | {"tool.called", "tool.success", "tool.failed", "tool.error", "agent.switched", "retried"}
)
_DELTAS: Final = {"text.delta": "assistant", "reasoning.delta": "reasoning"}
_ENDS: Final = frozenset({"stop", "length", "content-filter", "other", "unknown"})


class V2:
    """The fold over one session. `baseline` is the change that the system text of now is from."""

    def __init__(self, telling: Telling, baseline: int = 0) -> None:
        self._t = telling
        self._baseline = baseline
        self._rows: dict[str, Row] = {}
        self._begun: tuple[str, int] | None = None
        self._ending: tuple[int, str, str] | None = None
        self._request: RebuiltRequest | None = None
        self._n = 0
        """The change that is being read."""
        self._now: Model = ("", "")
        """The model that is talked to."""
        self._compacting = False
        """A compaction was the last thing: the next one cannot come from a refused request."""
        self._head: list[Row] = []

    def feed(self, change: Change) -> bool:
        """Take a change; False when it is none of V2."""
        self._n = max(self._n, change.n)
        if change.type == ROW:
            self._row(change)
            return True
        event = row_event(change.type)
        if not event:
            return False
        data = change.data
        if event == "compaction.started":
            self._compaction_begun(text_of(data.get("messageID")), change.n)
            return True
        if event == "compaction.delta" or event in _DELTAS:
            self._delta(event, data)
            return True
        if event == "revert.committed":
            self._reverted(change)
            return True
        if event == "step.started":
            self._step_begun(change.n, dict_of(data.get("model")))
        if event == "model.switched":
            self._model(change.n, dict_of(data.get("model")))
        row = touched(self._rows, event, data, change.n)
        if row is not None:
            self._touched(row, event, data, change)
        elif event not in _SILENT and event != "model.switched":
            size = len(json_of(data))
            self._t.tell(change.n, e.UnknownRecord(type=change.type, line=change.n, size=size))
        return True

    def quiet(self) -> None:
        """Nothing has come for a while."""
        self._close_turn()

    def flush(self) -> None:
        """Nothing more comes."""
        self._close_turn()
        self._keep_request()

    @property
    def empty(self) -> bool:
        """Nothing was stored by V2."""
        return not self._rows

    def context(self) -> list[WireItem]:
        """What a request would carry now."""
        return wire(self._window(), self._now)

    # -- rows and steps --------------------------------------------------------------------------

    def _row(self, change: Change) -> None:
        """A row as it is: told as its events would have told it."""
        data = dict_of(change.data.get("data"))
        id, type = text_of(change.data.get("id")), text_of(change.data.get("type"))
        known = self._rows.get(id)
        if known is not None:
            known.data, known.n = data, change.n
            self._touched(known, "row", data, change)
            return
        row = Row(id, type, change.n, data)
        match type:
            case "assistant":
                self._step_begun(change.n, dict_of(data.get("model")))
            case "model-switched":
                self._model(change.n, dict_of(data.get("model")))
        self._rows[id] = row
        if type not in KNOWN_ROWS:
            size = len(json_of(data))
            self._t.tell(change.n, e.UnknownRecord(type=f"row/{type}", line=change.n, size=size))
        self._touched(row, "row", data, change)

    def _touched(self, row: Row, event: str, data: dict[str, Any], change: Change) -> None:
        n = change.n
        match row.type:
            case "compaction":
                self._compacted(row, n)
            case "user":
                self._refused(n)
                self._ending = None
                self._t.begin_turn(n)
                self._grow(row)
            case "assistant":
                self._tools(row, event, data, change)
                self._grow(row)
                if row.over and event in ("step.ended", "step.failed", "row"):
                    self._over(row, n)
            case _:
                self._grow(row)

    def _step_begun(self, n: int, model: dict[str, Any]) -> None:
        self._refused(n)
        self._ending = None
        self._compacting = False
        self._now = text_of(model.get("providerID")), text_of(model.get("id"))
        self._t.request(n, e.Purpose.TURN, self._now[1])
        if self._t.collect:
            self._keep_request()
            sent = wire(self._window(), self._now)
            self._request = RebuiltRequest(n - 1, e.Purpose.TURN, sent)

    def _reverted(self, change: Change) -> None:
        """The user took messages back."""
        self._refused(change.n)
        gone = reverted(self._rows, change.data)
        target = [piece for each in self._window() for piece in pieces_of(each)]
        edit = self._t.shown.edit(change.n, target, 0)
        turns = sum(row.type == "user" for row in gone)
        self._t.rewritten(edit, "taken back: the user went back to an earlier message", turns)

    def _over(self, row: Row, n: int) -> None:
        self._t.report(n, row.data.get("tokens"), e.Purpose.TURN)
        error = row.data.get("error")
        finish = text_of(row.data.get("finish"))
        if finish == "error" or error:
            name, text = error_of(dict_of(error)) if isinstance(error, dict) else ("error", "")
            text = text or text_of(error) or "the step failed"
            overflow = "overflow" in name.lower() or "context" in text.lower()
            event: e.Event = e.ErrorRaised(kind=name, message=text, where="opencode")
            if overflow:
                event = e.ContextOverflowed(message=text, request=self._t.sent)
            self._t.tell(n, event)
            self._ending = (n, "failed", text)
            if self._request is not None:
                self._request = msgspec.structs.replace(self._request, failed=name)
        elif finish in _ENDS:
            self._ending = (n, "completed", "")

    def _keep_request(self) -> None:
        if self._request is not None:
            self._t.requests.append(self._request)
            self._request = None

    def _tools(self, row: Row, event: str, data: dict[str, Any], change: Change) -> None:
        call = text_of(data.get("callID"))
        part = row.part(call) if call else None
        if part is None:
            return
        name = text_of(part.get("name"))
        if event == "tool.called":
            self._grow(row)
            self._t.tell(change.n, e.ToolStarted(call_id=call, name=name))
        elif event in ("tool.success", "tool.failed", "tool.error"):
            text, failed = tool_text(part)
            state = dict_of(part.get("state"))
            code = int_of(dict_of(state.get("structured")).get("exit"))
            paths = state.get("outputPaths")
            saved = text_of(paths[0]) if isinstance(paths, list) and paths else ""
            event_ = e.ToolFinished(
                call_id=call,
                name=name,
                ok=not failed and code in (None, 0),
                exit_code=code,
                size=len(text),
                saved=saved,
            )
            self._t.tell(change.n, event_)

    def _grow(self, row: Row) -> None:
        for piece in pieces_of(row):
            if piece.key not in self._t.shown:
                self._t.append(piece)

    def _delta(self, event: str, data: dict[str, Any]) -> None:
        text = text_of(data.get("delta")) or text_of(data.get("text"))
        if not text:
            return
        if event == "compaction.delta":
            pass_id = f"opencode-{text_of(data.get('messageID'))}"
            self._t.ephemeral(e.MessageDelta(text=text, channel="summary", pass_id=pass_id))
        else:
            self._t.ephemeral(e.MessageDelta(text=text, channel=_DELTAS[event]))

    def _model(self, n: int, told: dict[str, Any]) -> None:
        self._now = text_of(told.get("providerID")), text_of(told.get("id"))
        model = self._now[1]
        if model and model != self._t.model:
            if self._t.model:
                self._t.tell(n, e.ModelChanged(model=model, previous=self._t.model))
            self._t.model = model

    def _close_turn(self) -> None:
        if self._ending is not None:
            self._t.end_turn(*self._ending)
            self._ending = None

    def _window(self) -> list[Row]:
        return self._of(list(self._rows.values()))

    def _of(self, rows: list[Row]) -> list[Row]:
        """What of these rows a request carries. Only the newest baseline is stored: before it the
        system text was an older one."""
        return window(rows, self._baseline if self._baseline < self._n else 0)

    # -- compactions -----------------------------------------------------------------------------

    def _compaction_begun(self, id: str, n: int) -> None:
        self._refused(n)
        self._begun = (id, n)
        event = e.CompactionStarted(
            pass_id=f"opencode-{id}",
            policy=POLICY,
            stage=COMPACTION,
            moment=Moment.BEFORE_REQUEST,
            trigger=Trigger.AUTO,
            reason=_WHY,
        )
        self._t.tell(n, event)

    def _refused(self, n: int) -> None:
        """The session goes on, and a compaction that was begun has no end."""
        if self._begun is None:
            return
        id, begun = self._begun
        self._begun = None
        if self._t.collect:
            self._keep_request()
            self._collect_summary(begun, self._window(), None)
        event = e.CompactionFailed(
            pass_id=f"opencode-{id}",
            policy=POLICY,
            stage=COMPACTION,
            moment=Moment.BEFORE_REQUEST,
            trigger=Trigger.AUTO,
            outcome=e.Outcome.FAILED,
            reason="it was begun and has no end: OpenCode declined, and stores no reason",
            kind="no end",
            next_step="the request is sent as it is",
            evidence="inferred",
        )
        self._t.tell(n, event)

    def _compacted(self, row: Row, n: int) -> None:
        if row.id in self._t.shown:
            return
        begun, self._begun = self._begun, None
        before = [each for each in self._rows.values() if each is not row]
        old = self._of(before)
        self._t.request(n, e.Purpose.COMPACTION, self._t.model, f"opencode-{row.id}")
        if self._t.collect:
            self._keep_request()
            if not self._compacting:
                self._collect_refused(begun[1] if begun else n, old)
            self._collect_summary(begun[1] if begun else n, old, row)
        self._compacting = True
        target = [piece for each in self._window() for piece in _pieces(each)]
        self._t.ordinal += 1
        edit = self._t.shown.edit(n, target, self._t.ordinal, row.id)
        recent = text_of(row.data.get("recent"))
        kept = (
            f"the newest {len(recent):,} characters are kept as text"
            if recent
            else ("nothing is kept as it was, since the newest message alone is too long")
        )
        self._t.compacted(
            edit,
            pass_id=f"opencode-{row.id}",
            policy=POLICY,
            stage=COMPACTION,
            moment=Moment.BEFORE_REQUEST,
            trigger=Trigger.AUTO,
            reason=f"{_WHY}; {kept}",
            before=wire(old),
            after=wire(self._window()),
            summary=text_of(row.data.get("summary")),
            summariser=e.Summariser(model=self._t.model),
            reason_evidence="inferred",
            marks=() if recent else ("the newest message is only in the summary, if there",),
        )

    def _collect_refused(self, n: int, old: list[Row]) -> None:
        """The request that may have been refused: of a refusal that a compaction follows V2 stores
        nothing, and one that is made before the request looks the same."""
        sent = wire(old, self._now)
        self._t.requests.append(
            RebuiltRequest(n - 1, e.Purpose.TURN, sent, missing=NOT_SURE, evidence="inferred")
        )

    def _collect_summary(self, n: int, old: list[Row], row: Row | None) -> None:
        """The request of the summary: the last one's recent text, and what was sent up to now. The
        newest messages, which stay as `recent`, are not in it. Of one without an end (None) it is
        not stored which these were."""
        how = Writing(tool_chars=2000, synthetic=True)
        texts = [(each, _written(each, how)) for each in old if each.type != "compaction"]
        recent = text_of(row.data.get("recent")) if row is not None else ""
        end = len(texts)
        while end and recent != joined(text for _, text in texts[end:]):
            end -= 1
        missing = NO_INSTRUCTION
        if row is None or recent != joined(text for _, text in texts[end:]):
            end, missing = len(texts), f"{missing}; where its recent part begins is not clear"
        previous = next((each for each in old if each.type == "compaction"), None)
        kept = text_of(previous.data.get("recent")) if previous is not None else ""
        summary = text_of(previous.data.get("summary")) if previous is not None else ""
        conversation = joined([kept, *(text for _, text in texts[:end])])
        content = summary_text(conversation, summary)
        self._t.requests.append(
            RebuiltRequest(
                n - 1,
                e.Purpose.COMPACTION,
                [{"role": "user", "content": content}],
                missing=missing,
                failed="" if row is not None else "no end",
                evidence="derived" if row is not None else "inferred",
            )
        )


def _pieces(row: Row) -> list[Piece]:
    return list(pieces_of(row))


def _written(row: Row, how: Writing) -> str:
    """A row as text for the summariser, which sees of a result only its content."""
    tools = (
        {
            text_of(part.get("name"))
            for part in row.content
            if part.get("type") == "tool" and not dict_of(part.get("state")).get("content")
        }
        if row.type == "assistant"
        else set()
    )
    empty = msgspec.structs.replace(how, empty_tools=frozenset(tools))
    return written([piece.item for piece in pieces_of(row)], empty)
