from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.compaction.policies.opencode.checkpoint import last_checkpoint
from thresher.core.compaction.policies.opencode_v1 import OpenCodeV1, OpenCodeV1Params
from thresher.core.compaction.policies.opencode_v2 import OpenCodeV2, OpenCodeV2Params
from thresher.core.compaction.policy import Moment
from thresher.core.compaction.settings import Guard
from thresher.core.items import FunctionCall, FunctionCallOutput

from .opencode_db import FIXTURES, Recording, block, recording, wire
from .opencode_drive import Driven, live_v1, live_v2

V1 = (
    "v1-one-summary",
    "v1-two-summaries",
    "v1-prune",
    "v1-overflow-recovered",
    "v1-overflow-failed",
    "v1-tool-output",
)
V2 = ("v2-two-summaries", "v2-overflow-recovered", "v2-never-compacts", "v2-tool-output")


def policy_v1(recorded: Recording) -> OpenCodeV1:
    goes_on = next((message.text for message in recorded.v1 if message.goes_on), "")
    return OpenCodeV1(OpenCodeV1Params(continue_text=goes_on, **recorded.compaction))


def policy_v2(recorded: Recording) -> OpenCodeV2:
    told = recorded.compaction
    params: dict[str, Any] = {}
    if "reserved" in told:
        params["buffer"] = told["reserved"]
    if "preserve_recent_tokens" in told:
        params["keep"] = told["preserve_recent_tokens"]
    for row in recorded.of_kind("main"):
        text = row["request"]["messages"][1]["content"]
        if text.startswith("<conversation-checkpoint>"):
            params["checkpoint_text"] = text.splitlines()[1]
    return OpenCodeV2(OpenCodeV2Params(**params))


def in_order(recorded: Recording, requests: list[Any]) -> int:
    """How many recorded requests are among ours, one after the other."""
    found, at = 0, 0
    for row in recorded.of_kind("main"):
        expected = wire(row["request"]["messages"])
        while at < len(requests) and requests[at] != expected:
            at += 1
        if at == len(requests):
            return found
        found, at = found + 1, at + 1
    return found


def same_summary_requests(recorded: Recording, driven: Driven) -> None:
    asked = recorded.of_kind("summary")
    assert len(driven.scripted.asks) == len(asked)
    for ours, theirs in zip(driven.scripted.asks, asked, strict=True):
        (item,) = ours.items
        text = theirs["request"]["messages"][-1]["content"]
        for tag in ("conversation", "prior-summary"):
            assert block(item.text, tag) == block(text, tag)
        assert ours.max_output == theirs["request"]["max_tokens"]


@pytest.mark.parametrize("name", V1)
async def test_a_v1_session_lived_again_makes_the_recorded_requests(
    name: str, tmp_path: Path
) -> None:
    recorded = recording(name, tmp_path)
    driven, requests = await live_v1(recorded, policy_v1(recorded), Guard.REPORT)
    assert in_order(recorded, requests) == len(recorded.of_kind("main"))
    same_summary_requests(recorded, driven)


@pytest.mark.parametrize("name", [name for name in V1 if "failed" not in name])
async def test_a_v1_session_is_the_same_in_enforce_mode(name: str, tmp_path: Path) -> None:
    recorded = recording(name, tmp_path)
    driven, requests = await live_v1(recorded, policy_v1(recorded), Guard.ENFORCE)
    assert in_order(recorded, requests) == len(recorded.of_kind("main"))
    assert not driven.told(e.CompactionFailed)


@pytest.mark.parametrize("name", ["v1-one-summary", "v1-two-summaries", "v1-overflow-recovered"])
async def test_a_v1_tail_begins_at_the_recorded_message(name: str, tmp_path: Path) -> None:
    recorded = recording(name, tmp_path)
    driven, _ = await live_v1(recorded, policy_v1(recorded), Guard.ENFORCE)
    expected = [
        message.compaction.get("tail_start_id", "")
        for message in recorded.v1
        if message.compaction is not None
    ]
    replayed = [not start for start in expected]
    ours = driven.tail_starts()
    # Without a tail, what is kept behind the summary is the message that is said again.
    assert ["" if again else start for start, again in zip(ours, replayed, strict=True)] == expected


async def test_a_prune_clears_the_recorded_outputs(tmp_path: Path) -> None:
    recorded = recording("v1-prune", tmp_path)
    driven, _ = await live_v1(recorded, policy_v1(recorded), Guard.ENFORCE)
    expected = [id for message in recorded.v1 for id in message.cleared]
    placeholder = OpenCodeV1Params().placeholder
    cleared = [
        item.call_id
        for item in driven.state.context.items
        if isinstance(item, FunctionCallOutput) and item.output == placeholder
    ]
    assert cleared == expected
    (event,) = driven.told(e.HistoryCompacted)
    assert event.stage == "prune"
    assert event.replaced == 4
    # The program's own log: pruned 41454 of 72562 tokens.
    assert event.reason.startswith("41,454 of 72,562 tokens")


async def test_pruning_is_off_as_shipped(tmp_path: Path) -> None:
    recorded = recording("v1-prune", tmp_path)
    driven, _ = await live_v1(recorded, OpenCodeV1(), Guard.ENFORCE)
    assert not driven.told(e.HistoryCompacted)


async def test_a_failed_v1_compaction_leaves_its_question_and_its_card_says_so(
    tmp_path: Path,
) -> None:
    recorded = recording("v1-overflow-failed", tmp_path)
    driven, _ = await live_v1(recorded, policy_v1(recorded), Guard.REPORT)
    left = driven.told(e.HistoryCompacted)
    assert [event.stage for event in left] == ["failed compaction"] * 2
    assert all(any("fault of the system itself" in m for m in event.marks) for event in left)


async def test_enforce_mode_keeps_that_question_out_and_says_why(tmp_path: Path) -> None:
    recorded = recording("v1-overflow-failed", tmp_path)
    driven, _ = await live_v1(recorded, policy_v1(recorded), Guard.ENFORCE)
    assert not driven.told(e.HistoryCompacted)
    assert len(driven.told(e.CompactionFailed)) == 2
    assert all(
        "question behind without an answer" in event.reason
        for event in driven.told(e.CompactionSkipped)
    )
    assert "What did we do so far?" not in [message["content"] for message in driven.wire]


@pytest.mark.parametrize("name", V2)
async def test_a_v2_session_lived_again_makes_the_recorded_requests(
    name: str, tmp_path: Path
) -> None:
    recorded = recording(name, tmp_path)
    driven, requests = await live_v2(recorded, policy_v2(recorded))
    assert in_order(recorded, requests) == len(recorded.of_kind("main"))
    same_summary_requests(recorded, driven)
    assert len(driven.told(e.HistoryCompacted)) == sum(r.type == "compaction" for r in recorded.v2)


async def test_the_recent_text_is_the_recorded_one(tmp_path: Path) -> None:
    for name in ("v2-two-summaries", "v2-overflow-recovered"):
        recorded = recording(name, tmp_path)
        driven, _ = await live_v2(recorded, policy_v2(recorded))
        last = [row.data for row in recorded.v2 if row.type == "compaction"][-1]
        checkpoint = last_checkpoint(driven.state.context)
        assert checkpoint is not None
        assert (checkpoint.summary, checkpoint.recent) == (last["summary"], last["recent"])


async def test_a_v2_session_that_only_reads_says_why_it_never_compacts(tmp_path: Path) -> None:
    recorded = recording("v2-never-compacts", tmp_path)
    driven, _ = await live_v2(recorded, policy_v2(recorded))
    refusals = driven.told(e.CompactionSkipped)
    assert refusals
    assert all("nothing is left to summarise" in event.reason for event in refusals)


class Elsewhere:
    """Keeps nothing, and names the path that the recording has."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.text = ""

    def save(self, name: str, text: str) -> str:
        self.text = text
        return self.path


@pytest.mark.parametrize("name", ["v1-tool-output", "v2-tool-output"])
async def test_a_long_output_enters_as_recorded(name: str, tmp_path: Path) -> None:
    recorded = recording(name, tmp_path)
    (file,) = (FIXTURES / name).glob("tool_*.gz")
    whole = gzip.decompress(file.read_bytes()).decode()
    bounds = recorded.config["tool_output"]
    policy: OpenCodeV1 | OpenCodeV2
    if recorded.v1:
        policy, messages = OpenCodeV1(OpenCodeV1Params(**bounds)), [m.items for m in recorded.v1]
    else:
        policy, messages = OpenCodeV2(OpenCodeV2Params(**bounds)), [r.items for r in recorded.v2]
    items = [item for message in messages for item in message]
    expected = next(i for i in items if isinstance(i, FunctionCallOutput) and i.name == "bash")
    store = Elsewhere(f"/home/user/.local/share/opencode/tool-output/{file.stem}")
    driven = Driven(policy, recorded.budget, store=store)
    driven.say("", *(i for i in items if isinstance(i, FunctionCall) and i.name == "bash"))
    fresh = FunctionCallOutput(expected.call_id, whole, "bash")
    verdict = await driven.offer(Moment.TOOL_OUTPUT, fresh_output=fresh)
    assert verdict.output is not None
    assert verdict.output.output == expected.output
    assert verdict.output.saved == store.path
    assert store.text == whole
