"""The summary request that both engines make: the conversation, the last summary, the template."""

from __future__ import annotations

from ...summaries import prompt


def request_text(conversation: str, previous: str, focus: str = "") -> str:
    """The one user message: `<conversation>`, `<prior-summary>` if there is one, what to write.

    `focus` is the user's wish for a compaction by hand, which OpenCode does not have.
    """
    parts = [prompt("opencode_lead"), f"<conversation>\n{conversation}\n</conversation>"]
    if previous:
        parts += [
            prompt("opencode_prior"),
            f"<prior-summary>\n{previous}\n</prior-summary>",
            prompt("opencode_merge"),
        ]
    else:
        parts.append(prompt("opencode_create"))
    parts.append(prompt("opencode_template"))
    if focus.strip():
        parts += [prompt("focus"), focus.strip()]
    return "\n\n".join(parts)
