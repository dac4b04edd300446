"""The rows of OpenCode V2 as the body of a Chat Completions request has them.

Source: OpenCode 1.18.33, as its recorded requests show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ..compaction.policies.opencode.estimate import compact_json
from .base import WireItem
from .codex_items import dict_of, text_of
from .opencode_v1 import Model
from .opencode_v1_wire import user_content
from .opencode_v2 import Row, arguments_of, checkpoint, files_of, shell_text, tool_text, user_parts

_ESCAPED: Final = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))


def wire(rows: Iterable[Row], model: Model = ("", "")) -> list[WireItem]:
    """The rows without the system text. `model` is the one they are sent to: what another one
    thought is sent as a plain text.

    Pictures in the results of calls follow the results in a message of their own. What changed in
    the system text is said at the end of the message before it, if that is a user's.
    """
    sent: list[WireItem] = []
    media: list[dict[str, Any]] = []
    for row in rows:
        if row.type == "system":
            _update(sent, media, row.text)
            continue
        for message in _messages(row, model):
            if media and message["role"] != "tool":
                sent.append({"role": "user", "content": [*media]})
                media = []
            sent.append(message)
        if row.type == "assistant":
            media += [file for part in row.content for file in files_of(part)]
    return [*sent, {"role": "user", "content": media}] if media else sent


def _update(sent: list[WireItem], media: list[dict[str, Any]], text: str) -> None:
    for plain, escaped in _ESCAPED:
        text = text.replace(plain, escaped)
    text = f"<system-update>\n{text}\n</system-update>"
    part = {"type": "text", "text": text}
    last = sent[-1] if sent else {}
    content = last.get("content")
    if media:
        sent.append({"role": "user", "content": [*media, part]})
        media.clear()
    elif last.get("role") == "user" and isinstance(content, str):
        sent[-1] = {"role": "user", "content": f"{content}\n{text}"}
    elif last.get("role") == "user" and isinstance(content, list):
        sent[-1] = {"role": "user", "content": [*content, part]}
    else:
        sent.append({"role": "user", "content": text})


def _messages(row: Row, model: Model) -> Iterator[WireItem]:
    match row.type:
        case "assistant":
            yield from _said(row, as_text=any(model) and any(row.model) and row.model != model)
        case "compaction":
            told = checkpoint(row)
            yield {"role": "user", "content": told.prefix + told.rest}
        case "user":
            yield {"role": "user", "content": user_content(user_parts(row))}
        case "synthetic":
            yield {"role": "user", "content": row.text}
        case "shell":
            yield {"role": "user", "content": shell_text(row)}
        case _:
            pass


def _said(row: Row, *, as_text: bool) -> Iterator[WireItem]:
    parts = row.content
    spoken = ("text", "reasoning") if as_text else ("text",)
    texts = [text_of(part.get("text")) for part in parts if part.get("type") in spoken]
    thoughts = [text_of(part.get("text")) for part in parts if part.get("type") == "reasoning"]
    thought = "" if as_text else "".join(thoughts)
    tools = [part for part in parts if part.get("type") == "tool"]
    texts = [text for text in texts if text]
    if texts or thought or tools:
        said: WireItem = {"role": "assistant", "content": "\n".join(texts) if texts else None}
        if tools:
            said["tool_calls"] = [
                {
                    "id": text_of(part.get("id")),
                    "type": "function",
                    "function": {
                        "name": text_of(part.get("name")),
                        "arguments": arguments_of(part),
                    },
                }
                for part in tools
            ]
        if thought:
            said["reasoning_content"] = thought
        yield said
    for part in tools:
        state = dict_of(part.get("state"))
        if state.get("status") in ("completed", "error"):
            text = tool_text(part)[0]
            if state.get("status") == "error":
                text = error_json(state)
            yield {"role": "tool", "tool_call_id": text_of(part.get("id")), "content": text}


def error_json(state: dict[str, Any]) -> str:
    """What the model sees of a call that failed."""
    told = {"error": state.get("error")}
    told["content"] = state.get("content", [])
    told["structured"] = state.get("structured", {})
    return compact_json(told)
