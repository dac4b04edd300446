from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from thresher.core.agent.approvals import (
    ApprovalPolicy,
    ApprovalRequest,
    Approvals,
    Decision,
    Mode,
    Remembered,
    Ruling,
    refused,
)
from thresher.core.agent.tools.registry import builtin_tools

SPECS = {name: tool.spec for name, tool in builtin_tools().items()}
READ, BASH, WRITE, EDIT = (SPECS[name] for name in ("read_file", "bash", "write_file", "edit_file"))
LS = {"command": "ls"}


@pytest.mark.parametrize(
    ("mode", "read", "write"),
    [
        (Mode.ASK, Ruling.ALLOW, Ruling.ASK),
        (Mode.YES, Ruling.ALLOW, Ruling.ALLOW),
        (Mode.READ_ONLY, Ruling.ALLOW, Ruling.DENY),
    ],
)
def test_the_mode_decides_when_nothing_is_remembered(
    mode: Mode, read: Ruling, write: Ruling
) -> None:
    policy = ApprovalPolicy(mode)
    for spec in SPECS.values():
        assert policy.check(spec, LS, Remembered()) is (read if spec.read_only else write)


def test_once_leaves_no_trace() -> None:
    remembered = Remembered().after(BASH, LS, Decision.ONCE)
    assert ApprovalPolicy().check(BASH, LS, remembered) is Ruling.ASK


def test_a_session_answer_for_bash_reaches_only_the_exact_command() -> None:
    remembered = Remembered().after(BASH, LS, Decision.SESSION)
    policy = ApprovalPolicy()
    assert policy.check(BASH, {"command": "ls", "timeout": 5}, remembered) is Ruling.ALLOW
    for command in ("ls -a", "ls; rm -rf x", " ls", ""):
        assert policy.check(BASH, {"command": command}, remembered) is Ruling.ASK


def test_a_session_answer_for_another_tool_reaches_that_tool() -> None:
    remembered = Remembered().after(WRITE, {"path": "a"}, Decision.SESSION)
    assert ApprovalPolicy().check(WRITE, {"path": "b"}, remembered) is Ruling.ALLOW
    assert ApprovalPolicy().check(EDIT, {"path": "a"}, remembered) is Ruling.ASK


@pytest.mark.parametrize("mode", Mode)
def test_never_holds_in_every_mode(mode: Mode) -> None:
    remembered = Remembered().after(BASH, LS, Decision.NEVER)
    assert ApprovalPolicy(mode).check(BASH, LS, remembered) is Ruling.DENY


def test_read_only_outweighs_what_was_allowed_before() -> None:
    remembered = Remembered().after(WRITE, {}, Decision.SESSION)
    assert ApprovalPolicy(Mode.READ_ONLY).check(WRITE, {}, remembered) is Ruling.DENY


def test_the_last_answer_counts_and_earlier_memories_stay_as_they_were() -> None:
    first = Remembered().after(WRITE, {}, Decision.NEVER)
    second = first.after(WRITE, {}, Decision.SESSION)
    assert ApprovalPolicy().check(WRITE, {}, first) is Ruling.DENY
    assert ApprovalPolicy().check(WRITE, {}, second) is Ruling.ALLOW


def test_the_request_says_how_far_an_answer_reaches() -> None:
    assert ApprovalRequest("c", BASH, LS).scope == "this exact command"
    assert ApprovalRequest("c", WRITE, {}).scope == "every call of write_file"


def test_a_refusal_tells_the_model_how_to_go_on() -> None:
    by_user = refused(BASH, Mode.ASK)
    assert not by_user.ok
    assert "refused this exact command" in by_user.output
    assert "read-only" in refused(WRITE, Mode.READ_ONLY).output


class Answers:
    def __init__(self, *decisions: Decision) -> None:
        self.asked: list[ApprovalRequest] = []
        self.standing = 0
        self._decisions: Iterator[Decision] = iter(decisions)

    async def ask(self, request: ApprovalRequest) -> Decision:
        assert self.standing == 0
        self.standing += 1
        self.asked.append(request)
        await asyncio.sleep(0)
        self.standing -= 1
        return next(self._decisions)


async def test_only_what_the_rule_leaves_open_is_asked() -> None:
    user = Answers(Decision.ONCE, Decision.ONCE)
    approvals = Approvals(ApprovalPolicy(), user)
    assert await approvals.allow("1", READ, {"path": "a"}) is None
    assert await approvals.allow("2", BASH, LS) is None
    assert await approvals.allow("3", BASH, LS) is None
    assert [(request.call_id, request.tool) for request in user.asked] == [
        ("2", "bash"),
        ("3", "bash"),
    ]


async def test_calls_side_by_side_are_asked_one_by_one_and_share_an_answer() -> None:
    user = Answers(Decision.SESSION)
    approvals = Approvals(ApprovalPolicy(), user)
    calls = [approvals.allow(str(number), WRITE, {"path": str(number)}) for number in range(5)]
    assert await asyncio.gather(*calls) == [None] * 5
    assert len(user.asked) == 1


async def test_a_refusal_holds_without_asking_again() -> None:
    user = Answers(Decision.NEVER)
    approvals = Approvals(ApprovalPolicy(), user)
    for call_id in "12":
        result = await approvals.allow(call_id, BASH, LS)
        assert result is not None
        assert not result.ok
    assert len(user.asked) == 1


@pytest.mark.parametrize(
    ("mode", "told"), [(Mode.ASK, "nobody can be asked"), (Mode.READ_ONLY, "read-only")]
)
async def test_where_nobody_can_be_asked_it_is_refused(mode: Mode, told: str) -> None:
    approvals = Approvals(ApprovalPolicy(mode))
    assert await approvals.allow("1", READ, {}) is None
    result = await approvals.allow("2", BASH, LS)
    assert result is not None
    assert told in result.output


async def test_an_interrupted_question_remembers_nothing_and_frees_the_next() -> None:
    class Silent:
        async def ask(self, request: ApprovalRequest) -> Decision:
            await asyncio.Event().wait()
            return Decision.SESSION

    approvals = Approvals(ApprovalPolicy(), Silent())
    task = asyncio.create_task(approvals.allow("1", BASH, LS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert approvals.remembered == Remembered()
    again = asyncio.create_task(approvals.allow("2", BASH, LS))
    await asyncio.sleep(0)
    assert not again.done()
    again.cancel()
