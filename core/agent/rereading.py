"""Reading files of the workspace again for a policy: the effect behind the ask `Reread`."""

from __future__ import annotations

import asyncio

from ..compaction.asks import Rereading
from ..compaction.policy import Files, Reread
from ..errors import ThresherError
from .tools import textfile
from .tools.workspace import Workspace

_MOST_BYTES = 4
"""Bytes of one character in UTF-8, at most."""


def rereading(workspace: Workspace) -> Rereading:
    """A reader that never leaves the workspace. What is gone, refused or no text is left out."""

    async def read(ask: Reread) -> Files:
        return await asyncio.to_thread(_read_all, workspace, ask)

    return read


def _read_all(workspace: Workspace, ask: Reread) -> Files:
    found = ((path, _read(workspace, path, ask.limit)) for path in ask.paths)
    return Files(tuple((path, text) for path, text in found if text is not None))


def _read(workspace: Workspace, path: str, limit: int) -> str | None:
    most = min(textfile.MAX_BYTES, _MOST_BYTES * limit)
    try:
        with workspace.open(workspace.resolve(path)) as file:
            data = file.read(most)
            whole = not file.read(1)
    except (OSError, ThresherError):
        return None
    if not whole and b"\0" not in data:
        # The last character may be cut in two.
        return data.decode("utf-8", errors="ignore")[:limit]
    decoded = textfile.decode(data)
    return decoded.text[:limit] if decoded else None
