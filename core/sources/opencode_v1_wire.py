"""The messages of OpenCode V1 as the body of a Chat Completions request has them.

Source: OpenCode 1.18.33 with a provider of the openai-compatible kind, as recorded requests show
it. What a model cannot take (pictures, for many) is sent as a sentence instead; which models can is
in the configuration, and not in a session. The same is true of `interleaved` models, which get an
empty `reasoning_content` with every answer.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from ..items import ImagePart, OpaquePart, Part, TextPart
from .base import WireItem
from .codex_items import dict_of, text_of
from .lines import parse
from .opencode_v1 import (
    INLINED,
    Model,
    Stored,
    arguments_of,
    attached,
    file_part,
    left_out,
    media_of,
    tool_text,
    user_parts,
)

_DATA: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.ASCII)
_PDF: Final = "application/pdf"
_AUDIO: Final = {"audio/wav": "wav", "audio/mp3": "mp3", "audio/mpeg": "mp3"}


def wire(
    messages: Iterable[Stored], model: Model = ("", ""), *, media: bool = True
) -> list[WireItem]:
    """The messages without the system text. `model` is the one they are sent to: what another one
    thought is sent as a plain text. Without `media` a file is named in words."""
    sent: list[WireItem] = []
    for message in messages:
        if message.is_user:
            if content := user_parts(message, None if media else _in_words):
                sent.append({"role": "user", "content": user_content(content)})
        elif not left_out(message):
            other = any(model) and any(message.model) and message.model != model
            for step in _steps(message):
                sent.extend(_step(step, as_text=other))
            if media and (files := media_of(message)):
                parts = (TextPart(message.media_label), *map(file_part, files))
                sent.append({"role": "user", "content": user_content(parts)})
    return sent


def doubt(sent: Iterable[WireItem]) -> str:
    """What a session cannot tell about these messages, in words."""
    kinds = {
        part.get("type")
        for message in sent
        if isinstance(message["content"], list)
        for part in message["content"]
    }
    if kinds <= {"text"}:
        return ""
    return (
        "whether the model takes pictures and files: to one that does not, OpenCode sends a "
        "sentence in their place"
    )


def user_content(content: str | tuple[Part, ...]) -> str | list[dict[str, Any]]:
    """What a user said: a text alone is a text, all else a list of parts."""
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for part in content:
        match part:
            case TextPart(text=text):
                parts.append({"type": "text", "text": text})
            case ImagePart(url=url):
                parts.append({"type": "image_url", "image_url": {"url": url}})
            case OpaquePart(json=json):
                parts.append(_file(dict_of(parse(json.encode("utf-8", "replace"))[0])))
    return parts


def _in_words(part: dict[str, Any]) -> dict[str, Any]:
    if part.get("type") != "file" or part.get("mime") in INLINED:
        return part
    return {"type": "text", "text": attached(part)}


def _file(file: dict[str, Any]) -> dict[str, Any]:
    mime, url = text_of(file.get("mediaType")), text_of(file.get("url"))
    if mime in _AUDIO:
        data = _DATA.sub("", url, count=1)
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO[mime]}}
    if mime.startswith("text/") and (text := _decoded(url)) is not None:
        return {"type": "text", "text": text}
    name = text_of(file.get("filename")) or ("document.pdf" if mime == _PDF else "")
    return {"type": "file", "file": {"filename": name, "file_data": url}}


def _decoded(url: str) -> str | None:
    """The text in a data: address; None for another address."""
    head = _DATA.match(url)
    if head is None:
        return None
    data = unquote_to_bytes(url[head.end() :])
    if "base64" in head[2]:
        try:
            data = base64.b64decode(data, validate=False)
        except binascii.Error:
            return None
    return data.decode("utf-8", "replace")


def _steps(message: Stored) -> Iterator[list[dict[str, Any]]]:
    """The parts of each step: older versions kept several steps in one message."""
    step: list[dict[str, Any]] = []
    for _, part in message.ordered:
        if part.get("type") == "step-start":
            yield step
            step = []
        else:
            step.append(part)
    yield step


def _step(parts: Sequence[dict[str, Any]], *, as_text: bool) -> Iterator[WireItem]:
    spoken = ("text", "reasoning") if as_text else ("text",)
    text = "".join(
        text_of(part.get("text"))
        for part in parts
        if part.get("type") in spoken
        and (part["type"] == "text" or text_of(part.get("text")).strip())
    )
    thought = (
        ""
        if as_text
        else "".join(text_of(part.get("text")) for part in parts if part.get("type") == "reasoning")
    )
    tools = [part for part in parts if part.get("type") == "tool"]
    # A text that was broken off before its first word is sent too, and is empty.
    if not (thought or tools or any(part.get("type") in spoken for part in parts)):
        return
    said: WireItem = {"role": "assistant", "content": text}
    if thought:
        said["reasoning_content"] = thought
    if tools:
        said["tool_calls"] = [
            {
                "id": text_of(part.get("callID")),
                "type": "function",
                "function": {"name": text_of(part.get("tool")), "arguments": arguments_of(part)},
            }
            for part in tools
        ]
    yield said
    for part in tools:
        text, _ = tool_text(part)
        yield {"role": "tool", "tool_call_id": text_of(part.get("callID")), "content": text}
