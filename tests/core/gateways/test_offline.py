from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from thresher.core.agent.tools.base import ToolContext
from thresher.core.agent.tools.cap import OutputCap
from thresher.core.agent.tools.registry import builtin_tools, run_tool
from thresher.core.agent.tools.workspace import Workspace
from thresher.core.compaction.policy import ToolSchema
from thresher.core.gateways.base import (
    ErrorKind,
    GatewayError,
    ModelReply,
    ModelRequest,
    StopReason,
    TextDelta,
)
from thresher.core.gateways.offline import OfflineGateway
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    Role,
    system,
    user,
)
from thresher.core.tokens import Basis, CharClassCounter

TOOLS = builtin_tools()
SCHEMAS = tuple(
    ToolSchema(tool.spec.name, tool.spec.description, tool.spec.parameters)
    for tool in TOOLS.values()
)
EXPLORE = "Explore this project and list what each module does"
OUTAGE = "Read the whole server log and find the outage"

SHIPS = '"""Ships and berths."""\n\n\nclass Ship:\n    pass\n' + "\n# TODO: tides\n" * 40
TIDES = '"""When the water comes."""\n\n\ndef tide(hour):\n    return hour % 12\n' * 20
TESTS = """\
import unittest


class TideTest(unittest.TestCase):
    def test_twice_a_day(self):
        self.assertEqual(13 % 12, 1)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name, text in {
        "README.md": "# harbour\n\nKeeps track of ships.\n",
        "src/ships.py": SHIPS,
        "src/tides.py": TIDES,
        "tests/__init__.py": "",
        "tests/test_tides.py": TESTS,
        "logs/server.log": "".join(_log_line(at) for at in range(700)),
        "odd name; rm -rf x.md": "# odd\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "picture.png").write_bytes(b"\x89PNG\0\0")
    return root


def _log_line(at: int) -> str:
    clock = f"{8 + at // 60:02d}:{at % 60:02d}:00"
    if 300 <= at < 340:
        return f"{clock} ERROR pilot boat {at} does not answer\n"
    return (
        f"{clock} INFO berth {at} ship {at * 7919 % 1000} moored, {at * 31} containers unloaded\n"
    )


def gateway(workspace: Path, window: int = 100_000, seed: int = 0) -> OfflineGateway:
    return OfflineGateway(workspace, window=window, seed=seed, counter=CharClassCounter())


async def one_round(gate: OfflineGateway, items: list[Item], workspace: Path) -> list[FunctionCall]:
    """Ask, run the real tools, append; returns the calls."""
    reply = await gate.complete(ModelRequest(model="m", items=tuple(items), tools=SCHEMAS))
    items.extend(reply.items)
    calls = [item for item in reply.items if isinstance(item, FunctionCall)]
    for call in calls:
        context = ToolContext(
            Workspace(workspace),
            workspace.parent / "out",
            lambda _: None,
            OutputCap(),
            call.call_id,
        )
        result = await run_tool(TOOLS, call.name, call.arguments, context)
        items.append(FunctionCallOutput(call.call_id, result.output, call.name))
    return calls


async def turn(
    gate: OfflineGateway, items: list[Item], workspace: Path
) -> list[list[FunctionCall]]:
    rounds = []
    while calls := await one_round(gate, items, workspace):
        rounds.append(calls)
    return rounds


def outputs(items: Sequence[Item]) -> list[str]:
    return [item.output for item in items if isinstance(item, FunctionCallOutput)]


async def test_exploring_is_a_long_run_of_calls_that_work(workspace: Path) -> None:
    items: list[Item] = [system("s"), user(EXPLORE)]
    rounds = await turn(gateway(workspace), items, workspace)
    assert len(rounds) >= 12
    assert any(len(calls) > 1 for calls in rounds)
    assert {call.name for calls in rounds for call in calls} == {
        "glob",
        "grep",
        "bash",
        "read_file",
        "write_file",
    }
    assert not [output for output in outputs(items) if output.startswith("Error")]
    assert len({call.call_id for calls in rounds for call in calls}) == sum(map(len, rounds))
    answer = items[-1].text
    assert "Ships and berths." in answer
    assert "no model was asked" in answer
    assert "Ships and berths." in (workspace / "NOTES-offline.md").read_text()
    assert (workspace / "odd name; rm -rf x.md").exists()


async def test_the_answer_comes_from_what_the_tools_gave(workspace: Path) -> None:
    items: list[Item] = [system("s"), user("Find every TODO and error in the logs")]
    await turn(gateway(workspace), items, workspace)
    answer = items[-1].text
    assert "`src/ships.py` line 7: # TODO: tides" in answer
    assert "40 ERROR" in answer
    assert "from 13:00:00 to 13:39:00: ERROR pilot boat N does not answer" in answer
    assert not (workspace / "NOTES-offline.md").exists()


async def test_same_seed_same_files_same_words(workspace: Path) -> None:
    runs: list[list[Item]] = [[system("s"), user(EXPLORE)] for _ in range(2)]
    for items in runs:
        await turn(gateway(workspace, seed=3), items, workspace)
        (workspace / "NOTES-offline.md").unlink()
    assert runs[0] == runs[1]
    other: list[Item] = [system("s"), user(EXPLORE)]
    await turn(gateway(workspace, seed=4), other, workspace)
    assert other != runs[0]


async def test_a_whole_log_overflows_a_small_window_and_the_work_goes_on(workspace: Path) -> None:
    gate = gateway(workspace, window=16_000)
    items: list[Item] = [system("s"), user(OUTAGE)]
    with pytest.raises(GatewayError) as caught:
        await turn(gate, items, workspace)
    error = caught.value
    assert error.kind is ErrorKind.OVERFLOW
    assert error.limit == 16_000
    assert error.used is not None
    assert error.used > 16_000

    done = [item for item in items if isinstance(item, FunctionCall)]
    asked = ModelRequest(
        model="m", items=(*items, user("Write a summary of this.")), tool_choice="none"
    )
    summary = (await gateway(workspace, window=10**6).complete(asked)).items[0].text
    after: list[Item] = [system("s"), CompactionSummary(summary, "Summary: "), user(OUTAGE)]
    for fresh in (gate, gateway(workspace)):
        resumed = list(after)
        (first, *_), *_ = await turn(fresh, resumed, workspace)
        assert (first.name, first.arguments) not in [(c.name, c.arguments) for c in done]
        assert "from 13:00:00 to 13:39:00" in resumed[-1].text


async def test_a_summary_keeps_goal_files_commands_and_findings(workspace: Path) -> None:
    items: list[Item] = [system("s"), user(EXPLORE)]
    await turn(gateway(workspace), items, workspace)
    request = ModelRequest(
        model="m", items=(*items, user("Summarise the work.")), tool_choice="none"
    )
    parts = [part async for part in gateway(workspace).stream(request)]
    *deltas, reply = parts
    assert isinstance(reply, ModelReply)
    text = reply.items[0].text
    assert "".join(part.text for part in deltas if isinstance(part, TextDelta)) == text
    assert EXPLORE in text
    assert "- src/tides.py" in text
    assert "- NOTES-offline.md" in text
    assert "wc -l" in text
    assert "Ships and berths." in text
    assert reply.stop is StopReason.STOP
    assert len(text) < 12_000


@pytest.mark.parametrize(
    "labels",
    [
        "[user] {goal}\n\n[tool call read_file] {call}\n\n[tool result read_file] {out}",
        "[User]: {goal}\n\n[Assistant tool call]: read_file({call})\n\n[Tool result]: {out}",
    ],
)
async def test_a_conversation_given_as_one_text_is_summarised_too(
    workspace: Path, labels: str
) -> None:
    text = labels.format(
        goal="Look at the tides",
        call=json.dumps({"path": "src/tides.py"}),
        out='     1\t"""When the water comes."""\n     2\tdef tide(hour):',
    )
    request = ModelRequest(model="m", items=(system("Summarise."), user(text)), tool_choice="none")
    summary = (await gateway(workspace).complete(request)).items[0].text
    assert "- src/tides.py" in summary
    assert "`src/tides.py`: When the water comes.; defines tide" in summary


async def test_what_an_earlier_summary_kept_is_in_the_next_one(workspace: Path) -> None:
    items: list[Item] = [system("s"), user(EXPLORE)]
    gate = gateway(workspace)
    for _ in range(5):
        await one_round(gate, items, workspace)
    summaries = []
    for _ in range(3):
        asked = ModelRequest(
            model="m", items=(*items, user("Write the summary.")), tool_choice="none"
        )
        summaries.append((await gate.complete(asked)).items[0].text)
        items = [system("s"), CompactionSummary(summaries[-1]), user(EXPLORE)]
    assert summaries[0] == summaries[1] == summaries[2]
    assert "Rounds done: 5." in summaries[2]


async def test_usage_is_counted_from_the_real_request(workspace: Path) -> None:
    gate = gateway(workspace)
    short = ModelRequest(model="m", items=(user("hello"),), tools=SCHEMAS)
    longer = ModelRequest(model="m", items=(user("hello " * 500),), tools=SCHEMAS)
    counter = CharClassCounter()
    tools = [
        {"name": t.name, "description": t.description, "parameters": t.parameters} for t in SCHEMAS
    ]
    parts = [*gate.wire_messages(short), *tools]
    expected = sum(
        counter.count_text(json.dumps(part, separators=(",", ":"), ensure_ascii=False))
        for part in parts
    )
    reply = await gate.complete(short)
    assert reply.usage is not None
    assert reply.usage.input_tokens == expected
    assert reply.usage.output_tokens > 0
    assert reply.usage.cached_tokens is None
    more = (await gate.complete(longer)).usage
    assert more is not None
    assert more.input_tokens > expected + 400
    assert gate.basis is Basis.ESTIMATED


async def test_the_shipped_vocabulary_counts_when_nothing_else_is_given(workspace: Path) -> None:
    gate = OfflineGateway(workspace)
    assert gate.basis is None
    await gate.complete(ModelRequest(model="m", items=(user("hello"),)))
    assert gate.basis is Basis.COUNTED


async def test_a_stream_that_was_left_does_not_count_as_a_round(workspace: Path) -> None:
    gate = gateway(workspace)
    request = ModelRequest(model="m", items=(user(EXPLORE),), tools=SCHEMAS)
    stream = gate.stream(request)
    first = await anext(stream)
    assert isinstance(first, TextDelta)
    whole = (await gate.complete(request)).items[0].text
    assert whole.startswith(first.text)


async def test_only_tools_that_are_offered_are_called(workspace: Path) -> None:
    gate = gateway(workspace)
    readers = tuple(schema for schema in SCHEMAS if schema.name in ("read_file", "glob"))
    called: set[str] = set()
    items: list[Item] = [user("Explore and write a report")]
    while True:
        reply = await gate.complete(ModelRequest(model="m", items=tuple(items), tools=readers))
        items.extend(reply.items)
        calls = [item for item in reply.items if isinstance(item, FunctionCall)]
        if not calls:
            break
        called |= {call.name for call in calls}
        items.extend(FunctionCallOutput(call.call_id, "x", call.name) for call in calls)
    assert called == {"read_file", "glob"}
    none = await gate.complete(ModelRequest(model="m", items=(user("hi"),)))
    assert none.stop is StopReason.STOP


async def test_running_the_tests_runs_them(workspace: Path) -> None:
    items: list[Item] = [user("Run the tests")]
    rounds = await turn(gateway(workspace), items, workspace)
    assert "unittest" in rounds[0][0].arguments
    assert "ended with: OK" in items[-1].text


async def test_an_edit_that_is_spelled_out_is_made(workspace: Path) -> None:
    items: list[Item] = [user("Replace 'hour % 12' with 'hour % 24' in src/ships.py")]
    (workspace / "src" / "ships.py").write_text("return hour % 12\n")
    await turn(gateway(workspace), items, workspace)
    assert (workspace / "src" / "ships.py").read_text() == "return hour % 24\n"


async def test_a_wish_to_compact_calls_the_tool_with_its_focus(workspace: Path) -> None:
    compact = ToolSchema("compact", "Compact.", {"type": "object"})
    items: list[Item] = [user("Explore, compact on the way with a focus on the tides.")]
    gate = gateway(workspace)
    focus = None
    while focus is None:
        request = ModelRequest(model="m", items=tuple(items), tools=(*SCHEMAS, compact))
        reply = await gate.complete(request)
        calls = [item for item in reply.items if isinstance(item, FunctionCall)]
        assert calls
        items.extend(reply.items)
        items.extend(FunctionCallOutput(call.call_id, "x", call.name) for call in calls)
        focus = next((json.loads(c.arguments)["focus"] for c in calls if c.name == "compact"), None)
    assert focus == "the tides"


async def test_going_on_is_the_same_task_and_asking_again_is_a_new_one(workspace: Path) -> None:
    gate = gateway(workspace)
    items: list[Item] = [user(EXPLORE)]
    first = await one_round(gate, items, workspace)
    items.append(user("continue"))
    second = await one_round(gate, items, workspace)
    assert (first[0].name, first[0].arguments) != (second[0].name, second[0].arguments)
    await turn(gate, items, workspace)
    items.append(Message(Role.USER, "Go on or ask.", synthetic=True))
    assert await one_round(gate, items, workspace) == []
    items.append(user(EXPLORE))
    again = await one_round(gate, items, workspace)
    assert (again[0].name, again[0].arguments) == (first[0].name, first[0].arguments)


async def test_an_empty_workspace_and_hostile_words_are_answered(
    tmp_path: Path, hostile_text: str
) -> None:
    items: list[Item] = [user(hostile_text or "hm")]
    await turn(gateway(tmp_path, window=10**6), items, tmp_path)
    assert items[-1].text


async def test_its_limits_are_stated(workspace: Path) -> None:
    limits = await gateway(workspace, window=5_000).limits("m")
    assert limits is not None
    assert limits.context_window == 5_000
    assert "offline" in limits.source
    assert "not a model" in OfflineGateway.name
