"""write_file: make a file, or replace all of it."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import Meta

from .base import Args, StructTool, ToolContext, ToolError, ToolResult, reason
from .workspace import quoted
from .writing import replace_file


class WriteFileArgs(Args, frozen=True):
    """Arguments of write_file."""

    path: Annotated[str, Meta(description="Path in the workspace; missing folders are made.")]
    content: Annotated[str, Meta(description="The whole new text of the file.")]


class WriteFileTool(StructTool[WriteFileArgs]):
    """Writes UTF-8 exactly as given."""

    def __init__(self) -> None:
        super().__init__(
            "write_file",
            "Write a text file (UTF-8): makes it, or replaces everything in it. To change a part "
            "of a file use edit_file.",
            WriteFileArgs,
            read_only=False,
        )

    async def call(self, args: WriteFileArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(await asyncio.to_thread(_write, args, ctx))


def _write(args: WriteFileArgs, ctx: ToolContext) -> str:
    name = quoted(args.path)
    try:
        data = args.content.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("The content holds half of a surrogate pair, which no file can.") from None
    try:
        new = replace_file(ctx.workspace, ctx.workspace.resolve(args.path), data)
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {reason(error)}.") from None
    lines = args.content.count("\n") + (not args.content.endswith("\n") and args.content != "")
    what = "Made" if new else "Replaced"
    return f"{what} {name}: {lines:,} lines, {len(data):,} bytes."
