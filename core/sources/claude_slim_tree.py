"""The record tree of a large session: of what a compaction removed only the names are kept.

A session hardly ever goes on from before a compaction. When one does, the lines so far are read
anew, and the tree is as if nothing had been forgotten; from then on it forgets nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .claude_chain import Node, Role, Tree


class SlimTree(Tree):
    """A tree that forgets. `recall` is given the line before which everything is wanted again; it
    lets the tree `adopt` another reading of these lines."""

    def __init__(self, recall: Callable[[int], None]) -> None:
        super().__init__()
        self._recall: Callable[[int], None] | None = recall
        self._gone: set[str] = set()

    def add(self, node: Node, parent: str, *, after_boundary: bool = False) -> None:
        """See Tree."""
        if parent in self._gone or node.family in self._gone_families:
            self._remember(node.line)
        super().add(node, parent, after_boundary=after_boundary)
        if (
            self.doubled
            and node.role is Role.RESULT
            and node.parent
            and self._is_partly_gone(node.parent.family)
        ):
            self._remember(node.line)

    def bound(
        self, boundary: Node, anchor: str, head: str, tail: str, preserved: Iterable[str]
    ) -> None:
        """See Tree."""
        preserved = list(preserved)
        if not self._gone.isdisjoint((anchor, head, tail, *preserved)):
            self._remember(boundary.line)
        super().bound(boundary, anchor, head, tail, preserved)

    def knows(self, uuid: str) -> bool:
        """See Tree."""
        return uuid in self.nodes or uuid in self._gone

    def forget(self, boundary: Node, shown: Iterable[Node]) -> None:
        """See Tree."""
        if self._recall is None:
            return
        kept = _with_parents([*shown, *boundary.preserved, self.last, self.tip])
        if any(node.parent is None and node is not boundary for node in kept):
            # A way that does not begin with the boundary is seen with all of its side branches.
            return
        nodes: dict[str, Node] = {}
        gone: list[str] = []
        nothing: frozenset[Node] = frozenset()
        for uuid, node in self.nodes.items():
            if node.line >= boundary.line or node in kept:
                nodes[uuid] = node
                continue
            gone.append(uuid)
            # Nodes hold each other in circles, which nobody collects while a file is read.
            node.parent, node.results, node.preserved = None, (), nothing
        self._gone.update(gone)
        families, self.nodes, self.families = self.families, nodes, {}
        for node in nodes.values():
            if node.family:
                self.families.setdefault(node.family, []).append(node)
        self._gone_families.update(
            family for family, old in families.items() if self.families.get(family) != old
        )

    def adopt(self, other: Tree) -> None:
        """Take over what another reading has kept of the lines before the current one. Records that
        are here stay the ones they are, with the links that the other has found."""
        here = self.nodes

        def own(node: Node) -> Node:
            return here.get(node.uuid, node)

        for node in other.nodes.values():
            mine = own(node)
            mine.parent = None if node.parent is None else own(node.parent)
            mine.results = tuple([own(each) for each in node.results])
            mine.preserved = frozenset(map(own, node.preserved))
            if mine is node:
                mine.shown, mine.ids = False, ()
        self.families = {
            family: [own(node) for node in members] for family, members in other.families.items()
        }
        self.nodes = {uuid: own(node) for uuid, node in other.nodes.items()}
        for uuid, node in here.items():
            if uuid not in self.nodes:
                self._add_again(node)
        self.relinked += 1

    def _add_again(self, node: Node) -> None:
        """The current record, which the other reading has not come to."""
        self.nodes[node.uuid] = node
        above = node.parent
        if node.family:
            self.families.setdefault(node.family, []).append(node)
        if node.role is Role.RESULT and above is not None and above.role is Role.ASSISTANT:
            above.results += (node,)

    def _is_partly_gone(self, family: str) -> bool:
        """Of a response that is there twice all records count."""
        return family in self.doubled and family in self._gone_families

    def _remember(self, line: int) -> None:
        recall, self._recall = self._recall, None
        if recall is not None:
            recall(line)
        self._gone, self._gone_families = set(), set()


def _with_parents(nodes: Iterable[Node | None]) -> set[Node]:
    found: set[Node] = set()
    for node in nodes:
        while node is not None and node not in found:
            found.add(node)
            node = node.parent
    return found
