"""The responses of a Claude Code session, which come block by block."""

from __future__ import annotations

from sys import intern
from typing import Final

from ..tokens import Usage
from .claude_chain import Node
from .claude_compactions import Compactions
from .claude_items import SYNTHETIC
from .claude_placing import Placing
from .claude_reading import Reading
from .claude_start import Start
from .claude_turns import Turns
from .claude_usage import Meter

_ENDS: Final = frozenset({"end_turn", "stop_sequence", "max_tokens", "refusal"})


class Responses:
    """The fold over the blocks of responses."""

    def __init__(
        self,
        reading: Reading,
        meter: Meter,
        compactions: Compactions,
        placing: Placing,
        start: Start,
        turns: Turns,
    ) -> None:
        self._r = reading
        self._meter = meter
        self._compactions = compactions
        self._placing = placing
        self._start = start
        self._turns = turns
        self._known: set[str] = set()
        self.family = ""
        """The id of the response whose blocks are being read."""
        self.stop = ""
        """Why it ended, as far as its last block says."""

    @property
    def count(self) -> int:
        """The responses so far."""
        return len(self._known)

    def block(
        self, node: Node, parent: str, model: str, usage: Usage | None, management: object
    ) -> None:
        """A block of a response enters the context."""
        r, n, family = self._r, node.line, node.family
        used = 0 if r.view.extend(node, parent) else self._placing.join(node, parent)
        note = "written by Claude Code itself" if model == SYNTHETIC else ""
        if not note:
            node.made_by = r.model if model == r.model else intern(model)
            if family not in self._known:
                self._known.add(family)
                # One edit a line: where the session has just gone elsewhere, the next one tells.
                used = used or r.change_thoughts(node, model)
                self._start.model(n, model)
                unrecorded = self._compactions.unrecorded
                self._meter.judge(node, model, usage, management, unrecorded=unrecorded)
                used += self._meter.used
                r.request(node, number=len(self._known))
            self._meter.response(n, family, model, usage)
        r.append(node, used, note=note)

    def settle(self) -> None:
        """What a response leaves to say once it is over."""
        self._meter.settle()
        stop, self.stop, self.family = self.stop, "", ""
        last = self._r.tree.last
        if stop in _ENDS and last is not None:
            self._turns.end(last.line, "completed")
