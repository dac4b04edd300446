"""Which files come back after a compaction: those that were read, the newest first."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ....context import Context, Entry
from ....items import FunctionCall, FunctionCallOutput

_READS = frozenset({"read_file", "read", "Read"})
_SHELLS = frozenset({"bash", "Bash"})
_OPERATORS = frozenset("|&;<>()$`*?[]{}~!#\n")


def candidates(
    context: Context, tail: Iterable[Entry], restored: Sequence[str] | None, line: int, cat: bool
) -> tuple[str, ...]:
    """The paths, newest first. `restored` are those of the last compaction, made at the journal
    line `line`: then only later calls count besides them. With None all calls count. What a read
    in the `tail` shows anyway is left out. `cat` says that `cat FILE` in a shell is reading too."""
    failed = {
        entry.item.call_id
        for entry in context
        if isinstance(entry.item, FunctionCallOutput) and entry.item.is_error
    }
    since = -1 if restored is None else line
    paths = [
        path
        for entry in reversed(context.entries)
        if isinstance(entry.item, FunctionCall)
        and entry.id.line > since
        and entry.item.call_id not in failed
        and (path := read_path(entry.item, cat))
    ]
    shown = {read_path(e.item, False) for e in tail if isinstance(e.item, FunctionCall)}
    found = dict.fromkeys((*paths, *(restored or ())))
    return tuple(path for path in found if path not in shown)


def read_path(call: FunctionCall, cat: bool) -> str:
    """The file that a call reads, or an empty text."""
    arguments = _arguments(call.arguments)
    if call.name in _READS:
        path = arguments.get("path") or arguments.get("file_path")
        return _normal(path) if isinstance(path, str) else ""
    command = arguments.get("command")
    if cat and call.name in _SHELLS and isinstance(command, str):
        return _cat(command)
    return ""


def _cat(command: str) -> str:
    """The one file of a plain `cat FILE`."""
    if not command.startswith("cat ") or _OPERATORS & set(command):
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    return _normal(words[1]) if len(words) == 2 and not words[1].startswith("-") else ""


def _normal(path: str) -> str:
    return posixpath.normpath(path) if path.strip() else ""


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
