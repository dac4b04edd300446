from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.items import assistant, user
from thresher.core.ledger import item_tokens
from thresher.core.sessions.session import Session
from thresher.core.tokenizer import load as load_vocabulary
from thresher.core.tokens import Basis
from thresher.tui.found import find_sessions
from thresher.tui.opening import open_file, recount
from thresher.tui.places import from_home

from .opened import until_behind

RECORDED = Path(__file__).parents[2] / "screenshots" / "sessions"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    started = e.SessionStarted(session_id="", agent="thresher", title="the title", model="gpt-5")
    session = Session.create(tmp_path / "sessions", started)
    session.emit(e.TurnStarted(turn=1))
    session.emit(e.ItemAppended(item=user("how many lines are there?"), turn=1))
    return session


@pytest.fixture
def rollout(tmp_path: Path) -> Path:
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    path = folder / "rollout-2026-11-30T04-11-02-01a22aa6-8f2d-7000-8000-000000000000.jsonl"
    path.write_bytes(gzip.decompress((RECORDED / "codex-two-mid-turn.jsonl.gz").read_bytes()))
    return path


async def test_a_journal_opens_as_it_was_recorded(session: Session) -> None:
    session.emit(e.ItemAppended(item=assistant("42"), turn=1))
    for path in (session.path, session.folder):
        opened = await open_file(path)
        assert opened.model.state.context.digest() == session.state.context.digest()
        assert opened.title == "the title"
        assert not opened.live


async def test_what_is_appended_later_arrives(session: Session) -> None:
    opened = await open_file(session.path, count=False)
    session.emit(e.ItemAppended(item=assistant("42"), turn=1))
    await until_behind(opened, lambda: len(opened.model.state.context) == 2)
    assert opened.model.history.records == session.history.records


async def test_a_line_that_is_still_being_written_waits_for_its_end(session: Session) -> None:
    record = session.emit(e.ItemAppended(item=assistant("42"), turn=1))
    whole = session.path.read_bytes()
    session.path.write_bytes(whole[:-20])
    opened = await open_file(session.path, count=False)
    assert len(opened.model.state.context) == 1
    assert not opened.model.state.problems
    session.path.write_bytes(whole)
    await until_behind(opened, lambda: len(opened.model.state.context) == 2)
    assert opened.model.history.records[-1] == record


async def test_a_bad_line_is_a_row_and_the_rest_is_there(session: Session) -> None:
    lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(b"".join([lines[0], b"[1, 2\n", *lines[1:]]))
    opened = await open_file(session.path, count=False)
    assert len(opened.model.state.context) == 1
    assert [problem.kind for problem in opened.model.state.problems] == ["bad line"]


async def test_a_codex_rollout_opens_and_goes_on(rollout: Path) -> None:
    lines = rollout.read_bytes().splitlines(keepends=True)
    rollout.write_bytes(b"".join(lines[:30]))
    opened = await open_file(rollout, count=False)
    assert opened.model.state.agent == "codex"
    assert opened.model.state.compactions == 1
    with rollout.open("ab") as file:
        file.writelines(lines[30:])
    await until_behind(
        opened, lambda: opened.model.state.compactions == 2 and opened.model.behind == 0
    )
    assert opened.model.state.title == "Read the whole log in parts and summarise it."


async def test_figures_are_estimates_until_a_thread_has_counted(rollout: Path) -> None:
    opened = await open_file(rollout, follow=False)
    told: list[bool] = []
    opened.recounted = lambda: told.append(True)
    opened.model.step(-5)
    state = opened.model.state
    assert state.basis is Basis.ESTIMATED
    before = state.messages_tokens.value
    await recount(opened)
    assert told == [True]
    exact = sum(item_tokens(load_vocabulary(), entry.item) for entry in state.context)
    assert opened.model.rewound
    assert opened.model.state.messages_tokens.value == exact != before


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (None, "No such file"),
        (b"", "Empty file"),
        (b"hello\nworld\n", "Unknown format"),
        (b'{"a": 1}\n', "Unknown format"),
        (b"\x28\xb5\x2f\xfd....", "Unreadable file"),
    ],
)
async def test_a_file_that_is_no_session_is_refused_in_a_sentence(
    tmp_path: Path, content: bytes | None, title: str
) -> None:
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ThresherError) as raised:
        await open_file(path)
    assert raised.value.title == title
    assert str(path) in raised.value.msg


async def test_a_folder_that_is_no_session_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ThresherError):
        await open_file(tmp_path)


def test_sessions_of_both_agents_are_found(session: Session, rollout: Path, tmp_path: Path) -> None:
    batches = list(find_sessions(tmp_path / "sessions", tmp_path / "codex"))
    own, codex = [row for batch in batches for row in batch]
    assert (own.agent, own.title, own.model, own.running) == (
        "thresher",
        "the title",
        "gpt-5",
        True,
    )
    assert (codex.agent, codex.compactions, codex.problem) == ("codex", 2, "")
    session.close()
    (again,) = next(find_sessions(tmp_path / "sessions", tmp_path / "none"))
    assert not again.running


def test_no_folders_are_no_sessions(tmp_path: Path) -> None:
    assert list(find_sessions(tmp_path / "a", tmp_path / "b")) == []


def test_a_path_below_home_is_written_with_a_tilde(home: Path) -> None:
    assert from_home(home / "a" / "b.jsonl") == "~/a/b.jsonl"
    assert from_home(Path("/elsewhere/b.jsonl")) == "/elsewhere/b.jsonl"
