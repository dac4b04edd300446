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
    """A summary, and the recent text."""

    summary: str
    recent: str = ""

    def item(self, opening: str) -> CompactionSummary:
        """As the model sees it; `opening` says that this is history."""
        return CompactionSummary(
            content=f"{self.summary}{_RECENT}{self.recent}{_CLOSE}",
            prefix=f"{_OPEN}{opening}{_SUMMARY}",
        )


def last_checkpoint(context: Context) -> Checkpoint | None:
    """The last compaction in a context. Summaries of another policy, which have no recent text,
    are all put before its own."""
    found = [item for item in context.items if isinstance(item, CompactionSummary)]
    if not found:
        return None
    own, foreign = Checkpoint(""), []
    for item in found:
        if item.prefix.startswith(_OPEN) and item.content.endswith(_CLOSE):
            summary, _, recent = item.content.removesuffix(_CLOSE).partition(_RECENT)
            own = Checkpoint(summary, recent)
        else:
            foreign.append(item.content)
    return Checkpoint("\n\n".join(filter(None, [*foreign, own.summary])), own.recent)
