"""The model's context of a Claude Code session, kept up to date as records come.

Nearly every record only adds to the end, which costs what it adds. Where the program goes on from
somewhere else, the view is made anew from the tree; how it differs is then for an event to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .claude_chain import Node, Role, Tree

NEAR: Final = 64
"""Records beside the way that are looked through before everything is made anew."""


class View:
    """The nodes that the model sees, in order (`nodes`), and the way that leads there."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.nodes: list[Node] = []
        self._way: list[Node] = []
        self._at: dict[Node, int] = {}
        self._families: dict[str, int] = {}
        self._begin: dict[str, int] = {}
        self._relinked = 0

    @property
    def root(self) -> Node | None:
        """The first record of the way."""
        return self._way[0] if self._way else None

    def go(self, node: Node) -> list[Node] | None:
        """Move to a record that is in the tree. None: the view only grew by it, if it has items.
        Otherwise the new view, which differs in more than that; it is the view from here on only
        once `become` was called with it."""
        stale = self._relinked != self._tree.relinked
        self._relinked = self._tree.relinked
        if not stale and self._near(node):
            if node.items:
                self._show([node])
            return None
        target = self._tree.view(node)
        self._enter_way(self._tree.way(node))
        if target == [*self.nodes, node] or (not node.items and target == self.nodes):
            self._show([node] if node.items else [])
            return None
        return target

    def extend(self, node: Node, parent: str) -> bool:
        """Take a record into the tree and move to it, when it follows the last one and brings only
        itself, as nearly every record does. False, and nothing is done, when it may be otherwise.
        """
        tree, last, family = self._tree, self._tree.last, node.family
        seen = self._families.get(family, 0) if family else 0
        if (
            last is None
            or last.uuid != parent
            or not self._way
            or self._way[-1] is not last
            or self._relinked != tree.relinked
            or (family and not seen and family in tree.families)
            or not tree.extend(node)
        ):
            return False
        if family:
            if not seen:
                self._begin[family] = len(self._way)
            self._families[family] = seen + 1
        self._at[node] = len(self._way)
        self._way.append(node)
        if node.items:
            node.shown = True
            self.nodes.append(node)
        return True

    def become(self, nodes: Sequence[Node]) -> None:
        """Show exactly these."""
        for node in self.nodes:
            node.shown = False
        self.nodes = []
        self._show(nodes)

    def _show(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            node.shown = True
        self.nodes.extend(nodes)

    def _enter_way(self, way: list[Node]) -> None:
        self._way, self._at, self._families, self._begin = [], {}, {}, {}
        for node in way:
            self._push(node)

    def _push(self, node: Node) -> None:
        place = self._at[node] = len(self._way)
        self._way.append(node)
        if family := node.family:
            seen = self._families.get(family, 0)
            if not seen:
                self._begin[family] = place
            self._families[family] = seen + 1

    def _pop(self, end: int) -> list[Node]:
        """Take what is behind this place off the way."""
        popped = self._way[end:]
        del self._way[end:]
        for node in popped:
            del self._at[node]
            if node.family:
                self._families[node.family] -= 1
        return popped

    def _near(self, node: Node) -> bool:
        """Move along, when that changes nothing but the end; False when it may."""
        way, places = self._way, self._at
        path, at = [node], node.parent
        while at is not None and at not in places:
            path.append(at)
            at = at.parent
            if len(path) > NEAR:
                return False
        if at is None:
            if way or len(path) > 1:
                return False
        else:
            end = places[at] + 1
            if len(way) - end >= NEAR:
                return False
            popped = self._pop(end) if len(way) > end else []
            if self._tree.doubled and any(map(self._is_doubled, (*popped, *path))):
                return False
            beside = [each for each in popped if each.items and not each.lost]
            for each in beside:
                if not self._stays(each):
                    return False
            # What was beside the way and is on it now must have stood in its place.
            beside += [each for each in path if each is not node and each.items]
            if beside and not self._is_one_response(beside, path):
                return False
        for each in reversed(path):
            if each is not node and not each.shown and each.items:
                return False
            family = each.family
            if self._cut(each) or (family and not self._complete(each, node)):
                return False
            if family:
                self._push(each)
            else:
                places[each] = len(way)
                way.append(each)
        return True

    def _is_doubled(self, node: Node) -> bool:
        """It belongs to a response of which not every record is seen."""
        return _family(node) in self._tree.doubled

    def _stays(self, node: Node) -> bool:
        """A record that is no longer on the way is still seen: beside it."""
        if node.role is Role.ASSISTANT:
            return self._families.get(node.family, 0) > 0
        above = node.parent
        return (
            node.role is Role.RESULT
            and above is not None
            and above.role is Role.ASSISTANT
            and (above in self._at or self._families.get(above.family, 0) > 0)
        )

    def _is_one_response(self, beside: list[Node], path: list[Node]) -> bool:
        """The way ends in the response that these are beside, with nothing of another in between:
        only then do they stay where they are."""
        family = _family(beside[0])
        begin = self._begin.get(family)
        if begin is None or any(_family(each) != family for each in beside[1:]):
            return False
        line = -1
        for each in (*self._way[begin:], *reversed(path)):
            if each.line <= line or (each.role is Role.ASSISTANT and each.family != family):
                return False
            line = each.line
        return True

    def _cut(self, node: Node) -> bool:
        root = self._way[0] if self._way else node
        old = root.role is Role.BOUNDARY and node.line < root.line
        return old and node not in root.preserved

    def _complete(self, node: Node, new: Node) -> bool:
        """Everything that comes with a response that joins the way is seen already."""
        if self._families.get(node.family, 0) > 0:
            return True
        for member in self._tree.families[node.family]:
            for each in (member, *member.results):
                if each.items and not each.shown and not each.lost and each is not new:
                    return False
        return True


def _family(node: Node) -> str:
    if node.role is Role.ASSISTANT or node.parent is None:
        return node.family
    return node.parent.family
