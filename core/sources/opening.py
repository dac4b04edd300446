"""From a path to the session in it, whatever program wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .base import Source
from .detect import require_known
from .registry import Choice, choices_in, source_class
from .sample import contained


def open_source(path: Path) -> Source:
    """The session in this file. What cannot be opened is a ThresherError.

    The path may go on into a file that holds several sessions: `opencode.db/ses_1`.
    """
    return source_class(require_known(path))(path)


def choices(path: Path) -> Sequence[Choice]:
    """The sessions in a file that can hold several, newest first; empty for all others."""
    format = require_known(path)
    return choices_in(format, contained(path)[0])
