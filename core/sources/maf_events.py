"""A stored session of the Microsoft Agent Framework as our events, derived from its marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .. import events as e
from ..compaction.policies.maf.python_text import transcript
from ..compaction.policy import Trigger
from ..tokens import Basis, Scope, Tokens
from .base import RebuiltRequest, WireItem
from .maf_document import Document, Fault
from .maf_messages import items_of, sent_form
from .maf_plan import COLLAPSED, Pass, Told, plan, told
from .opencode_v1 import Piece
from .outbox import Outbox
from .shown import Shown

AGENT: Final = "agent-framework"
POLICY: Final = "maf-python"
TITLE: Final = 200
"""Characters of the first message that make the title."""

_WORDS: Final = {
    "summarized": "summarised by a model",
    COLLAPSED: "older tool results collapsed",
    "tool_call_compaction": "older tool calls left out",
    "truncation": "the oldest groups truncated",
    "sliding_window": "outside the sliding window",
    "token_budget_fallback": "over the token budget: the oldest groups left out",
    "token_budget_fallback_strict": "over the token budget: system messages left out too",
}
"""The framework's reasons, in words."""
_FILE_ONLY: Final = "whether marked messages are left out of a request is a setting of the program"


class Fold:
    """What was told so far. `update` takes the file as it is now and gives what is new.

    `requests` keeps every request in `asked`, which grows with the square of a session.
    """

    def __init__(self, *, requests: bool = False) -> None:
        self.asked: list[RebuiltRequest] = []
        self._requests = requests
        self._out = Outbox()
        self._shown = Shown(self._out)
        self._values: dict[str, WireItem] = {}
        self._told: dict[str, Told] = {}
        self._order: list[str] = []
        """The keys in the order of the file."""
        self._here: list[str] = []
        """The keys of the messages in the context, in the order of the file."""
        self._gone: set[str] = set()
        self._faults: set[Fault] = set()
        self._begun = False
        self._unplaced: frozenset[str] = frozenset()
        """What compactions took out whose place is not known."""
        self._unseen = False
        """There were compactions that left no marks."""
        self._n = 0
        self._turn = self._sent = self._ordinal = self._lost = 0
        self._answering = False
        self._in_turn = self._answered = False

    def update(self, document: Document, until: int | None = None) -> Iterator[e.Record]:
        """The records that this state of the file adds, up to the position `until`."""
        if not self._begun:
            self._begin(document)
        for fault in document.faults:
            if fault not in self._faults:
                self._faults.add(fault)
                self._fault(fault)
        steps, lost = plan(document.messages)
        self._told = {each.key: each for each in told(document.messages)}
        self._order = list(self._told)
        unplaced = (s.excluded for s in steps if isinstance(s, Pass) and not s.placed)
        self._unplaced = frozenset().union(*unplaced)
        self._unseen = lost > 0
        for step in steps:
            if until is not None and self._n >= until:
                break
            if isinstance(step, Told):
                self._message(step)
            else:
                self._pass(step)
            yield from self._out.ready()
        if until is None and self._answered:
            # What is stored is stored after a run, so an answer at the end ends the turn.
            self._end_turn()
        if lost > self._lost:
            self._lost = lost
            text = (
                f"the ids of the messages show {lost} more summaries in the list while the program "
                "ran: those compactions left no other trace in this file"
            )
            self._emit(e.Note(kind="compaction", text=text))
        yield from self._out.ready()

    def context(self) -> list[WireItem]:
        """The messages of the context, as they are sent."""
        return [sent_form(self._values[key]) for key in self._here]

    def _begin(self, document: Document) -> None:
        self._begun = True
        first = next((m for m in document.messages if m.get("role") == "user"), {})
        said = next(items_of(first), None) if first else None
        started = e.SessionStarted(
            session_id=document.session_id,
            agent=AGENT,
            policy=POLICY,
            version=document.version,
            title=" ".join((said.text if said else "").split())[:TITLE],
            system_recorded=False,
        )
        self._out.emit(0, started)
        for name in document.others:
            text = f"the session holds another list of messages, of {name}, which is not shown"
            self._emit(e.Note(kind="session", text=text))
        if document.service:
            text = "the service keeps this conversation: what it sends may be more than is here"
            self._emit(e.Note(kind="session", text=text))

    def _fault(self, fault: Fault) -> None:
        event: e.Event = e.ErrorRaised(kind="bad_line", message=fault.text, line=fault.line)
        if fault.unknown:
            event = e.UnknownRecord(type=fault.unknown, line=fault.line, size=fault.size)
        self._emit(event)

    def _emit(self, event: e.Event) -> None:
        self._out.emit(self._out.not_before(self._n), event)

    # -- steps -----------------------------------------------------------------------------------

    def _message(self, each: Told) -> None:
        if each.key in self._values:
            self._values[each.key] = each.value
            return
        self._n += 1
        if each.role == "user":
            self._end_turn()
            self._turn += 1
            self._in_turn = True
            self._emit(e.TurnStarted(turn=self._turn))
        if each.role == "assistant" and not self._answering:
            self._asks()
        self._answering = each.role == "assistant"
        self._answered = self._answering and not _calls(each.value)
        self._values[each.key] = each.value
        self._here.append(each.key)
        for piece in self._pieces(each):
            self._shown.append(piece, turn=self._turn, round=self._sent)

    def _end_turn(self) -> None:
        """How a turn without an answer ended is not stored."""
        if self._in_turn and self._answered:
            self._emit(e.TurnFinished(turn=self._turn, outcome="completed"))
        self._in_turn = self._answered = False

    def _asks(self) -> None:
        self._sent += 1
        self._in_turn = self._turn > 0
        self._emit(e.RequestSent(request=self._sent, turn=self._turn, round=self._sent))
        if not self._requests:
            return
        loose = sum(key in self._unplaced for key in self._here)
        left = f"{loose} of the messages were taken out at a time that is not in the file"
        if self._unseen:
            left = "compactions that are not in the file may have taken some out"
        self.asked.append(
            RebuiltRequest(
                position=self._n - 1,
                kind=e.Purpose.TURN,
                input=self.context(),
                evidence="inferred" if loose or self._unseen else "derived",
                missing="the instructions",
                left_out=left if loose or self._unseen else "",
            )
        )

    def _pass(self, step: Pass) -> None:
        gone = step.excluded - self._gone
        new = {key: of for key, of in step.summaries.items() if key not in self._values}
        if not gone and not new:
            return
        self._n += 1
        self._answering = False
        before = [self._told[key] for key in self._here]
        if self._requests and step.reason == "summarized" and new:
            self._summary_request([each for each in before if each.key in gone])
        self._gone |= gone
        for key in new:
            self._values[key] = self._told[key].value
        places = {key: at for at, key in enumerate(self._order)}
        left = [key for key in (*self._here, *new) if key not in self._gone]
        self._here = sorted(left, key=lambda key: places.get(key, len(places)))
        after = [self._told[key] for key in self._here]
        self._ordinal += 1
        pieces = [piece for each in after for piece in self._pieces(each)]
        heads = {self._pieces(each)[0].key: of for each in after if (of := new.get(each.key))}
        speaks = {head: self._keys(of) for head, of in heads.items()}
        edit = self._shown.edit(self._n, pieces, self._ordinal, speaks=speaks)
        self._n = max(self._n, edit.n)
        change = edit.change
        texts = [self._told[key].mark.message.text for key in new]
        event = e.HistoryCompacted(
            ordinal=self._ordinal,
            pass_id=f"marks-{self._ordinal}",
            policy=POLICY,
            stage=step.reason or "excluded",
            moment=None,
            trigger=Trigger.AUTO,
            reason=_WORDS.get(step.reason, step.reason or "marked as excluded, without a reason"),
            segments=edit.segments,
            items_before=edit.before,
            items_after=len(change.after),
            kept=len(change.kept),
            removed=len(change.removed),
            replaced=len(change.replaced),
            inserted=len(change.inserted),
            removed_ids=edit.removed_ids,
            before=_tokens(before),
            after=_tokens(after),
            summary="\n".join(texts) if texts else None,
            window=self._ordinal,
            evidence="derived",
            marks=(*step.notes, _FILE_ONLY),
        )
        self._out.emit(edit.n, event)

    def _summary_request(self, summarised: Sequence[Told]) -> None:
        text = transcript(each.mark.message for each in summarised)
        contents = [{"type": "text", "text": text, "additional_properties": {}}]
        self.asked.append(
            RebuiltRequest(
                position=self._n - 1,
                kind=e.Purpose.COMPACTION,
                input=[{"role": "user", "contents": contents}],
                missing="the prompt, the system message in front",
            )
        )

    def _keys(self, of: frozenset[str]) -> set[str]:
        return {piece.key for key in of for piece in self._pieces(self._told[key])}

    def _pieces(self, each: Told) -> list[Piece]:
        items = items_of(each.value, summary=each.is_summary)
        return [Piece(f"{each.key}/{at}", item, self._n) for at, item in enumerate(items)]


def _calls(message: WireItem) -> bool:
    """The message asks for tools."""
    contents = message.get("contents")
    parts = contents if isinstance(contents, list) else []
    return any(isinstance(part, dict) and part.get("type") == "function_call" for part in parts)


def _tokens(messages: Sequence[Told]) -> Tokens | None:
    """The program's own counts, where every message has one; by which tokenizer is not told."""
    counts = [each.mark.tokens for each in messages]
    known = [count for count in counts if count is not None]
    if not known or len(known) < len(counts):
        return None
    return Tokens(sum(known), Basis.ESTIMATED, Scope.MESSAGES)
