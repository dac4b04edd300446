"""What the first key press would wait for, done while nobody waits: modules and styles.

A screen that is opened for the first time would load its modules, and have every rule of the
program parsed and every widget styled again for the sake of its own stylesheet.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from textual.app import App

from .theme import STYLES

SCREENS = ("diff", "context", "listing", "help", "ask", "filter", "text", "forecast", "stop")
"""The modules of the screens that a key opens, those first that are wanted most."""


async def warm(app: App[Any]) -> None:
    """Load what is not loaded yet, piece by piece; keys are taken in between."""
    fresh = (path for path in sorted(STYLES.glob("*.tcss"))
             if not app.stylesheet.has_source(str(path)))  # fmt: skip
    for path in list(fresh):
        app.stylesheet.read(path)
        app.stylesheet.parse()
        await asyncio.sleep(0)
    for name in SCREENS:
        # In a thread: it gives way to the event loop, also in the middle of a module.
        await asyncio.to_thread(import_module, f"{__package__}.screens.{name}")
