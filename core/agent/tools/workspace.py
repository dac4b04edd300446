"""The folder the agent may touch, and the only way to a file in it.

A path is resolved with all symbolic links followed and must end up inside the root. The file is
then opened one folder at a time from the root with O_NOFOLLOW, so that a link which is put in
place between the check and the opening is refused and not followed. Names of other agents' work:
openat-style resolution, `RESOLVE_BENEATH` of Linux's openat2(2).
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ...errors import ThresherError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathRefused(ThresherError):
    """A path that may not be used, with the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__("Path refused", f"{quoted(path)} {why}.")


class Workspace:
    """The folder `root` and everything below it. Raises PathRefused when it is no folder."""

    def __init__(self, root: Path) -> None:
        try:
            self.root = root.resolve(strict=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise PathRefused(str(root), "does not exist or cannot be reached") from error
        if not self.root.is_dir():
            raise PathRefused(str(root), "is not a folder")

    def resolve(self, path: str) -> Path:
        """The real place of `path`, inside the root, links followed; it need not exist yet.

        `path` is relative to the root, or absolute and inside it. Raises PathRefused for
        anything that leads out (by `..`, by a link, by an absolute path), for an empty path or
        one with NUL, and for a device, pipe or socket.
        """
        if not path.strip():
            raise PathRefused(path, "is empty: give a path relative to the workspace")
        if "\0" in path:
            raise PathRefused(path, "holds a NUL character")
        try:
            real = Path(os.path.realpath(self.root / path))
        except (OSError, ValueError) as error:
            raise PathRefused(path, "cannot be resolved") from error
        if not real.is_relative_to(self.root):
            raise PathRefused(
                path, f"leads outside the workspace {quoted(str(self.root))}: use a path inside it"
            )
        try:
            mode = real.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return real
        except OSError as error:
            raise PathRefused(path, f"cannot be reached: {error.strerror}") from error
        if stat.S_ISLNK(mode):
            raise PathRefused(path, "is a symbolic link that leads in a circle")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise PathRefused(path, "is a device, pipe or socket, not a file")
        return real

    def holds(self, path: str) -> bool:
        """Whether `path` ends up inside the root and may be used."""
        try:
            self.resolve(path)
        except PathRefused:
            return False
        return True

    def relative(self, real: Path) -> str:
        """A resolved path as it is shown: relative to the root, `.` for the root itself."""
        return real.relative_to(self.root).as_posix()

    @contextmanager
    def folder(self, real: Path, *, create: bool = False) -> Iterator[int]:
        """A descriptor of the folder `real` (a result of `resolve`), opened without links.

        Missing folders are made when `create` is set. Raises OSError.
        """
        here = os.open(self.root, _FOLDER)
        try:
            for name in real.relative_to(self.root).parts:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=here)
                below = os.open(name, _FOLDER, dir_fd=here)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    def open(self, real: Path) -> BinaryIO:
        """Open the regular file `real` (a result of `resolve`) for reading, without links.

        Raises OSError, and PathRefused when it is not a regular file.
        """
        if real == self.root:
            raise PathRefused(self.relative(real), "is a folder, not a file")
        # O_NONBLOCK: opening a pipe that was put here meanwhile must not wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self.folder(real.parent) as parent:
            descriptor = os.open(real.name, flags, dir_fd=parent)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise PathRefused(self.relative(real), "is a folder, not a file")
            if not stat.S_ISREG(mode):
                raise PathRefused(self.relative(real), "is not a regular file")
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise


def quoted(path: str) -> str:
    """A path for a sentence or a list: bare if it is plain, else as a JSON string.

    A file name may hold newlines or quotes and must not be able to look like more than one name.
    """
    plain = path.isprintable() and path == path.strip() and not set(path) & set('"\\')
    return path if plain and path else json.dumps(path, ensure_ascii=not path.isprintable())
