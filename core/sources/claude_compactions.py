"""The compactions of a Claude Code session as events.

A boundary is written together with what stands behind it: the summary, the files that were read
again, the echo of the command. All of it is one event, which is held back until the block is over.
A microcompaction that is recorded only takes results out, and ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from .. import events as e
from ..amounts import count
from ..compaction.policy import Moment, Trigger
from ..context import EntryId
from ..items import CompactionSummary, FunctionCallOutput
from ..tokens import Basis, Scope, Tokens, Usage
from .claude_chain import Node, Role
from .claude_edits import edit
from .claude_items import CLEARED, focus_of
from .claude_messages import MISSING
from .claude_micro import by_rule, placeholder
from .claude_reading import Reading
from .codex_items import dict_of, int_of, text_of
from .outbox import Slot

POLICY: Final = "claude-code"
SUMMARY: Final = "summary"
MICRO: Final = "microcompact"
UNRECORDED: Final = (
    "this version does not record the files that it reads again after a compaction: "
    "the context may hold more than the file tells"
)
COPIED: Final = (
    "what it compacted is not in this file (a session that was forked after it begins with it): "
    "what it removed is unknown here"
)
PROMPT_MISSING: Final = f"{MISSING}, and the compaction prompt at the end"


class _Block:
    """A boundary and what is written with it."""

    def __init__(self, boundary: Node, slot: Slot, before: list[Node]) -> None:
        self.boundary, self.slot, self.before = boundary, slot, before
        self.summary: Node | None = None
        self.last = boundary
        self.focus = ""


class Compactions:
    """The fold over boundaries."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._block: _Block | None = None
        self._count = 0
        self.open = False
        """A block has begun, and may go on."""
        self._opens = False
        """The next block is told as what was there from the beginning."""
        self.unrecorded = False
        """The context comes from a compaction that may have restored files without a record."""

    def is_open_at(self, uuid: str) -> bool:
        """A block has begun, and this is its boundary."""
        return self._block is not None and self._block.boundary.uuid == uuid

    @property
    def complete(self) -> bool:
        """The open block has its summary."""
        return self._block is not None and self._block.summary is not None

    def begin_before(self, ordinal: int) -> None:
        """The reading begins in the middle: the next boundary has this ordinal, and what is in the
        context after it was there."""
        self._count, self._opens = ordinal - 1, True

    def begin(self, boundary: Node, metadata: dict[str, Any], usage: Usage | None) -> None:
        """A boundary. `usage` is that of the last response."""
        r = self._r
        self._count += 1
        segment = dict_of(metadata.get("preservedSegment"))
        kept = dict_of(metadata.get("preservedMessages"))
        listed = kept.get("allUuids") or kept.get("uuids")
        anchor = text_of(segment.get("anchorUuid")) or text_of(kept.get("anchorUuid"))
        r.drop_unanswered(boundary)
        before = list(r.view.nodes)
        r.tree.bound(
            boundary,
            anchor,
            text_of(segment.get("headUuid")),
            text_of(segment.get("tailUuid")),
            [text_of(uuid) for uuid in listed] if isinstance(listed, list) else [],
        )
        asked = [node for node in before if node not in boundary.preserved]
        used, after = int_of(metadata.get("preTokens")), int_of(metadata.get("postTokens"))
        manual = metadata.get("trigger") == "manual"
        if before:
            # What starts a compaction by itself has long reached the level where results go first.
            gone = set() if manual else by_rule(asked, r.version)
            r.tell(
                boundary.line - 1,
                e.Purpose.COMPACTION,
                asked,
                missing=PROMPT_MISSING,
                cleared={call: placeholder(call, r.version) for call in gone},
            )
        self.unrecorded = after is None
        event = e.HistoryCompacted(
            ordinal=self._count,
            pass_id=f"claude-{boundary.line}",
            policy=POLICY,
            stage=SUMMARY,
            moment=_moment(manual, before),
            trigger=Trigger.MANUAL if manual else Trigger.AUTO,
            reason=_reason(manual, used),
            segments=(),
            items_before=0,
            items_after=0,
            kept=0,
            removed=0,
            replaced=0,
            inserted=0,
            # The program's own sum of a report and an estimate, over the whole request.
            before=None if used is None else Tokens(used, Basis.ESTIMATED, Scope.REQUEST),
            after=None if after is None else Tokens(after, Basis.ESTIMATED, Scope.MESSAGES),
            usage=usage,
            window=self._count,
            marks=tuple(_marks(unrecorded=self.unrecorded, copied=not before)),
            evidence="recorded",
            reason_evidence="recorded" if manual else "unknown",
            seconds=(int_of(metadata.get("durationMs")) or 0) / 1000,
        )
        slot = r.out.emit(boundary.line, event, hold=True)
        r.compactions[boundary] = self._count
        self._block, self.open = _Block(boundary, slot, before), True

    def take(self, node: Node, content: Any, *, summary: bool) -> None:
        """A record of the block; it is in the tree already."""
        block = self._block
        if block is None:
            return
        block.last = node
        block.focus = block.focus or focus_of(content)
        if summary:
            block.summary = node

    def close(self) -> bool:
        """The block is over: tell the compaction. False when there was none."""
        block, self._block, self.open = self._block, None, False
        if block is None or not isinstance(block.slot.event, e.HistoryCompacted):
            return False
        r = self._r
        tip = r.tree.tip if block.last is block.summary else None
        follows = tip is not None and block.last in r.tree.way(tip)
        target = r.view.go(tip if tip is not None and follows else block.last)
        after = list(r.view.nodes if target is None else target)
        r.view.become(after)
        r.window = r.compactions[block.boundary]
        r.tree.forget(block.boundary, after)
        if self._opens:
            self._opens = False
            self._open_with(block, after)
            return True
        made = edit(block.before, after, block.boundary.line, speaker=block.summary)
        summary = block.summary.items[0] if block.summary and block.summary.items else None
        marks = block.slot.event.marks
        if block.summary is None:
            marks = (*marks, "the file holds no summary for this boundary")
        block.slot.exchange(
            msgspec.structs.replace(
                block.slot.event,
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
                kept=made.kept,
                removed=made.removed,
                replaced=made.replaced,
                inserted=made.inserted,
                removed_ids=made.removed_ids,
                summary=summary.content if isinstance(summary, CompactionSummary) else None,
                focus=block.focus,
                marks=marks,
            )
        )
        block.slot.held = False
        r.cleared.clear()
        r.left_out = ""
        return True

    def _open_with(self, block: _Block, after: list[Node]) -> None:
        ordinal, line = self._r.compactions[block.boundary], block.boundary.line
        text = (
            f"the whole file is still being read; until then this begins after compaction "
            f"{ordinal}, and rounds are counted from here"
        )
        events: list[e.Event] = [e.Note(kind="indexing", text=text)]
        part = 0
        for node in after:
            node.ids = tuple(EntryId(line, part + at) for at in range(len(node.items)))
            part += len(node.items)
            events.extend(
                e.ItemAppended(item=item, part=id.part, turn=self._r.turn)
                for id, item in zip(node.ids, node.items, strict=True)
            )
        block.slot.exchange_all(events)
        block.slot.held = False

    def micro(self, n: int, metadata: dict[str, Any], usage: Usage | None) -> None:
        """A microcompact boundary: results of named calls and named attachments left."""
        r = self._r
        calls = _texts(metadata.get("compactedToolIds"))
        attachments = _texts(metadata.get("clearedAttachmentUUIDs"))
        before = list(r.view.nodes)
        rewritten: set[EntryId] = set()
        after: list[Node] = []
        for node in before:
            if node.role is Role.ATTACHMENT and node.uuid in attachments:
                node.lost = True
                continue
            after.append(node)
            for id, item in zip(node.ids, node.items, strict=True):
                if isinstance(item, FunctionCallOutput) and item.call_id in calls:
                    rewritten.add(id)
        for node in after:
            if not rewritten.isdisjoint(node.ids):
                node.items = tuple(
                    _cleared(item) if id in rewritten else item
                    for id, item in zip(node.ids, node.items, strict=True)
                )
        made = edit(before, after, n, rewritten=frozenset(rewritten))
        r.cleared.update(dict.fromkeys(calls, CLEARED))
        r.view.become(after)
        self._count += 1
        used, saved = int_of(metadata.get("preTokens")), int_of(metadata.get("tokensSaved"))
        told = f", {saved:,} saved by the program's estimate" if saved is not None else ""
        marks = ["the text that stands for the cleared results is not in the file"]
        if not rewritten and len(after) == len(before):
            marks.append("nothing of what it names is in the context")
        r.out.add(
            n,
            e.HistoryCompacted(
                ordinal=self._count,
                pass_id=f"claude-{n}",
                policy=POLICY,
                stage=MICRO,
                moment=None,
                trigger=Trigger.MANUAL if metadata.get("trigger") == "manual" else Trigger.AUTO,
                reason=f"results of {count(len(calls), 'call')} cleared{told}",
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
                kept=made.kept,
                removed=made.removed,
                replaced=made.replaced,
                inserted=made.inserted,
                removed_ids=made.removed_ids,
                before=None if used is None else Tokens(used, Basis.ESTIMATED, Scope.REQUEST),
                usage=usage,
                window=r.window,
                marks=tuple(marks),
                evidence="recorded",
            ),
        )


def _cleared(item: Any) -> FunctionCallOutput:
    replaced: FunctionCallOutput = msgspec.structs.replace(
        item, output=CLEARED, saved="", body=None
    )
    return replaced


def _marks(*, unrecorded: bool, copied: bool) -> Iterator[str]:
    if unrecorded:
        yield UNRECORDED
    if copied:
        yield COPIED


def _texts(value: object) -> set[str]:
    return {each for each in value if isinstance(each, str)} if isinstance(value, list) else set()


def _moment(manual: bool, before: list[Node]) -> Moment:
    if manual:
        return Moment.MANUAL
    return Moment.TURN_START if before and before[-1].role is Role.USER else Moment.AFTER_ROUND


def _reason(manual: bool, used: int | None) -> str:
    figure = f" at {used:,} tokens by the program's count" if used is not None else ""
    if manual:
        return f"the user asked for it{figure}"
    return (
        f"automatic{figure}; whether the threshold or a refusal of the provider set it off "
        "is not in the file"
    )
