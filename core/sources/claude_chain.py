"""The record tree of a Claude Code session, and the way through it that makes the model's context.

Every record names its parent, so a file is a tree: resuming, rewinding and parallel tool calls make
branches. What the model sees at a record is the way from it back to a root, mended where a
compaction keeps a piece of the old way, and completed with the parallel blocks and results beside
it. The rules are those measured with recorded requests of versions 1.0.128 to 2.1.197.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from ..context import EntryId
from ..items import FunctionCall, FunctionCallOutput, Item, text_length


class Role(StrEnum):
    """What a record is in the tree."""

    USER = "user"
    RESULT = "result"
    """A user record that holds the results of tools."""
    ASSISTANT = "assistant"
    ATTACHMENT = "attachment"
    COMMAND = "command"
    """The output of a slash command, which is sent as text of the user."""
    BOUNDARY = "boundary"
    OTHER = "other"
    """On the way, but not for the model."""


# These are asked for with every record, and looking them up in the enum takes ten times as long.
ASSISTANT: Final = Role.ASSISTANT
RESULT: Final = Role.RESULT
BOUNDARY: Final = Role.BOUNDARY


class Node(msgspec.Struct, eq=False):
    """A record in the tree. `family` is the id of the response that an assistant record is a block
    of; `items` is what the model sees of it, `ids` their places in our context, `raw` the message
    in the wire form where somebody asked for it."""

    uuid: str
    line: int
    role: Role
    items: tuple[Item, ...] = ()
    family: str = ""
    raw: Any = None
    parent: Node | None = None
    results: tuple[Node, ...] = ()
    ids: tuple[EntryId, ...] = ()
    made_by: str = ""
    """Of a response: its model."""
    shown: bool = False
    """It is in the view that is kept up to date."""
    lost: bool = False
    """The program itself left it out, although it is on the way."""
    orphan: bool = False
    """Its parent is not in the file."""
    preserved: frozenset[Node] = frozenset()
    """Of a boundary: the records before it that are still sent."""

    def __repr__(self) -> str:
        return f"Node({self.line}, {self.role})"

    @property
    def chars(self) -> int:
        """Characters of its texts."""
        return sum(map(text_length, self.items))


class Tree:
    """All records of one conversation. Links are made once, when a record comes."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.families: dict[str, list[Node]] = {}
        self.last: Node | None = None
        self.relinked = 0
        """How often links were changed: a way from before may lead elsewhere now."""
        self.doubled: set[str] = set()
        """Responses that the program wrote down more than once, in part or whole."""
        self._blocks: set[int] = set()
        self._gone_families: set[str] = set()
        """Responses of which some records are not held any more (see SlimTree)."""
        self._boundary: Node | None = None
        self._anchor = ""
        self._head: Node | None = None
        self._tail: Node | None = None

    def add(self, node: Node, parent: str, *, after_boundary: bool = False) -> None:
        """Take a record whose uuid is new. One whose parent is not in the file is taken to follow
        the record before it. `after_boundary` says that it was written with a compaction: it then
        never hangs on what that removed."""
        found = self.nodes.get(parent) if parent else None
        if parent and found is None:
            node.orphan = True
            found = self.last
        boundary = self._boundary
        if after_boundary and boundary is not None and found is not None:
            gone = found.line < boundary.line and found not in boundary.preserved
            found = self.last if gone else found
        if found is not None and found.uuid == self._anchor and not self._is_preserved(node):
            found = self._tail or found
        node.parent = found
        self.nodes[node.uuid] = node
        if node.family:
            self.families.setdefault(node.family, []).append(node)
            self._note_blocks(node, node.family)
        if node.role is RESULT and found is not None and found.role is ASSISTANT:
            found.results += (node,)
            self._note_blocks(node, found.family)
        self.last = node
        if node.uuid == self._anchor:
            self._relink(node)

    def extend(self, node: Node) -> bool:
        """Take a record whose uuid is new, and which follows the last one; the same as `add`, when
        there is nothing else to be looked at. False, and nothing is done, when there may be."""
        last, anchor = self.last, self._anchor
        if last is None or self.doubled or anchor == last.uuid or anchor == node.uuid:
            return False
        if node.role is RESULT and last.role is ASSISTANT:
            if last.family and not self._is_new(node, last.family):
                return False
            last.results += (node,)
        elif family := node.family:
            if not self._is_new(node, family):
                return False
            self.families.setdefault(family, []).append(node)
        node.parent = last
        self.nodes[node.uuid] = self.last = node
        return True

    def answer(self, node: Node, call: Node) -> bool:
        """Take a result whose uuid is new, of a call that need not be the last record; the same as
        `add`, when there is nothing else to be looked at. False, and nothing is done, when there
        may be."""
        anchor = self._anchor
        if self.doubled or anchor == call.uuid or anchor == node.uuid:
            return False
        if not self._is_new(node, call.family):
            return False
        call.results += (node,)
        node.parent = call
        self.nodes[node.uuid] = self.last = node
        return True

    def _is_new(self, node: Node, family: str) -> bool:
        """Whether this is the only record of its block, or result, of that response, of which all
        other records are held; then it is from here on the one that is known."""
        items, blocks = node.items, self._blocks
        if len(items) != 1 or family in self._gone_families:
            return False
        (item,) = items
        if type(item) is FunctionCall or type(item) is FunctionCallOutput:
            key = hash((family, item.call_id, type(item)))
        else:
            key = _key(family, item)
        if key in blocks:
            return False
        if key:
            blocks.add(key)
        return True

    def bound(
        self, boundary: Node, anchor: str, head: str, tail: str, preserved: Iterable[str]
    ) -> None:
        """Take a boundary. The uuids are those of its preserved segment, empty when it has none:
        once the anchor is there, the segment from head to tail hangs on it, and what else would
        follow the anchor follows the tail."""
        self.nodes[boundary.uuid] = boundary
        self.last = self._boundary = boundary
        self.relinked += 1
        first, last = self.nodes.get(head), self.nodes.get(tail)
        self._anchor, self._head, self._tail = "", None, None
        if first is None or last is None or not anchor:
            return
        listed = [self.nodes[uuid] for uuid in preserved if uuid in self.nodes]
        way = self._between(first, last)
        boundary.preserved = frozenset(listed or way)
        self._anchor, self._head = anchor, first
        # Where the tail lies beside the segment, nothing can follow it.
        self._tail = last if way else None
        if (found := self.nodes.get(anchor)) is not None:
            self._relink(found)

    def knows(self, uuid: str) -> bool:
        """Whether the file has held this record."""
        return uuid in self.nodes

    def forget(self, boundary: Node, shown: Iterable[Node]) -> None:
        """A compaction is over, and these are sent: what is not needed now may go. Here nothing
        goes (see SlimTree)."""

    @property
    def tip(self) -> Node | None:
        """The last record, or what follows it first: the tail of a preserved segment."""
        anchor = self.last is not None and self.last.uuid == self._anchor
        return self._tail or self.last if anchor else self.last

    def way(self, leaf: Node | None) -> list[Node]:
        """The records from the root to this one, without what a compaction removed."""
        way: list[Node] = []
        while leaf is not None:
            way.append(leaf)
            leaf = leaf.parent
        way.reverse()
        root = way[0] if way else None
        if root is None or root.role is not BOUNDARY:
            return way
        return [node for node in way if _allowed(node, root)]

    def view(self, leaf: Node | None) -> list[Node]:
        """What the model sees at this record, in order: the way, with the parallel blocks of each
        response and the results of its tools. Records without items are left out."""
        way = self.way(leaf)
        beside = self._beside(way)
        found: list[Node] = []
        for at, node in enumerate(way):
            found.append(node)
            if at in beside:
                found.extend(sorted(beside[at], key=lambda each: each.line))
        return [node for node in found if node.items and not node.lost]

    def _beside(self, way: Sequence[Node]) -> dict[int, list[Node]]:
        """Records on side branches that belong to the way, by the place after which they come.

        A response that the program wrote down a second time belongs to it once: with what is on the
        way.
        """
        places = {node: at for at, node in enumerate(way)}
        found: dict[int, list[Node]] = {}
        done: set[str] = set()

        def put(node: Node, start: int, family: str) -> None:
            if node in places or (way[0].role is BOUNDARY and not _allowed(node, way[0])):
                return
            while start + 1 < len(way) and way[start + 1].line < node.line:
                if way[start + 1].role is ASSISTANT and way[start + 1].family != family:
                    break
                start += 1
            found.setdefault(start, []).append(node)

        for at, node in enumerate(way):
            if not node.family or node.family in done:
                continue
            done.add(node.family)
            for member, each in self._once(node.family, places):
                put(each, at if each is member else places.get(member, at), node.family)
        return found

    def _once(self, family: str, places: Container[Node]) -> Iterator[tuple[Node, Node]]:
        """The records of a response that are not on the way, each with the block of it to which it
        belongs. Of what was written down twice only one comes, if none is on the way."""
        members = self.families[family]
        doubled = family in self.doubled
        known: set[Any] = set()
        if doubled:
            on_way = [each for each in members if each in places]
            results = (each for member in on_way for each in member.results if each in places)
            known = _blocks((*on_way, *results))
        for member in members:
            for each in (member, *member.results):
                if each in places:
                    continue
                blocks = _blocks((each,)) if doubled else set()
                if known.isdisjoint(blocks):
                    known |= blocks
                    yield member, each
                elif each is member:
                    break

    def _note_blocks(self, node: Node, family: str) -> None:
        # Of several alike in one record only one counts.
        for key in {_key(family, item) for item in node.items} - {0}:
            if key in self._blocks:
                self.doubled.add(family)
            self._blocks.add(key)

    def _relink(self, anchor: Node) -> None:
        head, above = self._head, anchor
        while above is not head and above.parent is not None:
            above = above.parent
        if head is not None and above is not head:
            head.parent = anchor
            self.relinked += 1

    def _between(self, head: Node, tail: Node) -> list[Node]:
        way, at = [tail], tail
        while at is not head:
            if at.parent is None:
                return []
            at = at.parent
            way.append(at)
        return way

    def _is_preserved(self, node: Node) -> bool:
        return self._boundary is not None and node in self._boundary.preserved


def _blocks(nodes: Iterable[Node]) -> set[Any]:
    """What tells blocks of one response, and results of its calls, from each other. Empty ones say
    nothing."""
    found: set[Any] = set()
    for node in nodes:
        for item in node.items:
            if isinstance(item, FunctionCall | FunctionCallOutput):
                found.add((item.call_id, type(item)))
            elif text_length(item):
                found.add(_content(item))
    return found


def _key(family: str, item: Item) -> int:
    """What tells a block of that response from all others, as a number; 0 for an empty one."""
    if type(item) is FunctionCall or type(item) is FunctionCallOutput:
        return hash((family, item.call_id, type(item)))
    return hash((family, _content(item))) if text_length(item) else 0


def _content(item: Item) -> Item:
    """An item without its place in the file, when only its head is held."""
    if item.body is None:
        return item
    body = msgspec.structs.replace(item.body, offset=0, size=0, part=0)
    return msgspec.structs.replace(item, body=body)


def _allowed(node: Node, boundary: Node) -> bool:
    return node.line >= boundary.line or node in boundary.preserved
