"""A growing transcript for a caller with a thread of its own: asked for news, never waiting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..bodies import Bodies, NoBodies
from ..events import Record
from .claude_events import Translator
from .claude_folder import Folder
from .claude_slim import Slimmer, slim_reader
from .line_tail import LineTail


class ClaudeTail(LineTail):
    """The same records as `ClaudeSource.follow`. Nothing is said of a file that has ended.

    A slim one keeps of long texts only their heads (see `cutting`); `bodies` has the rest.
    """

    def __init__(self, path: Path, *, slim: bool = False) -> None:
        slimmer = Slimmer(path) if slim else None
        self.bodies: Bodies = slimmer.bodies if slimmer else NoBodies()
        self._folder = Folder(path)
        self._translator = Translator(
            saved=self._folder.saved, title=self._folder.title, slimmer=slimmer
        )
        feed, flush = self._translator.feed_all, self._translator.flush
        super().__init__(path, feed, flush, reader=slim_reader() if slim else None)

    def _rest(self, line: int) -> Iterator[Record]:
        """The subagents that have joined."""
        return self._folder.news(max(0, line - 1), self._translator)
