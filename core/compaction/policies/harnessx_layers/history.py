"""History compaction: the request for a continuity summary, and the new list around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .... import jsontext
from ....context import Context, Inserted, Segment
from ....items import CompactionSummary, Item, Kind, kind_of, system, user
from ...summaries import prompt, written_out


def size(items: Iterable[Item]) -> int:
    """The length of a history in characters of JSON."""
    return sum(len(jsontext.encode(item).decode()) for item in items)


def json_lines(items: Iterable[Item]) -> str:
    """The archive of a history: one JSON object a line."""
    return "".join(f"{jsontext.encode(item).decode()}\n" for item in items)


def summary_request(items: Sequence[Item], focus: str, *, head: int, tail: int) -> tuple[Item, ...]:
    """What to keep, then the history as text, of which the middle is left out where it is longer
    than `head` + `tail` characters."""
    asked = prompt("harnessx_summary")
    if focus.strip():
        asked = f"{asked}\n\n{prompt('focus')}\n\n{focus.strip()}"
    return system(asked), user(cut(written_out(items), head, tail))


def cut(text: str, head: int, tail: int) -> str:
    """Both ends of a text, with a note of what is left out between them."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    note = f"\n\n[... {left_out:,} characters of the conversation are left out here ...]\n\n"
    return f"{text[:head]}{note}{text[len(text) - tail :]}"


def new_history(
    context: Context, kept: Sequence[int], summary: str, reason: str, archive: str
) -> tuple[Segment, ...]:
    """The first system message, the summary, and the entries at the positions `kept`."""
    first = next((at for at, e in enumerate(context) if kind_of(e.item) is Kind.SYSTEM), None)
    head = [] if first is None else [first]
    kept = [at for at in kept if at != first]
    staying = {*head, *kept}
    gone = (entry.id for at, entry in enumerate(context) if at not in staying)
    prefix = (
        f"[Conversation compacted by HarnessX. reason={reason}]\n"
        f"Transcript archive: {archive}\n\nContinuity summary:\n"
    )
    return (
        *context.keep(head),
        Inserted(CompactionSummary(summary, prefix), context.span(gone)),
        *context.keep(kept),
    )
