"""Where thresher keeps its files: the user's state, config and cache folders.

`THRESHER_STATE_DIR`, `THRESHER_CONFIG_DIR` and `THRESHER_CACHE_DIR` override the places that the
operating system's conventions give (platformdirs). Nothing here creates a folder but `ensure_dir`.
"""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from .errors import ThresherError, storage_error

_APP = "thresher"


def state_dir() -> Path:
    """Sessions and everything else that is worth keeping."""
    return _override("THRESHER_STATE_DIR") or platformdirs.user_state_path(_APP, appauthor=False)


def config_dir() -> Path:
    """What the user wrote."""
    return _override("THRESHER_CONFIG_DIR") or platformdirs.user_config_path(_APP, appauthor=False)


def cache_dir() -> Path:
    """What may be deleted at any time."""
    return _override("THRESHER_CACHE_DIR") or platformdirs.user_cache_path(_APP, appauthor=False)


def sessions_dir() -> Path:
    """The root of our own sessions: YYYY/MM/DD/<id>/ below it."""
    return state_dir() / "sessions"


def ensure_dir(path: Path) -> Path:
    """Create a folder and the missing ones above it, each for this user alone (0700).

    A folder that exists is left as it is. Raises ThresherError when it cannot be made, or when
    something else has its name.
    """
    missing: list[Path] = []
    at = path
    try:
        while not at.is_dir():
            missing.append(at)
            if at.parent == at:
                break
            at = at.parent
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError as error:
        raise ThresherError(
            "Folder not available",
            f"{error.filename or path} is needed as a folder and is a file: move it away, or "
            "choose another place with THRESHER_STATE_DIR.",
        ) from None
    except OSError as error:
        raise storage_error("Folder not available", "create the folder", path, error) from error
    return path


def _override(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).expanduser().absolute() if value else None
