"""The output cap: one tool result must not be larger than what is left of the context.

No threshold can catch a result that is larger than the room behind it, so it is cut where it
enters. The whole text goes to a file, and the context gets its two ends and a pointer to the
file. If the file cannot be written there is no pointer, and the text says so.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec

MAX_SAVED: Final = 32 * 2**20
"""Characters of a full output that are kept on disk at most: `yes` must not fill the disk."""

_ATTEMPTS: Final = 10_000


class OutputCap(msgspec.Struct, frozen=True):
    """How much of one result enters the context, in characters (about 4 make a token)."""

    max_chars: int = 24_000
    head: int = 9_000
    tail: int = 9_000

    def __post_init__(self) -> None:
        if min(self.head, self.tail) < 0 or self.head + self.tail > self.max_chars:
            raise ValueError("an output cap needs head + tail <= max_chars, none negative")

    def apply(self, text: str, outputs_dir: Path, call_id: str) -> Capped:
        """Cut `text` if it is over the cap, with the whole of it in a file."""
        spool = Spool(self, outputs_dir, call_id)
        spool.write(text)
        return spool.finish()


class Capped(msgspec.Struct, frozen=True):
    """A text within the cap. `saved` names a file that exists, or nothing."""

    text: str
    saved: str | None = None
    truncated_chars: int = 0


class Spool:
    """Takes a text piece by piece, of any length, in bounded memory. `finish` ends it, once."""

    def __init__(self, cap: OutputCap, outputs_dir: Path, call_id: str) -> None:
        self._cap = cap
        self._outputs_dir = outputs_dir
        self._call_id = call_id
        self._pieces: list[str] = []
        self._head = ""
        self._tail = ""
        self._chars = 0
        self._newlines = 0
        self._saved_chars = 0
        self._path: Path | None = None
        self._file: IO[str] | None = None
        self._failure: str | None = None

    def write(self, text: str) -> None:
        was_over = self._over
        self._chars += len(text)
        self._newlines += text.count("\n")
        if not was_over:
            self._pieces.append(text)
            if not self._over:
                return
            text = "".join(self._pieces)
            self._pieces = []
            self._head = text[: self._cap.head]
            self._open()
        self._tail = _last(self._tail + _last(text, self._cap.tail), self._cap.tail)
        self._save(text)

    def finish(self) -> Capped:
        """The text, or its two ends and where the whole is."""
        if not self._over:
            return Capped("".join(self._pieces))
        self._close()
        head, tail = _whole_lines(self._head, self._tail)
        left_out = self._chars - len(head) - len(tail)
        note = f"[... {left_out:,} characters left out here. {self._whereabouts()} ...]"
        saved = str(self._path) if self._path else None
        return Capped("\n".join(filter(None, (head, note, tail))), saved, left_out)

    def discard(self) -> None:
        """End it without a result: closes and removes the file."""
        if self._over:
            self._close()
            self._give_up(None)

    @property
    def _over(self) -> bool:
        return self._chars > self._cap.max_chars

    def _whereabouts(self) -> str:
        size = f"{self._chars:,} characters, {self._newlines + 1:,} lines"
        if self._path is None:
            return f"The full output ({size}) could not be saved: {self._failure}."
        if self._saved_chars < self._chars:
            size += f", of which the first {self._saved_chars:,} characters are kept"
        return f"Full output ({size}): {self._path} - see more of it with read_file or grep."

    def _open(self) -> None:
        try:
            self._outputs_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path, descriptor = _create(self._outputs_dir, self._call_id)
            # A lone surrogate, as from a file name, has no UTF-8 form; all else is kept exactly.
            self._file = os.fdopen(
                descriptor, "w", encoding="utf-8", errors="backslashreplace", newline=""
            )
        except OSError as error:
            self._give_up(error)

    def _save(self, text: str) -> None:
        if self._file is None:
            return
        text = text[: MAX_SAVED - self._saved_chars]
        try:
            self._file.write(text)
            self._saved_chars += len(text)
        except OSError as error:
            self._give_up(error)

    def _close(self) -> None:
        if self._file is None:
            return
        try:
            self._file.close()
        except OSError as error:
            self._give_up(error)
        self._file = None

    def _give_up(self, error: OSError | None) -> None:
        """No file from here on, and no half of one either."""
        self._failure = (error.strerror or str(error)) if error else None
        if self._file is not None:
            with suppress(OSError):  # It would be the first error again.
                self._file.close()
            self._file = None
        if self._path is not None:
            with suppress(OSError):  # If it stays: nothing points to it.
                self._path.unlink()
            self._path = None


def _create(folder: Path, call_id: str) -> tuple[Path, int]:
    # The id is the provider's text: only what is harmless in a file name is taken from it.
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", call_id)[:80].strip("_") or "call"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for number in range(1, _ATTEMPTS):
        path = folder / (f"{stem}.txt" if number == 1 else f"{stem}-{number}.txt")
        try:
            return path, os.open(path, flags, 0o600)
        except FileExistsError:
            continue
    raise OSError(f"there are already {_ATTEMPTS - 1:,} files named {stem}")


def _last(text: str, count: int) -> str:
    return text[-count:] if count else ""


def _whole_lines(head: str, tail: str) -> tuple[str, str]:
    """Cut at line ends where that costs less than half of a part."""
    end = head.rfind("\n")
    if end > len(head) // 2:
        head = head[:end]
    start = tail.find("\n")
    if 0 <= start < len(tail) // 2:
        tail = tail[start + 1 :]
    return head, tail
