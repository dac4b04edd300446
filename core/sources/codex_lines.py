"""The lines that a rollout mostly consists of, decoded into just what is read of them.

Nearly all lines are of a dozen kinds. For a large file these are decoded straight into structs,
which takes a third of the time of a general decoding; a line that does not fit exactly is read in
the general way, and so is everything else. What nobody reads is passed over, yet it must be JSON.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

import msgspec

from .codex_items import METADATA

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone; others are read in the general way."""
_Number = Annotated[int, msgspec.Meta(gt=-(1 << 53), lt=1 << 53)]
Number: TypeAlias = _Number | None
"""A whole number that can be a count (see codex_items.int_of)."""
Ordinal: TypeAlias = int | msgspec.UnsetType | None
"""The number of the line, in files of the versions that give it; it may be anything."""


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


class SaidPart(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A text part of a message."""

    type: Literal["input_text", "output_text"]
    text: str


class Kinds(msgspec.Struct, frozen=True, gc=False):
    """What is read of the metadata of a message (see codex_items.METADATA)."""

    content_item_kinds: tuple[str, ...] | None = None


class Said(msgspec.Struct, frozen=True, gc=False, tag="message", forbid_unknown_fields=True):
    """A message of texts, with no field that is not named here: its wire form is made of them."""

    id: str
    role: Literal["user", "assistant", "developer"]
    content: tuple[SaidPart, ...]
    phase: str | msgspec.UnsetType = msgspec.UNSET
    metadata: Kinds | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name=METADATA)


class ItemLine(msgspec.Struct, frozen=True, gc=False, tag="response_item"):
    """An item of the history."""

    timestamp: Moment
    payload: Thought | Call | Output | Said
    metadata: _Metadata = NO_METADATA
    ordinal: Ordinal = msgspec.UNSET


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


class Anything(msgspec.Struct, frozen=True, gc=False):
    """An object of which nothing is read."""


class Applied(msgspec.Struct, frozen=True, gc=False, tag="thread_settings_applied"):
    """A thread_settings_applied message: it says nothing beyond the turn_context."""


class Started(msgspec.Struct, frozen=True, gc=False, tag="task_started"):
    """A task_started message."""

    turn_attribution: Anything | None = None
    model_context_window: Number = None


class Completed(msgspec.Struct, frozen=True, gc=False, tag="task_complete"):
    """A task_complete message without an error."""

    error: Literal[None] = None


class EventLine(msgspec.Struct, frozen=True, gc=False, tag="event_msg"):
    """A message for Codex's own screen."""

    timestamp: Moment
    payload: Count | Done | Applied | Started | Completed
    ordinal: Ordinal = msgspec.UNSET


class UsageRecord(msgspec.Struct, frozen=True, gc=False):
    """The end of a response."""

    response_id: str | None = None
    usage: UsageFigures | None = None


class UsageLine(msgspec.Struct, frozen=True, gc=False, tag="token_usage_record"):
    """A token_usage_record."""

    timestamp: Moment
    payload: UsageRecord
    ordinal: Ordinal = msgspec.UNSET


class TurnSettings(msgspec.Struct, frozen=True, gc=False):
    """The settings of a turn."""

    model: str | None = None
    comp_hash: str | None = None


class TurnLine(msgspec.Struct, frozen=True, gc=False, tag="turn_context"):
    """A turn_context."""

    timestamp: Moment
    payload: TurnSettings
    ordinal: Ordinal = msgspec.UNSET


class WorldLine(msgspec.Struct, frozen=True, gc=False, tag="world_state"):
    """A world_state: what it says is in the items as well."""

    timestamp: Moment
    payload: Anything
    ordinal: Ordinal = msgspec.UNSET


KnownLine: TypeAlias = ItemLine | EventLine | UsageLine | TurnLine | WorldLine
Payload: TypeAlias = (
    Thought | Call | Output | Said | Count | Done | Applied | Started | Completed | UsageRecord
    | TurnSettings | Anything
)  # fmt: skip

decode_known = msgspec.json.Decoder(KnownLine).decode
"""Raises msgspec.MsgspecError (or RecursionError) for any other line."""
