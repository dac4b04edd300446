from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from thresher.core.agent.tools.workspace import PathRefused, Workspace, quoted


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret").write_text("secret")
    return path


def test_paths_inside_resolve_also_when_they_do_not_exist(folder: Path) -> None:
    workspace = Workspace(folder)
    assert workspace.resolve("a/b/new.txt") == folder / "a/b/new.txt"
    assert workspace.resolve(str(folder / "x")) == folder / "x"
    assert workspace.resolve("a/../b") == folder / "b"
    assert workspace.resolve(".") == folder


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("..", "outside"),
        ("../outside/secret", "outside"),
        ("a/../../outside/new", "outside"),
        ("/etc/passwd", "outside"),
        ("/dev/tty", "outside"),
        ("a\0b", "NUL"),
        ("", "empty"),
        ("  ", "empty"),
    ],
)
def test_paths_that_lead_out_are_refused_by_name(folder: Path, path: str, why: str) -> None:
    with pytest.raises(PathRefused) as refusal:
        Workspace(folder).resolve(path)
    assert why in refusal.value.msg
    assert quoted(path) in refusal.value.msg


def test_links_may_point_inside_but_not_out(folder: Path, outside: Path) -> None:
    (folder / "real").mkdir()
    (folder / "in").symlink_to("real")
    (folder / "out").symlink_to(outside)
    (folder / "file").symlink_to(outside / "secret")
    (folder / "dangling").symlink_to(outside / "not yet there")
    (folder / "chain").symlink_to("out")
    workspace = Workspace(folder)
    assert workspace.resolve("in/new") == folder / "real/new"
    for path in ("out/secret", "out/new", "file", "dangling", "chain/secret", "in/../out/secret"):
        with pytest.raises(PathRefused, match="outside"):
            workspace.resolve(path)


def test_a_link_in_a_circle_is_refused(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    with pytest.raises(PathRefused, match="circle"):
        Workspace(folder).resolve("loop")


def test_a_root_that_is_a_link_is_followed_once(tmp_path: Path, folder: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert Workspace(link).resolve("x") == folder / "x"


def test_a_root_beside_one_with_the_same_beginning_is_outside(folder: Path) -> None:
    folder.with_name("workspace-2").mkdir()
    with pytest.raises(PathRefused, match="outside"):
        Workspace(folder).resolve("../workspace-2/x")


@pytest.mark.parametrize("missing", ["nowhere", "file"])
def test_a_root_that_is_no_folder_is_refused(tmp_path: Path, missing: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PathRefused, match=missing):
        Workspace(tmp_path / missing)


def test_pipes_and_sockets_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)  # The path of a socket may have 108 bytes at most.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    for name in ("pipe", "socket"):
        with pytest.raises(PathRefused, match="device, pipe or socket"):
            Workspace(folder).resolve(name)


def test_a_link_put_in_place_after_the_check_is_not_followed(folder: Path, outside: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/secret").write_text("mine")
    workspace = Workspace(folder)
    real = workspace.resolve("sub/secret")
    (folder / "sub/secret").unlink()
    (folder / "sub/secret").symlink_to(outside / "secret")
    with pytest.raises(OSError, match="symbolic link"):
        workspace.open(real)
    (folder / "sub/secret").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)
    with pytest.raises(OSError, match="Not a directory"):
        workspace.open(real)


def test_a_pipe_put_in_place_after_the_check_does_not_block(folder: Path) -> None:
    workspace = Workspace(folder)
    real = workspace.resolve("file")
    os.mkfifo(real)
    with pytest.raises(PathRefused, match="regular"):
        workspace.open(real)


@pytest.mark.parametrize("name", ["a\nb", 'say "hi"', " lead", "tab\t", "\udcff", "esc\x1b[2J", ""])
def test_odd_names_are_quoted_so_that_they_stay_one_name(name: str) -> None:
    shown = quoted(name)
    assert shown.startswith('"')
    assert shown.isprintable()


@pytest.mark.parametrize("name", ["src/a.py", "with space", "中文", "ä", "[x](y)"])
def test_plain_names_stay_as_they_are(name: str) -> None:
    assert quoted(name) == name
