"""The one family of errors that a user is meant to read."""

from __future__ import annotations

import errno
from pathlib import Path


class ThresherError(Exception):
    """An expected failure, told in one sentence: what happened, where, and what to do.

    `title` is a short heading (2-5 words), `msg` the sentence. The command line prints
    `title: msg` and ends with exit code 2; the console shows both in a toast. Neither text is
    clean: whoever shows it passes it through `thresher.core.text.clean`.
    """

    def __init__(self, title: str, msg: str) -> None:
        super().__init__(f"{title}: {msg}")
        self.title = title
        self.msg = msg


_ADVICE = {
    errno.ENOSPC: "Free some space on that disk",
    errno.EDQUOT: "Free some space within your quota",
    errno.EFBIG: "Raise the limit for the size of files",
    errno.EROFS: "The file system is read-only: choose another folder with THRESHER_STATE_DIR",
    errno.EACCES: "Check who owns it and its permissions",
    errno.EPERM: "Check who owns it and its permissions",
    errno.ENOENT: "Check the path",
    errno.EIO: "The disk reports a fault: check it, and copy what matters elsewhere",
}


def storage_error(title: str, doing: str, path: Path, error: OSError) -> ThresherError:
    """What the operating system refused, as a sentence: "cannot {doing} {path}: why. Advice."."""
    why = error.strerror or str(error) or type(error).__name__
    advice = _ADVICE.get(error.errno or 0, "Check the disk and the path")
    return ThresherError(title, f"cannot {doing} {path}: {why}. {advice}.")
