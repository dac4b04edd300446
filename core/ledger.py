"""The running sum: every item of a session is counted once, however often the context is.

The cost of a round is then the text that the round added, not the history it stands on. A
`Ledger` is the `Measure` that policies are given (`compaction/policy.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .context import Context, Entry, EntryId
from .costs import whole_tokens
from .items import (
    CompactionSummary,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    OtherItem,
    Reasoning,
    TextPart,
    sealed_length,
)
from .tokens import Basis, Counter, Scope, Tokens

IMAGE = 1_844
"""Tokens of a picture at normal detail, as Codex reckons them (7,373 bytes, four to a token)."""
SMALL_IMAGE = 85
"""Tokens of a picture at low detail, by OpenAI's rule."""

_ATTACHMENT = re.compile(r"[A-Za-z0-9+/=_-]{1000,}")
_SEALED_FRAME = 650


def item_tokens(counter: Counter, item: Item) -> int:
    """Tokens of one item as the model sees it, without framing (roles, ids, JSON around it).

    Text counts as it is: of a message its text parts, of a call its name and arguments, of an
    output its (possibly capped) text, of a summary its prefix and content. What has no text is
    reckoned by fixed rules, whatever the counter: a picture is `IMAGE` or `SMALL_IMAGE`, any
    other attachment (an unbroken base64 run of 1,000 characters or more) is `IMAGE`, and sealed
    reasoning is a quarter of its decoded bytes less a frame of 650 (Codex). Of an item whose head
    alone is held, the rest is taken to be like the sample of it.
    """
    if item.body is not None:
        return _head_tokens(counter, item)
    match item:
        case Message(content=tuple()):
            return sum(_part_tokens(counter, part) for part in item.content)
        case Reasoning(encrypted=sealed) | CompactionSummary(encrypted=sealed) if sealed:
            return _sealed(len(sealed)) + counter.count_text(item.text)
        case OtherItem(text=""):
            return _json_tokens(counter, item.json)
        case _:
            return counter.count_text(item.text)


class Ledger:
    """Counts texts, items and contexts with one counter, remembering every entry it has seen.

    Not for several threads at once.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._costs: dict[EntryId, tuple[Item, int]] = {}
        self._last: tuple[Entry, ...] = ()
        self._sum = 0

    @property
    def basis(self) -> Basis:
        """How the figures come about: that of the counter."""
        return self._counter.basis

    def text(self, text: str) -> int:
        """Tokens of a text. Not remembered."""
        return self._counter.count_text(text)

    def item(self, item: Item) -> int:
        """Tokens of an item that has no place in a context. Not remembered."""
        return item_tokens(self._counter, item)

    def cost(self, id: EntryId, item: Item) -> int:
        """Tokens of an entry, counted the first time only.

        An id stands for one item for ever; should it come with another item, that is counted.
        """
        known = self._costs.get(id)
        if known is not None and (known[0] is item or known[0] == item):
            return known[1]
        tokens = item_tokens(self._counter, item)
        self._costs[id] = (item, tokens)
        return tokens

    def entries(self, entries: Iterable[Entry]) -> int:
        """Tokens of some entries together."""
        return sum(self.cost(entry.id, entry.item) for entry in entries)

    def context(self, context: Context) -> Tokens:
        """Tokens of all entries of a context: messages only, without instructions and tools.

        A context that only grew since the last call costs what it grew by; any other is summed
        from the remembered costs.
        """
        entries = context.entries
        before = len(self._last)
        if entries[:before] == self._last:  # entries are shared, so this compares pointers
            self._sum += self.entries(entries[before:])
        else:
            self._sum = self.entries(entries)
        self._last = entries
        return Tokens(self._sum, self.basis, Scope.MESSAGES)


def _part_tokens(counter: Counter, part: object) -> int:
    match part:
        case ImagePart(detail="low"):
            return SMALL_IMAGE
        case ImagePart():
            return IMAGE
        case OpaquePart():
            return _json_tokens(counter, part.json)
        case _:
            return counter.count_text(getattr(part, "text", ""))


def _json_tokens(counter: Counter, json: str) -> int:
    rest, attachments = _ATTACHMENT.subn("", json)
    return counter.count_text(rest) + attachments * IMAGE


def _head_tokens(counter: Counter, item: Item) -> int:
    tokens = whole_tokens(item, counter)
    match item:
        case Message(content=tuple(parts)):
            others = [part for part in parts if not isinstance(part, TextPart)]
            return tokens + sum(_part_tokens(counter, part) for part in others)
        case Reasoning() | CompactionSummary():
            return tokens + _sealed(sealed_length(item))
        case _:
            return tokens


def _sealed(base64: int) -> int:
    """By the number of its characters."""
    return -(-max(0, base64 * 3 // 4 - _SEALED_FRAME) // 4)
