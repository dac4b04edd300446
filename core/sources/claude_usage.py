"""What the responses of a Claude Code session cost, and what their figures give away.

A response is stored as one record for each block, each with a usage of its own, of which the last
is the true one. And some things that make a request smaller are written nowhere: results that
microcompaction cleared, parallel results that a resume lost, restored files that were not sent
again. They show when the reported input falls although the record only grew; that alone is not
enough, the record must also hold what can have left.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from .. import events as e
from ..items import FunctionCall, FunctionCallOutput, Item
from ..tokens import Basis, Scope, Tokens, Usage
from .claude_chain import Node, Role
from .claude_edits import edit
from .claude_micro import KEEP, Micro, by_rule
from .claude_reading import Reading, is_prompt
from .codex_items import dict_of, int_of, text_of

CHARS: Final = 4
"""Characters of a token, by Claude Code's own rule."""
LEAST: Final = 1_000
"""Tokens by which the input must fall before it means anything."""
SHARE: Final = 0.05
"""The same as a share of the input before."""
CLEARED_LEAST: Final = 10_000
"""A smaller fall is no microcompaction, which only begins where it saves about 20,000 tokens by the
program's own estimate (measured with 1.0.128 to 2.1.20)."""
_MENTION: Final = re.compile(r"(?:^|\s)@[\w./~-]")
"""A file that a prompt names, whose content is sent with it."""
_LOSES: Final = re.compile(r"2\.1\.\d{1,2}$")
"""Versions that load only one branch of parallel calls again (measured with 2.1.12, 2.1.20 and
2.1.70; not so 2.0.76 and 2.1.197)."""
TWO_SIGNALS: Final = "inferred from two signals"


class Reported(msgspec.Struct, frozen=True, gc=False):
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
        self._counted: set[str] = set()
        self._last: Reported | None = None
        self._added = 0
        self._prompted = False
        self._missing = 0
        self._overhead: int | None = None
        self._restored: int | None = None
        self._micro = Micro(reading)
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
        self._last, self._added, self._missing, self._prompted = None, 0, 0, False
        self._after_compaction, self._restored, self._cleared = True, None, 0
        self._micro.forget()

    def moved(self) -> None:
        """The session goes on from another place."""
        self._last, self._added, self._missing, self._prompted = None, 0, 0, False
        self._restored = None

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
        if after >= before and not self._missing:
            return
        fall = _Fall(before, after, before + last.usage.output_tokens + added - after)
        if self._missing and -fall.tokens >= self._missing // 2 and added <= self._missing // 4:
            self._returned(node, fall, prompted)
        elif fall.before - fall.after >= max(LEAST, int(SHARE * fall.before)):
            self._reduced(node, fall, prompted)
        elif fall.before > fall.after and prompted and _LOSES.match(self._r.version):
            nodes, lost = self._beside(node)
            weight = sum(each.chars for each in lost) // CHARS
            # A small fall has many causes: here the loss has to be just as small.
            if lost and weight // 4 <= fall.tokens <= 4 * weight:
                self._lost(node, nodes, lost, fall)

    def _baseline(self, node: Node, input: int, *, unrecorded: bool) -> None:
        """The first response of a context: what it reports beyond the record is the system prompt
        and the tools, and behind some compactions also files that nothing tells of."""
        recorded = sum(each.chars for each in self._r.view.nodes if each is not node) // CHARS
        if self._overhead is None and not self._after_compaction:
            self._overhead = input - recorded
        elif self._overhead is not None and unrecorded:
            self._restored = input - recorded - self._overhead

    def _beside(self, node: Node) -> tuple[list[Node], list[Node]]:
        """All that the model saw before this response, and what of it lies beside the way."""
        nodes = [each for each in self._r.view.nodes if each is not node]
        way = set(self._r.tree.way(node.parent))
        return nodes, [each for each in nodes if each not in way]

    def _reduced(self, node: Node, fall: _Fall, prompted: bool) -> None:
        nodes, lost = self._beside(node)
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
        if fall.tokens < CLEARED_LEAST:
            if prompted:
                self._unmentioned(node, nodes, fall)
        elif old >= fall.tokens // 2 and (gone := by_rule(nodes, self._r.version)):
            self._cleared_by_rule(node, gone, len(results), fall)
        elif old >= fall.tokens // 2:
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

    def _cleared_by_rule(self, node: Node, gone: set[str], results: int, fall: _Fall) -> None:
        made = self._micro.clear(node, gone)
        self.used, self._missing = made.replaced, fall.tokens
        explanation = (
            f"{fall.words()} while the record only grew: old tool results were left out "
            f"(microcompaction). This version writes nothing of it; by the rule that it follows "
            f"the {len(gone)} oldest of {results} results went, and the newest that fit into "
            f"{KEEP:,} tokens stayed"
        )
        second = f"{made.replaced} results in the record are what that rule takes out here"
        self._r.out.emit(
            self._r.out.not_before(node.line),
            e.UnannouncedReduction(
                before=_reported(fall.before),
                after=_reported(fall.after),
                explanation=explanation,
                kind="microcompact",
                evidence=TWO_SIGNALS,
                signals=(fall.words(), second),
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
            ),
        )

    def _unmentioned(self, node: Node, nodes: list[Node], fall: _Fall) -> None:
        """Versions that write no attachments down send a file that a prompt names only in the run
        of that prompt."""
        if any(each.role is Role.ATTACHMENT for each in nodes):
            return
        prompts = [each for each in nodes if is_prompt(each)][:-1]
        named = sum(1 for each in prompts if any(map(_names_file, each.items)))
        if named:
            explanation = (
                f"{fall.words()} after a new prompt: the content of files that were named in a "
                "prompt with @ is not in the record, and was not sent any more"
            )
            second = f"{named} earlier prompts name files, and this version records no attachments"
            self._tell(node, fall, "mentioned-files", explanation, second)

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
        self._r.out.add(
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
        self._r.out.add(
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
        made = self._micro.put_back(node)
        self.used = made.replaced
        if made.replaced:
            self._r.out.emit(
                self._r.out.not_before(node.line),
                e.HistoryRolledBack(
                    turns=0,
                    segments=made.segments,
                    items_before=made.before,
                    items_after=made.after,
                    removed=0,
                    reason=f"{made.replaced} results that had been cleared are there again",
                ),
            )
        how = "after a new prompt" if prompted else "between two responses"
        explanation = (
            f"reported input jumped from {fall.before:,} to {fall.after:,} tokens {how} that added "
            "next to nothing: the tool results that had been left out are in the context again"
        )
        self._r.out.add(
            self._r.out.not_before(node.line - 1),
            e.ContentReturned(
                before=_reported(fall.before),
                after=_reported(fall.after),
                explanation=explanation,
                evidence=TWO_SIGNALS,
            ),
        )

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
            f"{calls} tool uses" if calls else "",
            f"{turns} turns of thinking" if turns else "",
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


def _names_file(item: Item) -> bool:
    return _MENTION.search(item.text) is not None


def _calls(node: Node, kind: type[FunctionCall] | type[FunctionCallOutput]) -> list[str]:
    return [item.call_id for item in node.items if isinstance(item, kind)]


def _reported(value: int) -> Tokens:
    return Tokens(value, Basis.REPORTED, Scope.REQUEST)
