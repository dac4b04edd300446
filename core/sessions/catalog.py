"""The list of our own sessions on disk, and finding one of them.

Listing reads every journal once, line by line, and decodes only the few lines it needs. A journal
that is no good is listed with what is wrong with it: a session must not vanish from the list at the
moment its owner needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from .. import events as e
from ..errors import ThresherError
from ..items import Message, Role
from .journal import JOURNAL_NAME, located, running

TITLE_LENGTH = 200
"""Characters of the first user message that are kept; a screen cleans and shortens them."""

_DAYS = "[0-9][0-9][0-9][0-9]/[0-9][0-9]/[0-9][0-9]"
_HEAD = 100
"""Bytes of a line in which its number, time and event name lie."""
_NEEDED = ("session_started", "model_changed", "policy_changed")
_SHOWN = 5


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One session of the list. Times are seconds since the epoch; `lines` counts journal lines,
    `size` is in bytes; `problem` is empty, or says why the journal cannot be resumed."""

    id: str
    path: Path
    started: float = 0.0
    last: float = 0.0
    model: str = ""
    policy: str = ""
    title: str = ""
    cwd: str = ""
    compactions: int = 0
    lines: int = 0
    size: int = 0
    running: bool = False
    problem: str = ""


def sessions(root: Path) -> list[SessionInfo]:
    """All sessions below `root` (`paths.sessions_dir()`), the one last active first; bad ones too.

    No such folder means no sessions.
    """
    found = [look_at(folder / JOURNAL_NAME) for folder in _folders(root)]
    return sorted(found, key=lambda info: (info.last, info.id), reverse=True)


def find(query: str, root: Path) -> Path:
    """The journal that a user means: "latest", a path, or the beginning of an id or of the last
    part of an id.

    Raises ThresherError when there is none, or more than one.
    """
    if query == "latest":
        usable = [info for info in sessions(root) if not info.problem]
        if not usable:
            raise ThresherError(
                "No session", f"there is no session in {root} yet: start one with `thresher run`."
            )
        return usable[0].path
    path = Path(query)
    if "/" in query or path.suffix == ".jsonl":
        return located(path.expanduser())
    match matching(query, root):
        case [journal]:
            return journal
        case []:
            if query and path.exists():
                return located(path)
            raise ThresherError(
                "No such session",
                f"no session in {root} begins with {query!r}: `thresher sessions` lists them.",
            )
        case several:
            names = ", ".join(sorted(path.parent.name for path in several)[:_SHOWN])
            more = f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
            raise ThresherError(
                "Which session",
                f"{query!r} is the beginning of {len(several)} sessions: {names}{more}. Give more "
                "of the id.",
            )


def matching(query: str, root: Path) -> list[Path]:
    """The journals whose id, or the last part of it, begins like that; the one with exactly this
    id alone, where there is one."""
    folders = [folder for folder in _folders(root) if query and _named(folder.name, query)]
    exact = [folder for folder in folders if folder.name == query]
    return [folder / JOURNAL_NAME for folder in exact or folders]


def look_at(path: Path) -> SessionInfo:
    """What the list says about one journal. Never raises for what is in the file."""
    look = _Look()
    problem = ""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            for line in file:
                look.take(line)
    except OSError as error:
        size = 0
        problem = error.strerror or str(error)
    return SessionInfo(
        id=path.parent.name,
        path=path,
        started=look.started_at,
        last=look.last_at(),
        model=look.model,
        policy=look.policy,
        title=look.title[:TITLE_LENGTH],
        cwd=look.cwd,
        compactions=look.compactions,
        lines=look.lines,
        size=size,
        running=running(path),
        problem=problem or look.problem(),
    )


class _Timed(msgspec.Struct):
    n: int
    at: float


_TIMED = msgspec.json.Decoder(_Timed)


class _Look:
    """What one pass over a journal gathers."""

    def __init__(self) -> None:
        self.lines = 0
        self.compactions = 0
        self.started_at = 0.0
        self.model = self.policy = self.title = self.cwd = ""
        self.is_session = False
        self.has_items = False
        self._titled = False
        self._last = b""

    def take(self, line: bytes) -> None:
        """Look at one line."""
        self.lines += 1
        head = line[:_HEAD]
        if b'"event":"item_appended"' in head:
            self.has_items = True
            if not self._titled and b'"role":"user"' in line:
                self._decoded(line)
        elif b'"event":"history_compacted"' in head:
            self.compactions += 1
        elif any(f'"event":"{name}"'.encode() in head for name in _NEEDED):
            self._decoded(line)
        if line.endswith(b"}\n"):
            self._last = line

    def last_at(self) -> float:
        """The time of the last whole line, or the start."""
        try:
            return _TIMED.decode(self._last).at
        except (msgspec.DecodeError, RecursionError):
            return self.started_at

    def problem(self) -> str:
        """Why this cannot be resumed, or nothing."""
        if self.lines == 0:
            return "the journal is empty"
        if not self.is_session:
            return "no start of a session can be read"
        if not self.has_items:
            return "nothing was said"
        return ""

    def _decoded(self, line: bytes) -> None:
        try:
            record = e.decode(line)
        except msgspec.DecodeError:
            return
        match record.event:
            case e.SessionStarted() as event:
                self.is_session = True
                self.started_at = record.at
                self.model, self.policy, self.cwd = event.model, event.policy, event.cwd
                self.title, self._titled = event.title, bool(event.title)
            case e.ModelChanged() as event:
                self.model = event.model
            case e.PolicyChanged() as event:
                self.policy = event.policy
            case e.ItemAppended(item=Message(role=Role.USER, synthetic=False) as message):
                self.title, self._titled = message.text, True
            case _:
                pass


def _folders(root: Path) -> Iterator[Path]:
    return (folder for folder in root.glob(f"{_DAYS}/*") if folder.is_dir())


def _named(id: str, query: str) -> bool:
    return id.startswith(query) or id.rpartition("-")[2].startswith(query)
