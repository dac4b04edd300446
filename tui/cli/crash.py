"""What happens to an error that nobody expected: one sentence, and a file with the rest."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
import traceback
from pathlib import Path

import thresher.core
from thresher.core import paths
from thresher.core.errors import ThresherError

from . import output


def told(error: BaseException) -> int:
    """Tell the user; returns the exit code. THRESHER_DEBUG=1 shows the traceback as well."""
    trace = "".join(traceback.format_exception(error))
    kept = _written(trace)
    where = f"the whole story is in {kept}" if kept else "it could not be written to a file"
    output.complain(
        "Unexpected error",
        f"{type(error).__name__}: {str(error)[:300] or 'no message'}; {where}. Please report it "
        "with that file; what was recorded so far is safe.",
    )
    if os.environ.get("THRESHER_DEBUG", "") not in ("", "0"):
        for line in trace.splitlines():
            output.remark(line)
    return 1


def _written(trace: str) -> Path | None:
    """The file with the traceback: in the state folder, else in the one for temporary files."""
    name = time.strftime(f"crash-%Y%m%d-%H%M%S-{os.getpid()}.txt", time.gmtime())
    head = (
        f"thresher {thresher.core.__version__}, Python {platform.python_version()}, "
        f"{platform.platform()}\narguments: {sys.argv[1:]!r}\n\n"
    )
    for folder in (paths.state_dir(), Path(tempfile.gettempdir())):
        try:
            path = paths.ensure_dir(folder) / name
            path.write_text(head + trace, encoding="utf-8", errors="backslashreplace")
            path.chmod(0o600)
        except (OSError, ThresherError):
            continue
        return path
    return None
