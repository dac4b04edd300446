"""The texts: the summary request, the summary as it stands afterwards, files, large outputs."""

from __future__ import annotations

import re

from ....items import Item, Message, Role, user
from ...summaries import prompt

PREFIX = (
    "This conversation goes on from an earlier one that ran out of room. What is said here sums up "
    "its earlier part.\n\n"
)
"""What the model reads before the summary, in a user message."""


def request(part: tuple[Item, ...], focus: str) -> tuple[Item, ...]:
    """The conversation itself, and behind it what is asked for: that keeps the cached prefix."""
    asked = prompt("claude_code_summary")
    if focus.strip():
        asked = f"{asked}\n\nAdditional instructions from the user:\n{focus.strip()}"
    return (*part, user(asked))


def summary_of(reply: str, keep_analysis: bool) -> str:
    """The summary out of a reply of <analysis> and <summary>; empty when there is none. A reply
    without these tags is taken as it is."""
    analysis = _ANALYSIS.search(reply)
    found = _SUMMARY.search(_ANALYSIS.sub("", reply)) or _OPEN_SUMMARY.search(reply)
    body = (found[1] if found else _ANALYSIS.sub("", reply)).strip()
    if not body:
        return ""
    thought = analysis[1].strip() if analysis and keep_analysis else ""
    return f"Analysis:\n{thought}\n\nSummary:\n{body}" if thought else f"Summary:\n{body}"


def continued(summary: str, transcript: str, go_on: bool) -> str:
    """The summary with where the rest is, and what to do now."""
    lines = []
    if transcript:
        lines.append(
            "For exact details of the earlier part (code, error texts, what you wrote), read the "
            f"whole transcript at: {transcript}"
        )
    if go_on:
        lines.append(
            "Go on with the last task at the point where it was left. Ask the user nothing for "
            "this, and neither mention this summary nor repeat what was going on."
        )
    return "\n".join((summary, "", "# From here on", *lines)) if lines else summary


def restored(path: str, content: str) -> Message:
    """A file as it is now, with line numbers."""
    lines = content.split("\n")
    text = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, 1))
    return _reminder(f"{RESTORED}{path}\n{text}")


def too_large(path: str) -> Message:
    """A note in place of a file that does not fit."""
    return _reminder(f"{NOTED}{path}\nRead it again if it is needed.")


RESTORED = "This file was read earlier; so it is now: "
NOTED = "This file was read earlier and is too large to be shown here: "


def _reminder(text: str) -> Message:
    return Message(Role.USER, f"<system-reminder>\n{text}\n</system-reminder>", synthetic=True)


def persisted(output: str, path: str, chars: int) -> str:
    """What stays of a large output: its size, where it is, and its first lines."""
    size = len(output.encode(errors="replace")) / 1024
    start = output[:chars]
    end = start.rfind("\n")
    if end > chars // 2:
        start = start[:end]
    more = "\n..." if len(start) < len(output) else ""
    return (
        f"<persisted-output>\nToo large to stay here ({size:.1f}KB). Full output saved to: {path}"
        f"\n\nPreview (first 2KB):\n{start}{more}\n</persisted-output>"
    )


_ANALYSIS = re.compile(r"<analysis>(.*?)</analysis>", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*)</summary>", re.DOTALL)
_OPEN_SUMMARY = re.compile(r"<summary>(.*)", re.DOTALL)
