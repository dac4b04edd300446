"""Whole items, where only the heads of them are held (`items.Body`): read when someone looks."""

from __future__ import annotations

from typing import Protocol

from .errors import ThresherError
from .items import Item


class Bodies(Protocol):
    """Gives the whole of an item. Blocking: it may read a file."""

    def whole(self, item: Item) -> Item:
        """The item with all of its text; itself when it has that already.

        Raises ThresherError when the file cannot be read, or holds something else there now.
        """
        ...


class NoBodies:
    """For sessions whose items are whole: every item is its own."""

    def whole(self, item: Item) -> Item:
        """The item itself."""
        return item


def whole_of(item: Item, bodies: Bodies) -> Item:
    """The whole of an item; what is held of it, where the rest cannot be had."""
    if item.body is None:
        return item
    try:
        return bodies.whole(item)
    except ThresherError:
        return item


def text_of(item: Item, bodies: Bodies) -> str:
    """The whole text of an item, for people: where it cannot be had, its head, and why."""
    if item.body is None:
        return item.text
    try:
        return bodies.whole(item).text
    except ThresherError as error:
        return f"{item.text}\n\n[{error.msg}]"
