"""bash: run a command in the workspace.

The command has the user's rights and is not confined to the workspace: that is why it is approved.
"""

from __future__ import annotations

import codecs
import os
import re
import shutil
import signal
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from . import process
from .base import Args, StructTool, ToolContext, ToolError, ToolResult, capped
from .cap import Capped, Spool

DEFAULT_TIMEOUT: Final = 120
MAX_TIMEOUT: Final = 600

MAX_STREAMED: Final = 2**20
"""Characters of one command that are shown live: `yes` must not flood the screen."""

_SECRET = re.compile(
    r"(.*_)?(API_?KEY|TOKEN|SECRET|SECRET_KEY|SECRET_ACCESS_KEY|PASSWORD|PASSWD|CREDENTIALS)",
    re.IGNORECASE,
)
_QUIET: Final = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}


class BashArgs(Args, frozen=True):
    """Arguments of bash."""

    command: Annotated[str, Meta(min_length=1, description="The command line, run by bash -c.")]
    timeout: Annotated[
        float, Meta(gt=0, le=MAX_TIMEOUT, description=f"Seconds, at most {MAX_TIMEOUT}.")
    ] = DEFAULT_TIMEOUT


class BashTool(StructTool[BashArgs]):
    """Runs a command; its result has stdout and stderr in one, and how it ended."""

    def __init__(self) -> None:
        super().__init__(
            "bash",
            "Run a command in the workspace folder and get its output (stdout and stderr together) "
            "and its exit code if that is not 0. Each call is a new shell without input: a changed "
            "folder or variable does not last, and nothing can be typed. Processes left in the "
            "background are ended when the command ends. Long output is cut in the middle and "
            "kept whole in a file.",
            BashArgs,
            read_only=False,
        )

    async def call(self, args: BashArgs, ctx: ToolContext) -> ToolResult:
        shell = shutil.which("bash") or "/bin/sh"
        output = _Output(ctx)
        try:
            ended = await process.run(
                [shell, "-c", args.command],
                cwd=ctx.workspace.root,
                env=command_environment(os.environ, ctx.secret_variables),
                timeout=args.timeout,
                on_output=output.take,
            )
        except ValueError as error:
            raise ToolError(f"The command cannot be run: {error}.") from None
        except BaseException:
            output.discard()
            raise
        note = _how_it_ended(ended, args.timeout)
        ok = ended.exit_code == 0 and not ended.timed_out
        result = capped(output.finish(), note, ok=ok, code=ended.exit_code)
        return result if result.output else ToolResult("[no output]", ok, ended.exit_code)


def command_environment(
    environment: Mapping[str, str], also_secret: frozenset[str] = frozenset()
) -> dict[str, str]:
    """What a command may see: no keys, tokens or passwords, and nothing that opens a pager."""
    kept = {
        name: value
        for name, value in environment.items()
        if not _SECRET.fullmatch(name) and name not in also_secret
    }
    return kept | _QUIET


class _Output:
    """Bytes in; live text out to the stream, the whole into the cap."""

    def __init__(self, ctx: ToolContext) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._spool = Spool(ctx.cap, ctx.outputs_dir, ctx.call_id)
        self._stream = ctx.stream
        self._room = MAX_STREAMED

    def take(self, data: bytes, *, final: bool = False) -> None:
        text = self._decoder.decode(data, final)
        if not text:
            return
        self._spool.write(text)
        if self._room > 0:
            self._stream(text)
            self._room -= len(text)
            if self._room <= 0:
                self._stream("\n[live output ends here; the command goes on]\n")

    def finish(self) -> Capped:
        self.take(b"", final=True)
        return self._spool.finish()

    def discard(self) -> None:
        self._spool.discard()


def _how_it_ended(ended: process.Ended, timeout: float) -> str:
    if ended.timed_out:
        return (
            f"[timed out after {timeout:g} s: the command and all it had started were ended. "
            "Give a longer timeout or a smaller piece of work.]"
        )
    notes = []
    if ended.exit_code is None:
        notes.append("[the command could not be ended]")
    elif ended.exit_code < 0:
        notes.append(f"[ended by {_signal_name(-ended.exit_code)}]")
    elif ended.exit_code:
        notes.append(f"[exit code {ended.exit_code}]")
    if ended.left_running:
        notes.append("[processes left in the background were ended]")
    return "\n".join(notes)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
