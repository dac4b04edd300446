"""read_file: a part of a text file with line numbers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from msgspec import Meta

from . import textfile
from .base import Args, StructTool, ToolContext, ToolError, ToolResult, reason
from .workspace import quoted

MAX_LINE: Final = 2000
"""Characters of one line that are given."""

_NOTE_ROOM: Final = 400


class ReadFileArgs(Args, frozen=True):
    """Arguments of read_file."""

    path: Annotated[str, Meta(description="Path in the workspace, or of a saved full output.")]
    offset: Annotated[int, Meta(ge=1, description="The first line to give, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines to give at most.")] = 2000


class ReadFileTool(StructTool[ReadFileArgs]):
    """Reads lines of a file; never more than the output cap holds."""

    def __init__(self) -> None:
        super().__init__(
            "read_file",
            "Read a text file. Each line comes as its number, a tab and its text; the number is "
            "not part of the file. A note at the end says if there is more and how to go on.",
            ReadFileArgs,
            read_only=True,
        )

    async def call(self, args: ReadFileArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(await asyncio.to_thread(_read, args, ctx))


def _read(args: ReadFileArgs, ctx: ToolContext) -> str:
    workspace, real = ctx.readable(args.path)
    name = quoted(args.path)
    if real.is_dir():
        raise ToolError(f"{name} is a folder: list it with glob.")
    try:
        data = textfile.read_bytes(workspace, real)
    except FileNotFoundError:
        raise ToolError(f"{name} does not exist: look for it with glob.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {reason(error)}.") from None
    file = textfile.decode(data)
    if file is None:
        raise ToolError(
            f"{name} is not text but {textfile.kind(data)} of {len(data):,} bytes: "
            "use bash with a program that understands it."
        )
    if not file.text:
        return "[the file is empty]"
    lines = textfile.split_lines(file.text)
    if args.offset > len(lines):
        raise ToolError(f"{name} has only {len(lines):,} lines; offset {args.offset:,} is behind.")
    return _numbered(lines, args, ctx.cap.max_chars, file.encoding)


def _numbered(lines: list[str], args: ReadFileArgs, max_chars: int, encoding: str) -> str:
    room = max(max_chars - _NOTE_ROOM, max_chars // 2)
    rows: list[str] = []
    for number, line in enumerate(lines[args.offset - 1 :][: args.limit], args.offset):
        row = f"{number:>6}\t{_cut(line, min(MAX_LINE, room // 2))}"
        room -= len(row) + 1
        if room < 0 and rows:
            break
        rows.append(row)
    last = args.offset + len(rows) - 1
    if last < len(lines) or args.offset > 1:
        more = f"; go on with offset={last + 1}" if last < len(lines) else ""
        rows.append(f"[lines {args.offset:,}-{last:,} of {len(lines):,}{more}]")
    if encoding != "utf-8":
        why = ", since it is not valid UTF-8" if encoding == "latin-1" else ""
        rows.append(f"[read as {encoding}{why}]")
    return "\n".join(rows)


def _cut(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return f"{line[:width]} [... {len(line) - width:,} more characters in this line]"
