"""Codex, remote (V2): the provider compacts, and gives back one sealed item.

Source: OpenAI's Codex CLI 0.171.0, from its recorded sessions and source
(`core/src/compact_remote_v2.rs`). Codex takes this way with OpenAI's and Azure's own endpoints.

When: as with the local way (policy codex). How: the whole history goes out with the normal tools
and one more item that asks for a compaction. If base instructions and history are larger than the
usable window, outputs of tools are blanked first, from the end backwards, up to the first item that
is no output. The answer must hold exactly one sealed item; without one, or with several, the
compaction has failed and the turn with it. What is in the item nobody can read here.

The new history is, in this order:

1. of what was sent: what the user said, prompts of hooks, and messages of other agents that are not
   too large; of these the newest up to 64,000 tokens, where a message costs at least 1 and the
   first that does not fit is cut (its texts; pictures stay)
2. the sealed item

The fresh initial context stands before the user's last message. Earlier sealed items, answers,
reasoning, calls, outputs and harness text go. A prompt of one's own is not used.

Not told apart here: which messages of other agents are progress posts or final answers (Codex drops
those), and developer messages and tool outputs made by a client (kept only behind features).
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ....amounts import count
from ....context import Context, Inserted, Replaced, Segment
from ....items import (
    CompactionSummary,
    FunctionCallOutput,
    Item,
    Message,
    Part,
    Role,
    TextPart,
)
from ....models import Budget
from ...policy import (
    Answer,
    CompactRemotely,
    Edit,
    Failure,
    FailureKind,
    Mark,
    Moment,
    Plan,
    Situation,
    Summary,
)
from .due import (
    ESTIMATED,
    Due,
    asked_models,
    base_instructions,
    estimate_after,
    limit_marks,
    limits,
)
from .estimate import estimate, estimate_all, is_real_user, text_tokens
from .history import newest_within
from .local import Codex
from .opening import opened
from .params import CodexParams
from .pieces import as_sent, divided, is_agent_message, joined, placed
from .skips import failed
from .truncation import truncated
from .windows import following

STAGE = "remote"
BLANKED = "Output exceeded the space left, so its text is not shown here"
"""What stands for a blanked output, in our words; 61 characters, as many as Codex's own."""
HOOK_PROMPT = "<hook_prompt"
"""How a prompt of a hook begins."""


class CodexRemoteParams(CodexParams, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The constants of the rule."""

    message_budget: int = 64_000
    """Tokens of messages that stay."""
    agent_message_limit: int = 10_000
    """A message of another agent that is larger, in tokens, goes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.message_budget < 1 or self.agent_message_limit < 0:
            raise ValueError(
                "message_budget must be at least 1, and agent_message_limit not negative"
            )


class CodexRemote:
    """The rule for OpenAI's own endpoints."""

    name: ClassVar[str] = "codex-remote"
    title: ClassVar[str] = "Codex CLI, remote"
    moments: ClassVar[frozenset[Moment]] = Codex.moments
    Params: ClassVar[type[msgspec.Struct]] = CodexRemoteParams

    def __init__(self, params: CodexRemoteParams | None = None) -> None:
        self.params = params or CodexRemoteParams()

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """The limit and the usable window."""
        return limit_marks(budget, self.params)

    def plan(self, situation: Situation) -> Plan:
        """The entry cap, or the triggers, the request and the new history."""
        due = yield from opened(situation, self.params, STAGE)
        if due is None:
            return
        items, blanked = self._request(situation)
        answer: Answer = None
        for model in asked_models(situation, due):
            answer = yield CompactRemotely(
                items=items,
                model=model,
                instructions=situation.shape.instructions,
                tools=situation.shape.tools,
            )
            if isinstance(answer, Summary) and not answer.encrypted:
                answer = Failure(FailureKind.EMPTY, "The answer holds no sealed item.")
            if isinstance(answer, Summary):
                yield self._edit(situation, due, answer, blanked)
                return
        yield failed(due, answer, STAGE)

    def _request(self, situation: Situation) -> tuple[tuple[Item, ...], int]:
        """What is sent, and how many outputs were blanked for it to fit."""
        head, history = divided(situation.context.items)
        sent = as_sent(history)
        usable = limits(situation.budget, self.params).usable
        blanked = 0
        if usable is not None:
            room = usable - text_tokens(base_instructions(situation))
            blanked = blank_outputs(sent, room)
        return (*head, *sent), blanked

    def _edit(self, situation: Situation, due: Due, summary: Summary, blanked: int) -> Edit:
        item = CompactionSummary(encrypted=summary.encrypted)
        segments, contents = self.compacted(situation.context, situation.fresh, item)
        note = (
            f" To fit the request, {count(blanked, 'output')} at the end went blank."
            if blanked
            else ""
        )
        return Edit(
            stage=STAGE,
            reason=due.reason + note,
            segments=segments,
            summary=summary,
            phase=due.phase,
            memory={
                **following(situation).memory,
                ESTIMATED: estimate_after(situation, contents),
            },
        )

    def compacted(
        self, context: Context, fresh: tuple[Item, ...], sealed: CompactionSummary
    ) -> tuple[tuple[Segment, ...], int]:
        """The new history as segments, and its estimate in tokens without a system message at its
        head."""
        places = [at for at, entry in enumerate(context) if self._may_stay(entry.item)]
        costs = [message_cost(context.entries[at].item) for at in places]
        stays = newest_within(costs, self.params.message_budget)
        new: list[tuple[Item, Segment]] = []
        for place, room in stays:
            entry = context.entries[places[place]]
            if room is None:
                new += [(entry.item, kept) for kept in context.keep([places[place]])]
            elif (item := cut_message(entry.item, room)) is not None:
                new.append((item, Replaced(entry.id.bare, item)))
        kept = {places[place] for place, _ in stays}
        head = len(divided(context.items)[0])
        gone = (entry.id for at, entry in enumerate(context) if at not in kept and at >= head)
        new.append((sealed, Inserted(sealed, context.span(gone))))
        at = placed(tuple(item for item, _ in new))
        new[at:at] = [(item, Inserted(item)) for item in fresh]
        return (
            (*context.keep(range(head)), *(segment for _, segment in new)),
            estimate_all(item for item, _ in new),
        )

    def _may_stay(self, item: Item) -> bool:
        if is_real_user(item) or _is_hook_prompt(item):
            return True
        return is_agent_message(item) and text_tokens(item.text) <= self.params.agent_message_limit


def blank_outputs(items: list[Item], room: int) -> int:
    """Blank outputs from the end backwards until the estimate is within `room`; in place. Returns
    how many were blanked. Stops at the first item that is no output."""
    size = estimate_all(items)
    blanked = 0
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if size <= room or not isinstance(item, FunctionCallOutput):
            break
        empty = "[]" if item.name == "tool_search" else BLANKED
        items[at] = msgspec.structs.replace(item, output=empty)
        size += estimate(items[at]) - estimate(item)
        blanked += 1
    return blanked


def message_cost(item: Item) -> int:
    """What a message takes of the budget: the tokens of its texts, at least 1."""
    text = joined(item) if isinstance(item, Message) else item.text
    return max(1, text_tokens(text))


def cut_message(item: Item, room: int) -> Item | None:
    """A message cut to `room` tokens of text: its texts spend it in their order, the one that does
    not fit is cut, later ones go, and everything else stays. Other items have no smaller form."""
    if not isinstance(item, Message):
        return None
    if isinstance(item.content, str):
        return msgspec.structs.replace(item, content=truncated(item.content, room))
    parts: list[Part] = []
    for part in item.content:
        if not isinstance(part, TextPart):
            parts.append(part)
        elif room > 0:
            parts.append(TextPart(truncated(part.text, room)))
            room -= text_tokens(part.text)
    return msgspec.structs.replace(item, content=tuple(parts))


def _is_hook_prompt(item: Item) -> bool:
    return (
        isinstance(item, Message)
        and item.role is Role.USER
        and item.synthetic
        and item.text.lstrip().startswith(HOOK_PROMPT)
    )
