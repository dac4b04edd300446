"""Replace a file in one step: a reader sees the old text or the new one, never half of it."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from .base import ToolError
from .workspace import Workspace, quoted

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(workspace: Workspace, real: Path, data: bytes) -> bool:
    """Write `data` to `real` (a result of `resolve`) and keep its mode; True if it is new.

    Missing folders are made. Raises ToolError for a folder or a write-protected file, OSError.
    """
    name = quoted(workspace.relative(real))
    if real == workspace.root:
        raise ToolError(f"{name} is a folder, not a file.")
    with workspace.folder(real.parent, create=True) as folder:
        mode = _mode(real.name, folder)
        if mode is not None:
            if not stat.S_ISREG(mode):
                raise ToolError(f"{name} is not a regular file.")
            # Replacing needs rights on the folder only, but the user protected the file.
            if not os.access(real.name, os.W_OK, dir_fd=folder):
                raise ToolError(f"{name} is write-protected.")
        temporary = f".{secrets.token_hex(8)}.tmp"
        descriptor = os.open(temporary, _NEW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), stat.S_IMODE(mode))
                file.write(data)
            os.replace(temporary, real.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return mode is None


def _mode(name: str, folder: int) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
