"""The programs that can be held: what their hooks let a user decide, and how each is told.

What is said here of a consequence was measured with the real programs (Claude Code 1.0.128, 2.0.76,
2.1.70, 2.1.197 and 2.1.332 in print mode, 2.1.197 on a terminal too; Codex CLI 0.171.0 with `exec`,
and by hand on a terminal) against scripted servers:

- Both wait for a PreCompact command hook (75 s with a timeout of 600), and kill it when its
  `timeout` (seconds) is over; then, and after any other failure of it, they compact as if there
  were none.
- Claude Code puts whatever the hook prints under "Additional Instructions" of its summary request,
  JSON too ({"continue": false} has no other effect). Exit code 2, or {"decision": "block"}, is
  without effect up to 2.1.70. From 2.1.197 on the compaction is skipped and the turn goes on with
  the whole context; the hook is asked again before the next request. Where the provider has refused
  the request as too long, the turn then ends with "Prompt is too long". A /compact ends with a
  message that a hook blocked it. (Its change log names 2.1.105 as the first version with a block.)
- Codex ignores what the hook prints unless it is JSON, and exit code 2 and {"decision": "block"}
  too. {"continue": false} skips the compaction and ends the turn as interrupted; the next turn
  begins with the same compaction. A /compact ends as interrupted, with the reason. A hook that its
  user has not trusted is left out silently.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from .messages import Answer, Verdict

_CLAUDE_BLOCKS = (2, 1, 105)
_REASON = "the compaction was skipped by the user, in thresher"


class Told(NamedTuple):
    """How a hook ends: what it prints on both streams, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class Program(msgspec.Struct, frozen=True):
    """A program that waits for its hook. `policy` is the one of ours that follows its rule.

    `focus` says whether a focus can be given; `settings` is the file the snippet belongs into.
    """

    agent: str
    word: str
    """What `latest:` calls it."""
    title: str
    policy: str
    focus: bool
    settings: str
    snippet: str
    measured: str
    """The versions with which it was measured what skipping comes to."""
    after: str = ""
    """What its user must do besides pasting."""
    timeout: int = 600
    """Seconds that the printed settings give the hook."""

    def setting(self, command: str) -> str:
        """The lines for its settings, with this command line of ours."""
        quoted = command.replace("\\", "\\\\").replace('"', '\\"')
        return self.snippet.replace("COMMAND", quoted).replace("TIMEOUT", str(self.timeout))

    def may_skip(self, version: str) -> bool:
        """Whether this version lets a hook prevent a compaction."""
        return self.agent != CLAUDE_CODE.agent or _numbers(version) >= _CLAUDE_BLOCKS

    def consequence(self, trigger: str, version: str) -> str:
        """What skipping really does, or why it cannot be done."""
        name = f"{self.title} {version}".strip()
        if not self.may_skip(version):
            return f"{name} compacts whatever its hook says: it cannot be skipped."
        if self.agent == CODEX.agent and trigger == "manual":
            return "The command ends as interrupted, with the reason, and nothing changes."
        if self.agent == CODEX.agent:
            return (
                "Codex does not compact and ends the running turn as interrupted. "
                "Its next turn begins with the same compaction."
            )
        if trigger == "manual":
            return "The command ends with the message that a hook blocked it, and nothing changes."
        return (
            "Claude Code sends its next request with the whole context, and asks again before the "
            "one after it. If the provider has refused this context as too long, the turn ends."
        )

    def told(self, answer: Answer) -> Told:
        """How its hook must end for this answer."""
        if answer.verdict is Verdict.GO_ON:
            return Told(out=answer.text if self.focus else "")
        if self.agent == CODEX.agent:
            said = msgspec.json.encode({"continue": False, "stopReason": _REASON}).decode()
            return Told(out=said)
        return Told(err=_REASON, code=2)


CLAUDE_CODE = Program(
    agent="claude-code",
    word="claude",
    title="Claude Code",
    policy="claude-code",
    focus=True,
    measured="2.1.197 and 2.1.332; versions before 2.1.105 compact all the same",
    settings="~/.claude/settings.json",
    snippet="""\
{
  "hooks": {
    "PreCompact": [
      {
        "hooks": [
          { "type": "command", "command": "COMMAND", "timeout": TIMEOUT }
        ]
      }
    ]
  }
}""",
)
CODEX = Program(
    agent="codex",
    word="codex",
    title="Codex",
    policy="codex",
    focus=False,
    measured="0.171.0",
    settings="~/.codex/config.toml",
    snippet="""\
[[hooks.PreCompact]]
[[hooks.PreCompact.hooks]]
type = "command"
command = "COMMAND"
timeout = TIMEOUT""",
    after="Codex leaves it out, without a word, until you have trusted it once with /hooks. ",
)
PROGRAMS = {program.agent: program for program in (CLAUDE_CODE, CODEX)}


def program_of(agent: str) -> Program | None:
    """The program that wrote a session, if it can be held."""
    return PROGRAMS.get(agent)


def _numbers(version: str) -> tuple[int, ...]:
    """2.1.197 as numbers; a version that is not told counts as the oldest."""
    found = re.match(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})", version)
    return tuple(int(number) for number in found.groups()) if found else ()
