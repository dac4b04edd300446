"""What is known of a Claude Code session up to the line that is being read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .. import events as e
from ..context import EntryId
from ..items import Message
from ..items import Role as Speaker
from .base import RebuiltRequest
from .claude_chain import Node, Role, Tree
from .claude_edits import edit
from .claude_messages import MISSING, messages_of
from .claude_view import View
from .outbox import Outbox

AGENT: Final = "claude-code"

OnRequest = Callable[[RebuiltRequest], None]


class Reading:
    """The state of the fold. `on_request` gets every request, when somebody wants them; the
    messages of records are only kept then."""

    def __init__(self, on_request: OnRequest | None = None, *, keep_raw: bool = False) -> None:
        self.out = Outbox()
        self.tree = Tree()
        self.view = View(self.tree)
        self.on_request = on_request
        self.keep_raw = keep_raw or on_request is not None
        self.version = ""
        self.agents: set[str] = set()
        """The subagents that the file itself tells of."""
        self.model = ""
        self.turn = 0
        self.in_turn = False
        self.rounds = 0
        self.cleared: set[str] = set()
        """Calls whose results microcompaction is recorded to have taken out."""
        self.compactions: dict[Node, int] = {}
        """The ordinal of each boundary."""
        self.left_out = ""
        """What the requests leave out of the record from here on, in words."""
        self.window = 0
        """The ordinal of the compaction that the context comes from."""

    def note(self, n: int, kind: str, text: str) -> None:
        """A row that says something."""
        self.out.emit(n, e.Note(kind=kind, text=text))

    def raw(self, content: Any) -> Any:
        """A message to keep, if messages are kept."""
        return content if self.keep_raw else None

    def place(self, node: Node, tip: Node | None = None) -> tuple[int, bool]:
        """Make this record the last of the way. What else that changes in the context becomes an
        event. Returns how many ids of the record's line are used up, and whether it changed.

        `tip` is another record when this one is a summary that came late: what its boundary
        preserved follows it, and comes into the context with it.
        """
        follows = tip is not None and tip is not node and node in self.tree.way(tip)
        target = self.view.go(tip if tip is not None and follows else node)
        if target is None:
            return 0, False
        ends = bool(target) and target[-1] is node
        rest = target[:-1] if ends else target
        changed = rest != self.view.nodes
        used = self._relink(node, rest)
        self.view.become(target)
        return used, changed

    def append(self, node: Node, used: int = 0, *, note: str = "") -> None:
        """The record's items enter the context at its end, unless an edit has put them there."""
        if node.ids:
            return
        node.ids = tuple(EntryId(node.line, used + at) for at in range(len(node.items)))
        for id, item in zip(node.ids, node.items, strict=True):
            self.out.emit(
                node.line,
                e.ItemAppended(
                    item=item, part=id.part, turn=self.turn, round=self.rounds, note=note
                ),
            )

    def beside(self, line: int, items: tuple[Any, ...], note: str) -> None:
        """Items that the file holds and this conversation never saw."""
        for part, item in enumerate(items):
            self.out.emit(line, e.ItemAppended(item=item, part=part, in_context=False, note=note))

    def request(self, node: Node, *, number: int, failed: str = "") -> None:
        """The request that this record answers, or that failed with it."""
        # Only the ends are looked at: a session may have thousands of requests and records.
        seen = self.view.nodes
        self.rounds += 1
        first = next((each.ids[0] for each in seen if each.ids), None)
        last = next((each.ids[-1] for each in reversed(seen) if each.ids), None)
        self.out.emit(
            node.line,
            e.RequestSent(
                request=number,
                model=self.model,
                turn=self.turn,
                round=self.rounds,
                entries=f"{first.bare}-{last.bare}" if first and last else "",
            ),
        )
        if self.on_request is not None:
            nodes = [each for each in seen if each is not node]
            self.tell(node.line - 1, e.Purpose.TURN, nodes, failed=failed)

    def tell(
        self,
        position: int,
        kind: e.Purpose,
        nodes: list[Node],
        *,
        failed: str = "",
        missing: str = MISSING,
    ) -> None:
        """Give a request to whoever wants requests."""
        if self.on_request is not None:
            request = RebuiltRequest(
                position=position,
                kind=kind,
                input=messages_of(nodes, self.cleared),
                missing=missing,
                failed=failed,
                left_out=self.left_out,
            )
            self.on_request(request)

    def _relink(self, node: Node, rest: list[Node]) -> int:
        before = self.view.nodes
        root = self._window_of()
        undone = tuple(range(root + 1, self.window + 1))
        self.window = root
        if rest == before:
            return 0
        gone = set(before) - set(rest)
        turns = sum(1 for each in gone if is_prompt(each))
        # What only leaves has left before the request that shows it.
        only_leaves = set(rest) <= set(before)
        line = self.out.not_before(node.line - 1 if only_leaves else node.line)
        made = edit(before, rest, line)
        above = f"#{node.parent.line}" if node.parent is not None else "a new beginning"
        plain = turns and not made.inserted and not undone
        reason = f"the session goes on from {above}: {made.removed} items left the context"
        if made.inserted:
            reason += f", {made.inserted} came back"
        if undone:
            reason += f", and compaction {', '.join(map(str, undone))} is undone"
        self.out.emit(
            line,
            e.HistoryRolledBack(
                turns=turns,
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
                removed=made.removed,
                removed_ids=made.removed_ids,
                inserted=made.inserted,
                undone=undone,
                reason="" if plain else reason,
            ),
        )
        return made.inserted if line == node.line else 0

    def _window_of(self) -> int:
        way = self.view.root
        return self.compactions.get(way, 0) if way is not None else 0


def is_prompt(node: Node) -> bool:
    """Something that the user said to the model."""
    return node.role is Role.USER and any(
        isinstance(item, Message) and item.role is Speaker.USER and not item.synthetic
        for item in node.items
    )
