"""edit_file: replace one exact piece of text in a file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from . import textfile
from .base import Args, StructTool, ToolContext, ToolError, ToolResult, reason
from .textfile import TextFile
from .workspace import quoted
from .writing import replace_file

_PLACES_TOLD: Final = 10


class EditFileArgs(Args, frozen=True):
    """Arguments of edit_file."""

    path: Annotated[str, Meta(description="Path of an existing file in the workspace.")]
    old: Annotated[
        str, Meta(description="The text to replace, exactly as it stands, without line numbers.")
    ]
    new: Annotated[str, Meta(description="The text to put in its place.")]
    replace_all: Annotated[
        bool, Meta(description="Replace every match. Otherwise there must be exactly one.")
    ] = False


class EditFileTool(StructTool[EditFileArgs]):
    """Replaces exact text; keeps encoding, byte order mark, line ends and mode."""

    def __init__(self) -> None:
        super().__init__(
            "edit_file",
            "Replace a piece of text in a file. `old` must match exactly, spaces included, and "
            "only once unless replace_all is true: give enough lines around it.",
            EditFileArgs,
            read_only=False,
        )

    async def call(self, args: EditFileArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(await asyncio.to_thread(_edit, args, ctx))


def _edit(args: EditFileArgs, ctx: ToolContext) -> str:
    name = quoted(args.path)
    if not args.old:
        raise ToolError("old is empty: use write_file to make a file or replace all of it.")
    if args.old == args.new:
        raise ToolError("old and new are the same: there is nothing to change.")
    real = ctx.workspace.resolve(args.path)
    file = _load(ctx, real, name)
    old, new = _with_line_ends(args.old, args.new, file)
    places = _places(file.text, old)
    if not places:
        raise ToolError(
            f"{name} has 0 matches for old: read the file and copy the text exactly, with its "
            "spaces and without the line numbers."
        )
    if len(places) > 1 and not args.replace_all:
        raise ToolError(
            f"{name} has {len(places):,} matches for old, in lines {_told(places)}: add lines "
            "around it until it is unique, or set replace_all."
        )
    try:
        data = file.encode(file.text.replace(old, new))
    except UnicodeEncodeError:
        raise ToolError(
            f"{name} is {file.encoding} and new has characters that it cannot hold."
        ) from None
    try:
        replace_file(ctx.workspace, real, data)
    except OSError as error:
        raise ToolError(f"{name} cannot be written: {reason(error)}.") from None
    matches = "1 match" if len(places) == 1 else f"{len(places):,} matches"
    return f"Replaced {matches} in {name}, in line {_told(places)}."


def _load(ctx: ToolContext, real: Path, name: str) -> TextFile:
    try:
        file = textfile.decode(textfile.read_bytes(ctx.workspace, real))
    except FileNotFoundError:
        raise ToolError(f"{name} does not exist: use write_file to make it.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be read: {reason(error)}.") from None
    if file is None:
        raise ToolError(f"{name} is not text.")
    return file


def _with_line_ends(old: str, new: str, file: TextFile) -> tuple[str, str]:
    """Models write LF. Where a file has CR LF, so must what is looked for and put in."""
    if file.newline == "\n":
        return old, new
    wide_old, wide_new = (text.replace("\r\n", "\n").replace("\n", "\r\n") for text in (old, new))
    return (wide_old, wide_new) if wide_old in file.text else (old, wide_new)


def _places(text: str, old: str) -> list[int]:
    """Line numbers of the matches that str.replace would replace."""
    lines: list[int] = []
    line, done, at = 1, 0, text.find(old)
    while at >= 0:
        line += text.count("\n", done, at)
        lines.append(line)
        done, at = at, text.find(old, at + len(old))
    return lines


def _told(lines: list[int]) -> str:
    more = ", ..." if len(lines) > _PLACES_TOLD else ""
    return ", ".join(map(str, lines[:_PLACES_TOLD])) + more
