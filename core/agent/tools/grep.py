"""grep: find lines by a regular expression."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from .base import Args, StructTool, ToolContext, ToolResult
from .search_process import run_search
from .searching import MAX_LINES, Search


class GrepArgs(Args, frozen=True):
    """Arguments of grep."""

    pattern: Annotated[
        str, Meta(min_length=1, description="A regular expression of Python, tried on each line.")
    ]
    path: Annotated[
        str, Meta(description="A folder or file in the workspace, or a saved full output.")
    ] = "."
    glob: Annotated[
        str | None, Meta(description="Search only files that match, as in *.py or src/**/*.c.")
    ] = None
    ignore_case: bool = False


class GrepTool(StructTool[GrepArgs]):
    """Lists matching lines as path:number:text, a bounded number of them."""

    def __init__(self) -> None:
        super().__init__(
            "grep",
            "Search the text files in a folder for lines that match a regular expression; gives "
            "path:line number:line. Binary files and version control folders are left out. "
            f"At most {MAX_LINES} lines.",
            GrepArgs,
            read_only=True,
        )

    async def call(self, args: GrepArgs, ctx: ToolContext) -> ToolResult:
        workspace, start = ctx.readable(args.path)
        request = Search(
            root=str(workspace.root),
            start=str(start),
            glob=args.glob,
            regex=args.pattern,
            ignore_case=args.ignore_case,
            absolute=workspace is not ctx.workspace,
        )
        return await run_search(request, ctx)
