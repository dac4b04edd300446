from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from thresher.core.agent.tools.base import ToolContext, ToolResult, ToolSpec
from thresher.core.agent.tools.registry import builtin_tools, prepare, run_tool

TOOLS = builtin_tools()


class Odd:
    def __init__(self, answer: ToolResult | Exception) -> None:
        self.spec = ToolSpec("odd", "Odd.", {"type": "object", "properties": {}}, True)
        self._answer = answer

    async def run(self, arguments: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def test_read_only_leaves_out_every_tool_that_changes_something() -> None:
    assert list(TOOLS) == ["read_file", "glob", "grep", "bash", "write_file", "edit_file"]
    assert list(builtin_tools(read_only=True)) == ["read_file", "glob", "grep"]
    assert list(builtin_tools(True, [Odd(ToolResult(""))])) == ["read_file", "glob", "grep", "odd"]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_every_schema_is_plain_json_schema(tool: Odd) -> None:
    schema = json.loads(json.dumps(tool.spec.parameters))
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= set(schema["properties"])
    assert "$ref" not in json.dumps(schema)
    assert tool.spec.description


def test_the_schema_of_bash_tells_limits_and_defaults() -> None:
    schema = TOOLS["bash"].spec.parameters
    assert schema["required"] == ["command"]
    timeout = schema["properties"]["timeout"]
    assert (timeout["default"], timeout["maximum"]) == (120, 600)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("nope", "{}", "there is no tool 'nope'. The tools are: read_file, glob"),
        ("read_file", "{", "not valid JSON"),
        ("read_file", '{"path": "a"', "not valid JSON"),
        ("read_file", '{"path": "\\ud800"}', "not valid JSON"),
        ("read_file", "\ud800", "not valid JSON"),
        ("read_file", "[" * 100_000, "not valid JSON"),
        ("read_file", "[]", "one JSON object"),
        ("read_file", "null", "one JSON object"),
        ("read_file", "", "missing required field `path`"),
        ("read_file", "{}", "missing required field `path`"),
        ("read_file", '{"path": 3}', "Expected `str`, got `int`"),
        ("read_file", '{"path": null}', "missing required field `path`"),
        ("read_file", '{"path": "a", "ofset": 3}', "It takes: path, offset, limit"),
        ("read_file", '{"path": "a", "limit": 1.5}', "Expected `int`"),
        ("read_file", '{"path": "a", "limit": 1e400}', "not valid JSON"),
        ("bash", '{"command": ""}', "Wrong arguments"),
        ("bash", '{"command": "x", "timeout": 601}', "<= 600"),
    ],
)
async def test_a_faulty_call_tells_the_model_what_to_do(
    ctx: ToolContext, name: str, arguments: str, told: str
) -> None:
    result = await run_tool(TOOLS, name, arguments, ctx)
    assert not result.ok
    assert result.output.startswith("Error: ")
    assert told in result.output
    assert isinstance(prepare(TOOLS, name, arguments), ToolResult)


async def test_null_for_an_optional_argument_means_its_default(
    ctx: ToolContext, folder: Path
) -> None:
    (folder / "f").write_text("x")
    arguments = '{"path": "f", "offset": null, "limit": null}'
    assert (await run_tool(TOOLS, "read_file", arguments, ctx)).output == "     1\tx"


async def test_hostile_arguments_are_results(ctx: ToolContext, hostile_text: str) -> None:
    for name in TOOLS:
        result = await run_tool(TOOLS, name, hostile_text, ctx)
        assert not result.ok
        result.output.encode("utf-8")


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (OSError(28, "No space left on device"), "Error: odd failed: No space left on device."),
        (KeyError("x"), "Error: odd failed inside (KeyError: 'x')."),
    ],
)
async def test_a_tool_that_fails_is_a_result(ctx: ToolContext, fault: Exception, told: str) -> None:
    result = await run_tool({"odd": Odd(fault)}, "odd", "{}", ctx)
    assert result == ToolResult(told, ok=False)


async def test_every_tool_is_under_the_cap(ctx: ToolContext) -> None:
    result = await run_tool({"odd": Odd(ToolResult("y" * 9000, False))}, "odd", "{}", ctx)
    assert not result.ok
    assert result.truncated_chars == 7000
    assert Path(result.saved or "").read_text() == "y" * 9000


async def test_no_result_holds_half_a_surrogate_pair(ctx: ToolContext) -> None:
    result = await run_tool({"odd": Odd(ToolResult("a\udcffb"))}, "odd", "{}", ctx)
    assert result.output == "a\\udcffb"
