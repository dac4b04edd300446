"""The counts of a rollout: what the provider reported, and what Codex made up itself.

token_count lines come after each response, but also after a compaction (Codex's own estimate),
after an overflow (filled up to the window) and once more for each try that brought no answer. Only
the first kind is a report; the others are told apart here and marked.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import events as e
from ..tokens import Usage
from .codex_items import dict_of, int_of, text_of
from .codex_lines import CountInfo, UsageFigures, UsageRecord
from .codex_reading import Reading
from .codex_requests import OVERFLOW, Sent

_ESTIMATE: Final = "Codex's own estimate after"
_OF_COMPACTION: Final = "of a compaction that was not applied: Codex counts it as the context"


class Meter:
    """The fold over token_usage_record and token_count."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._info: object = None
        self._total: Usage | None = None
        self._told: tuple[object, Usage | None] = (None, None)
        """The last usage that was read, in both forms: most are told twice."""
        self._responses: dict[str, Usage] = {}
        self._last_response = ""
        self._unsure: tuple[int, float, e.UsageReported] | None = None
        self._expected: int | None = None
        self.last_record: Usage | None = None
        """The usage of the last response, whatever it was for."""
        self.before_last: Usage | None = None
        """The count before the one in force."""
        self._remade: Usage | None = None
        """Codex's own estimate, told before the line that it is of (older files)."""
        self.unapplied: Sent | None = None
        """A compaction whose answer held nothing to apply."""

    def take_over(self, other: Meter) -> None:
        """What the counts were in a file that this one goes on from."""
        self._info, self._total = other._info, other._total
        self.before_last, self.last_record = other.before_last, other.last_record

    def usage_record(self, n: int, payload: dict[str, Any]) -> None:
        """A token_usage_record: one response, with its id."""
        usage = self._usage(payload.get("usage"))
        self.response(n, usage, text_of(payload.get("response_id")))

    def response(self, n: int, usage: Usage | None, id: str) -> None:
        """The end of a response."""
        self.settle()
        self._last_response = id
        self.last_record = usage
        if usage is not None and self._last_response:
            self._responses[self._last_response] = usage
        self._r.requests.usage_record(n)

    def token_count(self, n: int, payload: dict[str, Any]) -> None:
        """A token_count: a report, an estimate, a fill, or the mark of a try."""
        info = dict_of(payload.get("info"))
        last = self._usage(info.get("last_token_usage"))
        total = usage_of(info.get("total_token_usage"))
        self.counted(n, _comparable(info), last, total, int_of(info.get("model_context_window")))

    def known_response(self, n: int, told: UsageRecord) -> None:
        """A token_usage_record in its own form."""
        self.response(n, self._known(told.usage), told.response_id or "")

    def known_count(self, n: int, info: CountInfo) -> None:
        """A token_count in its own form."""
        total = info.total_token_usage
        self.counted(
            n,
            info,
            self._known(info.last_token_usage),
            None if total is None else usage_of_figures(total),
            info.model_context_window,
        )

    def counted(
        self, n: int, info: object, last: Usage | None, total: Usage | None, window: int | None
    ) -> None:
        """The figures of a token_count; `info` is compared with that of the one before."""
        r, requests = self._r, self._r.requests
        if last is None:
            if requests.headed:
                self._begins(n)
            return
        r.window = window or r.window
        changed, self._info = info != self._info, info
        grown, self._total = total != self._total, total
        made_up = not last.input_tokens and not last.output_tokens
        estimated = made_up and self._expected is not None
        filled = made_up and not estimated and total is not None and total.total == r.window
        if not changed and not estimated:
            self._begins(n)
            return
        if made_up and not estimated and not filled and not grown:
            # Older files tell it before the compacted line, or the rollback.
            self._remade = last
            return
        if not made_up:
            if not requests.has_records:
                self.settle(sure=True)
            requests.count(n)
        elif filled and requests.headed and requests.repeats:
            # Older files have no error: the filled-up count tells it.
            r.request(requests.failed(n, e.Purpose.TURN, OVERFLOW))
            r.out.add(n, e.ContextOverflowed(message="", limit=r.window, purpose=e.Purpose.TURN))
        event = e.UsageReported(
            usage=last,
            model=r.settings.model,
            response_id="" if made_up else self._last_response,
            cumulative=total,
            window=r.window,
            estimated=estimated or filled,
            note=_note(last, estimated=estimated, filled=filled),
        )
        if estimated:
            self._compare(n, last.total)
        elif requests.answering is not None:
            self.last_record = last
            return
        elif requests.doubtful is not None:
            self.last_record = last
            self._unsure = (n, r.out.at, event)
            return
        self.before_last, r.usage = r.usage, last
        r.out.add(n, event)

    def _begins(self, n: int) -> None:
        if self._r.requests.headed:
            self.settle(sure=True)
        self._r.requests.began(n, self._r.out.at)

    def settle(self, *, sure: bool = False, by_item: bool = False) -> None:
        """A response without items so far was no compaction that was applied, since no compacted
        line followed at once. `by_item` says that an item of it may come now; a file whose usage
        stands in front of the items asks to be `sure` that none does."""
        r, requests = self._r, self._r.requests
        if requests.doubtful is None or (requests.headed and not (sure or by_item)):
            return
        unapplied = not requests.headed and r.nothing_is_asked()
        sent = requests.confirmed(by_item=by_item and requests.headed)
        if sent is None:
            return
        if unapplied:
            sent.kind, sent.evidence = e.Purpose.COMPACTION, "inferred"
            self.unapplied = sent
        r.request(sent)
        if self._unsure is not None:
            n, at, event = self._unsure
            self._unsure = None
            if unapplied:
                event = msgspec.structs.replace(event, note=_OF_COMPACTION)
            self.before_last, r.usage = r.usage, event.usage
            r.out.add(r.out.not_before(n), event, at)

    def compacted(self, n: int, expected: int) -> None:
        """A compaction: counts start anew. `expected` is what Codex should write next, or has
        written already."""
        self._expected, self._unsure = expected, None
        self._r.usage = None
        self.remade(n)

    def told_already(self, otherwise: int) -> int:
        """Codex's own estimate after what comes now, where older files tell it before."""
        return otherwise if self._remade is None else self._remade.total

    def remade(self, n: int, what: str = "a compaction") -> None:
        """Line `n` tells `what` Codex had made a new estimate for, if it had."""
        last, self._remade = self._remade, None
        if last is None:
            return
        self._compare(n, last.total)
        self.before_last, self._r.usage = None, last
        event = e.UsageReported(
            usage=last,
            model=self._r.settings.model,
            window=self._r.window,
            estimated=True,
            note=f"{_ESTIMATE} {what}",
        )
        self._r.out.add(n, event)

    def usage_of_response(self, id: str) -> Usage | None:
        """The usage of the response with this id; without an id, of the last one."""
        return self._responses.get(id) if id else self.last_record

    def summary_usage(self, n: int, usage: Usage | None, response_id: str = "") -> None:
        """The cost of a compaction request, as its own row."""
        if usage is not None:
            event = e.UsageReported(
                usage=usage,
                purpose=e.Purpose.COMPACTION,
                model=self._r.settings.model,
                response_id=response_id,
            )
            self._r.out.add(n, event)

    def _known(self, told: UsageFigures | None) -> Usage | None:
        if told is None:
            return None
        if told != self._told[0]:
            self._told = (told, usage_of_figures(told))
        return self._told[1]

    def _usage(self, value: object) -> Usage | None:
        if value != self._told[0]:
            self._told = (value, usage_of(value))
        return self._told[1]

    def _compare(self, n: int, told: int) -> None:
        expected, self._expected = self._expected, None
        if expected is not None and expected != told and self._r.head.instructions:
            text = (
                f"Codex puts the context after the compaction at {told:,} tokens; "
                f"its rule as known here gives {expected:,}"
            )
            self._r.out.add(n, e.Note(kind="estimate", text=text))


def _comparable(info: dict[str, Any]) -> object:
    """The figures in the form in which they are compared with those of the count before."""
    try:
        return msgspec.convert(info, CountInfo)
    except msgspec.ValidationError:
        return info


def usage_of(value: object) -> Usage | None:
    """Codex's usage object; None when there is none or it has no figures."""
    try:
        return usage_of_figures(msgspec.convert(value, UsageFigures))
    except msgspec.ValidationError:
        return _usage_by_field(dict_of(value))


def usage_of_figures(told: UsageFigures) -> Usage | None:
    """The same, from its own form."""
    if told.total_tokens is None and told.input_tokens is None:
        return None
    return Usage(
        told.input_tokens or 0,
        told.output_tokens or 0,
        told.cached_input_tokens,
        told.cache_write_input_tokens,
        told.reasoning_output_tokens,
        told.total_tokens,
    )


def _usage_by_field(data: dict[str, Any]) -> Usage | None:
    total = int_of(data.get("total_tokens"))
    input, output = int_of(data.get("input_tokens")), int_of(data.get("output_tokens"))
    if total is None and input is None:
        return None
    return Usage(
        input_tokens=input or 0,
        output_tokens=output or 0,
        cached_tokens=int_of(data.get("cached_input_tokens")),
        cache_write_tokens=int_of(data.get("cache_write_input_tokens")),
        reasoning_tokens=int_of(data.get("reasoning_output_tokens")),
        total_tokens=total,
    )


def _note(usage: Usage, *, estimated: bool, filled: bool) -> str:
    if estimated:
        return f"{_ESTIMATE} a compaction"
    if filled and not usage.total:
        return "Codex's count after a second overflow: nothing was freed, yet it shows 0 used"
    if filled:
        return "filled up by Codex after an overflow: not what was used"
    return ""
