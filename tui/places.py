"""Paths and folders as people write them. Nothing here is clean: it comes from the disk."""

from __future__ import annotations

import re
from pathlib import Path


def from_home(path: Path) -> str:
    """A path with ~ for the home directory."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


def project_of(folder: str) -> str:
    """The name of the folder that an agent worked in, from the path that its record holds."""
    return re.split(r"[\\/]", folder.rstrip("\\/"))[-1]
