"""Run a command in a process group of its own, and never leave any of it behind.

Whatever ends the command (its own exit, the timeout, a cancel), the whole group is ended: SIGTERM,
a short grace, SIGKILL. That reaches grandchildren which hold the output open. A process that
makes a session of its own (setsid) is out of reach, but it is not waited for either.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

GRACE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL."""

_DRAIN: Final = 0.25
"""Seconds to wait for the end of the output once the command itself has ended."""

_POLL: Final = 0.02
_CHUNK: Final = 65_536


class Ended(msgspec.Struct, frozen=True):
    """How a command ended. `exit_code` is negative for a signal, None if it could not be ended."""

    exit_code: int | None
    timed_out: bool = False
    left_running: bool = False
    """It exited, but processes it had started held its output open; they were ended."""


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    on_output: Callable[[bytes], None],
) -> Ended:
    """Run `argv` with no input, stdout and stderr in one stream, handed to `on_output` as it comes.

    Raises OSError or ValueError if it cannot be started. A cancel is passed on once the group is
    ended. `timeout` is in seconds.
    """
    # A pipe of our own: asyncio's would make Process.wait() wait for grandchildren as well.
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=cwd, env=env, stdin=DEVNULL, stdout=write_end, stderr=write_end,
            start_new_session=True,
        )  # fmt: skip
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    return await _attend(process, read_end, timeout, on_output)


async def _attend(
    process: Process, read_end: int, timeout: float, on_output: Callable[[bytes], None]
) -> Ended:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(read_end, "rb", buffering=0)
    transport: asyncio.ReadTransport | None = None
    pump: asyncio.Task[None] | None = None
    timed_out = left_running = False
    try:
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        pump = asyncio.create_task(_pump(reader, on_output))
        # Nobody takes the output any more, so the command would wait for ever.
        pump.add_done_callback(lambda task: _failed(task) and _signal(process, signal.SIGKILL))
        async with asyncio.timeout(timeout):
            await process.wait()
            left_running = not (await asyncio.wait({pump}, timeout=_DRAIN))[0]
    except TimeoutError:
        timed_out = True
    finally:
        try:
            await _end_group(process)
            if pump is not None:
                await asyncio.wait({pump}, timeout=_DRAIN)
        finally:
            if pump is not None:
                pump.cancel()
            (transport or pipe).close()
    if pump is not None and _failed(pump):
        pump.result()
    return Ended(process.returncode, timed_out, left_running)


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


async def _pump(reader: asyncio.StreamReader, on_output: Callable[[bytes], None]) -> None:
    while chunk := await reader.read(_CHUNK):
        on_output(chunk)


async def _end_group(process: Process) -> None:
    if not _signal(process, signal.SIGTERM):
        return
    try:
        for _ in range(round(GRACE / _POLL)):
            if not _signal(process, 0):
                break
            await asyncio.sleep(_POLL)
    finally:
        # Also when this wait is itself cancelled: leaving at once is allowed, leaving it is not.
        _signal(process, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await process.wait()


def _signal(process: Process, number: int) -> bool:
    """Whether the group still has a member that can be signalled."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
