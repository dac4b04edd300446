from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.agent.assemble import Setup, build_agent, prepare_setup
from thresher.core.config import load
from thresher.core.items import CompactionSummary, Message, Role, user
from thresher.core.sessions.resume import resume

from ..core.agent.rig import rig
from ..loopback import Call, Fail, Reply, Request, overflow

LIMIT = 1_500


def over_the_limit(text: str = "Long answer.") -> Reply:
    usage = {"prompt_tokens": LIMIT, "completion_tokens": 0, "total_tokens": LIMIT}
    return Reply(text, usage=usage)


def is_summary_request(request: Request) -> bool:
    return not request.body.get("tools")


def codex(tmp_path: Path, script: Any, **params: Any) -> Any:
    flags = {"compaction.policy": "codex"}
    return rig(tmp_path, script, flags=flags, params={"auto_limit": LIMIT, **params}, window=20_000)


def purposes(on: Any) -> list[str]:
    return ["summary" if is_summary_request(r) else "turn" for r in on.server.model_requests]


async def test_a_turn_that_ends_over_the_limit_is_compacted_before_the_next(tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        return Reply("Summary.") if is_summary_request(request) else over_the_limit("x" * 9_000)

    async with codex(tmp_path, script) as on:
        await on.agent.run_turn("First.")
        assert purposes(on) == ["turn"]
        await on.agent.run_turn("Second.")
        assert purposes(on) == ["turn", "summary", "turn"]
        assert "Second." not in on.server.model_requests[1].text
        (event,) = on.events(e.HistoryCompacted)
        assert event.phase == "pre_turn"
        items = on.session.state.context.items
        assert items[1] == user("First.")
        assert isinstance(items[2], CompactionSummary)
        assert items[3] == user("Second.")


async def test_a_session_taken_up_again_is_compacted_before_its_first_request(
    tmp_path: Path,
) -> None:
    def script(request: Request) -> Reply:
        return Reply("Summary.") if is_summary_request(request) else over_the_limit("x" * 9_000)

    async with codex(tmp_path, script) as on:
        setup = on.agent.prepare.setup
        await on.agent.run_turn("First.")
        on.session.close()
        with resume(on.session.path) as session:
            await build_agent(setup, session).run_turn("Second.")
            assert purposes(on) == ["turn", "summary", "turn"]


async def test_tool_output_over_the_limit_is_compacted_in_the_middle_of_a_turn(
    tmp_path: Path,
) -> None:
    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply("Summary.")
        if any(m.get("role") == "tool" for m in request.messages) or "Summary." in request.text:
            return Reply("Done.")
        return Reply("Reading.", (Call("read_file", {"path": "notes.txt"}),))

    async with codex(tmp_path, script, auto_limit=1_300) as on:
        await on.agent.run_turn("Read the notes.")
        (event,) = on.events(e.HistoryCompacted)
        assert event.phase == "mid_turn"
        assert purposes(on) == ["turn", "summary", "turn"]
        assert [m["role"] for m in on.server.model_requests[-1].messages] == [
            "system",
            "user",
            "user",
        ]


@pytest.fixture
def too_long() -> Any:
    """Requests for a summary are always too long."""

    def script(request: Request) -> Reply | Fail:
        if is_summary_request(request):
            return Fail(400, overflow(9_000, 8_000))
        if any(m.get("role") == "tool" for m in request.messages):
            return Reply("Done.")
        return Reply("Reading.", (Call("read_file", {"path": "notes.txt"}),))

    return script


async def test_a_failure_in_the_middle_of_a_turn_ends_it(tmp_path: Path, too_long: Any) -> None:
    async with codex(tmp_path, too_long, auto_limit=1_300) as on:
        assert await on.agent.run_turn("Read the notes.") == "failed"
        # Four items and the prompt, less the user's words, the answer, the pair.
        assert purposes(on) == ["turn", *["summary"] * 4]
        assert len(on.session.state.context) == 5
        assert on.valid()


async def test_a_failure_before_a_turn_records_the_message_and_sends_nothing(
    tmp_path: Path, too_long: Any
) -> None:
    params = {"auto_limit": 1_300, "overflow_count": "window"}
    async with codex(tmp_path, too_long, **params) as on:
        await on.agent.run_turn("Read the notes.")
        before = len(on.server.model_requests)
        assert await on.agent.run_turn("Are you there?") == "failed"
        assert set(purposes(on)[before:]) == {"summary"}
        assert all("Are you there?" not in r.text for r in on.server.model_requests)
        last = on.session.state.context.items[-1]
        assert last == Message(Role.USER, "Are you there?")


async def test_a_refused_request_ends_the_turn_and_the_next_one_compacts(tmp_path: Path) -> None:
    refused: list[bool] = []

    def script(request: Request) -> Reply | Fail:
        if is_summary_request(request):
            return Reply("Summary.")
        if not refused and any(m.get("role") == "tool" for m in request.messages):
            refused.append(True)
            return Fail(400, overflow(9_000, 8_000))
        if "Again" in request.text:
            return Reply("Done.")
        return Reply("Reading.", (Call("read_file", {"path": "notes.txt"}),))

    async with codex(tmp_path, script, auto_limit=3_000) as on:
        assert await on.agent.run_turn("Read the notes.") == "failed"
        assert purposes(on) == ["turn", "turn"]
        assert await on.agent.run_turn("Again") == "completed"
        assert purposes(on) == ["turn", "turn", "summary", "turn"]
        (event,) = on.events(e.HistoryCompacted)
        assert "filled up after a refused request" in event.reason


async def test_taken_up_with_a_smaller_model_the_one_before_writes_the_summary(
    tmp_path: Path,
) -> None:
    large = {"model.name": "large", "compaction.policy": "codex"}
    used = {"prompt_tokens": 6_000, "completion_tokens": 0, "total_tokens": 6_000}

    def script(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply("Summary.")
        return Reply("x" * 9_000, usage=used)

    async with rig(tmp_path, script, flags=large, window=20_000) as on:
        await on.agent.run_turn("First.")
        on.session.close()
        with resume(on.session.path) as session:
            setup = small_model(on.server.base_url, on.workspace)
            await build_agent(setup, session).run_turn("Second.")
            models = [request.body["model"] for request in on.server.model_requests]
            assert models == ["large", "large", "small"]
            (event,) = [
                r.event for r in session.history.records if isinstance(r.event, e.HistoryCompacted)
            ]
            await setup.gateway.aclose()
            assert event.reason.startswith("model_downshift in pre_turn: large (usable 19,000)")


def small_model(base_url: str, workspace: Path) -> Setup:
    settings = load(
        environ={},
        flags={
            "model.name": "small",
            "model.base_url": base_url,
            "model.wire": "chat",
            "model.key_variable": "",
            "model.window": 6_000,
            "compaction.policy": "codex",
        },
    )
    return prepare_setup(settings, workspace)
