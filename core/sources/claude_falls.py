"""What a fall of the reported input gives away in a Claude Code session.

Some things that make a request smaller are written nowhere: results that microcompaction cleared,
parallel results that a resume lost, restored files that were not sent again. They show when the
reported input falls although the record only grew; that alone is not enough, the record must also
hold what can have left.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .. import events as e
from ..amounts import count
from ..items import FunctionCall, FunctionCallOutput, Item
from ..tokens import Basis, Scope, Tokens
from .claude_chain import Node, Role
from .claude_edits import edit
from .claude_micro import KEEP, Micro, by_rule
from .claude_reading import Reading, is_prompt

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


class Fall(NamedTuple):
    """The input fell: by `tokens` against what the record would make it."""

    before: int
    after: int
    tokens: int

    def words(self) -> str:
        return f"reported input fell from {self.before:,} to {self.after:,} tokens"


class Falls:
    """The fold over the falls, and over what comes back after one."""

    def __init__(self, reading: Reading) -> None:
        self._r = reading
        self._micro = Micro(reading)
        self.missing = 0
        """Tokens that were left out of the requests, until they are there again."""
        self.restored: int | None = None
        """Tokens that were read again after the compaction without a record."""
        self.used = 0
        """How many ids of the last response's line are used up by what was found there."""

    def compacted(self) -> None:
        """The context is another one."""
        self.moved()
        self._micro.forget()

    def moved(self) -> None:
        """The session goes on from another place."""
        self.missing, self.restored = 0, None

    def judge(self, node: Node, fall: Fall, *, added: int, prompted: bool) -> None:
        """What a fall (or a rise, while something is missing) means: `added` tokens entered the
        context since the response before, and `prompted` says that the user spoke."""
        self.used = 0
        if self.missing and -fall.tokens >= self.missing // 2 and added <= self.missing // 4:
            self._returned(node, fall, prompted)
        elif fall.before - fall.after >= max(LEAST, int(SHARE * fall.before)):
            self._reduced(node, fall, prompted)
        elif fall.before > fall.after and prompted and _LOSES.match(self._r.version):
            nodes, lost = self._beside(node)
            weight = sum(each.chars for each in lost) // CHARS
            # A small fall has many causes: here the loss has to be just as small.
            if lost and weight // 4 <= fall.tokens <= 4 * weight:
                self._lost(node, nodes, lost, fall)

    def _beside(self, node: Node) -> tuple[list[Node], list[Node]]:
        """All that the model saw before this response, and what of it lies beside the way."""
        nodes = [each for each in self._r.view.nodes if each is not node]
        way = set(self._r.tree.way(node.parent))
        return nodes, [each for each in nodes if each not in way]

    def _reduced(self, node: Node, fall: Fall, prompted: bool) -> None:
        nodes, lost = self._beside(node)
        if prompted and sum(each.chars for each in lost) // CHARS >= fall.tokens // 10 and lost:
            self._lost(node, nodes, lost, fall)
            return
        if self.restored is not None and prompted and self.restored >= fall.tokens // 2:
            second = (
                f"the first response after the compaction counted about {self.restored:,} tokens "
                "more than the record holds"
            )
            explanation = (
                f"{fall.words()} after a new prompt: what was read again after the compaction "
                "without a record was not sent any more"
            )
            self.restored = None
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
                f"{count(len(results), 'result')}; which the model no longer saw is unknown"
            )
            second = (
                f"{count(len(results) - 1, 'older tool result')} in the record: about {old:,} "
                "tokens, enough to explain it"
            )
            self.missing = fall.tokens
            self._tell(node, fall, "microcompact", explanation, second)
            self._r.left_out = explanation

    def _cleared_by_rule(self, node: Node, gone: set[str], results: int, fall: Fall) -> None:
        made = self._micro.clear(node, gone)
        self.used, self.missing = made.replaced, fall.tokens
        explanation = (
            f"{fall.words()} while the record only grew: old tool results were left out "
            f"(microcompaction). This version writes nothing of it; by the rule that it follows "
            f"the {len(gone)} oldest of {count(results, 'result')} went, and the newest that fit "
            f"into {KEEP:,} tokens stayed"
        )
        second = f"that rule takes {count(made.replaced, 'result')} of the record out here"
        self._r.out.emit(
            self._r.out.not_before(node.line),
            e.UnannouncedReduction(
                before=reported(fall.before),
                after=reported(fall.after),
                explanation=explanation,
                kind="microcompact",
                evidence=TWO_SIGNALS,
                signals=(fall.words(), second),
                segments=made.segments,
                items_before=made.before,
                items_after=made.after,
            ),
        )

    def _unmentioned(self, node: Node, nodes: list[Node], fall: Fall) -> None:
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

    def _lost(self, node: Node, nodes: list[Node], lost: list[Node], fall: Fall) -> None:
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
            f"again, and {count(results, 'result')} of the record did not go out (a fault of the "
            "program, not a compaction)"
        )
        signals = (
            fall.words(),
            f"{count(len(lost), 'record')} beside the strict line of parents that a resume follows",
        )
        self._r.out.add(
            line,
            e.UnannouncedReduction(
                before=reported(fall.before),
                after=reported(fall.after),
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

    def _tell(self, node: Node, fall: Fall, kind: str, explanation: str, second: str) -> None:
        self._r.out.add(
            self._r.out.not_before(node.line - 1),
            e.UnannouncedReduction(
                before=reported(fall.before),
                after=reported(fall.after),
                explanation=explanation,
                kind=kind,
                evidence=TWO_SIGNALS,
                signals=(fall.words(), second),
            ),
        )

    def _returned(self, node: Node, fall: Fall, prompted: bool) -> None:
        self.missing = 0
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
                    reason=f"there again, though cleared before: {count(made.replaced, 'result')}",
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
                before=reported(fall.before),
                after=reported(fall.after),
                explanation=explanation,
                evidence=TWO_SIGNALS,
            ),
        )


def reported(value: int) -> Tokens:
    """A figure of the provider for a whole request."""
    return Tokens(value, Basis.REPORTED, Scope.REQUEST)


def _names_file(item: Item) -> bool:
    return _MENTION.search(item.text) is not None


def _calls(node: Node, kind: type[FunctionCall] | type[FunctionCallOutput]) -> list[str]:
    return [item.call_id for item in node.items if isinstance(item, kind)]
