"""The lines that a transcript mostly consists of, decoded into just what is read of them.

Nine records of ten are a block of a response or the result of one tool. For a large file these are
decoded straight into structs; a line that does not fit exactly (also one with a field that is not
known, or with a fault anywhere in it) is read in the general way, and so is everything else.

Fields stand in the order in which the program writes them, where the decoder looks first; it may be
any other. Nothing that was decoded holds itself, so the collector need not look at it.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec.structs import force_setattr

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone; others are read in the general way."""
_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Number: TypeAlias = Annotated[int, msgspec.Meta(gt=-(1 << 53), lt=1 << 53)]
Count: TypeAlias = _Number | None
"""A whole number that can be a count (see codex_items.int_of)."""


class Figures(msgspec.Struct, frozen=True, gc=False):
    """A usage of the Messages API."""

    input_tokens: Count = None
    cache_creation_input_tokens: Count = None
    cache_read_input_tokens: Count = None
    output_tokens: Count = None


class Said(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """A text block."""

    text: str


class Thought(msgspec.Struct, frozen=True, gc=False, tag="thinking"):
    """A thinking block."""

    thinking: str
    signature: str = ""


class Asked(msgspec.Struct, frozen=True, gc=False, tag="tool_use"):
    """A tool_use block."""

    id: _Name
    name: str
    input: Any = None


class _Response(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    id: str = ""
    model: str = ""
    content: Annotated[tuple[Said | Thought | Asked, ...], msgspec.Meta(min_length=1, max_length=1)]
    stop_reason: str | None = None
    usage: Figures | None = None
    context_management: Literal[None] = None
    """What the provider cleared is read in the general way."""


class BlockLine(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A record of a response, which holds one block of it."""

    parentUuid: str | None = None
    isSidechain: bool = False
    message: _Response
    requestId: str | None = None
    type: Literal["assistant"]
    uuid: _Name
    timestamp: Moment
    userType: Any = None
    entrypoint: Any = None
    cwd: Any = None
    sessionId: Any = None
    version: str = ""
    gitBranch: Any = None
    slug: Any = None
    agentId: str = ""
    isApiErrorMessage: Literal[False] = False
    error: Any = None
    errorDetails: Any = None
    apiErrorStatus: Any = None
    attributionAgent: Any = None
    apiBlockIndex: Any = None
    requestRef: Any = None
    requestedModel: Any = None
    madeBy: Any = None
    promptCacheRequested: Any = None
    perTurnEffort: Any = None
    thinkingDurationMs: Any = None
    thinkingDisplay: Any = None
    toolInputStreamMs: Any = None
    apiError: Any = None
    apiErrorType: Any = None
    failedResponseHadNoToolCall: Any = None
    resendCannotCure: Any = None
    requestSessionId: Any = None
    effort: Any = None
    isMeta: Any = None


class Result(msgspec.Struct, frozen=True, gc=False):
    """A tool_result block whose content is a text."""

    tool_use_id: _Name
    type: Literal["tool_result"]
    content: str
    is_error: bool | None = None
    text: Literal[None] = None
    """A block of this kind has none; where it does, it is read in the general way."""


class _Results(msgspec.Struct, frozen=True, gc=False):
    content: Annotated[tuple[Result, ...], msgspec.Meta(min_length=1, max_length=1)]


class Told(msgspec.Struct, frozen=True, gc=False):
    """What the program itself noted about a result. That of a subagent is read in the general
    way."""

    stdout: str | None = None
    stderr: str | None = None
    agentId: Literal["", None] = None
    totalDurationMs: Count = None
    durationMs: Count = None


class ResultLine(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A record with the result of one tool."""

    parentUuid: str | None = None
    isSidechain: bool = False
    promptId: Any = None
    type: Literal["user"]
    message: _Results
    uuid: _Name
    timestamp: Moment
    toolUseResult: Told | str | None = None
    sourceToolAssistantUUID: Any = None
    userType: Any = None
    entrypoint: Any = None
    cwd: Any = None
    sessionId: Any = None
    version: str = ""
    gitBranch: Any = None
    slug: Any = None
    agentId: str = ""
    isCompactSummary: Literal[False] = False
    isMeta: Any = None
    permissionMode: Any = None
    isVisibleInTranscriptOnly: Any = None
    promptSource: Any = None
    toolDenialKind: Any = None
    sentAtMs: Any = None
    rowSource: Any = None
    turnOrigin: Any = None
    turnPosition: Any = None
    sandboxed: Any = None
    permissionDecision: Any = None
    summarizedTurnPromptUuids: Any = None
    origin: Any = None
    queueSkipAttachments: Any = None
    ownNote: Any = None
    turnCompanion: Any = None
    refusalRetry: Any = None
    refusedMessageId: Any = None


Known: TypeAlias = tuple[BlockLine | ResultLine, bytes]
"""A line of these forms, with its bytes: what only the state of the session shows may still want it
read in the general way."""

NEAR: Final = 1_000
"""Bytes in which the role is looked for: it stands in front of what makes a line long."""

_block = msgspec.json.Decoder(BlockLine).decode
_result = msgspec.json.Decoder(ResultLine).decode
_text = msgspec.json.Decoder(str).decode

_ROLE: Final = 300
"""Bytes in which the role of a response stands."""
_CONTENT: Final = b'"content":"'
_STDOUT: Final = b'"stdout":"'
_BEHIND: Final = b'","stderr":'
REPEATED: Final = 300
"""Bytes of a text from which on it is only decoded once, where its line holds it twice."""
_MARK: Final = secrets.token_hex(8)
"""Stands for such a text while the rest is decoded; nobody can have written it into a file."""
_MARK_JSON: Final = f'"{_MARK}"'.encode()


def decode_known(raw: bytes) -> Known:
    """Raises msgspec.MsgspecError (or RecursionError) for any other line. The bytes must be UTF-8:
    the decoder does not look at those of fields that nobody reads."""
    said = raw.find(b'"assistant"', 0, NEAR)
    # Two lines of three are blocks of a response; in a result the word may stand further behind.
    if said >= 0 and (said < _ROLE or raw.find(b'"tool_result"', 0, said) < 0):
        return _block(raw), raw
    if raw.find(b'"tool_result"', 0, NEAR) >= 0:
        return _result(raw), raw
    raise msgspec.DecodeError("another kind of line")


def decode_wide(raw: bytes) -> Known:
    """The same for bytes beyond ASCII, which need not be UTF-8: then it raises UnicodeDecodeError
    (or one of msgspec's)."""
    if (found := _repeated(raw)) is not None:
        return found, raw
    raw.decode()
    return decode_known(raw)


def _repeated(raw: bytes) -> ResultLine | None:
    """The result of a shell command, whose long text the program writes twice: into the message,
    and as what the command printed. None for any other line, also for one with a fault.

    Of two texts with the same bytes one is decoded. The line around them is decoded with a mark in
    the place of each; where the marks come out as just these two, it is what it would be as a
    whole. (This is worth it beyond ASCII, where a text takes several times as long.)
    """
    end = raw.rfind(_BEHIND, -NEAR) + 1
    start = raw.find(_CONTENT, 0, NEAR) + len(_CONTENT) - 1
    if end <= start or start < len(_CONTENT):
        return None
    # The second text fills the second half of what lies in between.
    half = (start + end) // 2
    second = raw.find(_STDOUT, half, half + NEAR) + len(_STDOUT) - 1
    size = end - second
    if second < half or size < REPEATED:
        return None
    told = raw[second:end]
    if not raw.startswith(told, start):
        return None
    between, behind = raw[start + size : second], raw[end:]
    rest = b"".join((raw[:start], _MARK_JSON, between, _MARK_JSON, behind))
    try:
        if not rest.isascii():
            rest.decode()
        found, text = _result(rest), _text(told)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    (result,), noted = found.message.content, found.toolUseResult
    if result.content != _MARK or not isinstance(noted, Told) or noted.stdout != _MARK:
        return None
    # Nobody else has these yet.
    force_setattr(result, "content", text)
    force_setattr(noted, "stdout", text)
    return found
