from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.context import Context
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.claude_tail import ClaudeTail
from thresher.core.sources.report import context_at, state_at

from .claude_rig import AGENT, FIXTURES, NAMES

every_session = pytest.mark.parametrize("name", NAMES)


def recording(name: str) -> bytes:
    return gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes())


def shown(context: Context) -> list[str]:
    return [item.text for item in context.items]


@every_session
def test_a_file_that_grows_by_pieces_ends_where_reading_it_whole_ends(
    name: str, tmp_path: Path
) -> None:
    path, data = tmp_path / "S.jsonl", recording(name)
    path.write_bytes(data[:10])
    tail = ClaudeTail(path)
    found = list(tail.more())
    for start in range(10, len(data), 40_009):
        with path.open("ab") as file:
            file.write(data[start : start + 40_009])
        found += tail.more()
    found += tail.more()
    whole = list(ClaudeSource(path).read())
    assert shown(context_at(found)) == shown(context_at(whole))
    followed, at_once = state_at(found), state_at(whole)
    assert followed.compactions == at_once.compactions
    assert followed.turns_total == at_once.turns_total
    assert not [problem for problem in followed.problems if problem.kind == "record"]


async def test_following_gives_what_is_appended_and_a_subagent_that_joins(tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    lines = recording("v2_1_197_subagent").splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]))
    stop, found = asyncio.Event(), list[e.Record]()

    async def follow() -> None:
        async for batch in ClaudeSource(path).follow(stop):
            found.extend(batch)
            kinds = [r.event.kind for r in found if isinstance(r.event, e.Note)]
            if "subagent" in kinds and not agents.exists():
                return
            if len(shown(context_at(found))) >= 4 and not agents.exists():
                agents.mkdir(parents=True)
                (agents / "agent-early.jsonl").write_bytes(recording(AGENT))
                with path.open("ab") as file:
                    file.write(b"".join(lines[6:]))
            if len(shown(context_at(found))) >= 8 and "subagent" in kinds:
                stop.set()

    agents = tmp_path / "S" / "subagents"
    await asyncio.wait_for(follow(), 20)
    notes = [r.event.text for r in found if isinstance(r.event, e.Note)]
    assert any("subagents/agent-early.jsonl" in note for note in notes)
    assert any("a7470dfd9d74177ee (general-purpose)" in note for note in notes)
    assert shown(context_at(found)) == shown(context_at(list(ClaudeSource(path).read())))


def test_a_subagent_that_a_result_told_of_is_not_told_twice(tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    path.write_bytes(recording("v2_1_197_subagent"))
    agents = tmp_path / "S" / "subagents"
    agents.mkdir(parents=True)
    (agents / "agent-a7470dfd9d74177ee.jsonl").write_bytes(recording(AGENT))
    notes = [r.event for r in ClaudeSource(path).read() if isinstance(r.event, e.Note)]
    assert len([note for note in notes if note.kind == "subagent"]) == 1


def test_a_compaction_is_told_when_its_file_falls_silent(tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    lines = recording("v2_1_197_auto_twice").splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:45]))
    tail = ClaudeTail(path)
    found = list(tail.more())
    with path.open("ab") as file:
        file.write(b"".join(lines[45:52]))
    found += tail.more()
    assert not state_at(found).compactions
    found += tail.more()
    state = state_at(found)
    assert state.compactions == 1
    assert len(state.context) == 11


def test_nothing_is_written_beside_a_transcript(tmp_path: Path) -> None:
    path = tmp_path / "project" / "S.jsonl"
    path.parent.mkdir()
    path.write_bytes(recording("v2_1_197_persisted_output"))
    path.chmod(0o400)
    path.parent.chmod(0o500)
    source = ClaudeSource(path)
    list(source.read())
    list(source.requests())
    assert [each.name for each in path.parent.iterdir()] == ["S.jsonl"]
    path.parent.chmod(0o700)
