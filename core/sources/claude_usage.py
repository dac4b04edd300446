"""What the responses of a Claude Code session cost, and whether that fits the record.

A response is stored as one record for each block, each with a usage of its own, of which the last
is the true one. Where the reported input falls although the record only grew, `claude_falls` says
what that means.
"""

from __future__ import annotations

import msgspec

from .. import events as e
from ..amounts import count
from ..tokens import Usage
from .claude_chain import Node
from .claude_falls import CHARS, Fall, Falls, reported
from .claude_reading import Reading
from .codex_items import dict_of, int_of, text_of


class Reported(msgspec.Struct, frozen=True, gc=False):
    """What one response reported."""

    family: str
    line: int
    model: str
    usage: Usage


class Meter:
    """The fold over the usage of responses."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._pending: Reported | None = None
        self._told: Reported | None = None
        self._counted: set[str] = set()
        self._last: Reported | None = None
        self._added = 0
        self._prompted = False
        self._overhead: int | None = None
        self._falls = Falls(reading)
        self.used = 0
        """How many ids of the last response's line are used up by what was found there."""
        self._after_compaction = False
        self._cleared = 0

    @property
    def usage(self) -> Usage | None:
        """What the last response reported, in this context."""
        return self._last.usage if self._last else None

    def response(self, line: int, family: str, model: str, usage: Usage | None) -> None:
        """One record of a response."""
        if usage is not None:
            self._pending = self._last = Reported(family, line, model, usage)

    def settle(self) -> None:
        """The response is over, as far as can be seen: report what its last record says."""
        pending, self._pending = self._pending, None
        told = self._told
        if pending is None:
            return
        if told is None or told.family != pending.family:
            if pending.family in self._counted:
                # A response that the program wrote down again later cost nothing more.
                return
            self._counted.add(pending.family)
        elif told.usage == pending.usage:
            return
        self._told = pending
        self._r.out.add(
            self._r.out.not_before(pending.line),
            e.UsageReported(usage=pending.usage, model=pending.model, response_id=pending.family),
        )

    def added(self, chars: int) -> None:
        """Something entered the context that no response has counted yet, of so many characters."""
        self._added += chars

    def prompted(self) -> None:
        """The user said something."""
        self._prompted = True

    def compacted(self) -> None:
        """The context is another one: figures from before say nothing about it."""
        self._last, self._added, self._prompted = None, 0, False
        self._after_compaction, self._cleared = True, 0
        self._falls.compacted()

    def moved(self) -> None:
        """The session goes on from another place."""
        self._last, self._added, self._prompted = None, 0, False
        self._falls.moved()

    def judge(
        self, node: Node, model: str, usage: Usage | None, management: object, *, unrecorded: bool
    ) -> None:
        """A new response: does its input fit what the record says was sent? `management` is its
        `context_management`. `unrecorded`: the context comes from a compaction that may have
        restored files without a record."""
        self.used = 0
        last, added, prompted = self._last, self._added // CHARS, self._prompted
        self._added, self._prompted = 0, False
        if usage is None:
            return
        if management is None:
            self._cleared = 0
        else:
            self._applied_edits(node, management, usage)
        if last is None or last.model != model:
            self._baseline(node, usage.input_tokens, unrecorded=unrecorded)
            return
        before, after = last.usage.input_tokens, usage.input_tokens
        if after >= before and not self._falls.missing:
            return
        fall = Fall(before, after, before + last.usage.output_tokens + added - after)
        self._falls.judge(node, fall, added=added, prompted=prompted)
        self.used = self._falls.used

    def _baseline(self, node: Node, input: int, *, unrecorded: bool) -> None:
        """The first response of a context: what it reports beyond the record is the system prompt
        and the tools, and behind some compactions also files that nothing tells of."""
        recorded = sum(each.chars for each in self._r.view.nodes if each is not node) // CHARS
        if self._overhead is None and not self._after_compaction:
            self._overhead = input - recorded
        elif self._overhead is not None and unrecorded:
            self._falls.restored = input - recorded - self._overhead

    def _applied_edits(self, node: Node, management: object, usage: Usage) -> None:
        """Context editing by the provider: the response names what was cleared for it."""
        edits = dict_of(management).get("applied_edits")
        applied = [dict_of(each) for each in edits] if isinstance(edits, list) else []
        cleared = sum(int_of(each.get("cleared_input_tokens")) or 0 for each in applied)
        was, self._cleared = self._cleared, cleared
        if cleared <= was:
            return
        kinds = ", ".join(sorted({text_of(each.get("type")) for each in applied}))
        calls = sum(int_of(each.get("cleared_tool_uses")) or 0 for each in applied)
        turns = sum(int_of(each.get("cleared_thinking_turns")) or 0 for each in applied)
        what = [
            count(calls, "tool use") if calls else "",
            f"{count(turns, 'turn')} of thinking" if turns else "",
        ]
        told = " and ".join(filter(None, what)) or "content"
        explanation = (
            f"the provider cleared {told} ({cleared:,} input tokens) before this request "
            f"({kinds}); the record keeps them, and does not say which they were"
        )
        # Both figures are the provider's own, for the same request with and without the edit.
        self._r.out.add(
            self._r.out.not_before(node.line - 1),
            e.UnannouncedReduction(
                before=reported(usage.input_tokens + cleared),
                after=reported(usage.input_tokens),
                explanation=explanation,
                kind="context-editing",
                evidence="recorded in the response, unannounced by the program",
                signals=(f"context_management.applied_edits: {kinds}",),
            ),
        )


def usage_of(value: object) -> Usage | None:
    """A usage of the Messages API, whose input figure leaves out what the cache holds; None when
    there are no figures in it."""
    data = dict_of(value)
    return usage_from(
        int_of(data.get("input_tokens")),
        int_of(data.get("output_tokens")),
        int_of(data.get("cache_creation_input_tokens")),
        int_of(data.get("cache_read_input_tokens")),
    )


def usage_from(
    fresh: int | None, output: int | None, written: int | None, cached: int | None
) -> Usage | None:
    """The same from its figures: input that no cache held, output, what the cache took in, and what
    it held."""
    if fresh is None and output is None:
        return None
    return Usage(
        input_tokens=(fresh or 0) + (written or 0) + (cached or 0),
        output_tokens=output or 0,
        cached_tokens=cached,
        cache_write_tokens=written,
    )
