"""What the responses of a Claude Code session cost, and what their figures give away.

A response is stored as one record for each block, each with a usage of its own, of which the last
is the true one. And some things that make a request smaller are written nowhere: results that
microcompaction cleared, parallel results that a resume lost, restored files that were not sent
again. They show when the reported input falls although the record only grew; that alone is not
enough, the record must also hold what can have left.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from .. import events as e
from ..items import FunctionCall, FunctionCallOutput
from ..tokens import Basis, Scope, Tokens, Usage
from .claude_chain import Node, Role
from .claude_edits import edit
from .claude_reading import Reading
from .codex_items import dict_of, int_of, text_of

CHARS: Final = 4
"""Characters of a token, by Claude Code's own rule."""
LEAST: Final = 1_000
"""Tokens by which the input must fall before it means anything."""
SHARE: Final = 0.05
"""The same as a share of the input before."""
TWO_SIGNALS: Final = "inferred from two signals"


class Reported(NamedTuple):
    """What one response reported."""

    family: str
    line: int
    model: str
    usage: Usage


class _Fall(NamedTuple):
    """The input fell: by `tokens` against what the record would make it."""

    before: int
    after: int
    tokens: int

    def words(self) -> str:
        return f"reported input fell from {self.before:,} to {self.after:,} tokens"


class Meter:
    """The fold over the usage of responses."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._pending: Reported | None = None
        self._told: Reported | None = None
        self._last: Reported | None = None
        self._added = 0
        self._prompted = False
        self._missing = 0
        self._overhead: int | None = None
        self._restored: int | None = None
        self._after_compaction = False
        self._cleared = 0

    @property
    def usage(self) -> Usage | None:
        """What the last response reported, in this context."""
        return self._last.usage if self._last else None

    def response(self, line: int, family: str, message: dict[str, Any]) -> None:
        """One record of a response."""
        usage = usage_of(message.get("usage"))
        if usage is not None:
            self._pending = Reported(family, line, text_of(message.get("model")), usage)
            self._last = self._pending

    def settle(self) -> None:
        """The response is over, as far as can be seen: report what its last record says."""
        pending, self._pending = self._pending, None
        told = self._told
        if pending is None or (
            told is not None and (told.family, told.usage) == (pending.family, pending.usage)
        ):
            return
        self._told = pending
        self._r.out.emit(
            self._r.out.not_before(pending.line),
            e.UsageReported(usage=pending.usage, model=pending.model, response_id=pending.family),
        )

    def added(self, node: Node) -> None:
        """Something entered the context that no response has counted yet."""
        self._added += node.chars

    def prompted(self) -> None:
        """The user said something."""
        self._prompted = True

    def compacted(self) -> None:
        """The context is another one: figures from before say nothing about it."""
        self._last, self._added, self._missing, self._prompted = None, 0, 0, False
        self._after_compaction, self._restored, self._cleared = True, None, 0

    def moved(self) -> None:
        """The session goes on from another place."""
        self._last, self._added, self._missing, self._prompted = None, 0, 0, False
        self._restored = None

    def judge(self, node: Node, message: dict[str, Any], *, unrecorded: bool) -> None:
        """A new response: does its input fit what the record says was sent? `unrecorded`: the
        context comes from a compaction that may have restored files without a record."""
        usage = usage_of(message.get("usage"))
        model = text_of(message.get("model"))
        last, added, prompted = self._last, self._added // CHARS, self._prompted
        self._added, self._prompted = 0, False
        if usage is None:
            return
        self._applied_edits(node, message, usage)
        if last is None or last.model != model:
            self._baseline(node, usage.input_tokens, unrecorded=unrecorded)
            return
        expected = last.usage.input_tokens + last.usage.output_tokens + added
        fall = _Fall(last.usage.input_tokens, usage.input_tokens, expected - usage.input_tokens)
        if self._missing and -fall.tokens >= self._missing // 2 and added <= self._missing // 4:
            self._returned(node, fall, prompted)
        elif fall.before - fall.after >= max(LEAST, int(SHARE * fall.before)):
            self._reduced(node, fall, prompted)

    def _baseline(self, node: Node, input: int, *, unrecorded: bool) -> None:
        """The first response of a context: what it reports beyond the record is the system prompt
        and the tools, and behind some compactions also files that nothing tells of."""
        recorded = sum(each.chars for each in self._r.view.nodes if each is not node) // CHARS
        if self._overhead is None and not self._after_compaction:
            self._overhead = input - recorded
        elif self._overhead is not None and unrecorded:
            self._restored = input - recorded - self._overhead

    def _reduced(self, node: Node, fall: _Fall, prompted: bool) -> None:
        nodes = [each for each in self._r.view.nodes if each is not node]
        way = set(self._r.tree.way(node.parent))
        lost = [each for each in nodes if each not in way]
        if prompted and sum(each.chars for each in lost) // CHARS >= fall.tokens // 10 and lost:
            self._lost(node, nodes, lost, fall)
            return
        if self._restored is not None and prompted and self._restored >= fall.tokens // 2:
            second = (
                f"the first response after the compaction counted about {self._restored:,} tokens "
                "more than the record holds"
            )
            explanation = (
                f"{fall.words()} after a new prompt: what was read again after the compaction "
                "without a record was not sent any more"
            )
            self._restored = None
            self._tell(node, fall, "restored-files", explanation, second)
            return
        results = [each for each in nodes if each.role is Role.RESULT]
        # The newest result cannot have been cleared: the model had not seen it.
        old = sum(each.chars for each in results[:-1]) // CHARS
        if old >= fall.tokens // 2:
            explanation = (
                f"{fall.words()} while the record only grew, and nothing says why: old tool "
                f"results must have been left out (microcompaction). The record still holds "
                f"all {len(results)} results; which of them the model no longer saw is unknown"
            )
            second = (
                f"{len(results) - 1} older tool results in the record weigh about {old:,} tokens, "
                "enough to explain it"
            )
            self._missing = fall.tokens
            self._tell(node, fall, "microcompact", explanation, second)
            self._r.left_out = explanation

    def _lost(self, node: Node, nodes: list[Node], lost: list[Node], fall: _Fall) -> None:
        beside = set(lost)
        rest = [each for each in nodes if each not in beside]
        answered = {call for each in rest for call in _calls(each, FunctionCallOutput)}
        # A call without a result is not sent either.
        lost += [
            each
            for each in rest
            if (calls := _calls(each, FunctionCall)) and answered.isdisjoint(calls)
        ]
        for each in lost:
            each.lost = True
        rest = [each for each in nodes if not each.lost]
        line = self._r.out.not_before(node.line - 1)
        made = edit(nodes, rest, line)
        self._r.view.become([*rest, node] if node.shown else rest)
        results = sum(1 for each in lost if each.role is Role.RESULT)
        explanation = (
            f"{fall.words()} after a resume: of parallel tool calls only one branch was loaded "
            f"again, so {results} results that the record holds were not sent (a fault of the "
            "program, not a compaction)"
        )
        signals = (
            fall.words(),
            f"{len(lost)} records lie beside the strict line of parents that a resume follows",
        )
        self._r.out.emit(
            line,
            e.UnannouncedReduction(
                before=_reported(fall.before),
                after=_reported(fall.after),
                explanation=explanation,
                kind="lost-results",
                evidence=TWO_SIGNALS,
                signals=signals,
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
                removed=made.removed,
                removed_ids=made.removed_ids,
            ),
        )

    def _tell(self, node: Node, fall: _Fall, kind: str, explanation: str, second: str) -> None:
        self._r.out.emit(
            self._r.out.not_before(node.line - 1),
            e.UnannouncedReduction(
                before=_reported(fall.before),
                after=_reported(fall.after),
                explanation=explanation,
                kind=kind,
                evidence=TWO_SIGNALS,
                signals=(fall.words(), second),
            ),
        )

    def _returned(self, node: Node, fall: _Fall, prompted: bool) -> None:
        self._missing = 0
        self._r.left_out = ""
        how = "after a new prompt" if prompted else "between two responses"
        explanation = (
            f"reported input jumped from {fall.before:,} to {fall.after:,} tokens {how} that added "
            "next to nothing: the tool results that had been left out are in the context again"
        )
        self._r.out.emit(
            self._r.out.not_before(node.line - 1),
            e.ContentReturned(
                before=_reported(fall.before),
                after=_reported(fall.after),
                explanation=explanation,
                evidence=TWO_SIGNALS,
            ),
        )

    def _applied_edits(self, node: Node, message: dict[str, Any], usage: Usage) -> None:
        """Context editing by the provider: the response names what was cleared for it."""
        edits = dict_of(message.get("context_management")).get("applied_edits")
        applied = [dict_of(each) for each in edits] if isinstance(edits, list) else []
        cleared = sum(int_of(each.get("cleared_input_tokens")) or 0 for each in applied)
        was, self._cleared = self._cleared, cleared
        if cleared <= was:
            return
        kinds = ", ".join(sorted({text_of(each.get("type")) for each in applied}))
        calls = sum(int_of(each.get("cleared_tool_uses")) or 0 for each in applied)
        turns = sum(int_of(each.get("cleared_thinking_turns")) or 0 for each in applied)
        what = [
            f"{calls} tool uses" if calls else "",
            f"{turns} turns of thinking" if turns else "",
        ]
        told = " and ".join(filter(None, what)) or "content"
        explanation = (
            f"the provider cleared {told} ({cleared:,} input tokens) before this request "
            f"({kinds}); the record keeps them, and does not say which they were"
        )
        # Both figures are the provider's own, for the same request with and without the edit.
        self._r.out.emit(
            self._r.out.not_before(node.line - 1),
            e.UnannouncedReduction(
                before=_reported(usage.input_tokens + cleared),
                after=_reported(usage.input_tokens),
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
    fresh, output = int_of(data.get("input_tokens")), int_of(data.get("output_tokens"))
    if fresh is None and output is None:
        return None
    written = int_of(data.get("cache_creation_input_tokens"))
    cached = int_of(data.get("cache_read_input_tokens"))
    return Usage(
        input_tokens=(fresh or 0) + (written or 0) + (cached or 0),
        output_tokens=output or 0,
        cached_tokens=cached,
        cache_write_tokens=written,
    )


def _calls(node: Node, kind: type[FunctionCall] | type[FunctionCallOutput]) -> list[str]:
    return [item.call_id for item in node.items if isinstance(item, kind)]


def _reported(value: int) -> Tokens:
    return Tokens(value, Basis.REPORTED, Scope.REQUEST)
