"""Where a hook and a console meet: one private folder for each transcript, and the files in it.

Nothing is loaded here that a hook does not need at once, since the agent waits for every start of
one. Names that come from outside are cut down to letters and digits before they become part of a
path.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path

from ..paths import ensure_dir, state_dir

WATCH = "watch.json"
"""There while a console wants to be asked; it says about which transcript."""
REQUEST, ANSWER = "request-", "answer-"
MOST_BYTES = 256_000
"""Of a message; more is no message of ours."""

_STEM = 80


def folder_of(transcript: str) -> Path:
    """The folder for this transcript, whether it exists or not. The same file has the same folder
    whatever way leads to it."""
    real = os.path.realpath(transcript)
    stem = Path(real).stem
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in stem)
    return state_dir() / "holds" / f"{plain[:_STEM]}-{zlib.crc32(os.fsencode(real)):08x}"


def private(folder: Path) -> Path:
    """Make the folder, for this user alone. Raises ThresherError."""
    ensure_dir(folder)
    folder.chmod(0o700)
    return folder


def is_private(folder: Path) -> bool:
    """Whether nobody else can have put something there."""
    found = folder.lstat()
    mine = found.st_uid == os.getuid()
    return mine and stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o022


def request_file(folder: Path, id: str) -> Path:
    """The file with a hook's request."""
    return folder / f"{REQUEST}{id}.json"


def answer_file(folder: Path, id: str) -> Path:
    """The file with a console's answer."""
    return folder / f"{ANSWER}{id}.json"


def id_of(file: Path) -> str:
    """The id in the name of a request, or an empty text for a name that is none of ours."""
    id = file.name.removeprefix(REQUEST).removesuffix(".json")
    plain = id.isascii() and id.isalnum() and len(id) <= 32
    return id if plain and file == request_file(file.parent, id) else ""


def write_whole(file: Path, data: bytes, ready: Callable[[int], object] | None = None) -> int:
    """Put a file in its place at once, for this user alone; gives the open handle of it. `ready`
    does what must be done with the handle before anybody can see the file."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(part, flags, 0o600)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(handle, left) :]
        if ready is not None:
            ready(handle)
        part.replace(file)
    except BaseException:
        os.close(handle)
        part.unlink(missing_ok=True)
        raise
    return handle


def read_whole(file: Path) -> bytes | None:
    """What is in a file, or None where there is none. Raises OSError."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as opened:
        return opened.read(MOST_BYTES + 1)
