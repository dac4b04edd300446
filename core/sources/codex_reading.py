"""What is known at a line of a rollout: the state that the parts of the translator share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import events as e
from ..compaction.policies.codex.estimate import text_tokens
from ..items import FunctionCall
from ..tokens import Usage
from .base import WireItem
from .codex_cards import Setup, Shortened
from .codex_items import CALLS, OUTPUTS, is_model_made, is_real_user, json_of, type_of
from .codex_replay import Head, Held, WireHistory
from .codex_requests import RequestTracker, Sent
from .codex_slim import Slimmer
from .codex_tokens import estimate_item, estimate_items, unreported, version_of
from .outbox import Outbox

AGENT: Final = "codex"
BLANKED: Final = 19
"""Tokens of a blanked output: 61 characters, and those of its ids, about."""
ANSWER_NOTE: Final = "answer of the compaction request"


class Task:
    """A task of Codex: what runs between task_started (on `line`) and task_complete.

    `attributed` says that the line names what set it off (0.171: a turn does, a manual compaction
    does not). The flags tell what it has recorded so far.
    """

    def __init__(self, line: int, *, attributed: bool, window: int | None) -> None:
        self.line = line
        self.attributed = attributed
        self.window = window
        self.own_items = 0
        self.settings = False


class Reading:
    """The fold so far."""

    def __init__(
        self,
        slimmer: Slimmer | None = None,
        before: Callable[[int], list[Held]] | None = None,
    ) -> None:
        self.slimmer = slimmer
        self.out = Outbox()
        self.history = WireHistory(before)
        self.head = Head()
        self.requests = RequestTracker()
        self.version = ""
        self.modern = False
        """The file is of a version that numbers its lines (0.171)."""
        self.task: Task | None = None
        self.tasks_are_attributed = False
        self.turn = 0
        self.rounds = 0
        self.settings = Setup()
        self.window: int | None = None
        self.usage: Usage | None = None
        """The last count that is in force."""
        self.calls: dict[str, str] = {}
        self.made = 0
        """Compactions so far, with those of files that this one goes on from."""

    def take_over(self, other: Reading) -> None:
        """What a file says that this one goes on from, all but its history."""
        self.usage, self.window, self.settings = other.usage, other.window, other.settings
        self.tasks_are_attributed = other.tasks_are_attributed
        self.requests.headed = other.requests.headed
        self.calls.update(other.calls)
        self.made = other.made

    @property
    def is_early(self) -> bool:
        """A task runs whose settings have not been written: no request of the turn itself can have
        gone out, only one of a compaction before it."""
        return self.task is not None and not self.task.settings

    def nothing_is_asked(self) -> bool:
        """Nothing waits for an answer of the model: whatever is sent now is for a compaction."""
        last = next((held.raw for held in reversed(self.history.held) if not held.answer), None)
        if last is None or self.is_early:
            return self.is_early
        return is_model_made(last) and type_of(last) not in CALLS

    @property
    def version_numbers(self) -> tuple[int, ...]:
        """The version of Codex, comparable."""
        return version_of(self.version)

    def visible(self) -> list[Held]:
        """The history without answers of compaction requests: what the model sees."""
        return [held for held in self.history.held if not held.answer]

    def used(self, history: list[WireItem], usage: Usage | None) -> tuple[int, str]:
        """The fill that Codex compares with its limit, in tokens and as arithmetic in words."""
        behind = unreported(history, self.version_numbers)
        if usage is None:
            return behind, f"{behind:,} tokens estimated, none reported"
        whole = usage.total + behind
        return whole, f"{whole:,} tokens ({usage.total:,} reported + {behind:,} estimated since)"

    def blanked_outputs(self) -> int:
        """How many outputs at the end of the history a remote compaction blanks: as many as it
        takes for the estimate to be within the window, and none before another item."""
        if self.window is None:
            return 0
        raws = [held.raw for held in self.history.held if not held.answer]
        version = self.version_numbers
        size = text_tokens(self.head.instructions) + estimate_items(raws, version)
        count = 0
        for raw in reversed(raws):
            if size <= self.window or type_of(raw) not in OUTPUTS:
                break
            size += BLANKED - estimate_item(raw, version)
            count += 1
        return count

    def whole(self, held: Held) -> WireItem:
        """The wire form of an item as it was read."""
        return held.raw if self.slimmer is None else self.slimmer.whole(held)

    def shortened(self, *, recorded: bool) -> Shortened | None:
        """What is kept of the items of a compacted line; `recorded` says that it holds them."""
        return None if self.slimmer is None else self.slimmer.shortened(recorded=recorded)

    def append(self, n: int, held: Held, note: str = "", *, said: bool = False) -> None:
        """An item enters the history; `said` says that a user said it."""
        self.history.append(held, said=said)
        if isinstance(held.item, FunctionCall):
            self.calls[held.item.call_id] = held.item.name
        if self.task is not None and not held.answer:
            self.task.own_items += 1
        self.out.add(
            n,
            e.ItemAppended(
                item=held.item,
                part=held.id.part,
                turn=self.turn,
                round=self.rounds,
                in_context=not held.answer,
                note=ANSWER_NOTE if held.answer else note,
            ),
        )

    def request(self, sent: Sent) -> None:
        """A request is known to have gone out."""
        if sent.kind is e.Purpose.TURN:
            self.rounds += 1
        # Only the ends are asked for: a session may have thousands of requests and items.
        held = self.history.held
        first = next((each.id for each in held if not each.answer), None)
        last = next((each.id for each in reversed(held) if not each.answer), None)
        self.out.add(
            self.out.not_before(sent.line),
            e.RequestSent(
                request=sent.number,
                purpose=sent.kind,
                model=self.settings.model,
                turn=self.turn,
                round=self.rounds,
                entries=f"{first.bare}-{last.bare}" if first and last else "",
            ),
        )

    def model_asked_for_window(self) -> bool:
        """The last call of the history is of the tool that opens a new window."""
        for held in reversed(self.history.held):
            if isinstance(held.item, FunctionCall):
                return held.item.name == "new_context"
            if is_real_user(held.raw) or type_of(held.raw) == "message":
                return False
        return False

    def unknown(self, n: int, kind: str, value: object) -> None:
        """A line, or an item, of a type that is not known."""
        size = len(json_of(value))
        self.out.add(n, e.UnknownRecord(type=kind or "(no type)", line=n, size=size))
