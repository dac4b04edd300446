"""V2's checkpoint: one user message that holds the summary and the recent text of a history."""

from __future__ import annotations

import msgspec

from ....context import Context
from ....items import CompactionSummary

_OPEN = "<conversation-checkpoint>\n"
_SUMMARY = "\n\n<summary>\n"
_RECENT = "\n</summary>\n\n<recent-context>\n"
_CLOSE = "\n</recent-context>\n</conversation-checkpoint>"


class Checkpoint(msgspec.Struct, frozen=True):
    """A summary, the recent text, and the position of the item that holds them."""

    summary: str
    recent: str = ""
    at: int = -1

    def item(self, opening: str) -> CompactionSummary:
        """As the model sees it; `opening` says that this is history."""
        return CompactionSummary(
            content=f"{self.summary}{_RECENT}{self.recent}{_CLOSE}",
            prefix=f"{_OPEN}{opening}{_SUMMARY}",
        )


def last_checkpoint(context: Context) -> Checkpoint | None:
    """The newest compaction in a context; one of another policy has no recent text."""
    for at in range(len(context) - 1, -1, -1):
        item = context.entries[at].item
        if isinstance(item, CompactionSummary):
            if item.prefix.startswith(_OPEN) and item.content.endswith(_CLOSE):
                summary, _, recent = item.content.removesuffix(_CLOSE).partition(_RECENT)
                return Checkpoint(summary, recent, at)
            return Checkpoint(item.content, at=at)
    return None
