"""The table in the README."""

from __future__ import annotations

from .names import shown
from .table import grouped
from .vocabulary import Where

README_BEGIN = "<!-- keys: begin (python -m thresher.tui.keys) -->"
README_END = "<!-- keys: end -->"


def markdown() -> str:
    """The table as the README shows it, between its two markers."""
    lines = [README_BEGIN, "| Keys | What it does | Where |", "|---|---|---|"]
    for _, rows in grouped(Where):
        for key in rows:
            names = " ".join(f"`{shown(name)}`" for name in key.keys.split(","))
            lines.append(f"| {names} | {key.tip} | {key.where.value} |")
    return "\n".join([*lines, README_END])
