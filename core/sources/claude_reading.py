"""What is known of a Claude Code session up to the line that is being read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from .. import events as e
from ..amounts import count
from ..context import EntryId
from ..items import Item, Message, Reasoning
from ..items import Role as Speaker
from .base import RebuiltRequest
from .claude_calls import OpenCalls
from .claude_chain import Node, Role, Tree
from .claude_edits import edit
from .claude_messages import MISSING, messages_of, with_go_on
from .claude_slim import Slimmer
from .claude_view import View
from .outbox import Outbox

AGENT: Final = "claude-code"

_new: Final = tuple.__new__
"""Makes an id in half of the time that its own call takes."""
_SENDS_ALL_THINKING: Final = re.compile(r"[01]\.|2\.0\.|2\.1\.\d{1,2}$")
OnRequest = Callable[[RebuiltRequest], None]


class Reading:
    """The state of the fold. `on_request` gets every request, when somebody wants them; the
    messages of records are only kept then. With a `slimmer` of long texts only heads are kept."""

    def __init__(
        self,
        on_request: OnRequest | None = None,
        *,
        keep_raw: bool = False,
        slimmer: Slimmer | None = None,
        tree: Tree | None = None,
    ) -> None:
        self.slimmer = slimmer
        self.out = Outbox()
        self.tree = Tree() if tree is None else tree
        self.view = View(self.tree)
        self.on_request = on_request
        self.keep_raw = keep_raw or on_request is not None
        self.version = ""
        self.side: tuple[bool, str] | None = None
        """Whether the records of the conversation are a subagent's, and its name, once one came."""
        self.agents: set[str] = set()
        """The subagents that the file itself tells of."""
        self.model = ""
        self._thinks = ""
        self.turn = 0
        self.in_turn = False
        self.rounds = 0
        self.calls = OpenCalls()
        self.cleared: dict[str, str] = {}
        """Calls whose results microcompaction took out, and what stands for them."""
        self.by_rule = False
        """What was cleared is not recorded, but inferred."""
        self.compactions: dict[Node, int] = {}
        """The ordinal of each boundary."""
        self.left_out = ""
        """What the requests leave out of the record from here on, in words."""
        self.window = 0
        """The ordinal of the compaction that the context comes from."""

    def note(self, n: int, kind: str, text: str) -> None:
        """A row that says something."""
        self.out.add(n, e.Note(kind=kind, text=text))

    def raw(self, content: Any) -> Any:
        """A message to keep, if messages are kept."""
        return content if self.keep_raw else None

    def kept(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """The items of the line that is being read, as they are kept."""
        return items if self.slimmer is None else self.slimmer.short(items)

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
        line, turn, round, items = node.line, self.turn, self.rounds, node.items
        self.calls.add(node)
        if len(items) == 1:
            # Nearly all records are of one item.
            node.ids = (_new(EntryId, (line, used)),)
            event = e.ItemAppended(item=items[0], part=used, turn=turn, round=round, note=note)
            self.out.add(line, event)
            return
        node.ids = tuple([EntryId(line, part) for part in range(used, used + len(items))])
        for part, item in enumerate(items, used):
            event = e.ItemAppended(item=item, part=part, turn=turn, round=round, note=note)
            self.out.add(line, event)

    def beside(self, line: int, items: tuple[Any, ...], note: str) -> None:
        """Items that the file holds and this conversation never saw."""
        for part, item in enumerate(items):
            self.out.add(line, e.ItemAppended(item=item, part=part, in_context=False, note=note))

    def request(self, node: Node, *, number: int, failed: str = "") -> None:
        """The request that this record answers, or that failed with it."""
        self.drop_unanswered(node)
        # Only the ends are looked at: a session may have thousands of requests and records.
        seen = self.view.nodes
        self.rounds += 1
        first = last = ""
        for each in seen:
            if each.ids:
                first = each.ids[0].bare
                break
        for each in reversed(seen):
            if each.ids:
                last = each.ids[-1].bare
                break
        self.out.add(
            node.line,
            e.RequestSent(
                request=number,
                model=self.model,
                turn=self.turn,
                round=self.rounds,
                entries=f"{first}-{last}" if first else "",
            ),
        )
        if self.on_request is not None:
            nodes = with_go_on([each for each in seen if each is not node])
            self.tell(node.line - 1, e.Purpose.TURN, nodes, failed=failed)

    def drop_unanswered(self, node: Node) -> None:
        """Calls that never got a result leave the context before the request that is known by this
        record goes out."""
        gone = self.calls.left(node.family)
        if not gone:
            return
        for each in gone:
            each.lost = True
        rest = [each for each in self.view.nodes if each is not node and not each.lost]
        self._leave(
            node,
            rest,
            "the program was stopped while tools ran: {removed} with calls that have no result "
            "went, and are not sent again",
        )

    def change_thoughts(self, node: Node, model: str) -> int:
        """This record is of that model. Since some version after 2.1.70 (measured with 2.1.197 and
        2.1.332) a model is only sent its own thinking. Returns how many ids of the record's line
        are used up."""
        before, self._thinks = self._thinks, model
        if before in ("", model) or _SENDS_ALL_THINKING.match(self.version):
            return 0
        for each in self.tree.nodes.values():
            if each.made_by and each.items and all(isinstance(x, Reasoning) for x in each.items):
                each.lost = each.made_by != model
        rest = [each for each in self.tree.view(node) if each is not node]
        if rest == [each for each in self.view.nodes if each is not node]:
            return 0
        return self._leave(
            node,
            rest,
            "the model is another one, which is only sent its own thinking: {removed} left the "
            "context, {inserted} came back",
        )

    def _leave(self, node: Node, rest: list[Node], reason: str) -> int:
        """The request that is known by this record is sent without some of what was there."""
        before = [each for each in self.view.nodes if each is not node]
        only_leaves = set(rest) <= set(before)
        line = self.out.not_before(node.line - 1 if only_leaves else node.line)
        made = edit(before, rest, line)
        self.view.become([*rest, node] if node.shown else rest)
        self.out.add(
            line,
            e.HistoryRolledBack(
                turns=0,
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
                removed=made.removed,
                removed_ids=made.removed_ids,
                inserted=made.inserted,
                reason=reason.format(removed=count(made.removed, "item"), inserted=made.inserted),
            ),
        )
        return made.inserted if line == node.line else 0

    def tell(
        self,
        position: int,
        kind: e.Purpose,
        nodes: list[Node],
        *,
        failed: str = "",
        missing: str = MISSING,
        cleared: Mapping[str, str] | None = None,
    ) -> None:
        """Give a request to whoever wants requests. `cleared` is what the program is taken to have
        cleared for this one alone, beside what it had."""
        if self.on_request is not None:
            request = RebuiltRequest(
                position=position,
                kind=kind,
                input=messages_of(nodes, {**self.cleared, **(cleared or {})}),
                missing=missing,
                failed=failed,
                left_out=self.left_out,
                evidence="inferred" if self.by_rule or cleared else "derived",
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
        left = count(made.removed, "item")
        reason = f"the session goes on from {above}: {left} left the context"
        if made.inserted:
            reason += f", {made.inserted} came back"
        if undone:
            reason += f", and compaction {', '.join(map(str, undone))} is undone"
        self.out.add(
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
