"""A growing Codex rollout for a caller with a thread of its own: asked for news, never waiting."""

from __future__ import annotations

from pathlib import Path

from ..bodies import Bodies, NoBodies
from .codex_events import Translator
from .codex_slim import Slimmer, slim_reader
from .line_tail import LineTail


class CodexTail(LineTail):
    """The same records as `CodexSource.follow`. Nothing more is said of a file that has ended.

    A slim one keeps of long texts only their heads (see `cutting`); `bodies` has the rest.
    """

    def __init__(self, path: Path, *, slim: bool = False) -> None:
        slimmer = Slimmer(path) if slim else None
        self.bodies: Bodies = slimmer.bodies if slimmer else NoBodies()
        translator = Translator(slimmer, path=path)
        reader = slim_reader() if slim else None
        super().__init__(path, translator.feed_all, translator.flush, reader=reader)
