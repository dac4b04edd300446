"""The two tools that only the agent itself can serve: compact, and task (a subagent)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from .tools.base import Args, StructTool, ToolContext, ToolResult

COMPACT = "compact"
TASK = "task"


class CompactArgs(Args, frozen=True):
    """`focus` says what the summary must keep above all."""

    focus: str = ""


class CompactTool(StructTool[CompactArgs]):
    """Lets the model ask for a compaction. It only confirms: the loop compacts after all outputs of
    the batch are committed, since before that a call would stand without its output."""

    def __init__(self) -> None:
        super().__init__(
            COMPACT,
            "Ask for the conversation so far to be replaced by a summary, to free room in the "
            "context window. Call it when a part of the work is finished and its details are no "
            "longer needed. The optional focus says what the summary must keep.",
            CompactArgs,
            read_only=True,
        )

    async def call(self, args: CompactArgs, ctx: ToolContext) -> ToolResult:
        """Confirm."""
        return ToolResult("The conversation will be compacted after this round.")

    @staticmethod
    def focus_of(arguments: str) -> str:
        """The focus in the call's JSON; empty when there is none or it cannot be read."""
        try:
            return msgspec.json.decode(arguments or "{}", type=CompactArgs).focus
        except (msgspec.DecodeError, UnicodeEncodeError):
            return ""


class TaskArgs(Args, frozen=True):
    """`description` names the task in a few words, `prompt` is all the subagent is told."""

    description: str
    prompt: str


Delegate = Callable[[str, str], Awaitable[str]]


class TaskTool(StructTool[TaskArgs]):
    """Gives a self-contained piece of work to a subagent with a history of its own."""

    def __init__(self, delegate: Delegate) -> None:
        super().__init__(
            TASK,
            "Give a self-contained piece of work to a subagent. It sees nothing of this "
            "conversation but the prompt, works with the same tools on the same files, and only "
            "its final answer comes back.",
            TaskArgs,
            # The subagent's own calls are asked for one by one; starting it changes nothing.
            read_only=True,
        )
        self._delegate = delegate

    async def call(self, args: TaskArgs, ctx: ToolContext) -> ToolResult:
        """Run the subagent and give back its last words."""
        return ToolResult(await self._delegate(args.description, args.prompt))
