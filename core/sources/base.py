"""What a source is: a session file of some agent, told in our own events.

A source is read-only. It gives the same `Record`s as our own journal, so that every view, report
and screen works over any agent's session; and it gives what the model was sent in that agent's own
wire form, which is the ground truth that a recording of the real requests can be compared with.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from ..events import Purpose, Record

WireItem = dict[str, Any]
"""One item of a request, as the agent's own protocol has it (decoded JSON)."""


class RebuiltRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model request as the session file tells it. Its JSON form is a line of the export.

    `position` is the number of the last line of the file that had been read when it went out, so
    the context at that position is what it carried. `input` is in the agent's wire form. `missing`
    says what was sent but is not in the file; `attempts` counts how often the file shows it was
    sent, when that was more than once; `failed` names the error that it ended with.
    """

    position: int
    kind: Purpose
    input: list[WireItem]
    missing: str = ""
    instructions: str = ""
    """System text that the wire carries beside `input` (older agents)."""
    attempts: int = 1
    failed: str = ""
    evidence: str = "derived"
    left_out: str = ""
    """What is in `input` although the program is known to have left some of it out, in words."""


class Tail(Protocol):
    """A session file for a caller with a thread of its own: asked for news, never waiting."""

    def more(self) -> Iterator[Record]:
        """The records since the last call; blocking."""
        ...


class Source(Protocol):
    """A session of some agent. Errors of the file itself are ThresherError."""

    def __init__(self, path: Path) -> None: ...

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def agent(self) -> str:
        """The program that wrote it ("codex")."""
        ...

    def read(self) -> Iterator[Record]:
        """All events of the file as it is now, in order. `Record.n` is the line, from 0."""
        ...

    def follow(self, stop: asyncio.Event | None = None) -> AsyncIterator[list[Record]]:
        """The events of the file, then those of what is appended, in batches, until `stop`."""
        ...

    def tail(self) -> Tail:
        """The same as `follow`, for a thread."""
        ...

    def requests(self) -> Iterator[RebuiltRequest]:
        """Every model request that can be rebuilt from the file, in order."""
        ...

    def context_raw(self, position: int | None = None) -> list[WireItem]:
        """The history after the line `position` (default: the last one), in the wire form."""
        ...


def encode_request(request: RebuiltRequest) -> bytes:
    """One JSON line, without its newline."""
    try:
        return msgspec.json.encode(request)
    except OverflowError:
        # A foreign number beyond 64 bits, which only the slower encoder writes.
        plain = msgspec.structs.asdict(request)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
