from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from thresher.core.agent.tools.base import ToolResult

Runner = Callable[..., Awaitable[ToolResult]]


async def test_lines_come_numbered(run: Runner, folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"one\r\ntwo\n\nfour")
    result = await run("read_file", path="a.txt")
    assert result == ToolResult("     1\tone\n     2\ttwo\n     3\t\n     4\tfour")


async def test_a_part_says_where_to_go_on(run: Runner, folder: Path) -> None:
    (folder / "a.txt").write_text("".join(f"l{n}\n" for n in range(1, 11)))
    result = await run("read_file", path="a.txt", offset=3, limit=2)
    assert result.output == "     3\tl3\n     4\tl4\n[lines 3-4 of 10; go on with offset=5]"
    last = await run("read_file", path="a.txt", offset=10)
    assert last.output == "    10\tl10\n[lines 10-10 of 10]"


async def test_a_big_file_is_read_whole_in_steps_without_a_copy_on_disk(
    run: Runner, folder: Path, tmp_path: Path
) -> None:
    lines = [f"line number {n}" for n in range(1, 2001)]
    (folder / "big").write_text("\n".join(lines))
    got: list[str] = []
    while len(got) < len(lines):
        result = await run("read_file", path="big", offset=len(got) + 1)
        assert len(result.output) <= 4000
        got += [row.split("\t")[1] for row in result.output.splitlines() if "\t" in row]
    assert got == lines
    assert not (tmp_path / "outputs").exists()


async def test_a_long_line_is_cut_and_counted(run: Runner, folder: Path) -> None:
    (folder / "long").write_text("x" * 50_000 + "\nend\n")
    result = await run("read_file", path="long")
    assert len(result.output) < 4000
    assert "more characters in this line]\n     2\tend" in result.output


async def test_a_saved_full_output_can_be_read_and_searched(run: Runner, tmp_path: Path) -> None:
    saved = (await run("bash", command="seq 3000; echo needle")).saved
    assert saved is not None
    assert "  2999\t2999" in (await run("read_file", path=saved, offset=2999)).output
    assert (await run("grep", pattern="needle", path=saved)).output == f"{saved}:3001:needle"
    other = await run("read_file", path=str(tmp_path / "outputs/../workspace-2/x"))
    assert "outside the workspace" in other.output


async def test_nothing_can_be_written_among_the_outputs(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    result = await run("write_file", path=str(tmp_path / "outputs/x"), content="x")
    assert not result.ok
    assert "outside the workspace" in result.output


@pytest.mark.parametrize(
    ("data", "row", "note"),
    [
        ("\ufeffgrün".encode(), "grün", None),
        (b"\xff\xfe" + "grün\n".encode("utf-16-le"), "grün", "[read as utf-16-le]"),
        (b"\xfe\xff" + "grün\n".encode("utf-16-be"), "grün", "[read as utf-16-be]"),
        (b"gr\xfcn\n", "grün", "[read as latin-1, since it is not valid UTF-8]"),
    ],
)
async def test_encodings_are_read_and_named(
    run: Runner, folder: Path, data: bytes, row: str, note: str | None
) -> None:
    (folder / "f").write_bytes(data)
    expected = "\n".join(filter(None, (f"     1\t{row}", note)))
    assert (await run("read_file", path="f")).output == expected


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image of 16 bytes"),
        (b"\x7fELF\2\1\1\0", "an ELF program"),
        (b"%PDF-1.7\n\xe2\xe3\xcf\xd3", "a PDF document"),
        (b"text\0with nul", "binary data of 13 bytes"),
        (bytes(range(1, 256)), "binary data"),
    ],
)
async def test_binary_files_are_refused_with_size_and_kind(
    run: Runner, folder: Path, data: bytes, kind: str
) -> None:
    (folder / "f").write_bytes(data)
    result = await run("read_file", path="f")
    assert not result.ok
    assert kind in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": "gone"}, "gone does not exist"),
        ({"path": "sub"}, "sub is a folder"),
        ({"path": "."}, ". is a folder"),
        ({"path": "sub/file/below"}, "cannot be read: Not a directory"),
        ({"path": "../x"}, "outside the workspace"),
        ({"path": "/dev/zero"}, "outside the workspace"),
        ({"path": "pipe"}, "device, pipe or socket"),
        ({"path": "sub/file", "offset": 9}, "has only 1 lines"),
        ({"path": "sub/file", "offset": 0}, "Wrong arguments for read_file"),
        ({"path": "x" * 5000}, "File name too long"),
    ],
)
async def test_what_cannot_be_read_is_told(
    run: Runner, folder: Path, arguments: dict[str, Any], told: str
) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/file").write_text("x\n")
    os.mkfifo(folder / "pipe")
    result = await run("read_file", **arguments)
    assert not result.ok
    assert told in result.output


async def test_a_file_over_the_size_bound_is_refused(run: Runner, folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(33 * 2**20)
    result = await run("read_file", path="huge")
    assert "34,603,008 bytes" in result.output
    assert "bash" in result.output


async def test_an_empty_file_is_told(run: Runner, folder: Path) -> None:
    (folder / "empty").touch()
    assert (await run("read_file", path="empty")).output == "[the file is empty]"


async def test_writing_makes_folders_and_says_what_it_did(run: Runner, folder: Path) -> None:
    result = await run("write_file", path="a/b/c.txt", content="eins\nzwö\n")
    assert result.output == "Made a/b/c.txt: 2 lines, 10 bytes."
    assert (folder / "a/b/c.txt").read_bytes() == "eins\nzwö\n".encode()


async def test_replacing_keeps_the_mode_and_leaves_nothing_else(run: Runner, folder: Path) -> None:
    (folder / "s.sh").write_text("old")
    (folder / "s.sh").chmod(0o751)
    assert (await run("write_file", path="s.sh", content="new")).output.startswith("Replaced s.sh")
    assert (folder / "s.sh").read_text() == "new"
    assert stat.S_IMODE((folder / "s.sh").stat().st_mode) == 0o751
    assert [path.name for path in folder.iterdir()] == ["s.sh"]


async def test_writing_through_a_link_inside_changes_its_target(run: Runner, folder: Path) -> None:
    (folder / "real").write_text("old")
    (folder / "link").symlink_to("real")
    await run("write_file", path="link", content="new")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == "new"


@pytest.mark.parametrize("path", ["out/file", "out", "../file", "sub", ".", "pipe", "f/below"])
async def test_writing_where_it_must_not_changes_nothing(
    run: Runner, folder: Path, tmp_path: Path, path: str
) -> None:
    (tmp_path / "outside").mkdir()
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "sub").mkdir()
    (folder / "f").write_text("x")
    os.mkfifo(folder / "pipe")
    before = sorted(tmp_path.rglob("*"))
    result = await run("write_file", path=path, content="x")
    assert not result.ok
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_write_protected_file_is_left_alone(run: Runner, folder: Path) -> None:
    (folder / "f").write_text("old")
    (folder / "f").chmod(0o400)
    assert "write-protected" in (await run("write_file", path="f", content="new")).output
    assert (folder / "f").read_text() == "old"


async def test_an_edit_replaces_the_one_match(run: Runner, folder: Path) -> None:
    (folder / "f").write_text("a\nb\nc\n")
    result = await run("edit_file", path="f", old="b\n", new="B\nBB\n")
    assert result.output == "Replaced 1 match in f, in line 2."
    assert (folder / "f").read_text() == "a\nB\nBB\nc\n"


async def test_an_edit_of_several_matches_needs_to_be_meant(run: Runner, folder: Path) -> None:
    (folder / "f").write_text("x\ny\nx x\n")
    result = await run("edit_file", path="f", old="x", new="z")
    assert "3 matches for old, in lines 1, 3, 3" in result.output
    assert (folder / "f").read_text() == "x\ny\nx x\n"
    result = await run("edit_file", path="f", old="x", new="z", replace_all=True)
    assert result.output == "Replaced 3 matches in f, in line 1, 3, 3."
    assert (folder / "f").read_text() == "z\ny\nz z\n"


@pytest.mark.parametrize(
    "data",
    [
        b"one\r\ntwo\r\nthree\r\n",
        b"\xef\xbb\xbfone\r\ntwo\r\n",
        b"\xff\xfe" + "one\r\ntwo\r\n".encode("utf-16-le"),
        b"one\ntwo\n\xe9t\xe9\n",
    ],
)
async def test_an_edit_keeps_encoding_and_line_ends(run: Runner, folder: Path, data: bytes) -> None:
    (folder / "f").write_bytes(data)
    wide = data[:2] == b"\xff\xfe"
    assert (await run("edit_file", path="f", old="one\ntwo", new="1\n2\nü")).ok
    end = b"\r\n" if b"\r" in data else b"\n"
    umlaut = "ü".encode("latin-1" if b"\xe9" in data else "utf-8")
    if wide:
        expected = b"\xff\xfe" + "1\r\n2\r\nü\r\n".encode("utf-16-le")
    else:
        expected = data.replace(b"one" + end + b"two", b"1" + end + b"2" + end + umlaut)
    assert (folder / "f").read_bytes() == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": "f", "old": "nope", "new": "x"}, "0 matches"),
        ({"path": "f", "old": "", "new": "x"}, "old is empty"),
        ({"path": "f", "old": "a", "new": "a"}, "the same"),
        ({"path": "gone", "old": "a", "new": "b"}, "use write_file"),
        ({"path": "sub", "old": "a", "new": "b"}, "is a folder"),
        ({"path": "bin", "old": "a", "new": "b"}, "is not text"),
        ({"path": "latin", "old": "a", "new": "中"}, "latin-1"),
        ({"path": "../f", "old": "a", "new": "b"}, "outside"),
        ({"path": "f", "old": "a"}, "Wrong arguments"),
    ],
)
async def test_what_cannot_be_edited_is_told_and_left_alone(
    run: Runner, folder: Path, arguments: dict[str, Any], told: str
) -> None:
    (folder / "f").write_text("a")
    (folder / "bin").write_bytes(b"a\0")
    (folder / "latin").write_bytes(b"a\xe9")
    (folder / "sub").mkdir()
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = await run("edit_file", **arguments)
    assert not result.ok
    assert told in result.output
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize(
    "name", ["[b]x[/b]", "new\nline", "\x1b[2J", "a'b\"c", "-rf", "中 文", "$HOME"]
)
async def test_files_with_odd_names_work_throughout(run: Runner, folder: Path, name: str) -> None:
    assert (await run("write_file", path=name, content="needle\n")).ok
    assert (await run("edit_file", path=name, old="needle", new="needles")).ok
    assert (await run("read_file", path=name)).output == "     1\tneedles"
    found = (await run("grep", pattern="needles")).output
    assert found.endswith(":1:needles")
    assert found.count("\n") == 0
    listed = (await run("glob", pattern="*")).output
    assert listed.isprintable()


async def test_a_name_that_is_no_unicode_is_listed_in_text_that_can_be_sent(
    run: Runner, folder: Path
) -> None:
    try:
        Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).write_text("needle")
    except OSError:
        pytest.skip("this file system takes only Unicode names")
    for result in (await run("glob", pattern="*"), await run("grep", pattern="needle")):
        assert "udcff" in result.output
        result.output.encode("utf-8")
