"""Tool outputs of which only a part entered the context: the rest was cut off before."""

from __future__ import annotations

from collections.abc import Iterable

from .. import events as e
from ..context import EntryId
from ..items import FunctionCallOutput, text_length


class Caps:
    """The outputs that were cut, each with the journal line that tells it and its words (foreign
    text in part). It reads the records in their order, once."""

    def __init__(self) -> None:
        self.cut: dict[EntryId, tuple[int, str]] = {}
        self._finished: dict[str, tuple[int, e.ToolFinished]] = {}
        self._entered: dict[str, tuple[EntryId, int]] = {}
        """Outputs by call, and their characters: some programs tell afterwards how a call went."""
        self._note: tuple[int, str] | None = None

    def read(self, records: Iterable[e.Record]) -> None:
        """Take in the records that come next."""
        for record in records:
            event = record.event
            if type(event) is e.ToolFinished:
                self._ended(record.n, event)
            elif type(event) is e.Note and event.kind == "entry_cap":
                self._note = (record.n, event.text)
            elif type(event) is e.ItemAppended and type(event.item) is FunctionCallOutput:
                self._output(EntryId(record.n, event.part), event.item)
                self._note = None

    def _ended(self, line: int, event: e.ToolFinished) -> None:
        entered = self._entered.pop(event.call_id, None)
        if entered is None:
            self._finished[event.call_id] = (line, event)
        elif entered[0] not in self.cut:
            self._compare(entered[0], entered[1], line, event)

    def _output(self, id: EntryId, item: FunctionCallOutput) -> None:
        finished = self._finished.pop(item.call_id, None)
        if self._note is not None:
            line, text = self._note
            self.cut[id] = (line, f"capped at entry: {text}")
        elif finished is not None and self._compare(id, text_length(item), *finished):
            pass
        elif item.saved:
            self.cut[id] = (id.line, f"capped at entry; the whole text is in {item.saved}")
        if finished is None:
            self._entered[item.call_id] = (id, text_length(item))

    def _compare(self, id: EntryId, length: int, line: int, event: e.ToolFinished) -> bool:
        if event.size <= length:
            return False
        told = f"capped at entry to {length:,} of {event.size:,} characters"
        self.cut[id] = (
            line,
            f"{told}; the whole text is in {event.saved}" if event.saved else told,
        )
        return True
