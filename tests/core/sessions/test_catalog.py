from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.compaction.policy import Trigger
from thresher.core.context import Kept
from thresher.core.errors import ThresherError
from thresher.core.items import Item, Message, Role, system, user
from thresher.core.sessions.catalog import find, look_at, sessions
from thresher.core.sessions.session import Session

DAY = 86_400.0
Make = Callable[..., Session]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(id: str, at: float, *items: Item, title: str = "", close: bool = True) -> Session:
        started = e.SessionStarted(
            session_id=id, agent="thresher", model="m", policy="p", title=title, cwd="/there"
        )
        session = Session.create(tmp_path, started, clock=lambda: at)
        for item in items:
            session.emit(e.ItemAppended(item=item))
        if close:
            session.close()
        return session

    return made


def test_no_folder_means_no_sessions(tmp_path: Path) -> None:
    assert sessions(tmp_path / "none") == []


def test_sessions_are_listed_with_what_a_chooser_needs(make: Make, tmp_path: Path) -> None:
    harness = Message(Role.USER, "environment", synthetic=True)
    session = make(
        "one", 10.0, system("rules"), harness, user("fix\nit"), user("then"), close=False
    )
    session.emit(e.ModelChanged(model="m2"))
    session.emit(e.PolicyChanged(policy="p2"))
    session.emit(
        e.HistoryCompacted(
            ordinal=1, pass_id="a", policy="p", stage="s", moment=None, trigger=Trigger.AUTO,
            reason="", segments=(Kept("1", "1"),), items_before=4, items_after=1, kept=1,
            removed=3, replaced=0, inserted=0,
        )
    )  # fmt: skip
    # The words of an event name in somebody's text are no event.
    session.emit(e.ItemAppended(item=user('"event":"history_compacted"')))
    (info,) = sessions(tmp_path)
    assert info.running
    session.close()
    (info,) = sessions(tmp_path)
    assert not info.running
    assert (info.id, info.path) == ("one", session.path)
    assert (info.model, info.policy, info.title, info.cwd) == ("m2", "p2", "fix\nit", "/there")
    assert (info.compactions, info.lines, info.problem) == (1, 10, "")
    assert (info.started, info.last) == (10.0, 10.0)
    assert info.size == session.path.stat().st_size


def test_the_one_last_active_comes_first(make: Make, tmp_path: Path) -> None:
    make("new", 3 * DAY, user("x"))
    make("middle", 2 * DAY, user("x"))
    make("old", 1 * DAY, user("x"))
    assert [info.id for info in sessions(tmp_path)] == ["new", "middle", "old"]
    assert find("latest", tmp_path).parent.name == "new"


def test_a_title_of_its_own_goes_before_the_first_message(make: Make) -> None:
    assert look_at(make("a", 0.0, user("x"), title="named").path).title == "named"
    assert look_at(make("b", 0.0, user("y" * 5000)).path).title == "y" * 200


def test_bad_journals_are_listed_with_what_is_wrong(make: Make, tmp_path: Path) -> None:
    day = make("good", DAY, user("x")).folder.parent
    make("silent", DAY)
    bad = {"empty": b"", "noise": b"\x00\xff\n[1]\n" * 3, "cut": b'{"n":0,"at":1'}
    for name, data in bad.items():
        (day / name).mkdir()
        (day / name / "journal.jsonl").write_bytes(data)
    (day / "hollow").mkdir()
    (day / "odd").mkdir()
    (day / "odd" / "journal.jsonl").mkdir()
    (day / "a file").write_text("not a folder")
    assert {info.id: info.problem for info in sessions(tmp_path)} == {
        "good": "",
        "silent": "nothing was said",
        "empty": "the journal is empty",
        "noise": "no start of a session can be read",
        "cut": "no start of a session can be read",
        "hollow": "No such file or directory",
        "odd": "Is a directory",
    }
    assert find("latest", tmp_path).parent.name == "good"


def test_a_torn_or_bad_line_does_not_spoil_the_rest(make: Make) -> None:
    session = make("a", 5.0, user("x"))
    with session.path.open("ab") as file:
        file.write(b'\x00\n{"n":3,"at":9.0,"event":{"event":"note","kin')
    info = look_at(session.path)
    assert (info.problem, info.lines, info.last, info.title) == ("", 5, 5.0, "x")


def test_a_session_is_found_by_the_beginning_of_its_id_or_of_its_last_part(
    make: Make, tmp_path: Path
) -> None:
    one = make("20260804-153012345-7f3a9c", DAY, user("x"))
    two = make("20260805-090000000-aa00bb", 2 * DAY, user("x"))
    assert find("20260804", tmp_path) == find("7f3", tmp_path) == one.path
    assert find("20260805-09", tmp_path) == find(two.id, tmp_path) == two.path


def test_a_whole_id_is_found_though_another_begins_with_it(make: Make, tmp_path: Path) -> None:
    one = make("run", DAY, user("x"))
    make("run2", DAY, user("x"))
    assert find("run", tmp_path) == one.path


def test_a_path_means_the_file_or_the_folder(make: Make, tmp_path: Path) -> None:
    session = make("one", DAY, user("x"))
    assert find(str(session.path), tmp_path) == session.path
    assert find(str(session.folder), tmp_path) == session.path


@pytest.mark.parametrize("query", ["nothing", "", "..", "*"])
def test_what_is_not_there_is_told(make: Make, tmp_path: Path, query: str) -> None:
    make("one", DAY, user("x"))
    with pytest.raises(ThresherError):
        find(query, tmp_path)


def test_none_and_too_many_are_told_with_what_to_do(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="start one with `thresher run`"):
        find("latest", tmp_path)
    for number in range(7):
        make(f"s{number}", DAY, user("x"))
    with pytest.raises(ThresherError, match="`thresher sessions` lists them"):
        find("other", tmp_path)
    with pytest.raises(ThresherError, match=r"7 sessions: s0, s1, s2, s3, s4 and 2 more"):
        find("s", tmp_path)
    with pytest.raises(ThresherError, match="No such file or directory"):
        find("./missing.jsonl", tmp_path)
