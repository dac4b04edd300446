from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.claude_code import ClaudeSource
from thresher.core.sources.claude_discover import FINDER, claude_files, claude_home
from thresher.core.sources.finders import finder_named, finders
from thresher.tui.cli import known
from thresher.tui.found import find_sessions

from .claude_made import Made, text
from .claude_rig import AGENT, FIXTURES

PARENT = "04cbf1f5-9dfb-4db7-a19e-06dcceba91d8"
"""The session that the recorded subagent belongs to."""


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "claude"


def put(home: Path, id: str, name: str, age: int) -> Path:
    path = home / "projects" / "-home-user-project" / f"{id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes()))
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def test_sessions_come_newest_first_with_what_their_beginning_tells(claude: Path) -> None:
    old = put(claude, "aaa", "v1_0_128_auto_manual", age=90)
    new = put(claude, PARENT, "v2_1_197_manual_hooks", age=10)
    put(claude, "agent-ccc", AGENT, age=1)
    put(claude, f"{PARENT}/subagents/agent-ddd", AGENT, age=1)
    found = list(FINDER.sessions())
    assert [each.path for each in found] == [new, old]
    assert [each.compactions for each in found] == [2, 13]
    last = found[-1]
    assert last.title.startswith("Read log1.txt to log6.txt")
    assert (last.id, last.model, last.version) == ("aaa", "claude-sonnet-4-20250514", "1.0.128")
    assert (last.agent, last.cwd, last.problem) == ("claude-code", "/home/user/project", "")
    assert last.running is None
    assert found[0].title == "Check log1 and log2."


def test_a_file_of_titles_and_a_broken_file_are_listed_with_the_reason(claude: Path) -> None:
    folder = claude / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text('{"type":"summary","summary":"A title","leafUuid":"x"}\n')
    (folder / "b.jsonl").write_bytes(b"\x00garbage\n17\n")
    found = {each.id: each for each in FINDER.sessions()}
    assert (found["a"].title, found["a"].problem) == (
        "A title",
        "holds nothing but titles of other sessions",
    )
    assert found["b"].problem == "its beginning is not that of a session"


def test_an_empty_file_that_a_resume_left_has_no_row(claude: Path) -> None:
    session = put(claude, "aaa", "v2_0_76_auto_manual", age=90)
    session.with_name("bbb.jsonl").write_bytes(b"")
    assert [each.id for each in FINDER.sessions()] == ["aaa"]


def test_a_quoted_boundary_is_not_counted(claude: Path) -> None:
    made = Made()
    made.user('{"subtype":"compact_boundary"}')
    made.write(claude / "projects" / "p" / "a.jsonl")
    assert [each.compactions for each in FINDER.sessions()] == [0]


def test_without_the_variable_it_is_the_home_directory(home: Path) -> None:
    assert claude_home() == home / ".claude"
    assert claude_files() == []


def test_every_finder_goes_by_a_word_of_its_own() -> None:
    words = [word for finder in finders() for word in finder.words]
    assert len(words) == len(set(words))
    assert finder_named("claude") is FINDER
    assert finder_named("nobody") is None


def test_latest_and_the_beginning_of_an_id_find_a_session(claude: Path) -> None:
    old = put(claude, "aaa", "v2_1_197_subagent", age=90)
    new = put(claude, "bbb", "v2_1_197_subagent", age=10)
    assert known.latest("claude") == known.latest() == new
    assert known.by_id("aa") == old
    with pytest.raises(ThresherError, match="no Codex session"):
        known.latest("codex")
    with pytest.raises(ThresherError, match="known are thresher, codex, claude"):
        known.latest("nobody")


def test_no_session_at_all_is_one_sentence(claude: Path) -> None:
    with pytest.raises(ThresherError, match=r"no Claude Code session under .*CLAUDE_CONFIG_DIR"):
        known.latest("claude")


def test_the_picker_lists_them(claude: Path, tmp_path: Path) -> None:
    put(claude, "aaa", "v2_1_197_auto_twice", age=1)
    rows = [row for batch in find_sessions(tmp_path / "own", tmp_path / "codex") for row in batch]
    assert [(row.agent, row.id, row.compactions) for row in rows] == [("claude-code", "aaa", 2)]


def test_a_subagent_whose_session_is_gone_has_a_row(claude: Path) -> None:
    beside = put(claude, "agent-ccc", AGENT, age=1)
    within = put(claude, "bbb/subagents/agent-ddd", AGENT, age=2)
    found = list(FINDER.sessions())
    assert [each.path for each in found] == [beside, within]
    assert found[0].title.startswith("subagent (its session is gone): SUBTASK: count the lines")
    put(claude, PARENT, "v2_1_197_subagent", age=3)
    put(claude, "bbb", "v2_1_197_subagent", age=4)
    assert [each.id for each in FINDER.sessions()] == [PARENT, "bbb"]


def warmup(path: Path, session: str) -> None:
    made = Made()
    made.user("Warmup", isSidechain=True, agentId="w", sessionId=session)
    made.says("m1", text("ready"), isSidechain=True, agentId="w", sessionId=session)
    made.write(path)


def test_a_warm_up_agent_never_has_a_row(claude: Path) -> None:
    warmup(claude / "projects" / "p" / "agent-w.jsonl", "gone")
    assert list(FINDER.sessions()) == []


def test_agents_beside_a_session_join_it_and_those_of_other_sessions_do_not(claude: Path) -> None:
    session = put(claude, PARENT, "v2_0_76_auto_manual", age=1)
    put(claude, "agent-a7470dfd9d74177ee", AGENT, age=1)
    other = put(claude, "bbb", "v2_0_76_auto_manual", age=1)
    warmup(session.with_name("agent-w.jsonl"), PARENT)
    rows = [note_rows(ClaudeSource(path).read()) for path in (session, other)]
    assert rows == [
        ["subagent a7470dfd9d74177ee has a session of its own: agent-a7470dfd9d74177ee.jsonl"],
        [],
    ]


def note_rows(records: Iterable[e.Record]) -> list[str]:
    events = [record.event for record in records]
    return [each.text for each in events if isinstance(each, e.Note) and each.kind == "subagent"]
