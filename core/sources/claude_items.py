"""The messages in a Claude Code record (Messages API, as stored) and what they are to us."""

from __future__ import annotations

import re
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
from .codex_items import dict_of, json_of, text_of, texts_of

SYNTHETIC: Final = "<synthetic>"
"""The model of an assistant record that Claude Code wrote itself."""
CLEARED: Final = "[Old tool result content cleared]"
"""What stands for a result that microcompaction took out (1.0.128, 2.0.76)."""

_ECHOES: Final = (
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "Caveat: The messages below were generated",
)
"""How the text begins that a command of the user, or a task in the background, leaves behind."""
_CONTINUED: Final = "This session is being continued from a previous conversation"
_INTERRUPTED: Final = "[Request interrupted"
_SUMMARY_HEAD: Final = re.compile(r"\A.*?^Summary:[ \t]*\n", re.DOTALL | re.MULTILINE)
SAVED: Final = "<persisted-output>"
"""How the result begins that names the file of the whole output."""
_SAVED: Final = re.compile(rf"\A{SAVED}\n[^\n]*saved to: (?P<path>[^\n]+)")
_FOCUS: Final = re.compile(r"<command-args>(?P<text>.*?)</command-args>", re.DOTALL)


def blocks_of(content: object) -> list[Any]:
    """The blocks of a message; a bare text is one block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def has_results(content: object) -> bool:
    """Whether a user message gives the results of tools."""
    return any(dict_of(block).get("type") == "tool_result" for block in blocks_of(content))


def first_text(content: object) -> str:
    """The first text of a message."""
    return next(iter(texts_of(content)), "")


def is_echo(content: object) -> bool:
    """Text that a command of the user left, not something that the user said to the model."""
    return first_text(content).lstrip().startswith(_ECHOES)


def is_continuation(content: object) -> bool:
    """The words that a summary is given in, where nothing else marks it as one."""
    return first_text(content).startswith(_CONTINUED)


def is_interruption(content: object) -> bool:
    """The note that the user stopped the model."""
    return first_text(content).startswith(_INTERRUPTED)


def focus_of(content: object) -> str:
    """What the user wrote behind a command."""
    found = _FOCUS.search(first_text(content))
    return found["text"].strip() if found else ""


def user_items(content: object, *, meta: bool = False) -> tuple[Item, ...]:
    """The items of a user message: an output for each tool result, a message for the rest."""
    items: list[Item] = []
    said: list[Part] = []

    def say() -> None:
        if said:
            items.append(_message(Role.USER, said, meta or is_echo(content)))
            said.clear()

    for block in blocks_of(content):
        each = dict_of(block)
        call_id = text_of(each.get("tool_use_id"))
        if each.get("type") == "tool_result" and call_id:
            say()
            failed = each.get("is_error") is True
            items.append(FunctionCallOutput(call_id, result_text(block), is_error=failed))
        else:
            said.append(_part(block))
    say()
    return tuple(items)


def assistant_items(content: object) -> tuple[Item, ...]:
    """The items of an assistant record, one for each block."""
    return tuple(_assistant_item(block) for block in blocks_of(content))


def summary_item(content: object) -> CompactionSummary:
    """The summary record of a compaction; the words around the summary are its prefix."""
    whole = "\n".join(texts_of(content))
    head = _SUMMARY_HEAD.match(whole)
    prefix = head[0] if head else ""
    return CompactionSummary(whole[len(prefix) :], prefix)


def attachment_items(attachment: dict[str, Any], rendered: object = None) -> tuple[Item, ...]:
    """What an attachment adds to the context, which is a reminder in the user's name. `rendered` is
    what newer versions write beside it: the very blocks that the model is given."""
    parts = [_part(block) for block in attachment_blocks(attachment, rendered)]
    return (_message(Role.USER, parts, True),) if parts else ()


def attachment_blocks(attachment: dict[str, Any], rendered: object = None) -> list[Any]:
    """An attachment as the blocks of a message; none when it is for the program itself alone.
    Without `rendered` the words that Claude Code puts around it are not in the file."""
    if isinstance(rendered, list):
        return [block for each in rendered for block in blocks_of(dict_of(each).get("content"))]
    kind = text_of(attachment.get("type")) or "unknown"
    if kind in _UNSENT:
        return []
    name = text_of(attachment.get("filename")) or text_of(attachment.get("hookName"))
    head = f"{kind}: {name}" if name else kind
    picture = _picture(attachment.get("content"))
    if picture is not None:
        return [{"type": "text", "text": head}, picture]
    body = "\n".join(_readable(attachment))
    if kind.startswith("hook_") and not body:
        return []
    return [{"type": "text", "text": f"{head}\n{body or json_of(attachment)}"}]


def as_reminder(block: Any) -> Any:
    """A block of an attachment between the marks that Claude Code sends it in."""
    text = text_of(dict_of(block).get("text"))
    if not text or text.lstrip().startswith(_REMINDER):
        return block
    return {**block, "text": f"{_REMINDER}\n{text}\n</system-reminder>"}


def unknown_blocks(content: object) -> list[str]:
    """The types of blocks that have no form of their own here."""
    kinds = (text_of(dict_of(block).get("type")) or "(no type)" for block in blocks_of(content))
    return [kind for kind in kinds if kind not in _KNOWN_BLOCKS]


def result_text(block: Any) -> str:
    """The text of a tool result."""
    content = block.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return "" if content is None else json_of(content)
    return "\n".join(_result_part(part) for part in content)


def saved_name(text: str) -> str:
    """The name of the file that holds the whole of a persisted output; empty for all others."""
    found = _SAVED.match(text)
    return re.split(r"[/\\]", found["path"].strip())[-1] if found else ""


_REMINDER: Final = "<system-reminder>"
_UNSENT: Final = frozenset({"prompt_snapshot", "session_context"})
"""Attachments that the program writes for itself."""
_KNOWN_BLOCKS: Final = frozenset(
    {"text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"}
    | {"compaction"}
)


def _assistant_item(block: Any) -> Item:
    match block:
        case {"type": "text", "text": str(text)}:
            return Message(Role.ASSISTANT, text)
        case {"type": "thinking", "thinking": str(text)}:
            sealed = "" if text else text_of(block.get("signature"))
            return Reasoning(text, sealed)
        case {"type": "redacted_thinking", "data": str(data)}:
            return Reasoning(encrypted=data)
        case {"type": "tool_use", "id": str(id), "name": str(name)} if id:
            return FunctionCall(id, name, json_of(block.get("input")))
        case {"type": "compaction"}:
            text, sealed = text_of(block.get("content")), text_of(block.get("encrypted_content"))
            return CompactionSummary(text, encrypted=sealed, role=Role.ASSISTANT)
        case _:
            kind = text_of(dict_of(block).get("type")) or "unknown"
            return OtherItem(kind, json_of(block), text_of(dict_of(block).get("text")))


def _message(role: Role, parts: list[Part], synthetic: bool) -> Message:
    match parts:
        case [TextPart(text=text)]:
            return Message(role, text, synthetic)
        case _:
            return Message(role, tuple(parts), synthetic)


def _part(block: Any) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "image", "source": {"media_type": str(kind), "data": str(data)}}:
            return ImagePart(f"data:{kind};base64,{data}")
        case {"type": "image", "source": {"url": str(url)}}:
            return ImagePart(url)
        case _:
            return OpaquePart(text_of(dict_of(block).get("type")) or "unknown", json_of(block))


def _result_part(part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": str(kind)}:
            return f"[{kind}]"
        case _:
            return json_of(part)


def _picture(content: object) -> dict[str, Any] | None:
    """The image in an attached file, as a block."""
    match content:
        case {"type": "image", "file": {"base64": str(data), "type": str(kind)}}:
            source = {"type": "base64", "media_type": kind, "data": data}
            return {"type": "image", "source": source}
        case _:
            return None


def _readable(attachment: dict[str, Any]) -> list[str]:
    found: list[str] = []
    match attachment.get("content"):
        case str(text):
            found.append(text)
        case {"file": {"content": str(text)}}:
            found.append(text)
        case list() as parts:
            found.extend(texts_of(parts))
        case _:
            pass
    added = attachment.get("addedLines")
    if isinstance(added, list):
        found.extend(text_of(line) for line in added)
    else:
        found.append(text_of(added))
    return [text for text in found if text]
