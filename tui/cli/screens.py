"""The commands that show something: the picker, open, demo, run and resume."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from itertools import batched
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import App, Parameter

from thresher.core.errors import ThresherError

from .doctor import no_terminal
from .flags import (
    CompactionFlags,
    Headless,
    Json,
    ModelFlags,
    ReadOnly,
    WorkspaceFlag,
    Yes,
    approval,
    settings_of,
    workspace_of,
)
from .targets import FILE_HELP, located

if TYPE_CHECKING:
    from thresher.core.agent.assemble import Setup
    from thresher.core.agent.loop import Agent, TurnOutcome
    from thresher.core.config import Settings
    from thresher.core.sessions.session import Session
    from thresher.core.state import SessionState

    from ..opening import Opened
    from ..widgets.session_list import SessionRow

PACE, PAUSE = 0.03, 1.5
"""Seconds between two pieces of text, and between two steps, of the demo on a screen."""
BATCH = 20
"""Sessions that the picker gets at a time."""
