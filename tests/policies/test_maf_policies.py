from __future__ import annotations

import tomllib
from typing import Any

import pytest
from msgspec.json import decode

from tests.core.compaction.rig import Rig, Scripted
from tests.strategies import context_of
from thresher.core import events as e
from thresher.core.compaction.gate import Amend
from thresher.core.compaction.policies.maf.bridge import Bridge
from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import Edit, FailureKind, Moment
from thresher.core.compaction.settings import Guard
from thresher.core.compaction.summariser import SummaryFailed
from thresher.core.context import Kept
from thresher.core.errors import ThresherError
from thresher.core.events import Outcome
from thresher.core.gateways.openai_chat import chat_messages
from thresher.core.gateways.openai_responses import response_input
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    Reasoning,
    Role,
    TextPart,
    assistant,
    system,
    user,
)
from thresher.core.jsontext import encode
from thresher.core.models import Budget, Fact
from thresher.core.validate import Dialect, validate


def spec(name: str, trigger: Any = "always", target: Any = None, **params: Any) -> dict[str, Any]:
    found = {"strategy": name, "params": params}
    if trigger is not None:
        found["trigger"] = trigger
    return found | ({} if target is None else {"target": target})


def net(*strategies: dict[str, Any]) -> Any:
    return make("maf-dotnet", {"strategies": list(strategies)})


def py(*strategies: dict[str, Any]) -> Any:
    return make("maf-python", {"strategies": list(strategies)})


def tool(number: int, output: str = "found", arguments: str = '{"path": "a.py"}') -> list[Item]:
    return [
        FunctionCall(f"c{number}", "read_file", arguments),
        FunctionCallOutput(f"c{number}", output),
    ]


LONG = "line of text\n" * 40
TWO_TURNS: tuple[Item, ...] = (
    system("You are an agent."),
    user("Fix the parser."),
    *tool(1, LONG, '{"path": "' + "deep/" * 30 + '"}'),
    assistant("Fixed."),
    user("And the tests."),
    *tool(2, LONG),
)


def budget(window: int, max_output: int) -> Budget:
    facts = [Fact(n, "test") for n in (window, max_output)]
    return Budget(facts[0], Fact(None, "test"), facts[1], Fact(None, "test"))


async def before_request(rig: Rig, **more: Any) -> Any:
    return await rig.offer(Moment.BEFORE_REQUEST, **more)


def kinds(rig: Rig) -> list[str]:
    return [str(entry.kind) for entry in rig.state.context]


# What reaches the context -------------------------------------------------------------------------


async def test_a_collapse_stands_in_the_place_of_its_group_in_the_models_own_name() -> None:
    rig = Rig(TWO_TURNS, net(spec("tool_result", minimum_preserved_groups=1)))
    await before_request(rig)
    (event,) = rig.told(e.HistoryCompacted)
    assert (event.stage, event.removed, event.inserted) == ("ToolResultCompaction", 2, 1)
    new = rig.state.context.entries[2]
    assert new.item == CompactionSummary(
        f"read_file:\n  - {LONG}", "[Tool Calls]\n", role=Role.ASSISTANT
    )
    assert [id.line for id in new.origin] == [3, 4]
    assert kinds(rig) == ["system", "user", "summary", "assistant", "user", "call", "output"]


async def test_every_strategy_of_a_pipeline_is_an_edit_of_its_own_in_one_pass() -> None:
    policy = net(
        spec("tool_result", minimum_preserved_groups=1),
        spec("summarization", target="never", minimum_preserved_groups=2),
        spec("truncation", target="never", minimum_preserved_groups=2),
    )
    rig = Rig(TWO_TURNS, policy)
    verdict = await before_request(rig)
    events = rig.told(e.HistoryCompacted)
    assert [event.stage for event in events] == [
        "ToolResultCompaction",
        "SummarizationCompaction",
        "TruncationCompaction",
    ]
    assert len({event.pass_id for event in events}) == 1
    assert verdict.outcome is Outcome.DONE
    assert [event.summary for event in events] == [None, "short", None]
    assert kinds(rig) == ["system", "user", "call", "output"]


async def test_the_summary_request_is_a_prompt_and_the_messages_as_they_are() -> None:
    writer = Scripted("short")
    policy = net(
        spec("summarization", target="never", minimum_preserved_groups=2, prompt="Sum up.")
    )
    await before_request(Rig(TWO_TURNS, policy, summarisers=[writer]))
    (ask,) = writer.asks
    assert ask.items == (system("Sum up."), *TWO_TURNS[1:5])
    assert ask.source == TWO_TURNS[1:5]


async def test_the_python_summary_request_is_a_prompt_and_a_transcript() -> None:
    writer = Scripted("  short \n")
    params = {"target_count": 2, "threshold": 0, "prompt": "Sum up."}
    rig = Rig(TWO_TURNS, py(spec("summarization", None, **params)), summarisers=[writer])
    await before_request(rig)
    prompt, transcript = writer.asks[0].items
    assert prompt == system("Sum up.")
    assert transcript.text.startswith(
        "1. [user] Fix the parser.\n2. [assistant] function_call read"
    )
    assert rig.state.context.entries[1].item == CompactionSummary("short", role=Role.ASSISTANT)


async def test_the_words_the_loop_says_in_one_go_are_one_message() -> None:
    context = context_of(
        (
            Reasoning("so"),
            assistant("Two at once."),
            *tool(1)[:1],
            *tool(2)[:1],
            *tool(1)[1:],
            *tool(2)[1:],
            assistant("one"),
            assistant("two"),
            Message(Role.DEVELOPER, "rules"),
            Message(Role.USER, (TextPart("see"), ImagePart("data:image/png;base64,AAAA"))),
        )
    )
    found = [(m.role, len(m.contents)) for m in Bridge(context).messages]
    assert found == [
        ("assistant", 4),
        ("tool", 2),
        ("assistant", 1),
        ("assistant", 1),
        ("system", 1),
        ("user", 2),
    ]


def test_a_summary_in_the_models_own_name_is_sent_as_its_words_in_both_protocols() -> None:
    said = CompactionSummary("S", "[Summary]\n", role=Role.ASSISTANT)
    assert chat_messages([said]) == [{"role": "assistant", "content": "[Summary]\nS"}]
    assert response_input([said]) == response_input([assistant("[Summary]\nS")])
    asked = (user("q"), said, user("r"))
    assert validate(asked, Dialect.STRICT) == []
    assert validate((user("q"), CompactionSummary("S"), user("r")), Dialect.STRICT) != []
    assert decode(encode(said), type=CompactionSummary) == said


# Faults -------------------------------------------------------------------------------------------


SHORT_ARGUMENTS = (user("q"), *tool(1, "a b c", "{}"), user("r"))


@pytest.mark.parametrize("guard", Guard)
async def test_a_collapse_that_grows_happens_marked_or_is_refused_and_the_rest_goes_on(
    guard: Guard,
) -> None:
    policy = net(
        spec("tool_result", minimum_preserved_groups=1),
        spec("truncation", target={"stop_after": 2}, minimum_preserved_groups=1),
    )
    rig = Rig(SHORT_ARGUMENTS, policy, guard=guard)
    await before_request(rig)
    stages = [event.stage for event in rig.told(e.HistoryCompacted)]
    if guard is Guard.REPORT:
        assert stages == ["ToolResultCompaction", "TruncationCompaction"]
        assert "would not shrink" in rig.told(e.HistoryCompacted)[0].marks[0]
    else:
        assert stages == ["TruncationCompaction"]
        (skipped,) = rig.told(e.CompactionSkipped)
        assert (skipped.outcome, skipped.stage) == (Outcome.GREW, "ToolResultCompaction")
    assert kinds(rig) == ["user"]


@pytest.mark.parametrize("guard", Guard)
async def test_a_late_result_loses_its_call_in_report_mode_alone(guard: Guard) -> None:
    call, output = tool(1, LONG)
    policy = net(spec("truncation", {"groups_exceed": 2}, minimum_preserved_groups=1))
    rig = Rig((call, user("well?" * 50), output), policy, guard=guard)
    await before_request(rig)
    if guard is Guard.REPORT:
        assert kinds(rig) == ["user", "output"]
        assert any("no call" in mark for mark in rig.told(e.HistoryCompacted)[0].marks)
    else:
        assert len(rig.state.context) == 3
        assert "refused" in rig.told(e.CompactionFailed)[0].reason


async def test_the_python_design_takes_a_late_result_along() -> None:
    call, output = tool(1, LONG)
    items = (call, user("well?"), output, user("thanks"))
    rig = Rig(items, py(spec("sliding_window", None, keep_last_groups=1)))
    await before_request(rig)
    assert rig.state.context.items == (user("thanks"),)


@pytest.mark.parametrize("guard", Guard)
async def test_the_last_fallback_may_take_the_system_message_in_report_mode_alone(
    guard: Guard,
) -> None:
    policy = make(
        "maf-python", {"strategies": [spec("token_budget", None, token_budget=5, strategies=[])]}
    )
    rig = Rig((system(LONG), user(LONG), user("go")), policy, guard=guard)
    await before_request(rig)
    assert kinds(rig) == (["user"] if guard is Guard.REPORT else ["system", "user"])


async def test_the_newest_user_message_goes_where_the_floor_is_full_and_the_card_says_so() -> None:
    items = (user(LONG), *tool(1, LONG), *tool(2, LONG))
    rig = Rig(items, net(spec("truncation", target="never", minimum_preserved_groups=2)))
    await before_request(rig)
    (event,) = rig.told(e.HistoryCompacted)
    assert "The newest user message is among what went." in event.reason
    assert kinds(rig) == ["call", "output", "call", "output"]


async def test_what_is_protected_may_stay_above_the_budget_and_that_is_told() -> None:
    policy = py(spec("context_window", None, max_context_window_tokens=200))
    rig = Rig((user("q"), assistant("a"), user(LONG * 4)), policy)
    await before_request(rig)
    assert rig.state.context.items == (user(LONG * 4),)
    (told,) = rig.told(e.CompactionSkipped)
    assert "above the input budget 200" in told.reason


# Summaries that fail ------------------------------------------------------------------------------


async def test_a_failed_summary_is_told_and_the_rest_of_the_pipeline_goes_on() -> None:
    policy = net(
        spec("summarization", minimum_preserved_groups=1),
        spec("truncation", minimum_preserved_groups=3),
    )
    writer = Scripted(SummaryFailed(FailureKind.PROVIDER, "the server is down"))
    rig = Rig(TWO_TURNS, policy, summarisers=[writer])
    await before_request(rig)
    (failed,) = rig.told(e.CompactionFailed)
    assert "down" in failed.reason
    assert [event.stage for event in rig.told(e.HistoryCompacted)] == ["TruncationCompaction"]


async def test_an_empty_summary_is_a_placeholder_in_one_design_and_nothing_in_the_other() -> None:
    writer = Scripted(SummaryFailed(FailureKind.EMPTY, "no text"))
    items = (*TWO_TURNS, assistant("Done."))
    one = Rig(
        items,
        net(spec("summarization", target="never", minimum_preserved_groups=1)),
        summarisers=[writer],
    )
    await before_request(one)
    assert one.state.context.entries[1].item.text == "[Summary]\n[Summary unavailable]"
    other = Rig(
        items, py(spec("summarization", None, target_count=1, threshold=0)), summarisers=[writer]
    )
    await before_request(other)
    assert other.state.context.items == items
    assert [event.outcome for event in other.told(e.CompactionFailed)] == [Outcome.EMPTY]


# The provider -------------------------------------------------------------------------------------


async def test_a_conversation_that_the_service_keeps_is_left_alone_visibly() -> None:
    rig = Rig(TWO_TURNS, make("maf-dotnet", {"conversation_id": " conv_1 "}))
    await before_request(rig)
    (skipped,) = rig.told(e.CompactionSkipped)
    assert "the service keeps the conversation conv_1" in skipped.reason
    assert rig.state.context.items == TWO_TURNS
    blank = Rig(TWO_TURNS, make("maf-dotnet", {"conversation_id": "  "}))
    assert not (await before_request(blank)).outcome


async def test_what_is_not_due_is_told_with_its_arithmetic_and_by_hand_as_an_event() -> None:
    for policy in (net(spec("truncation", {"tokens_exceed": 9000})), make("maf-python")):
        rig = Rig(TWO_TURNS, policy)
        verdict = await before_request(rig)
        assert verdict.outcome is None
        assert verdict.reason
        assert not rig.told(e.CompactionSkipped)
        await rig.offer(Moment.MANUAL)
        assert rig.told(e.CompactionSkipped)[0].reason == verdict.reason


async def test_with_an_unknown_window_shares_never_hold_and_say_so() -> None:
    for name in ("maf-dotnet", "maf-python"):
        rig = Rig(TWO_TURNS, make(name))
        verdict = await before_request(rig)
        assert "window is" in verdict.reason
        assert rig.state.context.items == TWO_TURNS


async def test_an_overflow_is_answered_by_a_second_try_where_the_engine_asks() -> None:
    policy = net(spec("truncation", minimum_preserved_groups=2))
    rig = Rig(TWO_TURNS, policy, also_at=frozenset({Moment.OVERFLOW}))
    assert (await rig.offer(Moment.OVERFLOW)).follow == "retry"


ONE_AND_A_BIT = (user("q1"), *tool(1, LONG), *tool(2, LONG), user("q2"), assistant(LONG))


async def test_turn_numbers_outlive_the_messages_that_began_them() -> None:
    beginning = spec(
        "truncation", {"groups_exceed": 4}, {"stop_after": 2}, minimum_preserved_groups=1
    )
    window = spec("sliding_window", {"turns_exceed": 2})
    rig = Rig(ONE_AND_A_BIT, net(beginning, window))
    await before_request(rig)
    assert kinds(rig) == ["call", "output", "user", "assistant"]
    rig.say(user("q3"))
    await before_request(rig)
    assert [item.text for item in rig.state.context.items] == ["q2", LONG, "q3"]

    # Another policy in between knows nothing of these turns: the call looks as before turn 1.
    rig = Rig(ONE_AND_A_BIT, net(beginning))
    await before_request(rig)
    rig.engine.set_policy(net(window))
    rig.say(user("q3"))
    await before_request(rig)
    assert len(rig.state.context) == 5


async def test_a_models_summary_stays_outside_the_turns_in_later_passes() -> None:
    policy = net(
        spec("summarization", {"messages_exceed": 4}, "never", minimum_preserved_groups=2),
        spec("sliding_window", {"turns_exceed": 2}),
    )
    turn = [user("q"), assistant(LONG)]
    rig = Rig(turn * 3, policy)
    await before_request(rig)
    assert kinds(rig) == ["summary", "user", "assistant"]
    rig.say(*turn, assistant("b"))
    await before_request(rig)
    assert kinds(rig)[0] == "summary"


async def test_after_an_edit_that_was_changed_by_hand_the_pass_ends() -> None:
    class Keeper:
        async def decide(self, proposal: Any) -> Any:
            first = proposal.context.entries[0].id.bare
            last = proposal.context.entries[-2].id.bare
            return Amend(Edit(stage="mine", reason="by hand", segments=(Kept(first, last),)))

    policy = net(
        spec("truncation", target={"stop_after": 1}, minimum_preserved_groups=1),
        spec("truncation", target="never", minimum_preserved_groups=1),
    )
    rig = Rig((user(LONG), assistant(LONG), user(LONG), assistant(LONG)), policy, gate=Keeper())
    await before_request(rig)
    assert kinds(rig) == ["user", "assistant", "user"]


# Settings -----------------------------------------------------------------------------------------


PIPELINE = """
[[strategies]]
strategy = "pipeline"

[[strategies.params.strategies]]
strategy = "tool_result"
trigger = { any = [{ tokens_exceed = 100 }, "never"] }
params = { minimum_preserved_groups = 1 }

[[strategies.params.strategies]]
strategy = "truncation"
trigger = { all = [{ turns_exceed = 1 }, { has_tool_calls = true }] }
target = { tokens_below = 60 }
params = { minimum_preserved_groups = 2 }
"""


async def test_a_pipeline_is_composed_from_toml() -> None:
    rig = Rig(TWO_TURNS, make("maf-dotnet", tomllib.loads(PIPELINE)))
    await before_request(rig)
    stages = [event.stage for event in rig.told(e.HistoryCompacted)]
    assert stages == ["ToolResultCompaction", "TruncationCompaction"]


def test_the_meter_shows_where_strategies_begin() -> None:
    marks = make("maf-dotnet").marks(budget(12_000, 2_000))
    assert [(mark.name, mark.tokens) for mark in marks] == [
        ("ToolResultCompaction", 5_000),
        ("SummarizationCompaction", 5_500),
        ("TruncationCompaction", 8_000),
    ]
    assert marks[0].source == "50% of the input budget 10,000"
    assert [m.tokens for m in make("maf-python").marks(budget(12_000, 2_000))] == [8_000]
    window = py(spec("context_window", None))
    assert [m.tokens for m in window.marks(budget(12_000, 2_000))] == [5_000, 8_000]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("maf-dotnet", {"strategies": [{"strategy": "truncate"}]}),
        ("maf-dotnet", {"strategies": [{"strategy": "truncation", "trigger": {"size": 1}}]}),
        ("maf-dotnet", {"strategies": [{"strategy": "truncation", "when": "always"}]}),
        ("maf-dotnet", {"truncation_share": 1.5}),
        ("maf-python", {"strategies": [{"strategy": "truncation"}]}),
        ("maf-python", {"target_count": 0}),
        ("maf-python", {"token_budget_share": 2}),
    ],
)
def test_what_cannot_be_is_refused_when_the_policy_is_made(name: str, params: Any) -> None:
    with pytest.raises(ThresherError) as refused:
        make(name, params)
    assert refused.value.title == "Policy setting refused"


async def test_a_window_smaller_than_the_output_is_told_and_changes_nothing() -> None:
    policy = net(spec("context_window", None))
    rig = Rig(TWO_TURNS, policy)
    rig.state.budget = budget(1_000, 2_000)
    await before_request(rig)
    (failed,) = rig.told(e.CompactionFailed)
    assert "does not fit the model" in failed.reason
    assert policy.marks(budget(1_000, 2_000)) == ()
