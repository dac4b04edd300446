from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from thresher.core.agent.tools.base import ToolContext, ToolResult
from thresher.core.agent.tools.cap import OutputCap
from thresher.core.agent.tools.registry import builtin_tools, run_tool
from thresher.core.agent.tools.workspace import Workspace

Runner = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "workspace"
    path.mkdir()
    return path


@pytest.fixture
def streamed() -> list[str]:
    return []


@pytest.fixture
def ctx(tmp_path: Path, folder: Path, streamed: list[str]) -> ToolContext:
    return ToolContext(
        workspace=Workspace(folder),
        outputs_dir=tmp_path / "outputs",
        stream=streamed.append,
        cap=OutputCap(max_chars=4000, head=1000, tail=1000),
        call_id="call_1",
    )


@pytest.fixture
def run(ctx: ToolContext) -> Runner:
    async def run(name: str, **arguments: object) -> ToolResult:
        return await run_tool(builtin_tools(), name, json.dumps(arguments), ctx)

    return run
