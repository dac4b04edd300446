"""Which conversation each request of a log belongs to.

Programs that log their requests log those of subagents, titles and summaries too, and a program
may have one conversation after the other. Comparing requests of two conversations would find
compactions that never were. So a request belongs to the conversation that it shares most with; one
that shares nothing begins another, unless it reads like a compaction of everything.

The rules are our own: a log of requests says nothing of conversations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ..items import Item, Kind, Message, kind_of
from .compare import is_system, sign
from .request_log import Logged

SUMMARY: Final = 120
"""Characters from which a message can be a summary of what left."""
_TOLD: Final = 20
"""Characters from which an answer is known again in a later request."""
_FEW: Final = 2
"""A request of at most so many items with another system text stands by itself, as titles do."""
_ALIKE: Final = 0.4
"""Share of a message's longer words that a conversation must hold for it to be its summary."""
_WORDS: Final = 20_000
_WORD: Final = re.compile(r"\w{5,}")
_NAMED: Final = re.compile(r"\bsummary\b|summari[sz]ed|compacted|continued from", re.IGNORECASE)
"""Words by which programs present a summary at its beginning."""


class Request(msgspec.Struct, frozen=True):
    """A request of the log with its items."""

    logged: Logged
    items: tuple[Item, ...]

    @property
    def said(self) -> list[Item]:
        """The items without system texts, which unrelated requests share."""
        return [item for item in self.items if not is_system(item)]

    @property
    def system(self) -> str:
        """All that is said by the system, beside the items or at their head."""
        texts = [item.text for item in self.items if is_system(item)]
        return "\n".join([self.logged.system, *texts])


class Conversation:
    """What is remembered of a conversation to know its next request."""

    def __init__(self, number: int, first: Request) -> None:
        self.number = number
        self.requests = 0
        self.first = [sign(item) for item in first.said]
        self.title = next((i.text for i in first.said if kind_of(i) is Kind.USER), "")
        self.last_at = 0.0
        self.signs: set[bytes] = set()
        self.system = ""
        self.answer = ""
        self._items: tuple[Item, ...] = ()
        self._words: frozenset[str] | None = None

    def take(self, request: Request) -> None:
        """The next request of this conversation."""
        self.requests += 1
        told = request.logged
        if not told.goes_on:
            self._items = request.items
            self.signs = {sign(item) for item in request.said}
            self.system = request.system
            self._words = None
        self.answer = told.answer.strip()
        self.last_at = told.at or self.last_at

    def told_in(self, request: Request) -> bool:
        """The last answer of this conversation stands in the request."""
        return len(self.answer) > _TOLD and any(self.answer in item.text for item in request.items)

    def has_words_of(self, text: str) -> bool:
        """So many of the text's words were said here that it can be a summary of it."""
        words = set(_WORD.findall(text.casefold()))
        if self._words is None:
            self._words = frozenset(_words(self._items))
        return bool(words) and len(words & self._words) >= _ALIKE * len(words)


class Conversations:
    """The conversations of a log, in the order of their first requests; numbers count from 1."""

    def __init__(self) -> None:
        self.known: list[Conversation] = []
        self._active: Conversation | None = None

    def assign(self, request: Request) -> Conversation:
        """The conversation of the next request of the log."""
        found = self._of(request)
        if found is None:
            found = Conversation(len(self.known) + 1, request)
            self.known.append(found)
        found.take(request)
        self._active = found
        return found

    @property
    def main(self) -> Conversation | None:
        """The one with most requests, the first of them if there are several."""
        return max(self.known, key=lambda each: (each.requests, -each.number), default=None)

    def _of(self, request: Request) -> Conversation | None:
        if self._active is None:
            return None
        if request.logged.goes_on:
            return self._active
        signs = [sign(item) for item in request.said]
        newest_first = sorted(self.known, key=lambda each: each is not self._active)
        shared = [(len(each.signs & set(signs)), each) for each in newest_first]
        most = max(count for count, _ in shared)
        if most:
            best = next(
                (each for count, each in shared if count == most and each.system == request.system),
                next(each for count, each in shared if count == most),
            )
            return best if self._carries_on(best, request, signs, most) else None
        told = next((each for each in self.known if each.told_in(request)), None)
        alike = [each for each in newest_first if each.system == request.system]
        if told is not None:
            return alike[0] if alike else self._active
        return next((each for each in alike if _is_summed_up(each, request)), None)

    @staticmethod
    def _carries_on(
        best: Conversation, request: Request, signs: Sequence[bytes], shared: int
    ) -> bool:
        """False where what is shared is only how every conversation of the program begins."""
        if _is_summed_up(best, request):
            return True
        if best.system != request.system:
            return len(signs) > _FEW and shared * 2 >= len(best.signs)
        begins_alike = len(signs) == len(best.first) and signs[:-1] == best.first[:-1]
        return not (begins_alike and signs != best.first and len(best.signs) > len(signs))


def _is_summed_up(conversation: Conversation, request: Request) -> bool:
    """A long message that is new stands before something else, calls itself a summary, or is made
    of the conversation's own words."""
    said = request.said
    for at, item in enumerate(said):
        if not isinstance(item, Message) or len(item.text) < SUMMARY:
            continue
        if sign(item) in conversation.signs:
            continue
        if at + 1 < len(said) or _NAMED.search(item.text[:400]):
            return True
        if conversation.has_words_of(item.text):
            return True
    return False


def _words(items: Sequence[Item]) -> Iterator[str]:
    left = _WORDS
    for item in items:
        for word in _WORD.findall(item.text[:100_000].casefold()):
            yield word
            left -= 1
            if left <= 0:
                return
