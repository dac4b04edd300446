"""What a session of ours sent to its model, rebuilt from the record in the wire form it had.

The journal holds no request, but what a request is made of and a digest of each message. So a
request is rebuilt from the context at its place, and the digests say whether that is what went out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import events as e
from ..digest import wire_digests
from ..history import History
from ..items import Item
from ..sources.base import RebuiltRequest
from ..state import SessionState


def rebuilt_requests(history: History) -> Iterator[RebuiltRequest]:
    """Every request for a turn, in order; `position` is the line of its `request_sent`.

    Where the digests on record are not those of the rebuilt messages, `missing` says how many.
    Requests for summaries are not rebuilt: their prompt belongs to the policy's code, which may
    have changed since.
    """
    state = SessionState()
    for record in history.records:
        state.apply(record)
        event = record.event
        if isinstance(event, e.RequestSent) and event.purpose is e.Purpose.TURN:
            messages = wire_context(state)
            yield RebuiltRequest(
                position=record.n,
                kind=event.purpose,
                input=messages,
                missing=_difference(event.digests, messages),
                instructions=state.instructions,
            )


def wire_context(state: SessionState) -> list[dict[str, Any]]:
    """The context as the session's own wire has it."""
    return wire_form(state.context.items, state.wire)


def wire_form(items: tuple[Item, ...], wire: str) -> list[dict[str, Any]]:
    """The items as `input` of the Responses protocol, or as `messages` of Chat Completions."""
    from ..gateways.openai_chat import chat_messages
    from ..gateways.openai_responses import response_input

    return response_input(items) if wire == "responses" else chat_messages(items)


def _difference(recorded: tuple[str, ...], messages: list[dict[str, Any]]) -> str:
    if not recorded:
        return ""
    now, _ = wire_digests(messages)
    same = sum(a == b for a, b in zip(recorded, now, strict=False))
    if len(now) == len(recorded) == same:
        return ""
    return (
        f"{same} of the {len(recorded)} messages that went out are rebuilt exactly, by the digests "
        "on record"
    )
