from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from thresher.core.sources import claude_discover, discover
from thresher.core.sources.alive import processes, with_running
from thresher.core.sources.found import Finder, FoundSession
from thresher.tui.cli import listing

from .claude_made import Made

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process table of Linux")

PROGRAM = "import sys; print(flush=True); sys.stdin.read()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


def start(name: str, folder: Path, file: Path | None = None) -> Iterator[int]:
    """A program of that name at work in the folder, which holds the file open for writing."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND) if file else None
    process = subprocess.Popen(
        [name, "-c", PROGRAM],
        executable=sys.executable,
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=(handle,) if handle is not None else (),
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.communicate()
    if handle is not None:
        os.close(handle)


@pytest.fixture
def claude(folder: Path) -> Iterator[int]:
    yield from start("claude", folder)


def session(home: Path, id: str, folder: Path, age: float = 0) -> Path:
    made = Made()
    made.user("go", cwd=str(folder))
    path = made.write(home / "projects" / "p" / f"{id}.jsonl")
    os.utime(path, (path.stat().st_atime, path.stat().st_mtime - age))
    return path


def looked_at(home: Path, finder: Finder = claude_discover.FINDER) -> dict[str, FoundSession]:
    found = with_running(finder.sessions(home), finder, home)
    return {each.id: each for each in found}


def test_the_last_session_in_the_folder_of_a_process_is_taken_to_run(
    tmp_path: Path, folder: Path, claude: int
) -> None:
    session(tmp_path, "old", folder, age=1)
    session(tmp_path, "new", folder)
    session(tmp_path, "other", tmp_path)
    found = looked_at(tmp_path)
    assert [id for id, each in found.items() if each.running] == ["new"]
    assert not found["new"].running_sure
    assert f"process {claude} works in its folder" in found["new"].running_how
    assert found["old"].running is found["other"].running is None


def test_a_session_written_to_before_the_process_began_is_not_its_own(
    tmp_path: Path, folder: Path, claude: int
) -> None:
    session(tmp_path, "old", folder, age=3600)
    assert claude
    assert looked_at(tmp_path)["old"].running is None


def test_the_register_of_the_program_names_the_session(
    tmp_path: Path, folder: Path, claude: int
) -> None:
    session(tmp_path, "old", folder, age=5)
    session(tmp_path, "new", folder)
    known = next(each for each in processes(claude_discover.FINDER) if each.pid == claude)
    told = {"pid": claude, "sessionId": "old", "procStart": known.ticks}
    place = tmp_path / "sessions" / f"{claude}.json"
    place.parent.mkdir()
    place.write_text(json.dumps(told))
    found = looked_at(tmp_path)
    assert (found["old"].running, found["old"].running_sure) == (True, True)
    assert f"register names process {claude}" in found["old"].running_how
    assert found["new"].running is None


def test_what_a_killed_process_left_in_the_register_is_not_believed(
    tmp_path: Path, folder: Path, claude: int
) -> None:
    session(tmp_path, "old", folder, age=3600)
    place = tmp_path / "sessions" / f"{claude}.json"
    place.parent.mkdir()
    place.write_text(json.dumps({"pid": claude, "sessionId": "old", "procStart": "1"}))
    (place.parent / "17.json").write_text("[half")
    assert looked_at(tmp_path)["old"].running is None


def test_a_file_that_is_open_for_writing_is_being_written(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "sessions" / "2026" / "01" / "01" / "rollout-2026-01-01T00-00-00-abc.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"type": "session_meta", "payload": {"id": "abc"}}) + "\n")
    for pid in start("codex", folder, path):
        found = looked_at(tmp_path, discover.FINDER)["abc"]
        assert (found.running, found.running_sure) == (True, True)
        assert found.running_how == f"process {pid} has the file open for writing"
    assert looked_at(tmp_path, discover.FINDER)["abc"].running is None


def test_where_there_is_no_process_table_nothing_is_known(tmp_path: Path, folder: Path) -> None:
    session(tmp_path, "one", folder)
    finder = claude_discover.FINDER
    nowhere = tmp_path / "nowhere"
    assert processes(finder, nowhere) == []
    (found,) = with_running(finder.sessions(tmp_path), finder, tmp_path, nowhere)
    assert found.running is None


def test_the_list_of_sessions_gives_the_evidence(
    tmp_path: Path,
    folder: Path,
    claude: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    session(tmp_path, "new", folder)
    assert listing.sessions() == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "running?" in told
    assert f"new is running: process {claude} works in its folder" in told
