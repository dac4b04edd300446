from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from thresher.core.agent.tools.base import ToolContext, ToolError, ToolResult
from thresher.core.agent.tools.search_process import run_search
from thresher.core.agent.tools.searching import Search, main, search
from thresher.core.agent.tools.walk import glob_regex
from thresher.core.agent.tools.workspace import Workspace

Runner = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tree(folder: Path) -> Path:
    for path, text in {
        "b.py": "import os\nNeedle here\n",
        "a.md": "needle\n",
        "src/z.py": "x = 'needle'\n",
        "src/deep/er/m.py": "pass\n",
        ".hidden/h.py": "needle\n",
        ".git/config": "needle\n",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "data.bin").write_bytes(b"needle\0")
    return folder


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "a.py", True),
        ("*.py", "x/y/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/x/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("./src/*", "src/a", True),
        ("**/a", "a", True),
        ("src/**", "src/x/y", True),
        ("src/**", "srcs/x", False),
        ("?.md", "a.md", True),
        ("?.md", "ab.md", False),
        ("[ab].md", "b.md", True),
        ("[!ab].md", "b.md", False),
        ("[a-c].md", "b.md", True),
        ("[]].md", "].md", True),
        ("a[", "a[", True),
        ("a[b", "a[b", True),
        ("*.{py,md}", "a.md", True),
        ("{a,b{1,2}}.c", "b2.c", True),
        ("{a", "{a", True),
        ("a.c", "abc", False),
        ("(x)+$", "(x)+$", True),
        ("[z-a]", "[z-a]", True),
        ("[\\]", "\\", True),
        ("[a--b]", "b", True),
        ("[!]", "[!]", True),
        ("*", "a\nb", True),
        ("a[!x]b/c", "a/b/c", False),
    ],
)
def test_globs_mean_what_people_expect(pattern: str, path: str, matches: bool) -> None:
    assert (glob_regex(pattern).fullmatch(path) is not None) is matches


def test_no_text_is_a_glob_that_breaks(hostile_text: str) -> None:
    assert glob_regex(hostile_text[:2000]).fullmatch("a/b.c") is None


async def test_glob_lists_files_sorted_without_version_control(run: Runner, tree: Path) -> None:
    result = await run("glob", pattern="*.py")
    assert result == ToolResult(".hidden/h.py\nb.py\nsrc/deep/er/m.py\nsrc/z.py")


async def test_glob_looks_below_a_path(run: Runner, tree: Path) -> None:
    assert (await run("glob", pattern="*/*/*.py", path="src")).output == "src/deep/er/m.py"


async def test_glob_says_when_there_is_nothing(run: Runner, tree: Path) -> None:
    assert (await run("glob", pattern="*.rs")) == ToolResult("[no matches]")


@pytest.mark.parametrize(
    ("pattern", "path", "told"),
    [
        ("/etc/*", ".", "must be relative"),
        ("../*", ".", "without `..`"),
        ("*", "..", "outside the workspace"),
        ("*", "b.py", "is a file"),
        ("*", "gone", "does not exist"),
    ],
)
async def test_glob_stays_inside(
    run: Runner, tree: Path, pattern: str, path: str, told: str
) -> None:
    result = await run("glob", pattern=pattern, path=path)
    assert not result.ok
    assert told in result.output


async def test_glob_caps_its_list_and_says_so(run: Runner, folder: Path) -> None:
    for number in range(501):
        (folder / f"{number:03}").touch()
    lines = (await run("glob", pattern="*")).output.splitlines()
    assert lines[0] == "000"
    assert lines[-1].startswith("[the first 500 files; there are more")
    assert len(lines) == 501


async def test_grep_gives_path_number_and_line(run: Runner, tree: Path) -> None:
    result = await run("grep", pattern="needle")
    assert result.output == (
        ".hidden/h.py:1:needle\na.md:1:needle\nsrc/z.py:1:x = 'needle'\n[not searched: 1 binary]"
    )


async def test_grep_takes_a_glob_a_path_and_any_case(run: Runner, tree: Path) -> None:
    assert (await run("grep", pattern="needle", glob="*.md")).output == "a.md:1:needle"
    assert (await run("grep", pattern="needle", path="src")).output == "src/z.py:1:x = 'needle'"
    assert (await run("grep", pattern="^n", path="b.py", ignore_case=True)).output == (
        "b.py:2:Needle here"
    )
    assert (await run("grep", pattern="^n", path="b.py")).output == "[no matches]"


async def test_grep_tells_of_a_bad_pattern(run: Runner, tree: Path) -> None:
    result = await run("grep", pattern="a(")
    assert not result.ok
    assert result.output.startswith("Error: a( is not a regular expression of Python")


async def test_grep_caps_its_list_and_says_so(run: Runner, folder: Path) -> None:
    (folder / "f").write_text("x\n" * 201)
    lines = (await run("grep", pattern="x")).output.splitlines()
    assert len(lines) == 201
    assert lines[-1].startswith("[the first 200 lines; there are more")


async def test_grep_shows_a_long_line_around_its_match(run: Runner, folder: Path) -> None:
    (folder / "f").write_text("a" * 100_000 + "needle" + "b" * 100_000)
    result = await run("grep", pattern="needle")
    assert "aneedleb" in result.output
    assert len(result.output) < 400
    assert result.output.startswith("f:1:[99,900 characters] ")


async def test_links_out_of_the_workspace_are_not_searched(
    run: Runner, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("needle")
    (tmp_path / "more").mkdir()
    (tmp_path / "more/secret").write_text("needle")
    (folder / "file").symlink_to(tmp_path / "secret")
    (folder / "dir").symlink_to(tmp_path / "more")
    (folder / "self").symlink_to(".")
    (folder / "own").write_text("needle")
    (folder / "linked").symlink_to("own")
    os.mkfifo(folder / "pipe")
    assert (await run("grep", pattern="needle")).output == "linked:1:needle\nown:1:needle"
    assert (await run("glob", pattern="*")).output == "linked\nown"


async def test_a_pattern_that_never_ends_is_ended_and_others_get_their_turn(
    ctx: ToolContext, folder: Path
) -> None:
    (folder / "a").write_text("aa\n")
    (folder / "b").write_text("a" * 60 + "!\n")
    request = Search(str(folder), str(folder), regex=r"(a+)+$")
    result = await run_search(request, ctx, timeout=2)
    assert result.output.startswith("a:1:aa\n[stopped after 2 s")
    assert not result.ok


async def test_a_search_can_be_cancelled(ctx: ToolContext, folder: Path) -> None:
    (folder / "b").write_text("a" * 60 + "!\n")
    request = Search(str(folder), str(folder), regex=r"(a+)+$")
    task = asyncio.create_task(run_search(request, ctx))
    done, _ = await asyncio.wait({task}, timeout=0.3)
    assert not done
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_modules_of_the_workspace_are_never_run(run: Runner, folder: Path) -> None:
    for name in ("thresher.py", "msgspec.py", "re.py", "sitecustomize.py"):
        (folder / name).write_text("open('owned', 'w')\n")
    assert (await run("grep", pattern="owned", glob="re.py")).ok
    assert not (folder / "owned").exists()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_hostile_pattern_is_an_answer_or_a_refusal(tree: Path, hostile_text: str) -> None:
    (tree / "h").write_bytes(hostile_text.encode("utf-8", "replace")[:5000])
    pattern = hostile_text[:500]
    for request in (
        Search(str(tree), str(tree / "h"), regex=pattern),
        Search(str(tree), str(tree), glob=pattern),
    ):
        with suppress(ToolError):
            lines = list(search(request))
            assert lines
            assert not any("\n" in line for line in lines)


async def test_a_pattern_python_warns_about_brings_no_warning(run: Runner, tree: Path) -> None:
    assert (await run("grep", pattern="[[x]=", glob="*.py")).output == "[no matches]"


def test_the_child_answers_with_a_code(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (folder / "f").write_text("x\n")
    root = str(folder)
    assert main(f'{{"root":"{root}","start":"{root}","regex":"x"}}') == 0
    assert capfdbinary.readouterr().out == b"f:1:x\n"
    assert main(f'{{"root":"{root}","start":"{root}","regex":"("}}') == 2
    assert b"not a regular expression" in capfdbinary.readouterr().out


def test_files_that_are_too_large_are_counted(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(33 * 2**20)
    root = str(Workspace(folder).root)
    assert list(search(Search(root, root, regex="x"))) == [
        "[no matches]",
        "[not searched: 1 too large]",
    ]
