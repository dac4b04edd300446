"""What the user asks of an agent may not be possible: then a sentence says why."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen

from thresher.core.errors import ThresherError
from thresher.core.text import clean, clean_line


def attempt(node: Screen[Any], work: Any, *arguments: object) -> bool:
    """Do what the user asked for; what cannot be done is told in a sentence."""
    try:
        work(*arguments)
    except ThresherError as error:
        tell_error(node, error)
        return False
    return True


def tell_error(node: Screen[Any], error: ThresherError) -> None:
    """A toast with the error's sentence."""
    node.notify(
        clean(error.msg[:400]), title=clean_line(error.title, 60), severity="error", markup=False
    )
