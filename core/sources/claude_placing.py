"""Where a record of a Claude Code session goes: on, elsewhere, or into a compaction."""

from __future__ import annotations

from typing import Any

from .claude_chain import RESULT, Node
from .claude_compactions import Compactions
from .claude_reading import Reading
from .claude_usage import Meter


class Placing:
    """Gives records their places, and says what that changes."""

    def __init__(self, reading: Reading, meter: Meter, compactions: Compactions) -> None:
        self._r = reading
        self._meter = meter
        self._compactions = compactions

    def append(self, node: Node, parent: str) -> None:
        """A record whose content enters the context."""
        self.close()
        used = self.place(node, parent)
        self._meter.added(node.chars)
        self._r.append(node, used)

    def add(self, node: Node, parent: str) -> int:
        """Any other record. How many ids of its line are used up by where it stands."""
        self.close()
        return self.place(node, parent)

    def place(self, node: Node, parent: str) -> int:
        """Any record while nothing is being told: the same as `add`."""
        view = self._r.view
        if view.extend(node, parent) or (node.role is RESULT and view.answer(node, parent)):
            return 0
        return self.join(node, parent)

    def join(self, node: Node, parent: str) -> int:
        """Take a record that may not only follow the last one (see View.extend)."""
        r = self._r
        r.tree.add(node, parent)
        if node.orphan and node.parent is not None:
            text = (
                f"the parent of line {node.line + 1} is not in the file: it is taken to follow "
                f"line {node.parent.line + 1}"
            )
            r.note(node.line, "chain", text)
        used, moved = r.place(node, r.tree.tip)
        if moved:
            self._meter.moved()
        return used

    def along(
        self, node: Node, parent: str, content: Any, *, belongs: bool, summary: bool = False
    ) -> bool:
        """Take a record as part of the compaction that is being told, if it is."""
        if not self._compactions.open:
            return False
        if not belongs or (summary and self._compactions.complete):
            self.close()
            return False
        self._r.tree.add(node, parent, after_boundary=True)
        self._compactions.take(node, content, summary=summary)
        return True

    def close(self) -> None:
        """The compaction that is being told is over, if there is one."""
        if self._compactions.close():
            self._meter.compacted()
