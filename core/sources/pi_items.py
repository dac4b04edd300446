"""The messages of pi: as our items, and as the chat messages that pi makes of them.

Some of pi's messages are its own (a command the user ran, an extension's text, the summaries): to
the model each of them is a message of the user, with words of pi around the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    OtherItem,
    Part,
    Reasoning,
    Role,
    TextPart,
)
from .codex_items import dict_of, json_of, text_of
from .pi_tree import WireMessage

BEFORE_SUMMARY: Final = (
    "The conversation history before this point was compacted into the following summary:"
    "\n\n<summary>\n"
)
AFTER_SUMMARY: Final = "\n</summary>"
BEFORE_BRANCH: Final = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
)
AFTER_BRANCH: Final = "</summary>"
"""What pi puts around the two kinds of summaries: part of its wire form."""

FAILED: Final = frozenset({"error", "aborted"})
"""How answers end that are never sent again."""


def blocks_of(content: object) -> list[dict[str, Any]]:
    """The parts of a content; a plain text is one part."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict)]


def is_failed(message: WireMessage) -> bool:
    """An answer that ended with an error or was stopped."""
    return message.get("role") == "assistant" and text_of(message.get("stopReason")) in FAILED


def is_sent(message: WireMessage) -> bool:
    """Whether a message that is on the way is sent at all."""
    if message.get("role") == "bashExecution":
        return not message.get("excludeFromContext")
    return not is_failed(message)


def items_of(message: WireMessage) -> Iterator[Item]:
    """The items of one message, in order."""
    content = message.get("content")
    match text_of(message.get("role")):
        case "user":
            yield Message(Role.USER, _said(content))
        case "assistant":
            yield from map(_answered, blocks_of(content))
        case "toolResult":
            yield FunctionCallOutput(
                text_of(message.get("toolCallId")),
                _result(content),
                text_of(message.get("toolName")),
                is_error=message.get("isError") is True,
            )
        case "bashExecution":
            yield Message(Role.USER, command_text(message), synthetic=True)
        case "custom" | "hookMessage":
            yield Message(Role.USER, _said(content), synthetic=True)
        case "branchSummary":
            yield CompactionSummary(text_of(message.get("summary")), BEFORE_BRANCH)
        case "compactionSummary":
            yield CompactionSummary(text_of(message.get("summary")), BEFORE_SUMMARY)
        case role:
            yield OtherItem(role or "(no role)", json_of(message), _result(content))


def user_form(message: WireMessage) -> WireMessage | None:
    """One of pi's own messages as the user's message it is sent as; others as they are; None for
    what is not sent."""
    match text_of(message.get("role")):
        case "bashExecution":
            if message.get("excludeFromContext"):
                return None
            return _user(command_text(message))
        case "custom" | "hookMessage":
            return {"role": "user", "content": blocks_of(message.get("content"))}
        case "branchSummary":
            return _user(f"{BEFORE_BRANCH}{text_of(message.get('summary'))}{AFTER_BRANCH}")
        case "compactionSummary":
            return _user(f"{BEFORE_SUMMARY}{text_of(message.get('summary'))}{AFTER_SUMMARY}")
        case "user" | "assistant" | "toolResult":
            return message
        case _:
            return None


def command_text(message: WireMessage) -> str:
    """What the model is told of a command that the user ran."""
    output = text_of(message.get("output"))
    told = f"Ran `{text_of(message.get('command'))}`\n"
    told += f"```\n{output}\n```" if output else "(no output)"
    code = message.get("exitCode")
    if message.get("cancelled"):
        told += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        told += f"\n\nCommand exited with code {code}"
    saved = text_of(message.get("fullOutputPath"))
    if message.get("truncated") and saved:
        told += f"\n\n[Output truncated. Full output: {saved}]"
    return told


def _user(text: str) -> WireMessage:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _said(content: object) -> str | tuple[Part, ...]:
    parts = tuple(map(_part, blocks_of(content)))
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return parts or ""


def _part(block: dict[str, Any]) -> Part:
    match block.get("type"):
        case "text":
            return TextPart(text_of(block.get("text")))
        case "image":
            return ImagePart(data_url(block))
        case kind:
            return OpaquePart(text_of(kind) or "(no type)", json_of(block))


def data_url(block: dict[str, Any]) -> str:
    """A picture as the address it is sent as."""
    return f"data:{text_of(block.get('mimeType'))};base64,{text_of(block.get('data'))}"


def _answered(block: dict[str, Any]) -> Item:
    match block.get("type"):
        case "text":
            return Message(Role.ASSISTANT, text_of(block.get("text")))
        case "thinking":
            if block.get("redacted"):
                return Reasoning(encrypted=text_of(block.get("thinkingSignature")))
            return Reasoning(summary=text_of(block.get("thinking")))
        case "toolCall":
            arguments = json_of(dict_of(block.get("arguments")))
            return FunctionCall(text_of(block.get("id")), text_of(block.get("name")), arguments)
        case kind:
            return OtherItem(text_of(kind) or "(no type)", json_of(block))


def _result(content: object) -> str:
    told = [
        "[image]" if block.get("type") == "image" else text_of(block.get("text"))
        for block in blocks_of(content)
    ]
    return "\n".join(told)
