"""The constants of OpenCode's engine V1, each with its default and the setting that changes it."""

from __future__ import annotations

import msgspec

from .tool_output import Form


class OpenCodeV1Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of the rule, in tokens where nothing else is said."""

    auto: bool = True
    """Compact by itself. Config `compaction.auto`."""
    reserved: int | None = None
    """What is kept free of a max input. Config `compaction.reserved`; without it `reserve`."""
    reserve: int = 20_000
    """The same, where nothing is set, and at most the model's output."""
    output_cap: int = 32_000
    """The largest output that is reckoned with. Env `OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX`."""
    tail_turns: int | None = None
    """How many turns the tail may reach back; 0 is none. Config `compaction.tail_turns`."""
    preserve_recent_tokens: int | None = None
    """The budget of the tail. Config `compaction.preserve_recent_tokens`; without it a share."""
    tail_share: float = 0.25
    """The share of the usable tokens that the tail may have."""
    tail_least: int = 2_000
    """The budget by share is never below this ..."""
    tail_most: int = 15_000
    """... and never above this."""
    tool_chars: int = 2_000
    """UTF-16 code units of a tool result that the summariser sees."""
    summary_model: str = ""
    """The model that summarises, whose limits then count. Config `agent.compaction.model`."""
    autocontinue: bool = True
    """Tell the model to go on after a summary. A plugin hook can veto it."""
    recap: str = "What did we do so far?"
    """The question that the summary answers."""
    continue_text: str = ""
    """What tells the model to go on; empty: our own words."""
    keep_refused_turn: bool = False
    """After an overflow, keep the refused turn behind the tail, as the order of messages would
    have it if taken literally. No recording has that case."""
    prune: bool = False
    """Clear old outputs when a turn has ended. Config `compaction.prune`."""
    prune_protect: int = 40_000
    """The newest tokens of outputs that stay."""
    prune_minimum: int = 20_000
    """Prune only if more than this would go."""
    prune_turns: int = 2
    """Everything after this many newest user messages stays."""
    prune_protected_tools: str = "skill"
    """Tools whose outputs neither count nor go, with commas between them."""
    placeholder: str = "[Old tool result content cleared]"
    """What stands in place of a pruned output."""
    max_lines: int = 2_000
    """Lines of a tool output that enter. Config `tool_output.max_lines`."""
    max_bytes: int = 51_200
    """Bytes of a tool output that enter. Config `tool_output.max_bytes`."""
    output_form: Form = Form.HEAD
    """What of a longer one is kept: its head or its tail."""
    shell_tools: str = "bash"
    """Tools of which the tail is kept, with commas between them."""

    def __post_init__(self) -> None:
        for name in (
            "reserve", "output_cap", "tail_least", "tool_chars", "prune_protect",
            "prune_minimum", "prune_turns",
        ):  # fmt: skip
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if not 0 < self.tail_share <= 1:
            raise ValueError(f"tail_share must be above 0 and at most 1, not {self.tail_share}")
        if self.tail_most < self.tail_least:
            raise ValueError("tail_most must not be below tail_least")
        if self.max_lines < 1 or self.max_bytes < 1:
            raise ValueError("max_lines and max_bytes must be at least 1")
        if not self.recap or not self.placeholder:
            raise ValueError("recap and placeholder must not be empty")
