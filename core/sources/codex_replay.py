"""Codex's history at any line of a rollout, in its wire form: the replay rule of the format.

A response_item is appended; a compacted line replaces everything; a rollback takes turns back.
Everything else changes nothing. What the model then gets is `normalised`: a call without an output
gets one, an output without a call is left out.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

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
    METADATA,
    dict_of,
    half_of,
    is_harness,
    is_real_user,
    is_summary,
    item_of,
    kinds_of,
    sent_form,
    text_of,
    texts_of,
    type_of,
)

_IMAGE_TAG: Final = re.compile(r"</?image[^<>]*>")
_BASE: Final = "model.base_instructions"
KINDS: Final = "content_item_kinds"
TOLD: Final = ("turn_id", "create_time")
"""The metadata of an item that OpenAI's own endpoint gets, and from 0.151 on the kinds of its
parts."""


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
        self._recorded = 0
        self._first_line = 0
        """How many compacted lines held their history, and the first of them."""

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

    def adopt(self, held: Iterable[Held]) -> None:
        """What another file holds of this history: there are no turns in it to take back."""
        self.held = list(held)

    def replace(self, held: Iterable[Held], line: int, *, recorded: bool = True) -> None:
        """A compacted line; `recorded` says that it holds the new history."""
        self._first_line = line if recorded and not self._recorded else self._first_line
        self._recorded += recorded
        visible = [each for each in self.held if not each.answer]
        self._checkpoints.append(visible if self._before is None else line)
        self.held = list(held)

    def roll_back(self, turns: int, *, restores: bool = True) -> int:
        """Take back the last `turns` turns of the user, at most all; returns how many there were.

        A compaction that ran in a turn that is taken back is undone with it. Without `restores`
        (up to 0.154) what lay before it does not come back: of the only compaction of a file even
        what it had kept is lost.
        """
        turns = min(turns, len(self._turns))
        if turns <= 0:
            return 0
        first = self._turns[-turns]
        del self._turns[-turns:]
        if restores and first.task_epoch == self.compactions:
            self.held = self.held[: first.position]
            return turns
        if not restores:
            del self._checkpoints[first.task_epoch :]
            self._task_epoch = self.compactions
            self._drop(turns)
            return turns
        base = self._checkpoints[first.task_epoch]
        if isinstance(base, int):
            base = self._before(base) if self._before is not None else []
        self.held = base[: first.position] if first.epoch == first.task_epoch else list(base)
        del self._checkpoints[first.task_epoch :]
        self._task_epoch = self.compactions
        return turns

    def _drop(self, turns: int) -> None:
        """Take back turns by counting what the user said in the history as it is."""
        if self._recorded == 1 and not self.compactions:
            self.held = [held for held in self.held if held.id.line > self._first_line]
        # Where compacted lines do not hold the history, a summary counts as a turn too.
        said = [
            at
            for at, held in enumerate(self.held)
            if is_real_user(held.raw) or (not self._recorded and is_summary(held.raw))
        ]
        if not said:
            return
        cut = said[-turns] if turns < len(said) else said[0]
        while cut > said[0] and is_harness(self.held[cut - 1].raw):
            cut -= 1
        self.held = self.held[:cut]

    def keep(self, held: Sequence[Held]) -> None:
        """Exchange the entries for the same items under other ids, or with other marks."""
        self.held = list(held)


def rebuilt(history: Sequence[WireItem], message: str) -> list[WireItem]:
    """The history after an old compacted line that does not hold it: the harness's own messages as
    they were last written together, what the user said, newest first, as far as 20,000 tokens go,
    and the summary message at the end."""
    said = [raw for raw in history if is_real_user(raw)]
    texts = [_words_of(raw) for raw in said]
    kept = [
        said[place]
        if room is None and texts_of(said[place].get("content")) == [texts[place]]
        else {**said[place], "content": _text_content(_cut(texts[place], room))}
        for place, room in newest_within([text_tokens(text) for text in texts], USER_BUDGET)
    ]
    summary = {"type": "message", "role": "user", "content": _text_content(message)}
    return [*_initial_context(history), *kept, summary]


def _cut(text: str, room: int | None) -> str:
    return text if room is None else truncated(text, room)


def _words_of(raw: WireItem) -> str:
    """What the user said in words: images go, and so do the tags around them."""
    texts = texts_of(raw.get("content"))
    return "".join(text for text in texts if not _IMAGE_TAG.fullmatch(text))


def _initial_context(history: Sequence[WireItem]) -> list[WireItem]:
    """The last whole run of harness messages: a single one behind the first only tells a change."""
    run: list[WireItem] = []
    found: list[WireItem] = []
    for raw in history:
        if is_harness(raw):
            run = [*run, raw]
            if not found or len(run) > 1 or run[0] is found[0]:
                found = run
        else:
            run = []
    return found


def descent(history: Sequence[WireItem]) -> list[list[WireItem]]:
    """What is left of the history in each retry of a compaction request that does not fit."""
    return list(rules.descent(history, half_of))


def normalised(history: Sequence[WireItem]) -> list[WireItem]:
    """The history as a request carries it, each item with all that is stored of it."""
    return rules.normalised(history, half_of, _aborted)


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
    ids: bool = True
    """False for files whose items are sent without their ids."""
    told: tuple[str, ...] = ()
    """The metadata that the provider gets (OpenAI's own; others get none)."""

    def message(self) -> WireItem:
        """The base instructions as the developer message that is sent.

        Its id is a name-based UUID (RFC 9562, version 5) of the text, in a name space that is
        itself one of the thread's id in the name space for object ids.
        """
        space = uuid.uuid5(uuid.NAMESPACE_OID, self.thread)
        base: WireItem = {
            "type": "message",
            "id": f"msg_{uuid.uuid5(space, self.instructions)}",
            "role": "developer",
            "content": _text_content(self.instructions),
        }
        return {**base, METADATA: {KINDS: [_BASE]}} if self.told else base

    def request(self, history: Sequence[WireItem]) -> list[WireItem]:
        """The input of a request: the base instructions unless the history holds them, then it."""
        sent = [self._sent(raw) for raw in normalised(history)]
        if not self.instructions or not self.in_input or any(map(self._is_base, history)):
            return sent
        return [self.message(), *sent]

    def _sent(self, raw: WireItem) -> WireItem:
        sent = sent_form(raw)
        if not self.ids:
            sent.pop("id", None)
        known = dict_of(raw.get(METADATA)) if self.told else {}
        if told := {key: known[key] for key in self.told if key in known}:
            sent[METADATA] = told
        return sent

    def _is_base(self, raw: WireItem) -> bool:
        if type_of(raw) != "message" or raw.get("role") != "developer":
            return False
        if _BASE in kinds_of(raw):
            return True
        return "".join(texts_of(raw.get("content"))) == self.instructions


def held_item(id: EntryId, raw: WireItem, *, answer: bool = False, summary: bool = False) -> Held:
    """An item with ours beside it."""
    return Held(id, raw, item_of(raw, summary=summary), answer)


def _text_content(text: str) -> list[WireItem]:
    return [{"type": "input_text", "text": text}]
