"""Which sessions a program is at work on, by what this machine shows of its processes.

Nothing in a session file tells whether its program still runs. On Linux the process table may, in
three ways: a process of the program has the file open for writing; the program's own register of
its processes names the session, and that process is still the same one; or a process of the program
works in the session's folder and had begun when the file was last written. The last is inferred: of
several sessions in that folder it is taken to be the one written to last. Where none of this is
found it stays unknown: the program may be on another machine, in a container, or another user's.
Everything is only read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Final, NamedTuple

import msgspec

from .found import Finder, FoundSession, Registered
from .sample import contained

PROC: Final = Path("/proc")
_WRITES: Final = os.O_WRONLY | os.O_RDWR
_SLACK: Final = 2.0
"""Seconds by which the times of files and of processes may differ."""
_STARTED: Final = 19
"""The place of the start time in /proc/PID/stat, counted behind the name in brackets."""


class Process(NamedTuple):
    """A running process. `ticks` is when it started, in clock ticks since the system did; `started`
    the same in seconds since the epoch; `writes` are the files that it has open for writing."""

    pid: int
    ticks: str
    started: float
    cwd: str
    writes: frozenset[str]


def processes(finder: Finder, proc: Path = PROC) -> list[Process]:
    """The processes of an agent's program that this user may look at; none where the system has no
    such table."""
    names = {finder.agent, *finder.words}
    try:
        places = [each for each in proc.iterdir() if each.name.isdecimal()]
        booted = _booted(proc)
    except OSError:
        return []
    found = (_process(place, names, booted) for place in places)
    return [each for each in found if each is not None]


def with_running(
    sessions: Iterable[FoundSession],
    finder: Finder,
    home: Path | None = None,
    proc: Path = PROC,
) -> Iterator[FoundSession]:
    """The sessions of an agent, newest first, each with whether a program is at work on it."""
    known = processes(finder, proc)
    if not known:
        yield from sessions
        return
    registered = finder.registered(home) if finder.registered is not None else {}
    free = {each.pid: each for each in known}
    for entry in registered.values():
        free.pop(entry.pid, None)
    for each in sessions:
        yield _looked_up(each, known, registered, free)


def _looked_up(
    found: FoundSession,
    known: list[Process],
    registered: Mapping[str, Registered],
    free: dict[int, Process],
) -> FoundSession:
    file = str(contained(found.path)[0])
    entry = registered.get(found.id)
    for each in known:
        if file in each.writes:
            free.pop(each.pid, None)
            return _running(found, f"process {each.pid} has the file open for writing")
        if entry is not None and (entry.pid, entry.ticks) == (each.pid, each.ticks):
            return _running(found, f"the program's own register names process {each.pid}")
    for each in free.values():
        began = each.started <= found.modified + _SLACK
        if found.cwd and each.cwd == found.cwd and began:
            del free[each.pid]
            how = f"process {each.pid} works in its folder and had begun before its last change"
            return _running(found, f"{how} (inferred)", sure=False)
    return found


def _running(found: FoundSession, how: str, *, sure: bool = True) -> FoundSession:
    return msgspec.structs.replace(found, running=True, running_how=how, running_sure=sure)


def _process(place: Path, names: set[str], booted: float) -> Process | None:
    """A process, if it is one of this program. One that has ended, or that may not be looked at, is
    none."""
    try:
        words = (place / "cmdline").read_bytes().split(b"\0")[:2]
        parts = {part for word in words for part in PurePath(os.fsdecode(word)).parts}
        parts.add((place / "comm").read_text(errors="replace").strip())
        # Some programs write their title over their command line and pad it.
        if names.isdisjoint(part.strip() for part in parts):
            return None
        cwd = str((place / "cwd").readlink())
        ticks = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[_STARTED]
        started = booted + int(ticks) / os.sysconf("SC_CLK_TCK")
        return Process(int(place.name), ticks, started, cwd, frozenset(_writes(place)))
    except (OSError, ValueError, IndexError):
        return None


def _writes(place: Path) -> Iterator[str]:
    for each in (place / "fd").iterdir():
        try:
            file = each.readlink()
            if file.is_absolute() and _flags(place / "fdinfo" / each.name) & _WRITES:
                yield str(file)
        except OSError:
            continue


def _flags(info: Path) -> int:
    for line in info.read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key == "flags":
            return int(value, 8)
    return 0


def _booted(proc: Path) -> float:
    for line in (proc / "stat").read_text(errors="replace").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0
