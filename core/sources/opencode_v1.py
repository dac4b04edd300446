"""OpenCode V1: messages and parts, and the view of them that a request carries.

Source: the rules of OpenCode 1.18.33 as its recorded sessions show them (V1 serves the terminal and
`opencode run`). A message is a user's or one step of the model's; its parts are text, reasoning,
tool calls with their state, files, and marks. Nothing is ever taken out of the store by a
compaction: what is sent is a view, cut and re-ordered by the marks of the compactions.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ..compaction.policies.opencode.estimate import compact_json
from ..items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OpaquePart,
    Part,
    Reasoning,
    Role,
    TextPart,
)
from .codex_items import dict_of, int_of, text_of
from .opencode_changes import created

RECAP: Final = "What did we do so far?"
"""What a compaction part is sent as."""
CLEARED: Final = "[Old tool result content cleared]"
"""What a pruned output is sent as."""
INTERRUPTED: Final = "[Tool execution was interrupted]"
"""What stands for the result of a call that never ended."""
MEDIA: Final = "Attached media from tool result:"
"""What stands before the pictures and PDFs of results."""
OLD_MEDIA: Final = "Attached image(s) from tool result:"
OWN_MEDIA: Final = (1, 15)
"""The release from which on that was MEDIA."""
SUBTASK: Final = "The following tool was executed by the user"
ABORTED: Final = "MessageAbortedError"

SILENT_PARTS: Final = frozenset(
    {"step-start", "step-finish", "patch", "snapshot", "agent", "retry"}
)
KNOWN_PARTS: Final = SILENT_PARTS | {"text", "reasoning", "tool", "file", "subtask", "compaction"}
INLINED: Final = frozenset({"text/plain", "application/x-directory"})
"""Files whose text is in a text part beside them."""


def release(version: str) -> tuple[int, ...]:
    """A version such as "1.2.27" as numbers; empty when it is none."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(each) for each in found[0].split(".")[:4]) if found else ()


Model = tuple[str, str]
"""A provider and a model; of each an empty text where it is not stored."""


class Stored:
    """A message. `n` is the number of the last change of its own that a request can show."""

    def __init__(self, id: str, info: dict[str, Any], n: int) -> None:
        self.id = id
        self.info = info
        self.n = n
        self.parts: dict[str, dict[str, Any]] = {}
        self.closed = False
        """A later message has begun: what is not complete by now is sent as it is."""
        self.copied = False
        """It was taken over from the session that this one was forked from."""
        self.media_label = MEDIA
        self._order: list[str] = []

    def put(self, id: str, part: dict[str, Any]) -> None:
        """Add or exchange a part."""
        if id not in self.parts:
            bisect.insort(self._order, id)
        self.parts[id] = part

    def drop(self, id: str) -> None:
        """Take a part out."""
        if self.parts.pop(id, None) is not None:
            self._order.remove(id)

    @property
    def ordered(self) -> list[tuple[str, dict[str, Any]]]:
        """The parts by id, which is the order of the model's."""
        return [(id, self.parts[id]) for id in self._order]

    @property
    def key(self) -> tuple[int, str]:
        """The order of messages."""
        return created(self.info), self.id

    @property
    def is_user(self) -> bool:
        """A user's message, or one in the user's name."""
        return self.info.get("role") == "user"

    @property
    def is_summary(self) -> bool:
        """The answer of a summary request."""
        return not self.is_user and self.info.get("summary") is True

    @property
    def parent(self) -> str:
        """The user message that this one answers."""
        return text_of(self.info.get("parentID"))

    @property
    def model(self) -> Model:
        """The provider and the model: of an answer, or those that a user's message asks for."""
        info = self.info if not self.is_user else dict_of(self.info.get("model"))
        return text_of(info.get("providerID")), text_of(info.get("modelID"))

    @property
    def error(self) -> dict[str, Any]:
        """The error that the message ended with; empty when there is none."""
        return dict_of(self.info.get("error"))

    @property
    def finished(self) -> bool:
        """An answer that came to its end without an error."""
        return bool(self.info.get("finish")) and not self.error

    @property
    def over(self) -> bool:
        """Nothing more comes of it."""
        ended = dict_of(self.info.get("time")).get("completed")
        return bool(ended or self.info.get("finish") or self.error)

    @property
    def compaction(self) -> dict[str, Any] | None:
        """The first compaction part."""
        return next((part for _, part in self.ordered if part.get("type") == "compaction"), None)

    @property
    def typed(self) -> str:
        """What a person wrote in it."""
        return "\n".join(
            text_of(part.get("text")) for part in self.parts.values() if _is_typed(part)
        ).strip()

    @property
    def written(self) -> str:
        """The text of its text parts together."""
        return "".join(
            text_of(part.get("text")) for _, part in self.ordered if part.get("type") == "text"
        )


def visible(messages: Sequence[Stored]) -> list[Stored]:
    """The messages that a request carries, in its order, out of all in the order of the store.

    Going back from the newest, collecting ends at the marker of a finished compaction, or at the
    message where the tail begins that this compaction kept. Then the newest marker that kept a
    tail is put before it, with its summary: question, summary, tail, everything later.
    """
    collected: list[Stored] = []
    answered: set[str] = set()
    until = ""
    for message in reversed(messages):
        collected.append(message)
        if until:
            if message.id == until:
                break
            continue
        if message.is_user and message.id in answered and (part := message.compaction) is not None:
            until = text_of(part.get("tail_start_id"))
            if not until or until == message.id:
                break
        elif message.is_summary and message.finished:
            answered.add(message.parent)
    collected.reverse()
    return _tail_behind(collected)


def _tail_behind(collected: list[Stored]) -> list[Stored]:
    for at in range(len(collected) - 1, -1, -1):
        marker = collected[at]
        part = marker.compaction if marker.is_user else None
        start = text_of(part.get("tail_start_id")) if part is not None else ""
        if not start:
            continue
        summary = next(
            (
                later
                for later in range(at + 1, len(collected))
                if collected[later].is_summary and collected[later].parent == marker.id
            ),
            None,
        )
        first = next((n for n in range(at) if collected[n].id == start), None)
        if summary is None or first is None:
            return collected
        rest = collected[summary + 1 :]
        return [*collected[at : summary + 1], *collected[first:at], *rest]
    return collected


# -- items ---------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """An item, the name under which it is found again, and the change that made it what it is."""

    key: str
    item: Item
    n: int


def pieces_of(message: Stored) -> Iterator[Piece]:
    """The items of one message that are complete, as a request shows them."""
    if message.is_user:
        content = user_parts(message)
        if content:
            marker = message.compaction is not None
            item = Message(Role.USER, content, synthetic=marker or not message.typed)
            yield Piece(message.id, item, message.n)
        return
    if left_out(message):
        return
    if message.is_summary and message.finished:
        summary = CompactionSummary(message.written, role=Role.ASSISTANT)
        yield Piece(message.id, summary, message.n)
        return
    outputs: list[Piece] = []
    for id, part in message.ordered:
        match part.get("type"):
            case "text" if _is_whole(message, part) and text_of(part.get("text")):
                yield Piece(id, Message(Role.ASSISTANT, text_of(part["text"])), _n(message, part))
            case "reasoning" if _is_whole(message, part) and text_of(part.get("text")):
                yield Piece(id, Reasoning(summary=text_of(part["text"])), _n(message, part))
            case "tool" if _has_input(message, part):
                call, name = text_of(part.get("callID")), text_of(part.get("tool"))
                yield Piece(id, FunctionCall(call, name, arguments_of(part)), _n(message, part))
                text, failed = tool_text(part)
                if _is_answered(message, part):
                    saved = text_of(_metadata(part).get("outputPath"))
                    output = FunctionCallOutput(call, text, name, is_error=failed, saved=saved)
                    outputs.append(Piece(f"{id}/output", output, _n(message, part)))
            case _:
                pass
    yield from outputs
    if (media := media_of(message)) and all(
        _is_answered(message, part) for part in message.parts.values() if part.get("type") == "tool"
    ):
        n = max(_n(message, part) for part in message.parts.values())
        content = (TextPart(message.media_label), *map(file_part, media))
        yield Piece(media_key(message), Message(Role.USER, content, synthetic=True), n)


def media_of(message: Stored) -> list[dict[str, Any]]:
    """The pictures and PDFs in the results of its calls, which are sent behind the results in a
    message of their own, since a result of Chat Completions is a text."""
    return [
        file
        for _, part in message.ordered
        if part.get("type") == "tool" and not is_pruned(part)
        for file in attachments_of(part)
        if text_of(file.get("mime")).startswith("image/") or file.get("mime") == "application/pdf"
    ]


def media_key(message: Stored) -> str:
    """The key of the item with these."""
    return f"{message.id}/media"


def attachments_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """The files that came with the result of a call."""
    files = _state(part).get("attachments")
    found = files if _state(part).get("status") == "completed" else None
    return [file for file in found if isinstance(file, dict)] if isinstance(found, list) else []


def left_out(message: Stored) -> bool:
    """An answer with an error is not sent again, unless it was broken off and had said a thing."""
    if message.is_user or not message.error:
        return False
    broken_off = message.error.get("name") == ABORTED
    said = any(
        part.get("type") not in ("step-start", "reasoning") for part in message.parts.values()
    )
    return not (broken_off and said)


def arguments_of(part: dict[str, Any]) -> str:
    """The arguments of a call, as JSON text."""
    return compact_json(_state(part).get("input", {}))


def tool_text(part: dict[str, Any]) -> tuple[str, bool]:
    """What the model sees as the result of a call, and whether it is a failure."""
    state = _state(part)
    match state.get("status"):
        case "completed":
            return (CLEARED if is_pruned(part) else text_of(state.get("output"))), False
        case "error":
            metadata = dict_of(state.get("metadata"))
            if metadata.get("interrupted") and metadata.get("output"):
                return text_of(metadata.get("output")), False
            return text_of(state.get("error")), True
        case _:
            return INTERRUPTED, True


def is_pruned(part: dict[str, Any]) -> bool:
    """The output of this call was pruned: it is stored, and no longer sent."""
    return bool(dict_of(_state(part).get("time")).get("compacted"))


def user_parts(
    message: Stored, form: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> str | tuple[Part, ...]:
    """What a message in the user's name holds, as a request shows it. `form` changes its parts."""
    parts: list[Part] = []
    for _, stored in message.ordered:
        part = form(stored) if form else stored
        match part.get("type"):
            case "text" if text_of(part.get("text")) and part.get("ignored") is not True:
                parts.append(TextPart(text_of(part["text"])))
            case "file" if part.get("mime") not in INLINED:
                parts.append(file_part(part))
            case "compaction":
                parts.append(TextPart(RECAP))
            case "subtask":
                parts.append(TextPart(SUBTASK))
            case _:
                pass
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return tuple(parts)


def attached(file: dict[str, Any]) -> str:
    """A file in words."""
    return f"[Attached {text_of(file.get('mime'))}: {text_of(file.get('filename')) or 'file'}]"


def file_part(part: dict[str, Any]) -> Part:
    """A file as a part of an item."""
    url, mime = text_of(part.get("url")), text_of(part.get("mime"))
    if mime.startswith("image/"):
        return ImagePart(url)
    file = {"filename": text_of(part.get("filename")), "mediaType": mime, "url": url}
    return OpaquePart("file", compact_json(file))


def _state(part: dict[str, Any]) -> dict[str, Any]:
    return dict_of(part.get("state"))


def _metadata(part: dict[str, Any]) -> dict[str, Any]:
    return dict_of(_state(part).get("metadata"))


def _is_typed(part: dict[str, Any]) -> bool:
    return (
        part.get("type") == "text"
        and part.get("synthetic") is not True
        and part.get("ignored") is not True
    )


def _is_whole(message: Stored, part: dict[str, Any]) -> bool:
    return bool(dict_of(part.get("time")).get("end")) or message.over or message.closed


def _has_input(message: Stored, part: dict[str, Any]) -> bool:
    return _state(part).get("status") != "pending" or message.over or message.closed


def _is_answered(message: Stored, part: dict[str, Any]) -> bool:
    # What the user ran is told as over before its result is stored.
    return _state(part).get("status") in ("completed", "error") or message.closed


def _n(message: Stored, part: dict[str, Any]) -> int:
    return int_of(part.get(N)) or message.n


N: Final = " n"
"""Under this key a part holds the number of its last change; no JSON of OpenCode has such a key."""
