"""Answering a policy's asks: the effects that a policy itself may not have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import ThresherError
from .fallback import Chain
from .policy import (
    CompactRemotely,
    Failure,
    FailureKind,
    Files,
    Persist,
    Reread,
    Stored,
    Summarise,
    Summary,
)
from .store import Store

Question: TypeAlias = Summarise | Persist | Reread | CompactRemotely
"""The asks that are answered without a change of the context."""
Rereading = Callable[[Reread], Awaitable[Files]]
"""Reads files of the workspace. Raises OSError or ThresherError when it cannot."""
RemoteCompaction = Callable[[CompactRemotely, str], Awaitable[Summary | Failure]]
"""Lets the provider compact, for a pass by its id; the summary then has `encrypted`."""


def is_paid(ask: Question) -> bool:
    """Whether an ask sends a request to a provider, which costs time and money."""
    return isinstance(ask, Summarise | CompactRemotely)


@dataclass(frozen=True)
class Asks:
    """What asks are answered with; None where this session has no such thing."""

    chain: Chain
    store: Store | None = None
    reread: Rereading | None = None
    remote: RemoteCompaction | None = None

    async def answer(self, ask: Question, pass_id: str) -> Summary | Stored | Files | Failure:
        """The answer, or a failure with its kind; what is not set up is UNSUPPORTED."""
        match ask:
            case Summarise():
                return await self.chain.write(ask, pass_id)
            case CompactRemotely():
                if self.remote is None:
                    return _unsupported("This endpoint does not compact by itself.")
                return await self.remote(ask, pass_id)
            case Persist():
                return await self._persist(ask)
            case Reread():
                return await self._reread(ask)

    async def _persist(self, ask: Persist) -> Stored | Failure:
        if self.store is None:
            return _unsupported("There is no folder to keep texts in.")
        try:
            return Stored(await asyncio.to_thread(self.store.save, ask.name, ask.text))
        except OSError as error:
            why = error.strerror or str(error)
            return Failure(FailureKind.STORAGE, f"The text {ask.name} could not be kept: {why}.")

    async def _reread(self, ask: Reread) -> Files | Failure:
        if self.reread is None:
            return _unsupported("Files cannot be read again here.")
        try:
            return await self.reread(ask)
        except OSError as error:
            return Failure(FailureKind.STORAGE, error.strerror or str(error))
        except ThresherError as error:
            return Failure(FailureKind.STORAGE, error.msg)


def _unsupported(words: str) -> Failure:
    return Failure(FailureKind.UNSUPPORTED, words)
