"""The fold over OpenCode's changes: what both of its engines have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from .. import events as e
from ..compaction.policies.opencode.estimate import compact_json, tokens, units
from ..compaction.policy import Moment, Trigger
from ..tokens import Basis, Scope, Tokens, Usage
from .base import RebuiltRequest, WireItem
from .codex_items import dict_of, int_of, text_of
from .opencode_v1 import Piece
from .outbox import Outbox
from .shown import Edit, Shown

AGENT: Final = "opencode"
TITLE: Final = 200


class SessionInfo(msgspec.Struct, frozen=True):
    """What the database says of a session. Times are in seconds (UTC)."""

    id: str
    title: str = ""
    directory: str = ""
    model: str = ""
    version: str = ""
    parent: str = ""
    made: float = 0.0
    last: float = 0.0


class Telling:
    """What is told so far: the state that both engines work on.

    `collect` keeps every request in its wire form; without it only the events are made.
    """

    def __init__(self, *, collect: bool = False) -> None:
        self.out = Outbox()
        self.shown = Shown(self.out)
        self.collect = collect
        self.requests: list[RebuiltRequest] = []
        self.turn = 0
        self.turn_open = False
        self.rounds = 0
        self.sent = 0
        self.ordinal = 0
        self.model = ""
        self.usage: Usage | None = None
        """The last report of a turn's request since the last compaction."""

    # -- turns and items -----------------------------------------------------------------------

    def begin_turn(self, n: int) -> None:
        """A person said something."""
        self.end_turn(n, "completed")
        self.turn += 1
        self.turn_open = True
        self.out.emit(self.out.not_before(n), e.TurnStarted(turn=self.turn))

    def end_turn(self, n: int, outcome: str, message: str = "") -> None:
        """The turn is over, if one runs."""
        if self.turn_open:
            self.turn_open = False
            event = e.TurnFinished(turn=self.turn, outcome=outcome, message=message)
            self.out.emit(self.out.not_before(n), event)

    def append(self, piece: Piece, note: str = "") -> None:
        """An item enters the context."""
        self.shown.append(piece, turn=self.turn, round=self.rounds, note=note)

    def tell(self, n: int, event: e.Event, at: float | None = None) -> None:
        """Anything else."""
        self.out.emit(self.out.not_before(n), event, at)

    def ephemeral(self, event: e.Event) -> None:
        """A piece of a stream, which has no place in the record."""
        self.out.emit_ephemeral(event)

    # -- requests and usage --------------------------------------------------------------------

    def request(self, n: int, purpose: e.Purpose, model: str, pass_id: str = "") -> None:
        """A request went out, just before change `n`."""
        if model and model != self.model:
            if self.model:
                self.tell(n, e.ModelChanged(model=model, previous=self.model))
            self.model = model
        self.sent += 1
        if purpose is e.Purpose.TURN:
            self.rounds += 1
        held = self.shown.held
        first, last = (held[0].id, held[-1].id) if held else (None, None)
        event = e.RequestSent(
            request=self.sent,
            purpose=purpose,
            model=model,
            turn=self.turn,
            round=self.rounds,
            entries=f"{first.bare}-{last.bare}" if first and last else "",
            pass_id=pass_id,
        )
        self.tell(n, event)

    def report(self, n: int, told: object, purpose: e.Purpose) -> Usage | None:
        """What the provider reported for the last request; nothing when it reported nothing."""
        usage = usage_of(told)
        if usage is None:
            return None
        event = e.UsageReported(usage=usage, purpose=purpose, model=self.model, request=self.sent)
        self.tell(n, event)
        if purpose is e.Purpose.TURN:
            self.usage = usage
        return usage

    # -- compactions ---------------------------------------------------------------------------

    def compacted(
        self,
        edit: Edit,
        *,
        pass_id: str,
        policy: str,
        stage: str,
        moment: Moment | None,
        trigger: Trigger,
        reason: str,
        before: Sequence[WireItem],
        after: Sequence[WireItem],
        **more: Any,
    ) -> None:
        """An edit is a compaction: tell it. The figures are of the messages as they are sent."""
        change = edit.change
        event = e.HistoryCompacted(
            ordinal=self.ordinal,
            pass_id=pass_id,
            policy=policy,
            stage=stage,
            moment=moment,
            trigger=trigger,
            reason=f"{reason}; {_sizes(len(before), len(after))}",
            segments=edit.segments,
            items_before=edit.before,
            items_after=len(change.after),
            kept=len(change.kept),
            removed=len(change.removed),
            replaced=len(change.replaced),
            inserted=len(change.inserted),
            removed_ids=edit.removed_ids,
            before=estimated(before),
            after=estimated(after),
            usage=self.usage,
            window=self.ordinal,
            **more,
        )
        self.out.emit(edit.n, event)
        self.usage = None

    def rewritten(self, edit: Edit, why: str, turns: int = 0) -> None:
        """An edit is no compaction: something was taken back or changed in the store."""
        if edit.nothing:
            return
        self.out.emit(edit.n, edit.taken_back(turns=turns, reason=edit.told(why)))
        self.usage = None


def estimated(messages: Sequence[WireItem]) -> Tokens:
    """OpenCode's own estimate of messages: a token for every four characters of their JSON."""
    size = tokens(units(compact_json(list(messages))))
    return Tokens(size, Basis.ESTIMATED, Scope.MESSAGES)


def usage_of(told: object) -> Usage | None:
    """OpenCode's token object. It takes cached tokens out of the input, and reasoning out of the
    output; None when there is none or all of it is zero."""
    data = dict_of(told)
    cache = dict_of(data.get("cache"))
    input, output = int_of(data.get("input")) or 0, int_of(data.get("output")) or 0
    read, write = int_of(cache.get("read")), int_of(cache.get("write"))
    thought, total = int_of(data.get("reasoning")), int_of(data.get("total"))
    if not (input or output or read or write or thought):
        return None
    return Usage(
        input_tokens=input + (read or 0) + (write or 0),
        output_tokens=output + (thought or 0),
        cached_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=thought,
        total_tokens=total or None,
    )


def error_of(error: dict[str, Any]) -> tuple[str, str]:
    """The name and the message of an error as OpenCode stores it."""
    name = text_of(error.get("name")) or text_of(error.get("type")) or "error"
    message = text_of(dict_of(error.get("data")).get("message")) or text_of(error.get("message"))
    return name, message or name


def _sizes(before: int, after: int) -> str:
    told = "1 message" if before == 1 else f"{before:,} messages"
    # What is only rewritten leaves as many as there were: that is no change to tell.
    return f"still {told}" if before == after else f"{told} become {after:,}"
