"""Finding files and lines: the work of glob and grep, in a process of its own.

A pattern comes from the model. One like `(a+)+$` can keep Python's `re` busy for hours while it
holds the interpreter, so that neither the screen nor a cancel gets a turn; a process can be ended.
`python -m thresher.core.agent.tools.searching REQUEST` writes lines to stdout as they are found.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from ...errors import ThresherError
from . import textfile
from .base import ToolError
from .walk import glob_regex, walk
from .workspace import Workspace, quoted

MAX_PATHS: Final = 500
MAX_LINES: Final = 200
MAX_VISITED: Final = 200_000
"""Files that are looked at by one search at most."""

LINE_WIDTH: Final = 300
"""Characters of a matching line that are given, around the match."""


class Search(msgspec.Struct, frozen=True):
    """What the child is to do. `start` is a resolved path in `root`.

    Without `regex` it lists the paths that match `glob`, with it the lines in them that match.
    `absolute` shows paths whole, as for saved outputs, which are outside the workspace.
    """

    root: str
    start: str
    glob: str | None = None
    regex: str | None = None
    ignore_case: bool = False
    absolute: bool = False


def search(request: Search) -> Iterator[str]:
    """The lines of the answer, notes included. Raises ToolError for a bad pattern."""
    workspace, start = Workspace(Path(request.root)), Path(request.start)
    skipped: Counter[str] = Counter()
    shown = 0
    regex = _compile(request) if request.regex is not None else None
    most, what = (MAX_LINES, "lines") if regex else (MAX_PATHS, "files")
    for name, real in _files(workspace, start, request, skipped):
        for line in _matches(workspace, name, real, regex, skipped) if regex else (name,):
            if shown == most:
                yield f"[the first {most} {what}; there are more: use a narrower pattern or path]"
                return
            shown += 1
            yield line
    if not shown:
        yield "[no matches]"
    if skipped:
        told = ", ".join(f"{count:,} {why}" for why, count in sorted(skipped.items()))
        yield f"[not searched: {told}]"


def _compile(request: Search) -> re.Pattern[str]:
    try:
        return re.compile(request.regex or "", re.IGNORECASE if request.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"{quoted(request.regex or '')} is not a regular expression of Python: {error}."
        ) from None


def _files(
    workspace: Workspace, start: Path, request: Search, skipped: Counter[str]
) -> Iterator[tuple[str, Path]]:
    if start.is_file():
        yield _shown(workspace, start, request), start
        return
    if not start.exists():
        raise ToolError(f"{_shown(workspace, start, request)} does not exist.")
    wanted = glob_regex(request.glob) if request.glob else None
    for visited, (path, real) in enumerate(walk(workspace, start)):
        if visited == MAX_VISITED:
            skipped[f"or more files after the first {MAX_VISITED:,}"] += 1
            return
        if wanted is None or wanted.fullmatch(path):
            yield _shown(workspace, start / path, request), real


def _shown(workspace: Workspace, path: Path, request: Search) -> str:
    return quoted(str(path) if request.absolute else workspace.relative(path))


def _matches(
    workspace: Workspace, name: str, real: Path, regex: re.Pattern[str], skipped: Counter[str]
) -> Iterator[str]:
    try:
        file = textfile.decode(textfile.read_bytes(workspace, real))
    except ToolError:
        skipped["too large"] += 1
        return
    except (OSError, ThresherError):
        skipped["unreadable"] += 1
        return
    if file is None:
        skipped["binary"] += 1
        return
    for number, line in enumerate(textfile.split_lines(file.text), 1):
        if match := regex.search(line):
            yield f"{name}:{number}:{_around(line, match.start())}"


def _around(line: str, at: int) -> str:
    if len(line) <= LINE_WIDTH:
        return line
    begin = max(0, min(at - LINE_WIDTH // 3, len(line) - LINE_WIDTH))
    end = min(len(line), begin + LINE_WIDTH)
    before = f"[{begin:,} characters] " if begin else ""
    after = f" [{len(line) - end:,} characters]" if end < len(line) else ""
    return f"{before}{line[begin:end]}{after}"


def main(argument: str) -> int:
    """Answer one request on stdout; 2 if it cannot be answered, with the reason there instead."""
    out = sys.stdout.buffer
    try:
        for line in search(msgspec.json.decode(argument, type=Search)):
            out.write(line.encode("utf-8", "backslashreplace") + b"\n")
            out.flush()
    except ThresherError as error:
        out.write(error.msg.encode("utf-8", "backslashreplace"))
        out.flush()
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
