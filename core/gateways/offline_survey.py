"""What lies in a workspace, as the offline stand-in needs it to make a plan: names and sizes."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import msgspec

_MOST_FILES = 400
_MOST_BYTES = 4 * 2**20
_SKIPPED = frozenset(
    {"__pycache__", "node_modules", "venv", "env", "build", "dist", "target", "site-packages"}
)


class FileKind(StrEnum):
    """What a file is good for."""

    DOC = "doc"
    CODE = "code"
    TEST = "test"
    LOG = "log"
    OTHER = "other"


class File(msgspec.Struct, frozen=True):
    """A text file: its path from the workspace, its lines and bytes, and if it names unittest."""

    path: str
    kind: FileKind
    lines: int
    size: int
    unittest: bool = False


def survey(root: Path) -> tuple[File, ...]:
    """The text files below `root`, sorted by path, at most 400.

    Hidden folders, links, usual build folders, empty, binary and very large files are left out. A
    folder or file that cannot be read is passed over.
    """
    found: list[File] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(n for n in folders if not n.startswith(".") and n not in _SKIPPED)
        for name in sorted(names):
            path = Path(folder) / name
            file = None if name.startswith(".") or path.is_symlink() else _look(path, root)
            if file is not None:
                found.append(file)
            if len(found) == _MOST_FILES:
                return tuple(sorted(found, key=lambda f: f.path))
    return tuple(sorted(found, key=lambda f: f.path))


def _look(path: Path, root: Path) -> File | None:
    try:
        if not path.is_file() or not 0 < path.stat().st_size <= _MOST_BYTES:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    if b"\0" in data[:8192]:
        return None
    name = path.relative_to(root).as_posix()
    if not name.isprintable():
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    return File(name, _kind(name), lines, len(data), b"unittest" in data)


def _kind(path: str) -> FileKind:
    name = path.rpartition("/")[2].lower()
    suffix = name.rpartition(".")[2] if "." in name else ""
    if suffix == "log" or path.startswith("logs/"):
        return FileKind.LOG
    if suffix in _CODE:
        tests = path.startswith("tests/") or "/tests/" in path or "test_" in name or "_test" in name
        return FileKind.TEST if tests else FileKind.CODE
    if suffix in ("md", "rst", "txt", "adoc") or name in ("readme", "license", "makefile"):
        return FileKind.DOC
    return FileKind.OTHER


_CODE = frozenset(
    {
        *("py", "pyi", "js", "jsx", "ts", "tsx", "go", "rs", "c", "h", "cc", "cpp", "hpp", "java"),
        *("kt", "swift", "rb", "php", "sh", "lua", "scala", "cs", "sql"),
    }
)
