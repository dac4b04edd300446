"""What belongs together in a conversation, and whether a provider would accept it.

A call and its outputs are one thing: who removes one and keeps the other makes a request that every
provider refuses (langchain#34282, langchain#38352). `groups` says what belongs together, `validate`
says what is wrong with an order of items. Both take one pass over the items.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from .items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Kind,
    Message,
    OtherItem,
    Reasoning,
    Role,
    kind_of,
)


class Dialect(StrEnum):
    """A provider's rules for the order of a conversation."""

    RESPONSES = "responses"
    """OpenAI Responses: every call has an output after it; sealed reasoning stands in front of
    something that the model said or called. Other items may lie between a call and its output."""
    CHAT = "chat"
    """OpenAI Chat Completions: the outputs follow their calls at once, nothing lies between."""
    STRICT = "strict"
    """Chat Completions, and after the system messages user and assistant take turns, the user
    first. Outputs are the user's side, and so are summaries that are sent in the user's name."""


# What belongs together ---------------------------------------------------------------------------


class Group(msgspec.Struct, frozen=True):
    """Items that stay or go together: their positions, in order. Usually a run, but an output that
    came late leaves other items between."""

    places: tuple[int, ...]

    @property
    def first(self) -> int:
        """The position of the first item."""
        return self.places[0]

    @property
    def last(self) -> int:
        """The position of the last item."""
        return self.places[-1]


def groups(items: Sequence[Item]) -> tuple[Group, ...]:
    """Every position in exactly one group, groups in the order of their first item.

    What the model said in one go with calls in it (reasoning, text, parallel calls) is one group
    together with all outputs of these calls. Reasoning without calls belongs to the message after
    it. Everything else stands alone, an output without a call too.
    """
    members: list[list[int]] = []
    callers: dict[str, int] = {}
    waiting: dict[str, list[int]] = {}
    at = 0
    while at < len(items):
        end = _run_end(items, at)
        for start, stop in _units(items, at, end):
            here = len(members)
            members.append(list(range(start, stop)))
            for item in items[start:stop]:
                if isinstance(item, FunctionCall):
                    callers[item.call_id] = here
                    for early in waiting.pop(item.call_id, ()):
                        members[here] += members[early]
                        members[early] = []
                elif isinstance(item, FunctionCallOutput):
                    caller = callers.get(item.call_id)
                    if caller is None:
                        waiting.setdefault(item.call_id, []).append(here)
                    else:
                        members[caller] += members.pop()
        at = end
    return tuple(
        sorted((Group(tuple(sorted(m))) for m in members if m), key=lambda group: group.first)
    )


def safe_cuts(items: Sequence[Item]) -> tuple[int, ...]:
    """Positions p, from 0 to len(items), where no group has items on both sides of a cut that
    separates items[:p] from items[p:]."""
    reach = list(range(len(items)))
    for group in groups(items):
        reach[group.first] = group.last
    cuts = [0]
    furthest = -1
    for at, last in enumerate(reach):
        furthest = max(furthest, last)
        if furthest == at:
            cuts.append(at + 1)
    return tuple(cuts)


def _run_end(items: Sequence[Item], at: int) -> int:
    if not _by_model(items[at]):
        return at + 1
    end = at
    while end < len(items) and _by_model(items[end]):
        end += 1
    return end


def _units(items: Sequence[Item], start: int, end: int) -> list[tuple[int, int]]:
    """A run of the model's items as it is if it calls anything, else one unit for each message."""
    if any(isinstance(item, FunctionCall) for item in items[start:end]):
        return [(start, end)]
    units = []
    for at in range(start, end):
        if not isinstance(items[at], Reasoning):
            units.append((start, at + 1))
            start = at + 1
    if start < end:
        units.append((start, end))
    return units


def _by_model(item: Item) -> bool:
    return isinstance(item, FunctionCall | Reasoning) or (
        isinstance(item, Message) and item.role is Role.ASSISTANT
    )


# What is wrong -----------------------------------------------------------------------------------


class ViolationKind(StrEnum):
    """What a provider would refuse."""

    CALL_WITHOUT_OUTPUT = "call_without_output"
    OUTPUT_WITHOUT_CALL = "output_without_call"
    OUTPUT_BEFORE_CALL = "output_before_call"
    CALL_TWICE = "call_twice"
    """The same call id again while the first call is still open."""
    OUTPUT_TWICE = "output_twice"
    NOT_ADJACENT = "not_adjacent"
    """Something stands between a call and its output."""
    REASONING_ALONE = "reasoning_alone"
    SYSTEM_NOT_FIRST = "system_not_first"
    FIRST_NOT_USER = "first_not_user"
    TWO_IN_A_ROW = "two_in_a_row"
    NOTHING_TO_ANSWER = "nothing_to_answer"
    """Nothing but system messages."""


class Violation(msgspec.Struct, frozen=True):
    """One fault: the position of the item it is seen at (-1: of the whole list), the id of the
    call it is about (or empty), and a sentence."""

    kind: ViolationKind
    index: int
    call_id: str
    words: str


def validate(items: Sequence[Item], dialect: Dialect) -> list[Violation]:
    """Everything the dialect would refuse, in the order of the items; empty when all is well."""
    found = _pairing(items)
    if dialect is Dialect.RESPONSES:
        found += _lonely_reasoning(items)
    else:
        found += _adjacency(items)
    if dialect is Dialect.STRICT:
        found += _alternation(items)
    if all(kind_of(item) is Kind.SYSTEM for item in items):
        found.append(
            Violation(
                ViolationKind.NOTHING_TO_ANSWER,
                -1,
                "",
                "there is nothing to answer: no item but system messages",
            )
        )
    return sorted(found, key=lambda violation: violation.index)


def _pairing(items: Sequence[Item]) -> list[Violation]:
    found: list[Violation] = []
    open_at: dict[str, int] = {}
    answered: set[str] = set()
    early: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        match item:
            case FunctionCall(call_id=id):
                for place in early.pop(id, ()):
                    words = f"the output at {place + 1} comes before its call {id} at {at + 1}"
                    found.append(Violation(ViolationKind.OUTPUT_BEFORE_CALL, place, id, words))
                    answered.add(id)
                if id in open_at:
                    words = (
                        f"call {id} at {at + 1} has the id of the open call at {open_at[id] + 1}"
                    )
                    found.append(Violation(ViolationKind.CALL_TWICE, at, id, words))
                else:
                    open_at[id] = at
            case FunctionCallOutput(call_id=id):
                if open_at.pop(id, None) is not None:
                    answered.add(id)
                elif id in answered:
                    words = f"the output at {at + 1} is a second one for call {id}"
                    found.append(Violation(ViolationKind.OUTPUT_TWICE, at, id, words))
                else:
                    early.setdefault(id, []).append(at)
            case _:
                pass
    for id, places in early.items():
        for place in places:
            words = f"the output at {place + 1} has no call {id}"
            found.append(Violation(ViolationKind.OUTPUT_WITHOUT_CALL, place, id, words))
    told = {v.call_id for v in found if v.kind is ViolationKind.OUTPUT_BEFORE_CALL}
    for id, place in open_at.items():
        if id not in told:
            words = f"call {id} at {place + 1} has no output"
            found.append(Violation(ViolationKind.CALL_WITHOUT_OUTPUT, place, id, words))
    return found


def _lonely_reasoning(items: Sequence[Item]) -> list[Violation]:
    found: list[Violation] = []
    followed = False
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if isinstance(item, Reasoning):
            if item.encrypted and not followed:
                words = f"the sealed reasoning at {at + 1} is not followed by what it led to"
                found.append(Violation(ViolationKind.REASONING_ALONE, at, "", words))
        else:
            # What the provider itself ran (a search, a shell call) is an item of another kind.
            followed = _by_model(item) or isinstance(item, OtherItem)
    return found


def _adjacency(items: Sequence[Item]) -> list[Violation]:
    """Chat has no reasoning and no items of other kinds: they never lie between anything."""
    found: list[Violation] = []
    open_at: dict[str, int] = {}
    answering = False

    def interrupted(at: int) -> None:
        for id, place in open_at.items():
            words = f"item {at + 1} stands between call {id} at {place + 1} and its output"
            found.append(Violation(ViolationKind.NOT_ADJACENT, at, id, words))
        open_at.clear()

    outputs = {item.call_id for item in items if isinstance(item, FunctionCallOutput)}
    for at, item in enumerate(items):
        match item:
            case Reasoning() | OtherItem():
                continue
            case FunctionCall(call_id=id):
                if answering:
                    interrupted(at)
                answering = False
                if id in outputs:
                    open_at[id] = at
            case FunctionCallOutput(call_id=id):
                answering = True
                open_at.pop(id, None)
            case _:
                interrupted(at)
                answering = False
    return found


def _alternation(items: Sequence[Item]) -> list[Violation]:
    found: list[Violation] = []
    before: str | None = None
    # Calls join the assistant's turn that stands before them; outputs in a row are one turn.
    joins = False
    for at, item in enumerate(items):
        match item:
            case Reasoning() | OtherItem():
                continue
            case Message(role=Role.SYSTEM | Role.DEVELOPER):
                if before is not None:
                    words = f"the system message at {at + 1} does not stand at the head"
                    found.append(Violation(ViolationKind.SYSTEM_NOT_FIRST, at, "", words))
                continue
            case FunctionCall():
                side, joining = "assistant", before == "assistant"
            case Message(role=Role.ASSISTANT) | CompactionSummary(role=Role.ASSISTANT):
                side, joining = "assistant", False
            case FunctionCallOutput():
                side, joining = "user", joins
            case _:
                side, joining = "user", False
        if before is None and side == "assistant":
            words = f"the first turn, at {at + 1}, is the assistant's"
            found.append(Violation(ViolationKind.FIRST_NOT_USER, at, "", words))
        elif before == side and not joining:
            words = f"item {at + 1} is a second turn of the {side} in a row"
            found.append(Violation(ViolationKind.TWO_IN_A_ROW, at, "", words))
        before, joins = side, isinstance(item, FunctionCallOutput)
    return found
