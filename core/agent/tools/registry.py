"""The tools an agent has, and how one call goes from the model's JSON to a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ...errors import ThresherError
from .base import StructTool, Tool, ToolContext, ToolResult, failed, reason, sendable
from .bash import BashTool
from .edit_file import EditFileTool
from .glob import GlobTool
from .grep import GrepTool
from .read_file import ReadFileTool
from .write_file import WriteFileTool


class Call(msgspec.Struct, frozen=True):
    """A call whose tool exists and whose arguments are sound: ready to be approved and run."""

    tool: Tool
    arguments: Mapping[str, object]


def builtin_tools(read_only: bool = False, extra: Iterable[Tool] = ()) -> dict[str, Tool]:
    """The tools by name, in the order in which the model is told of them.

    `extra` come last (compact, task). `read_only` leaves out every tool that changes something.
    """
    tools: list[Tool] = [
        ReadFileTool(),
        GlobTool(),
        GrepTool(),
        BashTool(),
        WriteFileTool(),
        EditFileTool(),
        *extra,
    ]
    return {tool.spec.name: tool for tool in tools if tool.spec.read_only or not read_only}


def prepare(tools: Mapping[str, Tool], name: str, arguments: str) -> Call | ToolResult:
    """Read the model's JSON. What is wrong with it becomes a result that tells the model."""
    tool = tools.get(name)
    if tool is None:
        return failed(f"there is no tool {name!r}. The tools are: {', '.join(tools)}.")
    try:
        # Some models send nothing at all for a call without arguments.
        given = msgspec.json.decode(arguments) if arguments.strip() else {}
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        return failed(
            f"the arguments of {name} are not valid JSON ({error}). Send one complete JSON object."
        )
    if not isinstance(given, dict):
        return failed(f"the arguments of {name} must be one JSON object.")
    if isinstance(tool, StructTool):
        try:
            tool.decode(given)
        except ThresherError as error:
            return failed(error.msg)
    return Call(tool, given)


async def execute(call: Call, ctx: ToolContext) -> ToolResult:
    """Run a prepared call. Never raises but for a cancel; the result is within the cap.

    The output can be sent: it holds no lone surrogate.
    """
    name = call.tool.spec.name
    try:
        result = await call.tool.run(call.arguments, ctx)
    except ThresherError as error:
        result = failed(error.msg)
    except OSError as error:
        result = failed(f"{name} failed: {reason(error)}.")
    except Exception as error:  # A fault of the tool must not end the session: it is told instead.
        result = failed(f"{name} failed inside ({type(error).__name__}: {error}).")
    result = sendable(result)
    if result.truncated_chars or len(result.output) <= ctx.cap.max_chars:
        return result
    part = ctx.cap.apply(result.output, ctx.outputs_dir, ctx.call_id)
    return msgspec.structs.replace(
        result, output=part.text, saved=part.saved, truncated_chars=part.truncated_chars
    )


async def run_tool(
    tools: Mapping[str, Tool], name: str, arguments: str, ctx: ToolContext
) -> ToolResult:
    """`prepare` and `execute` in one, for a call that needs no approval."""
    call = prepare(tools, name, arguments)
    return call if isinstance(call, ToolResult) else await execute(call, ctx)
