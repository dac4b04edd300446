"""The agents whose sessions are looked for on this machine: one line for each."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from .found import Finder

_MODULES: Final = (
    ".discover",
    ".claude_discover",
    ".opencode_discover",
    ".pi_discover",
)
"""Each has a FINDER (see found.Finder)."""


def finders() -> list[Finder]:
    """How the sessions of each agent are found."""
    package = __name__.rpartition(".")[0]
    return [import_module(module, package).FINDER for module in _MODULES]


def finder_named(word: str) -> Finder | None:
    """The finder for what a user calls an agent; None when there is none."""
    return next((each for each in finders() if word in (each.agent, *each.words)), None)
