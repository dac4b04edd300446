"""glob: find files by their names."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from .base import Args, StructTool, ToolContext, ToolError, ToolResult
from .search_process import run_search
from .searching import MAX_PATHS, Search
from .workspace import quoted


class GlobArgs(Args, frozen=True):
    """Arguments of glob."""

    pattern: Annotated[
        str, Meta(min_length=1, description="As in src/**/*.py or *.{md,txt}; ** crosses folders.")
    ]
    path: Annotated[str, Meta(description="The folder to look in; the pattern starts there.")] = "."


class GlobTool(StructTool[GlobArgs]):
    """Lists matching files, sorted, a bounded number of them."""

    def __init__(self) -> None:
        super().__init__(
            "glob",
            "List the files that match a pattern, sorted by path. A pattern without / matches a "
            f"name in any folder. Version control folders are left out. At most {MAX_PATHS} files.",
            GlobArgs,
            read_only=True,
        )

    async def call(self, args: GlobArgs, ctx: ToolContext) -> ToolResult:
        if args.pattern.startswith("/") or ".." in args.pattern.split("/"):
            raise ToolError(
                f"The pattern {quoted(args.pattern)} must be relative and without `..`: "
                "give the folder in path."
            )
        start = ctx.workspace.resolve(args.path)
        if start.is_file():
            raise ToolError(f"{quoted(args.path)} is a file, not a folder.")
        return await run_search(Search(str(ctx.workspace.root), str(start), args.pattern), ctx)
