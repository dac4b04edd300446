"""Turn numbers across passes.

The framework's index lives with the session, so a group keeps its turn although the user message
that began it is gone. A context does not show that: without more knowledge what is left of an old
turn would look like turn 0, which the sliding window protects for ever. So each edit keeps the turn
numbers that the rule (a user message begins the next turn) would not give again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ....context import EntryId
from .bridge import Bridge
from .dotnet_groups import GroupKind, MessageGroup, divide
from .dotnet_index import MessageIndex
from .dotnet_strategies import SUMMARY_PREFIX
from .messages import ChatMessage

MEMORY = "turns"
"""Under this name the policy's state holds {entry id: turn}."""


def resumed(bridge: Bridge, memory: Mapping[str, Any]) -> MessageIndex:
    """The index of a context, with the turn numbers that were kept."""
    kept: Mapping[str, int] = memory.get(MEMORY, {})
    groups, _ = divide(bridge.messages)
    turn = 0
    for each in groups:
        if each.system:
            continue
        if (known := kept.get(_key(each, bridge.entries))) is not None:
            turn = known
        elif each.kind is GroupKind.USER:
            turn += 1
        each.turn = None if _by_model(each) else turn
    last = bridge.messages[-1] if bridge.messages else None
    return MessageIndex(groups, turn=turn, last=last)


def kept(groups: Iterable[MessageGroup], bridge: Bridge) -> dict[str, int]:
    """The turn numbers of included groups that have to be remembered."""
    exceptions: dict[str, int] = {}
    turn = 0
    for each in groups:
        if each.excluded or each.turn is None:
            continue
        turn += each.kind is GroupKind.USER
        key = _key(each, bridge.entries)
        if each.turn != turn and key:
            exceptions[key] = turn = each.turn
    return exceptions


def _key(each: MessageGroup, entries: Callable[[ChatMessage], tuple[EntryId, ...]]) -> str:
    ids = entries(each.messages[0])
    return ids[0].bare if ids else ""


def _by_model(each: MessageGroup) -> bool:
    """A model's summary belongs to no turn; a collapsed group stays in its own."""
    return each.kind is GroupKind.SUMMARY and each.messages[0].text.startswith(SUMMARY_PREFIX)
