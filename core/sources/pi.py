"""Sessions of pi, the coding agent (made with 0.74.2 of its package; versions 1 to 3 of its files).

A session is append-only JSON lines, and a tree: the way from its root to the last line is what the
model sees. Summaries and what they keep are recorded; what set a compaction off is not, nor are
the system text, the tools and the words that ask for a summary.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from ..events import Purpose, Record
from .base import RebuiltRequest, WireItem
from .codex_items import text_of
from .following import follow_tail
from .line_tail import LineTail, one_by_one
from .lines import read_lines
from .pi_events import AGENT, Translator
from .pi_items import is_failed
from .pi_requests import CHAT, Asked, branch_request, chat_messages, summary_requests
from .pi_tree import KNOWN, Added, PiEntry, PiTree, branch_left
from .sample import Sample

_PROMPT_MISSING = "the instructions at the end of the text: they are not in the file"
_OTHER_WIRE = "the form of {api}: these are the chat messages with the same content"


def recognise(sample: Sample) -> str:
    """A session is known by its first line, or by an entry with a parent."""
    return "" if sample.folder else sample.line_like(_fits)


class PiSource:
    """One session file. Every method reads it anew; see base.Source for what they give."""

    agent = AGENT

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> Iterator[Record]:
        """All events. `Record.n` is the line, from 0."""
        translator = Translator()
        for line in read_lines(self.path):
            yield from translator.feed(line)
        yield from translator.flush()

    def tail(self) -> PiTail:
        """The same as `follow`, for a thread."""
        return PiTail(self.path)

    async def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the file, then those of what is appended, in batches, until `stop`."""
        tail = await asyncio.to_thread(self.tail)
        async for batch in follow_tail(tail, stop):
            yield batch

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every request that an answer or a summary in the file was given to, in order."""
        tree = PiTree()
        for line in read_lines(self.path):
            if line.value is None or line.value.get("type") == "session":
                continue
            added = tree.add(line)
            if added is not None:
                yield from _requests(tree, added)

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """What the model would be sent after this line, as chat messages."""
        tree = PiTree()
        asked = Asked("", "", "")
        for line in read_lines(self.path):
            if position is not None and line.number > position:
                break
            if line.value is not None and line.value.get("type") != "session":
                added = tree.add(line)
                if added is not None and added.entry.role == "assistant":
                    asked = Asked.of(added.entry.message or {})
        return chat_messages(_messages(tree, tree.leaf), asked)


SOURCE = PiSource


class PiTail(LineTail):
    """A session file that may still grow."""

    def __init__(self, path: Path) -> None:
        translator = Translator()
        super().__init__(path, one_by_one(translator.feed), translator.flush)


def _fits(value: dict[str, object]) -> bool:
    kind = value.get("type")
    if kind == "session":
        return isinstance(value.get("id"), str) and "cwd" in value and "timestamp" in value
    return kind in KNOWN and isinstance(value.get("id"), str) and "parentId" in value


def _requests(tree: PiTree, added: Added) -> Iterator[RebuiltRequest]:
    entry = added.entry
    position = max(0, entry.n - 1)
    if entry.is_compaction and entry.value.get("fromHook") is not True:
        for sent in summary_requests(tree, entry):
            yield RebuiltRequest(
                position=position, kind=Purpose.COMPACTION, input=sent, missing=_PROMPT_MISSING
            )
    elif entry.kind == "branch_summary" and entry.value.get("fromHook") is not True:
        if added.left is not None:
            yield RebuiltRequest(
                position=position,
                kind=Purpose.COMPACTION,
                input=branch_request(_summarised(tree, added.left, tree.parent_of(entry))),
                missing=_PROMPT_MISSING,
                evidence="inferred",
            )
    elif entry.role == "assistant":
        message = entry.message or {}
        asked = Asked.of(message)
        other = asked.api != CHAT
        yield RebuiltRequest(
            position=position,
            kind=Purpose.TURN,
            input=chat_messages(_messages(tree, tree.parent_of(entry)), asked),
            missing=_OTHER_WIRE.format(api=asked.api or "an unknown interface") if other else "",
            failed=text_of(message.get("errorMessage")) if is_failed(message) else "",
        )


def _summarised(tree: PiTree, left: PiEntry, target: PiEntry | None) -> list[PiEntry]:
    """What a summary of a left branch is about. Who goes back to a message of the user goes before
    it, and it is not summarised; the file does not tell that from going to the entry before."""
    entries = list(branch_left(tree, left, target))
    begins = bool(entries) and (entries[0].role == "user" or entries[0].kind == "custom_message")
    return entries[1:] if begins else entries


def _messages(tree: PiTree, leaf: PiEntry | None) -> list[dict[str, object]]:
    return [entry.message for entry in tree.shown(leaf) if entry.message is not None]
