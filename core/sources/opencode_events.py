"""OpenCode's changes as our records: one `Translator` is one pass over one session."""

from __future__ import annotations

from .. import events as e
from .base import RebuiltRequest, WireItem
from .codex_items import json_of
from .opencode_changes import BAD, Change
from .opencode_fold import AGENT, TITLE, SessionInfo, Telling
from .opencode_v1_fold import V1
from .opencode_v2_fold import V2

_SILENT = frozenset(
    {"session.created", "session.updated", "session.compacted", "session.status", "session.idle"}
    | {"session.diff", "session.deleted", "server.connected", "server.heartbeat", "plugin.added"}
    | {"todo.updated", "file.edited", "file.watcher.updated", "lsp.updated", "permission.asked"}
    | {"lsp.client.diagnostics", "permission.replied", "permission.updated", "vcs.branch.updated"}
)
"""Events that say nothing beyond the messages."""


class Translator:
    """The fold. `feed` gives the records that are ready; `quiet` and `flush` what waits.

    `info` is what is known of the session beforehand, `baseline` the change that V2's system text
    of now is from. With `collect` every request is kept, see `drain`.
    """

    def __init__(self, info: SessionInfo, *, baseline: int = 0, collect: bool = False) -> None:
        self._info = info
        self._telling = Telling(collect=collect)
        self._v1 = V1(self._telling, info)
        self._v2 = V2(self._telling, baseline)
        self._begun = False

    def feed(self, change: Change) -> list[e.Record]:
        """Take one change."""
        telling = self._telling
        telling.out.at = change.at or telling.out.at
        if not self._begun:
            self._begin(change.n)
        if change.type == BAD:
            event = e.ErrorRaised(kind="bad_line", message=change.fault, line=change.n)
            telling.tell(change.n, event)
            return telling.out.ready()
        if change.fault:
            mended = f"change {change.n} was mended: {change.fault}"
            telling.tell(change.n, e.ErrorRaised(kind="bad_line", message=mended, line=change.n))
        try:
            known = self._v1.feed(change) or self._v2.feed(change)
        except RecursionError:
            fault = f"change {change.n} is nested too deeply to be read"
            telling.tell(change.n, e.ErrorRaised(kind="bad_line", message=fault, line=change.n))
            known = True
        if not known:
            self._other(change)
        return telling.out.ready()

    def quiet(self) -> list[e.Record]:
        """Nothing has come for a while: tell what can be told without waiting."""
        self._v1.quiet()
        self._v2.quiet()
        return self._telling.out.ready()

    def flush(self) -> list[e.Record]:
        """Nothing more comes: tell everything."""
        self._v1.flush()
        self._v2.flush()
        return self._telling.out.ready()

    def drain(self) -> list[RebuiltRequest]:
        """Take the requests that are complete."""
        done, self._telling.requests = self._telling.requests, []
        return done

    def context(self) -> list[WireItem]:
        """What a request would carry now, in the wire form."""
        return self._v2.context() if self._v1.empty else self._v1.context()

    def _begin(self, n: int) -> None:
        self._begun = True
        info = self._info
        self._telling.out.emit(
            n,
            e.SessionStarted(
                session_id=info.id,
                agent=AGENT,
                cwd=info.directory,
                model=info.model,
                wire="chat",
                version=info.version,
                parent=info.parent,
                title=" ".join(info.title.split())[:TITLE],
                system_recorded=False,
            ),
            info.made or self._telling.out.at,
        )

    def _other(self, change: Change) -> None:
        if change.type == "session.error":
            error = change.data.get("error")
            text = json_of(error)[:400] if error is not None else "no words"
            self._telling.tell(change.n, e.Note(kind="error", text=f"OpenCode reports: {text}"))
        elif change.type not in _SILENT:
            size = len(json_of(change.data))
            event = e.UnknownRecord(type=change.type, line=change.n, size=size)
            self._telling.tell(change.n, event)
