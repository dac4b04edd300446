"""Constants with which a policy shows itself in the demo, whose window is far below real ones.

A policy that is not named here keeps its own defaults. What the user sets comes before this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DEMO_PARAMS: Mapping[str, Mapping[str, Any]] = {
    "codex": {"auto_limit": 9_800, "truncation_limit": 1_500},
    "codex-remote": {"auto_limit": 8_000, "truncation_limit": 1_200},
    "codex-token-budget": {
        "auto_limit": 7_000,
        "reminder": 1_500,
        "fallback_buffer": 2_500,
        "truncation_limit": 1_500,
    },
    "harnessx": {
        "large_result": 8_000,
        "batch_budget": 14_000,
        "preview": 1_000,
        "snip_above": 28,
        "snip_tail": 24,
        "threshold": 14_000,
    },
    "claude-code": {
        "summary_reserve": 2_000,
        "buffer": 1_500,
        "warning_margin": 2_500,
        "micro_keep": 1_500,
        "micro_min_saving": 800,
        "restore_files": 3,
        "restore_file_tokens": 700,
        "restore_total_tokens": 1_500,
        "persist_above": 10_000,
    },
    "opencode-v1": {
        "prune": True,
        "prune_protect": 2_000,
        "prune_minimum": 500,
        "max_bytes": 10_000,
    },
    "opencode-v2": {"buffer": 2_000, "keep": 1_500, "max_bytes": 10_000},
}
