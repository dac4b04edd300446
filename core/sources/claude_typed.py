"""Lines of a large transcript that were decoded into a form of their own (see claude_lines).

What becomes of one is the same as in the general way of `claude_events`, step for step.
"""

from __future__ import annotations

from ..tokens import Usage
from .claude_chain import ASSISTANT, RESULT, Node
from .claude_compactions import Compactions
from .claude_fork import Copied
from .claude_items import SAVED
from .claude_lines import BlockLine, Figures, ResultLine, Told
from .claude_oddities import Oddities
from .claude_placing import Placing
from .claude_reading import Reading
from .claude_responses import Responses
from .claude_slim import Slimmer
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
        r = self._r
        side, slimmer = r.side, r.slimmer
        if (
            slimmer is None
            or side is None
            or record.isSidechain is not side[0]
            or (side[0] and record.agentId != side[1])
            or self._compactions.open
            or not self._copied.over
            or r.tree.knows(record.uuid)
        ):
            return False
        if isinstance(record, BlockLine):
            self._begin(line, record)
            self._block(line, record, slimmer)
        elif record.message.content[0].content.startswith(SAVED):
            return False
        else:
            self._begin(line, record)
            self._result(line, record, slimmer)
        return True

    def _begin(self, line: Line, record: BlockLine | ResultLine) -> None:
        r = self._r
        r.out.at = record.timestamp.timestamp() or r.out.at
        if self._waits:
            self._start.line(line.number)
            self._waits = self._start.waits
        if self._odd.repeats is not None:
            self._odd.tell_repeats()
        r.version = record.version or r.version

    def _block(self, line: Line, record: BlockLine, slimmer: Slimmer) -> None:
        message, said = record.message, self._said
        id = message.id
        if id != said.family:
            said.settle()
        family = id or record.requestId or record.uuid
        if family != self._name:
            self._name = family
        item = slimmer.block(line, message.content[0])
        node = Node(record.uuid, line.number, ASSISTANT, (item,), self._name)
        said.family, said.stop = id, message.stop_reason or ""
        if message.usage != self._figures:
            # Every block of a response has the same figures.
            self._figures, self._usage = message.usage, _usage(message.usage)
        said.block(node, record.parentUuid or "", message.model, self._usage, None)

    def _result(self, line: Line, record: ResultLine, slimmer: Slimmer) -> None:
        result, n = record.message.content[0], line.number
        output = slimmer.result(line, result)
        self._said.settle()
        node = Node(record.uuid, n, RESULT, (output,))
        used = self._placing.place(node, record.parentUuid or "")
        self._meter.added(len(result.content))
        self._r.append(node, used)
        told = record.toolUseResult
        if isinstance(told, Told):
            size = len(told.stdout or "") + len(told.stderr or "")
            self._turns.finished(n, output, size, told.totalDurationMs or told.durationMs)


def _usage(found: Figures | None) -> Usage | None:
    if found is None:
        return None
    return usage_from(
        found.input_tokens,
        found.output_tokens,
        found.cache_creation_input_tokens,
        found.cache_read_input_tokens,
    )
