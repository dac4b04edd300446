"""The .NET design's text for a collapsed tool call group.

    [Tool Calls]
    search:
      - what it gave back

One entry for each tool name, in the order in which the names first appear, with all results of
that tool below it, in full and unindented. The result of a call is the one with its id, else the
next tool message of plain text that no call has taken yet. Results of unknown ids, arguments, and
whatever else was said in the group are lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from .messages import Call, ChatMessage, Result

COLLAPSED = "[Tool Calls]"


def collapsed(messages: Sequence[ChatMessage]) -> str:
    """The text that stands for the messages of one group."""
    calls: list[Call] = []
    by_id: dict[str, str] = {}
    plain: list[str] = []
    for message in messages:
        calls += message.calls
        results = [content for content in message.contents if isinstance(content, Result)]
        by_id.update((result.call_id, result.text) for result in results)
        if message.role == "tool" and not results:
            plain.append(message.text)
    unused = iter(plain)
    by_name: dict[str, list[str]] = {}
    for call in calls:
        result = by_id[call.id] if call.id in by_id else next(unused, "")
        by_name.setdefault(call.name, [])
        if result:
            by_name[call.name].append(result)
    lines = [COLLAPSED]
    for name, found in by_name.items():
        lines.append(f"{name}:")
        lines += [f"  - {result}" for result in found]
    return "\n".join(lines)
