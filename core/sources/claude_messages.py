"""From the records that the model sees to the `messages` of a request (Messages API).

The order inside a request is not that of the file: blocks of one response become one message,
results come before texts, and attachments go up to what the model had said or got last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from .base import WireItem
from .claude_chain import Node, Role
from .claude_items import CLEARED, blocks_of
from .codex_items import dict_of

MISSING: Final = "system prompt, tools, words of reminders"
"""What is sent and is not in the file."""


def messages_of(nodes: Sequence[Node], cleared: Collection[str] = ()) -> list[WireItem]:
    """The messages that these records make. `cleared` are the calls whose results microcompaction
    took out."""
    messages: list[WireItem] = []
    responses: dict[str, WireItem] = {}
    for node in _in_order(nodes):
        if node.role is Role.ASSISTANT:
            known = responses.get(node.family) if node.family else None
            if known is not None:
                known["content"] = [*blocks_of(known["content"]), *blocks_of(node.raw)]
                continue
            message: WireItem = {"role": "assistant", "content": node.raw}
            messages.append(message)
            if node.family:
                responses[node.family] = message
            continue
        content = _without(node.raw, cleared)
        if messages and messages[-1]["role"] == "user":
            before = messages[-1]["content"]
            messages[-1]["content"] = _results_first([*blocks_of(before), *blocks_of(content)])
        else:
            messages.append({"role": "user", "content": content})
    return messages


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    found: list[Node] = []
    up = 0
    for node in nodes:
        if node.role is Role.ATTACHMENT:
            found.insert(up, node)
            up += 1
            continue
        found.append(node)
        if node.role in (Role.ASSISTANT, Role.RESULT):
            up = len(found)
    return found


def _results_first(blocks: list[Any]) -> list[Any]:
    return sorted(blocks, key=lambda block: dict_of(block).get("type") != "tool_result")


def _without(content: Any, cleared: Collection[str]) -> Any:
    if not cleared or not isinstance(content, list):
        return content
    return [
        {**block, "content": CLEARED}
        if isinstance(block, dict) and block.get("tool_use_id") in cleared
        else block
        for block in content
    ]
