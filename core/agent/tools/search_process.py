"""Start a search in its own process and turn what it found into a result."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from . import process
from .base import ToolContext, ToolError, ToolResult, capped, failed
from .cap import Spool
from .searching import Search

TIMEOUT: Final = 30.0
"""Seconds for one search."""

_MODULE: Final = "thresher.core.agent.tools.searching"


async def run_search(request: Search, ctx: ToolContext, *, timeout: float = TIMEOUT) -> ToolResult:
    """Run `request`; after `timeout` seconds the result is what was found until then."""
    spool = Spool(ctx.cap, ctx.outputs_dir, ctx.call_id)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    try:
        ended = await process.run(
            # -P: never import from the workspace, whose files are not ours. -W: a warning about
            # the model's pattern would end up among the results.
            [sys.executable, "-P", "-s", "-W", "ignore", "-m", _MODULE, _encoded(request)],
            cwd=Path(request.root),
            env=_environment(),
            timeout=timeout,
            on_output=lambda data: spool.write(decoder.decode(data)),
        )
    except ValueError as error:
        raise ToolError(f"The search cannot be run: {error}.") from None
    except BaseException:
        spool.discard()
        raise
    found = spool.finish()
    if ended.timed_out:
        note = f"[stopped after {timeout:g} s: use a simpler pattern or a narrower path]"
        return capped(found, note, ok=False)
    if ended.exit_code:
        return failed(found.text.rstrip("\n"))
    return ToolResult(found.text.rstrip("\n"), True, None, found.saved, found.truncated_chars)


def _encoded(request: Search) -> str:
    try:
        return msgspec.json.encode(request).decode()
    except UnicodeEncodeError:
        raise ToolError("The path or pattern is not valid Unicode.") from None


def _environment() -> dict[str, str]:
    # Only what makes the child find the same modules: no key has any business there.
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONUTF8": "1"}
