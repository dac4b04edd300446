"""Codex's history at any line of a rollout, in its wire form: the replay rule of the format.

A response_item is appended; a compacted line replaces everything; a rollback takes turns back.
Everything else changes nothing. What the model then gets is `normalised`: a call without an output
gets one, an output without a call is left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from ..compaction.policies.codex import history as rules
from ..compaction.policies.codex.estimate import text_tokens
from ..compaction.policies.codex.history import USER_BUDGET, newest_within
from ..compaction.policies.codex.truncation import truncated
from ..context import EntryId
from ..items import Item
from .base import WireItem
from .codex_items import (
    CALLS,
    half_of,
    is_real_user,
    item_of,
    kinds_of,
    sent_form,
    text_of,
    texts_of,
    type_of,
)


class Held(NamedTuple):
    """An item of the history: where it came from, its wire form and ours.

    `answer` marks what a compaction request answered: Codex has it in its history until the
    compacted line that follows, the model never sees it there.
    """

    id: EntryId
    raw: WireItem
    item: Item
    answer: bool = False


class _Turn(NamedTuple):
    """A turn of the user: the compactions before its task began and before its message, and the
    place of that message in the history."""

    task_epoch: int
    epoch: int
    position: int


class WireHistory:
    """The fold. `held` is the history now; checkpoints keep what rollbacks may need.

    With `before`, which reads the history before a compacted line again, they only keep the line.
    """

    def __init__(self, before: Callable[[int], list[Held]] | None = None) -> None:
        self.held: list[Held] = []
        self._before = before
        self._turns: list[_Turn] = []
        self._checkpoints: list[list[Held] | int] = []
        self._task_epoch = 0

    @property
    def raw(self) -> list[WireItem]:
        """The history in its wire form."""
        return [held.raw for held in self.held]

    @property
    def compactions(self) -> int:
        """How many compactions lie behind this history (undone ones do not count)."""
        return len(self._checkpoints)

    def start_task(self) -> None:
        """A task begins: a rollback of it undoes the compactions from here on."""
        self._task_epoch = self.compactions

    def append(self, held: Held, *, said: bool) -> None:
        """A response_item; `said` says that a user said it."""
        if said and not held.answer:
            self._turns.append(_Turn(self._task_epoch, self.compactions, len(self.held)))
        self.held.append(held)

    def replace(self, held: Iterable[Held], line: int) -> None:
        """A compacted line."""
        visible = [each for each in self.held if not each.answer]
        self._checkpoints.append(visible if self._before is None else line)
        self.held = list(held)

    def roll_back(self, turns: int) -> int:
        """Take back the last `turns` turns of the user, at most all; returns how many there were.

        A compaction that ran in a turn that is taken back is undone with it.
        """
        turns = min(turns, len(self._turns))
        if turns <= 0:
            return 0
        first = self._turns[-turns]
        del self._turns[-turns:]
        if first.task_epoch == self.compactions:
            self.held = self.held[: first.position]
            return turns
        base = self._checkpoints[first.task_epoch]
        if isinstance(base, int):
            base = self._before(base) if self._before is not None else []
        self.held = base[: first.position] if first.epoch == first.task_epoch else list(base)
        del self._checkpoints[first.task_epoch :]
        self._task_epoch = self.compactions
        return turns

    def keep(self, held: Sequence[Held]) -> None:
        """Exchange the entries for the same items under other ids, or with other marks."""
        self.held = list(held)


def rebuilt(history: Sequence[WireItem], message: str) -> list[WireItem]:
    """The history after an old compacted line that does not hold it: what the user said, newest
    first, as far as 20,000 tokens go, and the summary message at the end."""
    said = [raw for raw in history if is_real_user(raw)]
    texts = ["".join(texts_of(raw.get("content"))) for raw in said]
    kept = [
        said[place]
        if room is None
        else {**said[place], "content": _text_content(truncated(texts[place], room))}
        for place, room in newest_within([text_tokens(text) for text in texts], USER_BUDGET)
    ]
    return [*kept, {"type": "message", "role": "user", "content": _text_content(message)}]


def descent(history: Sequence[WireItem]) -> list[list[WireItem]]:
    """What is left of the history in each retry of a compaction request that does not fit."""
    return list(rules.descent(history, half_of))


def normalised(history: Sequence[WireItem]) -> list[WireItem]:
    """The history as a request carries it."""
    return [sent_form(raw) for raw in rules.normalised(history, half_of, _aborted)]


def _aborted(call: WireItem) -> WireItem:
    return {
        "type": CALLS[type_of(call)],
        "call_id": text_of(call.get("call_id")),
        "output": rules.NO_OUTPUT,
    }


class Head(msgspec.Struct, frozen=True):
    """What stands before the history in a request: the base instructions of a thread."""

    thread: str = ""
    instructions: str = ""
    in_input: bool = True
    """False for files from before they were sent as an item of the input."""

    def message(self) -> WireItem:
        """The base instructions as the developer message that is sent.

        Its id is a name-based UUID (RFC 9562, version 5) of the text, in a name space that is
        itself one of the thread's id in the name space for object ids.
        """
        space = uuid.uuid5(uuid.NAMESPACE_OID, self.thread)
        return {
            "type": "message",
            "id": f"msg_{uuid.uuid5(space, self.instructions)}",
            "role": "developer",
            "content": _text_content(self.instructions),
        }

    def request(self, history: Sequence[WireItem]) -> list[WireItem]:
        """The input of a request: the base instructions unless the history holds them, then it."""
        sent = normalised(history)
        if not self.instructions or not self.in_input or any(map(self._is_base, history)):
            return sent
        return [self.message(), *sent]

    def _is_base(self, raw: WireItem) -> bool:
        if type_of(raw) != "message" or raw.get("role") != "developer":
            return False
        if "model.base_instructions" in kinds_of(raw):
            return True
        return "".join(texts_of(raw.get("content"))) == self.instructions


def held_item(id: EntryId, raw: WireItem, *, answer: bool = False, summary: bool = False) -> Held:
    """An item with ours beside it."""
    return Held(id, raw, item_of(raw, summary=summary), answer)


def _text_content(text: str) -> list[WireItem]:
    return [{"type": "input_text", "text": text}]
