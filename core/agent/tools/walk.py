"""The files of a workspace in a stable order, and what a glob pattern means."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .workspace import PathRefused, Workspace

SKIPPED_FOLDERS: Final = frozenset({".git", ".hg", ".svn"})


def walk(workspace: Workspace, start: Path) -> Iterator[tuple[str, Path]]:
    """Every regular file below the folder `start`: its path relative to it, and its real place.

    Sorted by name, folder by folder. Links to folders are not followed; a link to a file is
    given if its target lies in the workspace. What cannot be listed is left out.
    """
    pending = [("", start)]
    while pending:
        prefix, place = pending.pop()
        if prefix and not place.is_dir():
            yield prefix, place
            continue
        try:
            with os.scandir(place) as entries:
                found = sorted(entries, key=lambda entry: entry.name, reverse=True)
        except OSError:
            continue
        for entry in found:
            path = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    pending.append((path, Path(entry.path)))
            elif entry.is_file(follow_symlinks=False):
                pending.append((path, Path(entry.path)))
            elif entry.is_symlink() and (target := _linked_file(workspace, entry.path)):
                pending.append((path, target))


def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression for `fullmatch` on a relative path with `/`.

    `*` and `?` stay within one name, `**` crosses folders, `[abc]`, `[!abc]` and `{a,b}` choose.
    A pattern without `/` matches a name in any folder.
    """
    pattern = pattern.removeprefix("./")
    body = _translate(pattern, depth=0)
    return re.compile(body if "/" in pattern else rf"(?:.*/)?{body}", re.DOTALL)


def _linked_file(workspace: Workspace, link: str) -> Path | None:
    try:
        real = workspace.resolve(link)
    except PathRefused:
        return None
    return real if real.is_file() else None


def _translate(pattern: str, depth: int) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at) and (at == 0 or pattern[at - 1] == "/"):
            out.append("(?:[^/]+/)*")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif char == "*":
            out.append("[^/]*")
            at += 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[" and (choice := _character(pattern, at)):
            text, at = choice
            out.append(text)
        elif char == "{" and depth < 4 and (choices := _choices(pattern, at)):
            texts, at = choices
            out.append(f"(?:{'|'.join(_translate(text, depth + 1) for text in texts)})")
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _character(pattern: str, start: int) -> tuple[str, int] | None:
    """The class at `start` and where it ends, or None if it is none and means itself."""
    begin = start + 1
    sign = "^" if pattern[begin : begin + 1] in ("!", "^") else ""
    begin += len(sign)
    end = pattern.find("]", begin + 1)  # A bracket in the first place is one of the characters.
    if end < 0:
        return None
    chosen = re.sub(r"([\\\[\]^&~|])", r"\\\1", pattern[begin:end]).replace("--", r"\-\-")
    text = f"(?!/)[{sign}{chosen}]"
    try:
        re.compile(text)
    except re.error:  # A range that runs backwards.
        return None
    return text, end + 1


def _choices(pattern: str, start: int) -> tuple[list[str], int] | None:
    """The alternatives of the brace at `start` and where it ends, or None if it never does."""
    texts, depth, begin = [], 0, start + 1
    for at in range(start, len(pattern)):
        char = pattern[at]
        depth += (char == "{") - (char == "}")
        if (depth == 1 and char == ",") or (depth == 0 and char == "}"):
            texts.append(pattern[begin:at])
            begin = at + 1
        if depth == 0:
            return texts, at + 1
    return None
