"""The model's context of a Claude Code session, kept up to date as records come.

Nearly every record only adds to the end, which costs what it adds. Where the program goes on from
somewhere else, the view is made anew from the tree; how it differs is then for an event to tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .claude_chain import ASSISTANT, BOUNDARY, RESULT, Node, Tree

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
        tree, way, family = self._tree, self._way, node.family
        last = tree.last
        seen = self._families.get(family, 0) if family else 0
        if (
            last is None
            or last.uuid != parent
            or not way
            or way[-1] is not last
            or self._relinked != tree.relinked
            or (family and not seen and family in tree.families)
            or not tree.extend(node)
        ):
            return False
        if family:
            if not seen:
                self._begin[family] = len(way)
            self._families[family] = seen + 1
        self._at[node] = len(way)
        way.append(node)
        if node.items:
            node.shown = True
            self.nodes.append(node)
        return True

    def answer(self, node: Node, parent: str) -> bool:
        """Take the result of a call into the tree and move to it, when everything from the response
        on belongs to that: so it is with the results of parallel calls, which all but the first
        hang on side branches. False, and nothing is done, when it may be otherwise."""
        tree, way, places = self._tree, self._way, self._at
        call = tree.nodes.get(parent)
        if call is None or call.role is not ASSISTANT or self._relinked != tree.relinked:
            return False
        family = call.family
        if not family or not self._families.get(family) or not node.items:
            return False
        path: list[Node] = []
        begin, at = self._begin[family], call
        while at not in places:
            if at.parent is None or len(path) == NEAR:
                return False
            path.append(at)
            at = at.parent
        end = places[at] + 1
        path.reverse()
        if end <= begin or len(way) - begin > NEAR or not self._is_all_of(family, begin, end, path):
            return False
        if not tree.answer(node, call):
            return False
        if len(way) > end:
            self._pop(end)
        for each in path:
            self._push(each)
        self._push(node)
        self._show([node])
        return True

    def _is_all_of(self, family: str, begin: int, end: int, path: list[Node]) -> bool:
        """The way consists from there on of blocks of this response and of results of its calls,
        and so does this path, which may take the place of what is behind `end`. All of them are
        seen, and stay where they are."""
        way = self._way
        first, root, line = way[begin].line, way[0], -1
        if root.role is BOUNDARY and first < root.line:
            return False
        for at, each in enumerate((*way[begin:end], *path, *way[end:])):
            of = each if each.role is ASSISTANT else each.parent
            if (
                of is None
                or of.family != family
                or of.role is not ASSISTANT
                or (of is not each and each.role is not RESULT)
                or each.lost
                or not each.shown
            ):
                return False
            if at < end - begin + len(path):
                if each.line <= line:
                    return False
                line = each.line
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
        if node.role is ASSISTANT:
            return self._families.get(node.family, 0) > 0
        above = node.parent
        return (
            node.role is RESULT
            and above is not None
            and above.role is ASSISTANT
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
            if each.line <= line or (each.role is ASSISTANT and each.family != family):
                return False
            line = each.line
        return True

    def _cut(self, node: Node) -> bool:
        root = self._way[0] if self._way else node
        old = root.role is BOUNDARY and node.line < root.line
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
    if node.role is ASSISTANT or node.parent is None:
        return node.family
    return node.parent.family
