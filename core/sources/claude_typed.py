"""Lines of a large transcript that were decoded into a form of their own (see claude_lines).

What becomes of one is the same as in the general way of `claude_events`, step for step.
"""

from __future__ import annotations

from sys import intern

from ..tokens import Usage
from .claude_chain import Node, Role
from .claude_compactions import Compactions
from .claude_fork import Copied
from .claude_items import SAVED
from .claude_lines import BlockLine, Figures, ResultLine, Told
from .claude_oddities import Oddities
from .claude_placing import Placing
from .claude_reading import Reading
from .claude_responses import Responses
from .claude_start import Start
from .claude_turns import Turns
from .claude_usage import Meter, usage_from
from .lines import Line


class TypedLines:
    """Takes such lines, where they are as usual."""

    def __init__(
        self,
        reading: Reading,
        meter: Meter,
        compactions: Compactions,
        placing: Placing,
        responses: Responses,
        start: Start,
        turns: Turns,
        odd: Oddities,
        copied: Copied,
    ) -> None:
        self._r = reading
        self._meter = meter
        self._compactions = compactions
        self._placing = placing
        self._said = responses
        self._start = start
        self._turns = turns
        self._odd = odd
        self._copied = copied
        self._waits = True
        """The start of the session may still be held back."""
        self._figures: Figures | None = None
        self._usage: Usage | None = None
        self._name = ""
        """What the last response is called: its id, or what stands for it."""

    def take(self, line: Line, record: BlockLine | ResultLine) -> bool:
        """Take a line of a large file that was decoded into its own form. False, and nothing is
        done, where it is not as usual."""
        r, said = self._r, self._said
        side, slimmer = r.side, r.slimmer
        if (
            slimmer is None
            or side is None
            or record.isSidechain is not side[0]
            or (side[0] and record.agentId != side[1])
            or r.tree.knows(record.uuid)
            or self._compactions.open
            or not self._copied.over
        ):
            return False
        n, parent = line.number, record.parentUuid or ""
        if isinstance(record, ResultLine) and record.message.content[0].content.startswith(SAVED):
            return False
        r.out.at = record.timestamp.timestamp() or r.out.at
        if self._waits:
            self._start.line(n)
            self._waits = self._start.waits
        self._odd.tell_repeats()
        r.version = record.version or r.version
        if isinstance(record, BlockLine):
            message = record.message
            if message.id != said.family:
                said.settle()
            family = message.id or record.requestId or record.uuid
            family = self._name if family == self._name else intern(family)
            item = slimmer.block(line, message.content[0])
            node = Node(record.uuid, n, Role.ASSISTANT, (item,), family)
            self._name = family
            said.family, said.stop = message.id, message.stop_reason or ""
            if message.usage != self._figures:
                # Every block of a response has the same figures.
                self._figures, self._usage = message.usage, _usage(message.usage)
            said.block(node, parent, message.model, self._usage, None)
            return True
        result = record.message.content[0]
        output = slimmer.result(line, result)
        said.settle()
        node = Node(record.uuid, n, Role.RESULT, (output,))
        used = 0 if r.view.extend(node, parent) else self._placing.join(node, parent)
        self._meter.added(len(result.content))
        r.append(node, used)
        told = record.toolUseResult
        if isinstance(told, Told):
            size = len(told.stdout or "") + len(told.stderr or "")
            self._turns.finished(n, output, size, told.totalDurationMs or told.durationMs)
        return True


def _usage(found: Figures | None) -> Usage | None:
    if found is None:
        return None
    return usage_from(
        found.input_tokens,
        found.output_tokens,
        found.cache_creation_input_tokens,
        found.cache_read_input_tokens,
    )
