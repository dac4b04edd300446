"""The Python design's texts: what is counted of a message, what a summariser is given to read, and
what stands for a collapsed tool call group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from .messages import Call, ChatMessage, Content, Hosted, Media, Result, Text, Thought

COLLAPSED_PREFIX = "[Tool results: "
COLLAPSED_MOST = 4096
_CUT = "... [truncated]"
_END = "]"

_text = json.JSONEncoder(ensure_ascii=False).encode
_value = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str).encode
_as_written = json.JSONEncoder(ensure_ascii=False, default=str).encode


class Tokenizer(Protocol):
    """Counts the tokens of a text."""

    def count(self, text: str) -> int:
        """Tokens of a text: a message's JSON, a prompt, or a transcript."""
        ...


class CharacterEstimator:
    """The framework's own estimate: a quarter of the characters, at least 1."""

    def count(self, text: str) -> int:
        """max(1, characters // 4)."""
        return max(1, len(text) // 4)


def message_json(message: ChatMessage) -> str:
    """The text that a message is counted by: JSON with sorted keys, non-ASCII as it is. The id of
    the message and all JSON around the contents are in it; sealed reasoning is not."""
    contents = ", ".join([_content_json(content) for content in message.contents])
    id = "null" if message.id is None else _text(message.id)
    return f'{{"contents": [{contents}], "message_id": {id}, "role": {_text(message.role)}}}'


def _content_json(content: Content) -> str:
    match content:
        case Text(text=text):
            inside = f'"text": {_text(text)}, "type": "text"'
        case Call(id=id, name=name, arguments=arguments):
            inside = (
                f'"arguments": {_value(arguments)}, "call_id": {_text(id)}, "hosted": false, '
                f'"name": {_text(name)}, "type": "function_call"'
            )
        case Result(call_id=id, text=text):
            inside = f'"call_id": {_text(id)}, "result": {_text(text)}, "type": "function_result"'
        case Thought(text=text):
            readable = "" if text is None else f'"text": {_text(text)}, '
            inside = f'{readable}"type": "text_reasoning"'
        case Media(uri=uri, media_type=media_type):
            typed = f'"media_type": {_text(media_type)}, ' if media_type else ""
            inside = f'{typed}"type": "{_type(content)}", "uri": {_text(uri)}'
        case _:
            readable = f'"text": {_text(content.text)}, ' if content.text else ""
            inside = f'{readable}"type": {_text(_type(content))}'
    return f'{{"additional_properties": {{}}, {inside}}}'


def transcript(messages: Iterable[ChatMessage], first: int = 1) -> str:
    """The conversation as a summariser reads it: one numbered paragraph a message."""
    return "\n".join(
        f"{number}. [{message.role}] {_told(message)}"
        for number, message in enumerate(messages, first)
    )


def _told(message: ChatMessage) -> str:
    parts: list[str] = []
    texts: list[str] = []
    for content in message.contents:
        match content:
            case Call() | Result():
                if texts:
                    parts.append(" ".join(texts))
                    texts = []
                parts.append(_call(content) if isinstance(content, Call) else _result(content))
            case Text(text=text) if text:
                texts.append(text)
            case _:
                pass
    if texts:
        parts.append(" ".join(texts))
    return "; ".join(parts) or ", ".join(_type(content) for content in message.contents)


def _call(call: Call) -> str:
    arguments = call.arguments if isinstance(call.arguments, str) else _as_written(call.arguments)
    return f"function_call {call.name}({arguments}){_id(call.id)}"


def _result(result: Result) -> str:
    # An empty text is told like a content that is no text: by its kind.
    return f"function_result: {result.text or 'text content'}{_id(result.call_id)}"


def _id(call_id: str) -> str:
    return f" [call_id={call_id}]" if call_id else ""


def _type(content: Content) -> str:
    match content:
        case Text():
            return "text"
        case Thought():
            return "text_reasoning"
        case Call():
            return "function_call"
        case Result():
            return "function_result"
        case Media(uri=uri):
            return "data" if uri.startswith("data:") else "uri"
        case Hosted(kind=kind):
            return kind


def collapsed(messages: Sequence[ChatMessage]) -> str:
    """The text that stands for a tool call group: `[Tool results: tool: result; ...]`, the tool's
    name left out where the call is unknown, at most 4,096 characters."""
    names = {call.id: call.name for m in messages for call in m.calls if call.id and call.name}
    results = [
        _labelled(names.get(content.call_id, ""), content.text)
        for message in messages
        for content in message.contents
        if isinstance(content, Result)
    ]
    label = "; ".join(results) if results else "no results"
    whole = f"{COLLAPSED_PREFIX}{label}{_END}"
    if len(whole) <= COLLAPSED_MOST:
        return whole
    room = COLLAPSED_MOST - len(COLLAPSED_PREFIX) - len(_CUT) - len(_END)
    return f"{COLLAPSED_PREFIX}{label[:room].rstrip()}{_CUT}{_END}"


def _labelled(name: str, result: str) -> str:
    return (f"{name}: {result}" if name else result).strip()


def result_text(value: Any) -> str:
    """A result as the framework stores it: a text as it is, anything else as ASCII JSON."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
