"""Which tool calls run, which are refused, and for which the user is asked.

The rule is pure (`ApprovalPolicy.check`); `Approvals` asks, through an Approver, and remembers.

What an answer is remembered for: a tool, except that bash is remembered by its exact command.
The first word of a command says too little to stand for it: whoever allowed `git status` has not
allowed `git push --force`, and `ls; rm -r x` also begins with ls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from .tools.base import ToolResult, ToolSpec, failed


class Decision(StrEnum):
    """The user's word."""

    ONCE = "once"
    """This call."""
    SESSION = "session"
    """This call and, until the session ends, all that share its key."""
    NEVER = "never"
    """Neither this call nor, until the session ends, any that shares its key."""


class Mode(StrEnum):
    """How much the user wants to be asked."""

    ASK = "ask"
    YES = "yes"
    READ_ONLY = "read_only"


class Ruling(StrEnum):
    """What the rule says about a call."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class Remembered(msgspec.Struct, frozen=True):
    """The SESSION and NEVER answers of this session, by key."""

    answers: Mapping[str, Decision] = {}

    def of(self, spec: ToolSpec, arguments: Mapping[str, object]) -> Decision | None:
        """The answer that was given for such a call, if any."""
        return self.answers.get(key_of(spec, arguments))

    def after(
        self, spec: ToolSpec, arguments: Mapping[str, object], decision: Decision
    ) -> Remembered:
        """The answers with this one added; ONCE leaves no trace."""
        if decision is Decision.ONCE:
            return self
        return Remembered({**self.answers, key_of(spec, arguments): decision})


class ApprovalPolicy(msgspec.Struct, frozen=True):
    """The rule of one session."""

    mode: Mode = Mode.ASK

    def check(
        self, spec: ToolSpec, arguments: Mapping[str, object], remembered: Remembered
    ) -> Ruling:
        """Read-only tools run. Any other is refused in read-only mode; a remembered NEVER holds
        in every mode; then `yes` and a remembered SESSION allow it; otherwise the user is asked.
        """
        if spec.read_only:
            return Ruling.ALLOW
        answer = remembered.of(spec, arguments)
        if self.mode is Mode.READ_ONLY or answer is Decision.NEVER:
            return Ruling.DENY
        if self.mode is Mode.YES or answer is Decision.SESSION:
            return Ruling.ALLOW
        return Ruling.ASK


class ApprovalRequest(msgspec.Struct, frozen=True):
    """What the user is asked. The arguments are foreign text, not clean."""

    call_id: str
    spec: ToolSpec
    arguments: Mapping[str, object]

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.spec.name

    @property
    def scope(self) -> str:
        """What SESSION and NEVER would reach, in words."""
        return scope_of(self.spec)


class Approver(Protocol):
    """Whoever can ask the user."""

    async def ask(self, request: ApprovalRequest) -> Decision: ...


class Approvals:
    """The approvals of one session. Without an approver, what would be asked is refused."""

    def __init__(self, policy: ApprovalPolicy, approver: Approver | None = None) -> None:
        self.policy = policy
        self.remembered = Remembered()
        self._approver = approver
        self._one_at_a_time = asyncio.Lock()

    async def allow(
        self, call_id: str, spec: ToolSpec, arguments: Mapping[str, object]
    ) -> ToolResult | None:
        """None if the call may run, else the result that tells the model it was refused.

        Only one question stands at a time: calls that run side by side wait, and an answer for
        the session given to the first counts for the next.
        """
        if self.policy.check(spec, arguments, self.remembered) is Ruling.ALLOW:
            return None
        async with self._one_at_a_time:
            match self.policy.check(spec, arguments, self.remembered):
                case Ruling.ALLOW:
                    return None
                case Ruling.DENY:
                    return refused(spec, self.policy.mode)
            if self._approver is None:
                return failed(
                    f"{spec.name} needs the user's approval and nobody can be asked here. "
                    "Go on without it."
                )
            decision = await self._approver.ask(ApprovalRequest(call_id, spec, arguments))
            self.remembered = self.remembered.after(spec, arguments, decision)
        return refused(spec, self.policy.mode) if decision is Decision.NEVER else None


def key_of(spec: ToolSpec, arguments: Mapping[str, object]) -> str:
    """What an answer about this call is remembered under. No tool's name holds a space."""
    return f"bash {arguments.get('command', '')}" if spec.name == "bash" else spec.name


def scope_of(spec: ToolSpec) -> str:
    """What an answer that is remembered reaches, in words for the user."""
    return "this exact command" if spec.name == "bash" else f"every call of {spec.name}"


def refused(spec: ToolSpec, mode: Mode) -> ToolResult:
    """What the model reads instead of a result."""
    if mode is Mode.READ_ONLY:
        return failed(
            f"{spec.name} is not allowed: this session is read-only. Use the tools that only "
            "read, and tell the user what you would have changed."
        )
    return failed(
        f"the user refused {scope_of(spec)}. Do not call it again and do not try to get the same "
        "done in another way: go on without it, or ask the user."
    )
