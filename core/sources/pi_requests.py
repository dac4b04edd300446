"""What pi sends, made again from its messages: chat messages, and the text that is summarised.

The chat form is that of pi's `openai-completions` interface without any of its special cases for
single providers, which are settings and not in a session file. Failed answers are left out, a call
without a result gets one, and the thinking of another model becomes plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from .base import WireItem
from .codex_items import dict_of, text_of
from .pi_items import blocks_of, data_url, is_failed, user_form
from .pi_tree import PiEntry, PiTree, WireMessage

CHAT: Final = "openai-completions"
NO_RESULT: Final = "No result provided"
RESULT_LIMIT: Final = 2000
"""Characters of a tool's result that the summariser is shown."""
_CALL_ID: Final = 40


class Asked(NamedTuple):
    """A model as pi asks it: its interface, provider and name."""

    api: str
    provider: str
    model: str

    @classmethod
    def of(cls, message: WireMessage) -> Asked:
        """The model that gave this answer."""
        names = (text_of(message.get(key)) for key in ("api", "provider", "model"))
        return cls(*names)


def chat_messages(messages: Iterable[WireMessage], asked: Asked) -> list[WireItem]:
    """The messages of a request without its system text."""
    prepared = list(_prepared(messages, asked))
    sent: list[WireItem] = []
    pictures: list[WireItem] = []
    for at, message in enumerate(prepared):
        match message.get("role"):
            case "user":
                content = message.get("content")
                if isinstance(content, str):
                    sent.append({"role": "user", "content": content})
                elif parts := [_part(block) for block in blocks_of(content)]:
                    sent.append({"role": "user", "content": parts})
            case "assistant":
                if (answer := _answer(message)) is not None:
                    sent.append(answer)
            case "toolResult":
                sent.append(_result(message))
                blocks = blocks_of(message.get("content"))
                pictures += [_part(block) for block in blocks if block.get("type") == "image"]
                following = prepared[at + 1].get("role") if at + 1 < len(prepared) else None
                if pictures and following != "toolResult":
                    note = {"type": "text", "text": "Attached image(s) from tool result:"}
                    sent.append({"role": "user", "content": [note, *pictures]})
                    pictures = []
            case _:
                pass
    return sent


def summary_requests(tree: PiTree, entry: PiEntry) -> list[list[WireItem]]:
    """What was sent for this compaction: the history, and the beginning of the turn that was cut
    in two, if one was. The instructions that follow the text are not in the file."""
    path = tree.path(entry)
    at = len(path) - 1
    before = next((n for n in range(at - 1, -1, -1) if path[n].is_compaction), None)
    start, previous = 0, ""
    if before is not None:
        kept = tree.first_kept(path, before)
        start = kept if kept < before else before + 1
        previous = text_of(path[before].value.get("summary"))
    first = tree.first_kept(path, at)
    end, prefix = first, list[PiEntry]()
    if path[first].role != "user":
        turn = next((n for n in range(first, start - 1, -1) if _begins_turn(path[n])), None)
        if turn is not None:
            end, prefix = turn, path[turn:first]
    history, prefix = _told(path[start:end]), _told(prefix)
    found: list[list[WireItem]] = []
    if history or not prefix:
        found.append(_summary_request(history, previous))
    if prefix:
        found.append(_summary_request(prefix))
    return found


def branch_request(entries: Iterable[PiEntry]) -> list[WireItem]:
    """What was sent to summarise a branch that was left: its messages without tools' results."""
    return _summary_request([each for each in entries if each.role not in ("", "toolResult")])


def conversation(messages: Iterable[WireMessage]) -> str:
    """Messages as the text that the summariser is shown."""
    told: list[str] = []
    for message in messages:
        blocks = blocks_of(message.get("content"))
        match message.get("role"):
            case "user":
                if text := "".join(_texts(blocks)):
                    told.append(f"[User]: {text}")
            case "assistant":
                told += _answer_text(blocks)
            case "toolResult":
                if text := "".join(_texts(blocks)):
                    told.append(f"[Tool result]: {_shortened(text)}")
            case _:
                pass
    return "\n\n".join(told)


# -- one message ---------------------------------------------------------------------------------


def _prepared(messages: Iterable[WireMessage], asked: Asked) -> Iterable[WireMessage]:
    """Without failed answers, with a result for every call, thinking in a form that is taken."""
    open_calls: dict[str, WireMessage] = {}
    names: dict[str, str] = {}
    for own in messages:
        message = user_form(own)
        if message is None:
            continue
        role = message.get("role")
        if role == "toolResult":
            id = text_of(message.get("toolCallId"))
            id = names.get(id, id)
            open_calls.pop(id, None)
            yield {**message, "toolCallId": id}
            continue
        yield from open_calls.values()
        open_calls = {}
        if is_failed(message):
            continue
        if role == "assistant":
            message = {**message, "content": list(_as_taken(message, asked, names))}
            for block in blocks_of(message["content"]):
                if block.get("type") == "toolCall":
                    id = text_of(block.get("id"))
                    open_calls[id] = {"role": "toolResult", "toolCallId": id, "content": NO_RESULT}
        yield message
    yield from open_calls.values()


def _as_taken(
    message: WireMessage, asked: Asked, names: dict[str, str]
) -> Iterable[dict[str, Any]]:
    same = Asked.of(message) == asked
    for block in blocks_of(message.get("content")):
        match block.get("type"):
            case "thinking" if not same:
                text = text_of(block.get("thinking"))
                if text.strip() and not block.get("redacted"):
                    yield {"type": "text", "text": text}
            case "toolCall" if not same:
                id = text_of(block.get("id"))
                names[id] = _call_id(id, asked)
                yield {**block, "id": names[id], "thoughtSignature": None}
            case _:
                yield block


def _call_id(id: str, asked: Asked) -> str:
    """The id of another model's call, as this interface takes it."""
    if "|" in id:
        return re.sub(r"[^a-zA-Z0-9_-]", "_", id.partition("|")[0])[:_CALL_ID]
    return id[:_CALL_ID] if asked.provider == "openai" else id


def _answer(message: WireMessage) -> WireItem | None:
    blocks = blocks_of(message.get("content"))
    text = "".join(each for each in _texts(blocks) if each.strip())
    answer: WireItem = {"role": "assistant", "content": text or None}
    thoughts = [
        block
        for block in blocks
        if block.get("type") == "thinking" and text_of(block.get("thinking")).strip()
    ]
    if thoughts and (field := text_of(thoughts[0].get("thinkingSignature"))):
        answer[field] = "\n".join(text_of(block.get("thinking")) for block in thoughts)
    calls = [block for block in blocks if block.get("type") == "toolCall"]
    if calls:
        answer["tool_calls"] = [_call(block) for block in calls]
        if details := [each for each in map(_details, calls) if each]:
            answer["reasoning_details"] = details
    return answer if text or calls else None


def _call(block: dict[str, Any]) -> WireItem:
    arguments = json_text(dict_of(block.get("arguments")))
    function = {"name": text_of(block.get("name")), "arguments": arguments}
    return {"id": text_of(block.get("id")), "type": "function", "function": function}


def _details(block: dict[str, Any]) -> Any:
    try:
        return json.loads(text_of(block.get("thoughtSignature")))
    except (ValueError, RecursionError):
        return None


def _result(message: WireMessage) -> WireItem:
    text = "\n".join(_texts(blocks_of(message.get("content"))))
    told = text or "(see attached image)"
    return {"role": "tool", "content": told, "tool_call_id": text_of(message.get("toolCallId"))}


def _part(block: dict[str, Any]) -> WireItem:
    if block.get("type") == "text":
        return {"type": "text", "text": text_of(block.get("text"))}
    return {"type": "image_url", "image_url": {"url": data_url(block)}}


def _texts(blocks: Iterable[dict[str, Any]]) -> list[str]:
    return [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]


def json_text(value: Any) -> str:
    """JSON as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# -- summaries -----------------------------------------------------------------------------------


def _told(entries: Sequence[PiEntry]) -> list[PiEntry]:
    return [each for each in entries if each.message is not None and not each.is_compaction]


def _begins_turn(entry: PiEntry) -> bool:
    if entry.kind in ("branch_summary", "custom_message"):
        return True
    return entry.kind == "message" and entry.role in ("user", "bashExecution")


def _summary_request(entries: Iterable[PiEntry], previous: str = "") -> list[WireItem]:
    sent = [form for each in entries if (form := user_form(each.message or {})) is not None]
    text = f"<conversation>\n{conversation(sent)}\n</conversation>\n\n"
    if previous:
        text += f"<previous-summary>\n{previous}\n</previous-summary>\n\n"
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def _answer_text(blocks: list[dict[str, Any]]) -> list[str]:
    thoughts = [text_of(b.get("thinking")) for b in blocks if b.get("type") == "thinking"]
    calls = [_call_text(block) for block in blocks if block.get("type") == "toolCall"]
    told = []
    if thoughts:
        told.append("[Assistant thinking]: " + "\n".join(thoughts))
    if texts := _texts(blocks):
        told.append("[Assistant]: " + "\n".join(texts))
    if calls:
        told.append("[Assistant tool calls]: " + "; ".join(calls))
    return told


def _call_text(block: dict[str, Any]) -> str:
    arguments = dict_of(block.get("arguments"))
    given = ", ".join(f"{name}={json_text(value)}" for name, value in arguments.items())
    return f"{text_of(block.get('name'))}({given})"


def _shortened(text: str) -> str:
    """JavaScript counts UTF-16 units, which differ from characters outside the basic plane."""
    units = text.encode("utf-16-le", "surrogatepass")
    over = len(units) // 2 - RESULT_LIMIT
    if over <= 0:
        return text
    start = units[: RESULT_LIMIT * 2].decode("utf-16-le", "replace")
    return f"{start}\n\n[... {over} more characters truncated]"
