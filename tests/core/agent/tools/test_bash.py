from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from thresher.core.agent.tools import bash as bash_module
from thresher.core.agent.tools.base import ToolContext, ToolResult
from thresher.core.agent.tools.bash import BashTool, command_environment

GRANDCHILD = "sleep 300 & echo $! > grandchild; echo started; wait"


async def call(ctx: ToolContext, command: str, timeout: float = 20) -> ToolResult:
    return await BashTool().run({"command": command, "timeout": timeout}, ctx)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return sys.platform != "linux"
    return state != "Z"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - the condition is outside of this process
            await asyncio.sleep(0.01)


def pid_in(path: Path) -> int:
    return int(path.read_text())


async def test_output_of_both_streams_comes_in_order_in_the_workspace(
    ctx: ToolContext, folder: Path
) -> None:
    result = await call(ctx, "echo one; echo two >&2; pwd")
    assert result == ToolResult(f"one\ntwo\n{folder}\n", ok=True, exit_code=0)


async def test_an_exit_code_is_told(ctx: ToolContext) -> None:
    result = await call(ctx, "echo oops; exit 3")
    assert (result.output, result.ok, result.exit_code) == ("oops\n[exit code 3]", False, 3)


async def test_silence_is_told(ctx: ToolContext) -> None:
    assert (await call(ctx, "true")).output == "[no output]"
    assert (await call(ctx, "false")).output == "[exit code 1]"


async def test_a_signal_is_told_by_name(ctx: ToolContext) -> None:
    result = await call(ctx, "kill -KILL $$")
    assert (result.output, result.exit_code) == ("[ended by SIGKILL]", -9)


async def test_there_is_no_input_to_wait_for(ctx: ToolContext) -> None:
    assert (await call(ctx, "cat; echo done")).output == "done\n"


async def test_output_streams_while_the_command_runs(
    ctx: ToolContext, folder: Path, streamed: list[str]
) -> None:
    os.mkfifo(folder / "gate")
    task = asyncio.create_task(call(ctx, "echo first; cat gate"))
    await until(lambda: "".join(streamed) == "first\n")
    assert not task.done()
    (folder / "gate").write_text("second\n")
    assert (await task).output == "first\nsecond\n"


async def test_a_character_cut_between_two_reads_is_put_together(
    ctx: ToolContext, folder: Path, streamed: list[str]
) -> None:
    os.mkfifo(folder / "gate")
    task = asyncio.create_task(call(ctx, r"printf '\344\270'; echo; cat gate; printf '\344'"))
    await until(lambda: "".join(streamed).endswith("\n"))
    (folder / "gate").write_bytes("中".encode()[:2])
    assert (await task).output == "\ufffd\n\ufffd\ufffd"
    assert (await call(ctx, "printf '中文%.0s' $(seq 500)")).output == "中文" * 500


async def test_a_timeout_ends_the_whole_group_and_keeps_the_output(
    ctx: ToolContext, folder: Path
) -> None:
    result = await call(ctx, GRANDCHILD, timeout=0.5)
    assert result.output.startswith("started\n[timed out after 0.5 s")
    assert not result.ok
    assert not alive(pid_in(folder / "grandchild"))


async def test_a_command_that_ignores_sigterm_is_killed(ctx: ToolContext, folder: Path) -> None:
    command = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    result = await call(ctx, command, timeout=0.5)
    assert result.exit_code == -signal.SIGKILL
    assert not alive(pid_in(folder / "pid"))


async def test_a_cancel_ends_the_whole_group_and_is_passed_on(
    ctx: ToolContext, folder: Path, streamed: list[str]
) -> None:
    task = asyncio.create_task(call(ctx, GRANDCHILD))
    await until(lambda: "started\n" in streamed)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(pid_in(folder / "grandchild")))


async def test_a_second_cancel_kills_at_once(
    ctx: ToolContext, folder: Path, streamed: list[str]
) -> None:
    command = "trap '' TERM; echo $$ > pid; echo started; while :; do sleep 0.05; done"
    task = asyncio.create_task(call(ctx, command))
    await until(lambda: "started\n" in streamed)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not alive(pid_in(folder / "pid")))


async def test_a_cancel_leaves_no_output_file(ctx: ToolContext, streamed: list[str]) -> None:
    task = asyncio.create_task(call(ctx, "seq 5000; echo started; sleep 300"))
    await until(lambda: "".join(streamed).endswith("started\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(ctx.outputs_dir.iterdir()) == []


async def test_a_background_process_that_holds_the_output_is_ended(
    ctx: ToolContext, folder: Path
) -> None:
    result = await call(ctx, "sleep 300 & echo $! > grandchild; echo done")
    assert result.output == "done\n[processes left in the background were ended]"
    assert result.ok
    await until(lambda: not alive(pid_in(folder / "grandchild")))


async def test_a_process_that_left_the_group_is_not_waited_for(
    ctx: ToolContext, folder: Path
) -> None:
    (folder / "away.py").write_text(
        "import os\n"
        "os.setsid()\n"
        "open('pid', 'w').write(str(os.getpid()))\n"
        "os.execlp('sleep', 'sleep', '300')\n"
    )
    python = shlex.quote(sys.executable)
    command = f"{python} away.py & until [ -s pid ]; do sleep 0.01; done; echo done"
    try:
        result = await call(ctx, command)
        assert result.output.startswith("done\n")
    finally:
        os.kill(pid_in(folder / "pid"), signal.SIGKILL)


async def test_big_output_is_bounded_in_the_context_and_whole_on_disk(
    ctx: ToolContext, streamed: list[str]
) -> None:
    result = await call(ctx, "seq 200000; exit 4")
    assert len(result.output) < 3000
    assert result.output.startswith("1\n2\n")
    assert result.output.endswith("200000\n[exit code 4]")
    assert result.saved is not None
    assert result.saved in result.output
    text = "".join(f"{n}\n" for n in range(1, 200_001))
    assert Path(result.saved).read_text() == text
    assert result.truncated_chars > len(text) - 2500


async def test_live_output_stops_before_it_floods_the_screen(
    ctx: ToolContext, streamed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bash_module, "MAX_STREAMED", 10_000)
    result = await call(ctx, "head -c 2000000 /dev/zero | tr '\\0' x")
    assert result.truncated_chars > 1_900_000
    assert len("".join(streamed)) < 10_000 + 65_536 + 100
    assert "live output ends here" in streamed[-1]


async def test_an_endless_writer_is_ended_by_its_timeout(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.core.agent.tools.cap.MAX_SAVED", 100_000)
    result = await call(ctx, "yes", timeout=0.3)
    assert "timed out" in result.output
    assert Path(result.saved or "").stat().st_size == 100_000


async def test_when_the_listener_fails_the_command_is_ended(ctx: ToolContext, folder: Path) -> None:
    def broken(_: str) -> None:
        raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError, match="nobody listens"):
        await call(replace(ctx, stream=broken), "echo $$ > pid; echo x; sleep 300")
    await until(lambda: not alive(pid_in(folder / "pid")))


async def test_commands_see_no_keys(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "Other_Api_Key", "GH_TOKEN", "DB_PASSWORD", "MY_MODEL_LOGIN"):
        monkeypatch.setenv(name, "s3cr3t")
    monkeypatch.setenv("HARMLESS", "here")
    result = await call(replace(ctx, secret_variables=frozenset({"MY_MODEL_LOGIN"})), "env")
    assert "s3cr3t" not in result.output
    assert "HARMLESS=here" in result.output
    assert "PAGER=cat" in result.output
    assert "TERM=dumb" in result.output


def test_only_names_of_secrets_are_taken_away() -> None:
    kept = command_environment({"TOKENIZERS_PARALLELISM": "1", "KEYBOARD": "us", "API_KEY": "k"})
    assert {"TOKENIZERS_PARALLELISM", "KEYBOARD"} <= kept.keys()
    assert "API_KEY" not in kept


@pytest.mark.parametrize("command", ["echo a\0b", "\ud800"])
async def test_a_command_that_no_system_takes_is_told(ctx: ToolContext, command: str) -> None:
    result = await call(ctx, command)
    assert not result.ok
    assert "cannot be run" in result.output


async def test_a_vanished_workspace_is_told(ctx: ToolContext, folder: Path) -> None:
    folder.rmdir()
    result = await call(ctx, "true")
    assert result == ToolResult("Error: bash failed: No such file or directory.", ok=False)


@pytest.mark.parametrize("timeout", [0, -1, 601, "soon"])
async def test_a_timeout_out_of_range_is_told(ctx: ToolContext, timeout: object) -> None:
    result = await BashTool().run({"command": "true", "timeout": timeout}, ctx)
    assert result.output.startswith("Error: Wrong arguments for bash")


async def test_hostile_output_enters_exactly(
    ctx: ToolContext, folder: Path, hostile_text: str
) -> None:
    text = hostile_text.encode("utf-8", "replace").decode()
    (folder / "text").write_bytes(text.encode())
    result = await call(ctx, "cat text")
    if result.saved:
        assert Path(result.saved).read_bytes().decode() == text
    else:
        assert result.output == (text or "[no output]")
