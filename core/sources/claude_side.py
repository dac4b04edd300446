"""The requests of subagents that a session's own file holds (versions 1.0).

Their records stand between those of the session, each conversation with a beginning of its own.
They are no part of the session's context; here they are only followed to tell what they were sent.
"""

from __future__ import annotations

from sys import intern
from typing import Any

from .. import events as e
from .base import RebuiltRequest
from .claude_chain import Node, Role, Tree
from .claude_items import SYNTHETIC, assistant_items, blocks_of, has_results, user_items
from .claude_messages import MISSING, messages_of
from .codex_items import dict_of, text_of


class Sides:
    """The conversations of such subagents."""

    def __init__(self) -> None:
        self._tree = Tree()
        self._answered: set[str] = set()

    def record(self, n: int, kind: str, value: dict[str, Any]) -> RebuiltRequest | None:
        """A record of a subagent: the request that it answers, if it is the first to."""
        uuid, parent = text_of(value.get("uuid")), text_of(value.get("parentUuid"))
        message = dict_of(value.get("message"))
        content = message.get("content")
        if not uuid or uuid in self._tree.nodes or value.get("isApiErrorMessage") is True:
            return None
        if kind == "user":
            role = Role.RESULT if has_results(content) else Role.USER
            self._tree.add(Node(uuid, n, role, user_items(content), raw=content), parent)
            return None
        if kind != "assistant":
            self._tree.add(Node(uuid, n, Role.OTHER), parent)
            return None
        family = intern(text_of(message.get("id")) or text_of(value.get("requestId")) or uuid)
        asked = None
        if family not in self._answered and text_of(message.get("model")) != SYNTHETIC:
            self._answered.add(family)
            seen = self._tree.view(self._tree.nodes.get(parent))
            asked = RebuiltRequest(
                position=n - 1, kind=e.Purpose.SUBAGENT, input=messages_of(seen), missing=MISSING
            )
        items, raw = assistant_items(content), blocks_of(content)
        self._tree.add(Node(uuid, n, Role.ASSISTANT, items, family, raw), parent)
        return asked
