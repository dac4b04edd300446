"""Which results a microcompaction took out, where the file does not say so.

Versions 1.0.128 to 2.1.20 write nothing down when they clear old results, but they always clear by
the same rule: the newest results stay as long as they fit into 40,000 tokens, and all older ones
go (measured with 11 of 11 clearings of 1.0.128, 2.0.76, 2.1.12 and 2.1.20). So once the reported
input shows that something was cleared, the rule says what. Later versions do not do it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from ..context import EntryId
from ..items import FunctionCallOutput, Item, text_length
from .claude_chain import Node
from .claude_edits import Edit, edit
from .claude_items import CLEARED
from .claude_reading import Reading

KEEP: Final = 40_000
"""Tokens of the newest results that stay, at four characters a token."""
LEAST: Final = 15_000
"""Tokens that a clearing must save: 16,000 were cleared, 14,000 were not."""
_CHARS: Final = 4
_VERSIONS: Final = re.compile(r"(?:1\.0\.\d+|2\.0\.\d+|2\.1\.(?:1?\d|20))$")
_KEEPS_A_FILE: Final = "2.1."
"""Versions that write the result to a file, and name that instead."""


def by_rule(nodes: Sequence[Node], version: str) -> set[str]:
    """The calls whose results these versions clear, if they clear; none where it is not worth it or
    the version does not."""
    if not _VERSIONS.match(version):
        return set()
    kept = saved = 0
    gone: set[str] = set()
    results = [x for node in nodes for x in node.items if isinstance(x, FunctionCallOutput)]
    for item in reversed(results):
        size = text_length(item) // _CHARS
        if gone or kept + size > KEEP:
            gone.add(item.call_id)
            saved += size
        else:
            kept += size
    return gone if saved >= LEAST else set()


def placeholder(call_id: str, version: str) -> str:
    """What stands for a result that was cleared. Of a file that holds it only the name is known."""
    if not version.startswith(_KEEPS_A_FILE):
        return CLEARED
    return (
        f"<persisted-output>Tool result saved to: tool-results/{call_id}.txt\n\n"
        "Use Read to view</persisted-output>"
    )


class Micro:
    """What was cleared in this context without a record, and how it was before."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._before: dict[Node, tuple[Item, ...]] = {}

    def clear(self, node: Node, calls: set[str]) -> Edit:
        """Take these results out of the context that the response `node` answers."""
        self._r.by_rule = True
        new = {call: placeholder(call, self._r.version) for call in calls - self._r.cleared.keys()}
        self._r.cleared.update(new)

        def cleared(item: Item) -> Item:
            if not isinstance(item, FunctionCallOutput) or item.call_id not in new:
                return item
            return msgspec.structs.replace(item, output=new[item.call_id], saved="", body=None)

        changed = {}
        for each in self._nodes(node):
            items = tuple(map(cleared, each.items))
            if items != each.items:
                self._before.setdefault(each, each.items)
                changed[each] = items
        return self._rewrite(node, changed)

    def put_back(self, node: Node) -> Edit:
        """Everything is there again, as the response `node` was given it."""
        here = set(self._nodes(node))
        changed = {each: items for each, items in self._before.items() if each in here}
        self.forget()
        return self._rewrite(node, changed)

    def forget(self) -> None:
        """The context is another one."""
        self._before.clear()
        self._r.cleared.clear()
        self._r.by_rule = False

    def _nodes(self, node: Node) -> list[Node]:
        return [each for each in self._r.view.nodes if each is not node]

    def _rewrite(self, node: Node, changed: dict[Node, tuple[Item, ...]]) -> Edit:
        nodes = self._nodes(node)
        rewritten: set[EntryId] = set()
        before = {each: each.items for each in changed}
        for each, items in changed.items():
            pairs = zip(each.ids, before[each], items, strict=True)
            rewritten.update(id for id, old, new in pairs if old != new)
        # The edit is over the context as it was told: ids first, then the new items.
        for each, items in changed.items():
            each.items = items
        line = self._r.out.not_before(node.line)
        return edit(nodes, nodes, line, rewritten=frozenset(rewritten))
