from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.agent.remote import RemoteCompactor
from thresher.core.compaction.policies.codex.estimate import estimate_all
from thresher.core.compaction.policies.codex.remote import (
    BLANKED,
    CodexRemote,
    CodexRemoteParams,
    blank_outputs,
)
from thresher.core.compaction.policy import (
    CompactRemotely,
    Edit,
    Failure,
    FailureKind,
    Follow,
    Moment,
    RequestShape,
    Skip,
    SkipKind,
    Summary,
    ToolSchema,
    Trigger,
)
from thresher.core.items import (
    CompactionSummary,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
    Role,
    TextPart,
    assistant,
    system,
    user,
)

from ..core.agent.rig import rig
from ..loopback import Call, Fail, Reply, Request
from ..strategies import context_of
from .codex_situations import applied, budget, harness, run, situation, work

NEW = CompactionSummary(encrypted="sealed")
SEALED = Summary("", "m", encrypted="sealed")
PICTURE = ImagePart("data:image/png;base64,AAAA")


def new_history(items: list[Item], **params: Any) -> tuple[Item, ...]:
    context = context_of(items)
    policy = CodexRemote(CodexRemoteParams(**params))
    segments, _ = policy.compacted(context, (), NEW)
    return context.apply(segments, 1_000, 1).after.items


def test_of_what_was_sent_only_what_users_and_hooks_said_stays() -> None:
    hook = harness("<hook_prompt>check</hook_prompt>")
    items = [
        harness("permissions", Role.DEVELOPER),
        Message(Role.SYSTEM, "later"),
        user("said"),
        hook,
        harness("<environment_context>"),
        Message(Role.ASSISTANT, "so far", phase="commentary"),
        Message(Role.ASSISTANT, "done", phase="final_answer"),
        *work("c"),
        CompactionSummary(encrypted="old"),
    ]
    assert new_history(items) == (user("said"), hook, NEW)


def test_what_does_not_stay_uses_up_no_budget() -> None:
    items = [
        user("said"),
        harness("x" * 400_000, Role.DEVELOPER),
        harness("# AGENTS.md instructions" + "y" * 400_000),
    ]
    assert new_history(items) == (user("said"), NEW)


def test_a_message_that_does_not_fit_is_cut_and_older_ones_go() -> None:
    items: list[Item] = [user("old-old"), user("middle1234"), user("new")]
    assert new_history(items, message_budget=3) == (
        user("midd…1 tokens truncated…1234"),
        user("new"),
        NEW,
    )


@pytest.mark.parametrize(("budget", "stays"), [(2, True), (1, False)])
def test_a_picture_alone_costs_one_token(budget: int, stays: bool) -> None:
    pictured = Message(Role.USER, (PICTURE,))
    after = new_history([pictured, user("new")], message_budget=budget)
    assert (pictured in after) is stays


def test_the_texts_of_a_message_are_cut_one_after_the_other_and_pictures_stay() -> None:
    message = Message(Role.USER, (TextPart("abcd"), PICTURE, TextPart("x" * 40), TextPart("never")))
    (cut, _) = new_history([message], message_budget=3)
    assert cut == Message(
        Role.USER, (TextPart("abcd"), PICTURE, TextPart("xxxx…8 tokens truncated…xxxx"))
    )


def test_a_message_of_another_agent_stays_unless_it_is_too_large() -> None:
    small = OtherItem("agent_message", "{}", "x" * 40)
    large = OtherItem("agent_message", "{}", "x" * 44)
    assert new_history([small, large, user("u")], agent_message_limit=10) == (small, user("u"), NEW)


def test_the_initial_context_stands_before_the_last_thing_the_user_said() -> None:
    fresh = (harness("env"),)
    at = situation([user("1"), user("2"), *work("c")], used=18_000, fresh=fresh)
    edit = run(CodexRemote(), at, SEALED)[-1]
    assert applied(at, edit).after.items == (user("1"), *fresh, user("2"), NEW)


def test_the_request_has_everything_with_the_normal_tools() -> None:
    tools = (ToolSchema("t", "d", {}),)
    shape = RequestShape("base", tools)
    items = [system("s"), user("u"), *work("c")]
    _, ask, _ = run(CodexRemote(), situation(items, used=18_000, shape=shape), SEALED)
    assert ask == CompactRemotely(tuple(items), instructions="base", tools=tools)


def test_outputs_at_the_end_are_blanked_until_the_request_fits() -> None:
    items = [user("u"), *work("a", "x" * 4_000)]
    items += [FunctionCallOutput("b", "y" * 4_000), FunctionCallOutput("c", "z" * 4_000)]
    assert blank_outputs(items, estimate_all(items)) == 0
    assert blank_outputs(items, 2_100) == 1
    assert [i.output[:1] for i in items if isinstance(i, FunctionCallOutput)] == ["x", "y", "O"]
    assert blank_outputs(items, 0) == 3
    assert all(i.output == BLANKED for i in items if isinstance(i, FunctionCallOutput))


def test_blanking_stops_at_the_first_item_that_is_no_output() -> None:
    items: list[Item] = [*work("a", "x" * 4_000), user("u")]
    assert blank_outputs(items, 0) == 0


def test_a_blanked_tool_search_is_an_empty_list() -> None:
    items: list[Item] = [FunctionCallOutput("a", '[{"name":"t"}]' * 90, "tool_search")]
    blank_outputs(items, 0)
    assert items == [FunctionCallOutput("a", "[]", "tool_search")]


def test_base_instructions_count_when_it_must_fit() -> None:
    items = [user("u"), *work("a", "x" * 4_000)]
    shape = RequestShape("i" * 70_000)
    steps = run(CodexRemote(), situation(items, used=18_500, window=19_000, shape=shape), SEALED)
    assert isinstance(steps[1], CompactRemotely)
    assert steps[1].items[-1] == FunctionCallOutput("a", BLANKED)
    assert isinstance(steps[-1], Edit)
    assert "1 output at the end went blank" in steps[-1].reason


@pytest.mark.parametrize(
    "answer", [Failure(FailureKind.PROVIDER, "two items"), Summary("text", "m")]
)
def test_without_one_sealed_item_the_turn_is_given_up(answer: Any) -> None:
    skip = run(CodexRemote(), situation([user("u")], used=18_000), answer)[-1]
    assert isinstance(skip, Skip)
    assert (skip.kind, skip.follow) == (SkipKind.FAILED, Follow.WAIT)


def test_after_a_change_of_model_the_one_before_compacts() -> None:
    at = situation(
        [user("u")],
        used=30_000,
        moment=Moment.MODEL_CHANGE,
        trigger=Trigger.MODEL_CHANGE,
        model="small",
        previous_model="large",
        previous_budget=budget(64_000),
    )
    steps = run(CodexRemote(), at, Failure(FailureKind.PROVIDER, "no"), SEALED)
    assert [s.model for s in steps if isinstance(s, CompactRemotely)] == ["large", ""]


# Over the wire --------------------------------------------------------------------------------

TRIGGER = {"type": "compaction_trigger"}


def endpoint(*answers: Reply | Fail) -> Any:
    """An endpoint that compacts when it is asked to, and reads notes otherwise."""
    left = list(answers)

    def script(request: Request) -> Reply | Fail:
        if request.messages[-1] == TRIGGER:
            return left.pop(0)
        calls = (Call("read_file", {"path": "notes.txt"}),)
        return Reply("Reading.", calls) if len(request.messages) == 2 else Reply("Done.")

    return script


def remote(tmp_path: Path, *answers: Reply | Fail, wire: str = "responses", **more: Any) -> Any:
    return rig(
        tmp_path,
        endpoint(*answers),
        wire=wire,
        flags={"compaction.policy": "codex-remote"},
        params={"auto_limit": 700},
        window=20_000,
        **more,
    )


async def test_the_endpoints_sealed_item_goes_back_to_it_unread(tmp_path: Path) -> None:
    async with remote(tmp_path, Reply("ignored", compactions=("c2VhbGVk",))) as on:
        await on.agent.run_turn("Read the notes.")
        compaction, following = on.server.model_requests[1:]
        assert compaction.messages[-1] == TRIGGER
        assert compaction.body["tools"]
        assert following.messages[-1] == {"type": "compaction", "encrypted_content": "c2VhbGVk"}
        (event,) = on.events(e.HistoryCompacted)
        assert (event.opaque, event.summary, event.stage) == (True, None, "remote")
        assert event.phase == "mid_turn"
        (cost,) = [u for u in on.events(e.UsageReported) if u.purpose is e.Purpose.COMPACTION]
        assert event.summariser.usage == cost.usage
        (sent,) = [r for r in on.events(e.RequestSent) if r.purpose is e.Purpose.COMPACTION]
        assert (sent.pass_id, len(sent.digests)) == (event.pass_id, len(compaction.messages))


@pytest.mark.parametrize("sealed", [(), ("one", "two")])
async def test_an_endpoint_that_gives_none_or_two_ends_the_turn(
    tmp_path: Path, sealed: tuple[str, ...]
) -> None:
    async with remote(tmp_path, Reply("I cannot.", compactions=sealed)) as on:
        assert await on.agent.run_turn("Read the notes.") == "failed"
        (failed,) = on.events(e.CompactionFailed)
        assert f"{len(sealed)} sealed items" in failed.reason
        assert len(on.server.model_requests) == 2


@pytest.mark.parametrize(("faults", "attempts"), [(2, 3), (3, 3)])
async def test_a_server_fault_is_tried_again_at_most_twice(
    tmp_path: Path, faults: int, attempts: int
) -> None:
    busy = Fail(503, {"error": {"message": "busy"}})
    async with remote(tmp_path, *[busy] * faults, Reply(compactions=("c2Vh",))) as on:
        compactor = RemoteCompactor(
            on.session,
            on.agent.asker.gateway,
            model="loop-model",
            measure=on.agent.measure,
            retrying=on.agent.asker.retrying,
        )
        answer = await compactor(CompactRemotely((user("u"),)), "p1")
        assert answer.attempts == attempts
        assert isinstance(answer, Summary) is (faults < 3)
        assert len(on.events(e.SummaryAttemptFailed)) == faults


async def test_a_protocol_without_it_says_so(tmp_path: Path) -> None:
    async with remote(tmp_path, wire="chat") as on:
        await on.agent.run_turn("Read the notes.")
        (failed,) = on.events(e.CompactionFailed)
        assert failed.kind == "unsupported"
        assert "responses" in failed.reason
        assert assistant("Done.") not in on.session.state.context.items
