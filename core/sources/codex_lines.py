"""The lines that a rollout mostly consists of, decoded into just what is read of them.

Nine lines of ten are of six kinds. For a large file these are decoded straight into structs, which
takes a third of the time of a general decoding; a line that does not fit exactly is read in the
general way, and so is everything else. Faults in fields that nobody reads are not looked for here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone; others are read in the general way."""
_Number = Annotated[int, msgspec.Meta(gt=-(1 << 53), lt=1 << 53)]
Number: TypeAlias = _Number | None
"""A whole number that can be a count (see codex_items.int_of)."""


class UsageFigures(msgspec.Struct, frozen=True, gc=False):
    """Codex's usage object."""

    total_tokens: Number = None
    input_tokens: Number = None
    output_tokens: Number = None
    cached_input_tokens: Number = None
    cache_write_input_tokens: Number = None
    reasoning_output_tokens: Number = None


class _Text(msgspec.Struct, frozen=True, gc=False):
    text: str


class Thought(msgspec.Struct, frozen=True, gc=False, tag="reasoning"):
    """A reasoning item."""

    id: str | None = None
    summary: tuple[_Text, ...] = ()
    content: tuple[_Text, ...] | None = None
    encrypted_content: str | None = None


class Call(msgspec.Struct, frozen=True, gc=False, tag="function_call"):
    """A function_call item."""

    call_id: Annotated[str, msgspec.Meta(min_length=1)]
    name: str
    arguments: str
    id: str | None = None
    namespace: str | None = None


class Output(msgspec.Struct, frozen=True, gc=False, tag="function_call_output"):
    """A function_call_output item whose output is a text."""

    call_id: Annotated[str, msgspec.Meta(min_length=1)]
    output: str
    id: str | None = None
    name: str | None = None


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    compaction_output: Literal[None] = None
    """The answer of a compaction request is read in the general way."""
    sampled_through_sequence: Number = None


NO_METADATA = _Metadata()


class ItemLine(msgspec.Struct, frozen=True, gc=False, tag="response_item"):
    """An item of the history."""

    timestamp: Moment
    payload: Thought | Call | Output
    metadata: _Metadata = NO_METADATA
    ordinal: int | None = None


class CountInfo(msgspec.Struct, frozen=True, gc=False):
    """The figures of a token_count."""

    last_token_usage: UsageFigures | None = None
    total_token_usage: UsageFigures | None = None
    model_context_window: Number = None
    last_usage_includes_reasoning: bool | None = None


class Count(msgspec.Struct, frozen=True, gc=False, tag="token_count"):
    """A token_count message."""

    info: CountInfo


class _Duration(msgspec.Struct, frozen=True, gc=False):
    secs: _Number
    nanos: _Number = 0


class DoneItem(msgspec.Struct, frozen=True, gc=False):
    """What was completed: of a command how it went, of anything else nothing."""

    type: str
    id: str | None = None
    exit_code: Number = None
    status: str | None = None
    duration: _Duration | None = None
    aggregated_output: str | None = None


class Done(msgspec.Struct, frozen=True, gc=False, tag="item_completed"):
    """An item_completed message."""

    item: DoneItem
    started_at_ms: Number = None


class EventLine(msgspec.Struct, frozen=True, gc=False, tag="event_msg"):
    """A message for Codex's own screen."""

    timestamp: Moment
    payload: Count | Done
    ordinal: int | None = None


class UsageRecord(msgspec.Struct, frozen=True, gc=False):
    """The end of a response."""

    response_id: str | None = None
    usage: UsageFigures | None = None


class UsageLine(msgspec.Struct, frozen=True, gc=False, tag="token_usage_record"):
    """A token_usage_record."""

    timestamp: Moment
    payload: UsageRecord
    ordinal: int | None = None


KnownLine: TypeAlias = ItemLine | EventLine | UsageLine

decode_known = msgspec.json.Decoder(KnownLine).decode
"""Raises msgspec.MsgspecError (or RecursionError) for any other line."""
