"""Calls of tools that never got a result: the program was stopped while the tool ran.

The provider refuses a call without a result, so Claude Code leaves the record of such a call out of
every later request, although it stays in the file (measured with 2.0.76 and 2.1.197; newer versions
write a result in the tool's place).
"""

from __future__ import annotations

from ..items import FunctionCall, FunctionCallOutput
from .claude_chain import Node


class OpenCalls:
    """The calls in the context whose results have not come."""

    def __init__(self) -> None:
        self._open: dict[str, Node] = {}

    def add(self, node: Node) -> None:
        """A record entered the context."""
        for item in node.items:
            # No item has a subclass, and this is asked of every one.
            if type(item) is FunctionCall:
                self._open[item.call_id] = node
            elif type(item) is FunctionCallOutput:
                self._open.pop(item.call_id, None)

    def left(self, family: str = "") -> list[Node]:
        """The records that cannot be sent, now that a request goes out: none of their calls was
        answered. A response's own calls (`family`) are still to be run. They are told once."""
        if not self._open:
            return []
        over = {call: node for call, node in self._open.items() if node.family != family}
        found: list[Node] = []
        for call, node in over.items():
            del self._open[call]
            if node.shown and node not in found and self._is_unanswered(node, over):
                found.append(node)
        return found

    @staticmethod
    def _is_unanswered(node: Node, open: dict[str, Node]) -> bool:
        return all(item.call_id in open for item in node.items if isinstance(item, FunctionCall))
