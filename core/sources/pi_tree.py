"""A session file of pi as the tree it is: what pi shows the model at any of its entries.

Every line but the first is an entry with an id and the id of its parent. The last entry that was
written is where the conversation stands; going back to an earlier one needs no line, only the next
entry's parent tells of it. The context at an entry is the way from the root to it. A compaction on
that way stands, with its summary, for everything before the first entry that it keeps.

The form follows the description that comes with the package (version 3 of the format) and files
written by it; entries of version 1 have no ids and follow each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from .codex_items import dict_of, text_of
from .lines import Line

WireMessage = dict[str, Any]
SILENT: Final = frozenset({"model_change", "thinking_level_change", "label", "custom"})
"""Entries that are no part of the context."""
KNOWN: Final = SILENT | {
    "session_info",
    "message",
    "custom_message",
    "branch_summary",
    "compaction",
}


class PiEntry(NamedTuple):
    """One entry. `n` is its line; `parent` the entry before it, None for the first."""

    n: int
    id: str
    parent: str | None
    kind: str
    value: dict[str, Any]

    @property
    def message(self) -> WireMessage | None:
        """What it puts into the context, in pi's own form; None where it puts nothing there."""
        match self.kind:
            case "message":
                return dict_of(self.value.get("message"))
            case "custom_message":
                return {"role": "custom", "content": self.value.get("content")}
            case "branch_summary" if text_of(self.value.get("summary")):
                return {"role": "branchSummary", "summary": text_of(self.value.get("summary"))}
            case "compaction":
                return {"role": "compactionSummary", "summary": text_of(self.value.get("summary"))}
            case _:
                return None

    @property
    def role(self) -> str:
        """Whose message it is; empty where it is none."""
        return text_of((self.message or {}).get("role"))

    @property
    def is_compaction(self) -> bool:
        """Whether it is one."""
        return self.kind == "compaction"


class Added(NamedTuple):
    """An entry that was read. `left` is the entry before it in the file, where that is not its
    parent: the user went to another branch. `fault` says what is wrong with its place."""

    entry: PiEntry
    left: PiEntry | None
    fault: str


class PiTree:
    """All entries so far; `leaf` is the last one."""

    def __init__(self) -> None:
        self.leaf: PiEntry | None = None
        self._entries: dict[str, PiEntry] = {}
        self._lines: list[str] = []
        """The ids by their place in the file, since version 1 speaks of places."""

    def add(self, line: Line) -> Added | None:
        """Take the entry of a line that holds an object; None for one that is there already."""
        value = line.value or {}
        id = text_of(value.get("id")) or f"line-{line.number}"
        if id in self._entries:
            same = self._entries[id].value == value
            if same:
                return None
            id = f"{id}@{line.number}"
        parent, fault = self._parent(value)
        entry = PiEntry(line.number, id, parent, text_of(value.get("type")), value)
        left = self.leaf if self.leaf is not None and self.leaf.id != parent else None
        self._entries[id] = self.leaf = entry
        self._lines.append(id)
        return Added(entry, left, fault)

    def path(self, leaf: PiEntry | None) -> list[PiEntry]:
        """The entries from the root to this one."""
        found: list[PiEntry] = []
        while leaf is not None:
            found.append(leaf)
            leaf = self._entries.get(leaf.parent) if leaf.parent is not None else None
        return found[::-1]

    def parent_of(self, entry: PiEntry) -> PiEntry | None:
        """The entry before this one on its branch."""
        return self._entries.get(entry.parent) if entry.parent is not None else None

    def shown(self, leaf: PiEntry | None) -> list[PiEntry]:
        """The entries whose messages are the context at this one, in the order they are sent."""
        path = self.path(leaf)
        at = next((n for n in range(len(path) - 1, -1, -1) if path[n].is_compaction), None)
        if at is None:
            return [entry for entry in path if entry.message is not None]
        kept = path[self.first_kept(path, at) : at]
        shown = [path[at], *(each for each in kept if not each.is_compaction), *path[at + 1 :]]
        return [entry for entry in shown if entry.message is not None]

    def first_kept(self, path: list[PiEntry], at: int) -> int:
        """The place on the path of the first entry that the compaction at place `at` keeps; `at`
        itself when there is none."""
        value = path[at].value
        wanted = text_of(value.get("firstKeptEntryId"))
        index = value.get("firstKeptEntryIndex")
        if not wanted and isinstance(index, int) and 0 < index <= len(self._lines):
            # Version 1 counted the entries of the file, its first line among them.
            wanted = self._lines[index - 1]
        return next((n for n in range(at) if path[n].id == wanted), at)

    def _parent(self, value: dict[str, Any]) -> tuple[str | None, str]:
        previous = self.leaf.id if self.leaf is not None else None
        told = value.get("parentId")
        if "parentId" not in value and "id" not in value:
            return previous, ""
        if told is None:
            return None, ""
        if isinstance(told, str) and told in self._entries:
            return told, ""
        return previous, "its parent is not in the file, it is taken to follow the entry before it"


def branch_left(tree: PiTree, left: PiEntry, target: PiEntry | None) -> Iterator[PiEntry]:
    """The entries from the common part of both branches to the one that was left."""
    common = {entry.id for entry in tree.path(target)}
    yield from (entry for entry in tree.path(left) if entry.id not in common)
