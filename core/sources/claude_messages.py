"""From the records that the model sees to the `messages` of a request (Messages API).

The order inside a request is not that of the file: blocks of one response become one message,
results come before texts, and attachments go up to what the model had said or got last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from .base import WireItem
from .claude_chain import Node, Role
from .claude_items import blocks_of
from .codex_items import dict_of, text_of

MISSING: Final = "system prompt, tools, words of reminders"
"""What is sent and is not in the file."""
GO_ON: Final = "(Claude Code asks the model to go on; these words are not in the file)"
"""What stands for the message behind an answer that the output limit cut off."""


def messages_of(nodes: Sequence[Node], cleared: Mapping[str, str] | None = None) -> list[WireItem]:
    """The messages that these records make. `cleared` are the calls whose results microcompaction
    took out, with what stands for them."""
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


def with_go_on(nodes: Sequence[Node]) -> list[Node]:
    """The records with the messages that were only sent and never written down: when an answer was
    cut off, the program itself asks for the rest, until the user says something again."""
    found: list[Node] = []
    since = max((at for at, node in enumerate(nodes) if node.role is Role.USER), default=0)
    for at, node in enumerate(nodes):
        before = found[-1] if found else node
        cut = before.role is Role.ASSISTANT and before.family != node.family and at > since
        if cut and node.role is Role.ASSISTANT:
            found.append(_go_on(before))
        found.append(node)
    if found and found[-1].role is Role.ASSISTANT:
        found.append(_go_on(found[-1]))
    return found


def _go_on(node: Node) -> Node:
    return Node("", node.line, Role.USER, raw=[{"type": "text", "text": GO_ON}])


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


def _without(content: Any, cleared: Mapping[str, str] | None) -> Any:
    if not cleared or not isinstance(content, list):
        return content
    return [
        {**block, "content": cleared[block["tool_use_id"]]}
        if text_of(dict_of(block).get("tool_use_id")) in cleared
        else block
        for block in content
    ]
