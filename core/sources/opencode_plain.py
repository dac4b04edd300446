"""What of OpenCode's requests a session cannot hold, because it depends on the configuration.

Of a model it says whether it takes pictures and files (to one that does not, a sentence is sent in
their place), and whether it is `interleaved` (then every answer has a `reasoning_content`, empty
where nothing was thought). Source: recorded requests of OpenCode 1.18.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from .base import WireItem
from .codex_items import text_of

_REFUSED: Final = re.compile(
    r"ERROR: Cannot read .* \(this model does not support \w+ input\)\. Inform the user\.",
    re.DOTALL,
)
_MEDIA: Final = frozenset({"image_url", "input_audio", "file"})


def plain(messages: Iterable[WireItem]) -> list[WireItem]:
    """The messages with one word for every file, and without what is empty."""
    found: list[WireItem] = []
    for message in messages:
        kept = {k: v for k, v in message.items() if k != "reasoning_content" or v}
        content = kept.get("content")
        if isinstance(content, list):
            kept["content"] = [_plain_part(part) for part in content]
        found.append(kept)
    return found


def _plain_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    refused = part.get("type") == "text" and _REFUSED.fullmatch(text_of(part.get("text")))
    return {"type": "file"} if refused or part.get("type") in _MEDIA else part
