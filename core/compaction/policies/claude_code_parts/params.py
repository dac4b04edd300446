"""The constants of the Claude Code policy, each with its meaning and where it was measured."""

from __future__ import annotations

import msgspec

from .limits import CountAfter


class ClaudeCodeParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The constants of 2.1.197 (micro: of 2.0.76). Sizes are in tokens unless said otherwise."""

    auto_compact_window: int | None = None
    """Takes the place of the model's window and never enlarges it
    (CLAUDE_CODE_AUTO_COMPACT_WINDOW)."""
    pct_override: float | None = None
    """Threshold as a percentage of the effective window; can only lower it
    (CLAUDE_AUTOCOMPACT_PCT_OVERRIDE)."""
    summary_reserve: int = 20_000
    """Window - this is the effective window (measured; 32,000 in 1.0.128 and 2.0.76)."""
    buffer: int = 13_000
    """Effective window - this is the threshold (measured)."""
    warning_margin: int = 20_000
    """Threshold - this is the warning level (measured)."""
    count_after: CountAfter = "first"
    """What is estimated beside the last report: all after the first part of that response
    (2.1.197), all after the response (2.1.70), or nothing (1.0.128, 2.0.76); measured on
    preTokens."""
    proactive: bool = True
    """Check before every request. No: only after a refusal, as 2.1.197 without a window set."""
    micro: bool = True
    """Clear old tool results at the warning level."""
    micro_keep: int = 40_000
    """The newest results that fit into this stay (measured)."""
    micro_min_saving: int = 20_000
    """Less than this is not worth it (measured)."""
    micro_to_file: bool = False
    """Write what is cleared to files and leave their paths (2.1.12, 2.1.20)."""
    keep_last_turn: bool = True
    """The last assistant turn stays word for word (2.1.197)."""
    keep_analysis: bool = False
    """Leave the analysis in the summary (1.0.128, 2.0.76)."""
    files_first: bool = False
    """Restored files stand before the summary (up to 2.1.70)."""
    transcript: bool = True
    """Write the conversation to a file and name it in the summary."""
    continue_after_manual: bool = True
    """Tell the model to go on by itself also after a compaction by hand (2.1.197)."""
    restore_files: int = 5
    """Files that come back at most (measured)."""
    restore_file_tokens: int = 5_000
    """A larger file is only named (documented)."""
    restore_total_tokens: int = 50_000
    """All files together (third-party analysis)."""
    cat_is_reading: bool = True
    """`cat FILE` in a shell counts as reading it (2.1.197)."""
    summary_max_output: int = 32_000
    """Tokens of the summary at most (2.1.197; 20,000 up to 2.1.70)."""
    summary_attempts: int = 3
    """Summary requests, each smaller than the last, before giving up (measured)."""
    thrash_refills: int = 3
    """So many times in a row full again ends the turn (measured); 0: never, as in 1.0.128."""
    thrash_rounds: int = 3
    """Full again within fewer rounds than this (measured)."""
    persist_above: int = 30_000
    """Characters of an output above which it goes to a file (measured)."""
    preview: int = 2_000
    """Characters that stay of it, to the end of a line (measured)."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not isinstance(value, bool | str) and value is not None and value < 0:
                raise ValueError(f"{name} must not be negative, not {value}")
        if self.pct_override is not None and not 0 < self.pct_override <= 100:
            raise ValueError(f"pct_override must be above 0, at most 100, not {self.pct_override}")
        if self.summary_attempts < 1:
            raise ValueError("summary_attempts must be at least 1")
