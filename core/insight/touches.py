"""Which files a tool call reads or writes, as far as its arguments say so.

Known are the tools of thresher, Codex, Claude Code and OpenCode by their names and arguments, and
in shell commands the plain cases: redirects, tee, sed -i, mv, cp, rm, cat, head, tail, sed -n. What
a program does by itself cannot be seen here, so "not changed" means: not seen to be changed.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from ..items import FunctionCall
from .naming import decoded


class Access(StrEnum):
    """What is done to a file."""

    READ = "read"
    WRITE = "write"


class Touch(msgspec.Struct, frozen=True):
    """One file, read or written. `path` is normal, absolute where the folder is known; `part` says
    that it may have been read only in part."""

    access: Access
    path: str
    part: bool = False


_READERS = frozenset({"read_file", "read", "view", "open_file", "cat"})
_WRITERS = frozenset(
    {"write_file", "edit_file", "write", "edit", "multiedit", "notebookedit", "create_file",
     "str_replace", "apply_diff"}
)  # fmt: skip
_SHELLS = frozenset(
    {"bash", "shell", "exec_command", "local_shell", "run_command", "shell_command"}
)
_PATHS = ("path", "file_path", "filePath", "filename", "notebook_path")
_PARTIAL = ("offset", "limit", "start", "end", "start_line", "end_line", "line", "lines")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.M)
_LONGEST = 20_000
"""Characters of a command that are looked at."""
_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "\n", "(", ")"})
_REDIRECTS = frozenset({">", ">>", "&>", ">|", "&>>"})


def touches(call: FunctionCall, cwd: str = "") -> tuple[Touch, ...]:
    """The files of one call, in order; relative paths are taken from `cwd`."""
    name = call.name.rpartition(".")[2].lower()
    if name == "apply_patch":
        return tuple(_patched(call.arguments, cwd))
    given = decoded(call.arguments)
    folder = _folder(given, cwd)
    if name in _SHELLS:
        command = given.get("command", given.get("cmd", ""))
        return tuple(_command(command, folder))
    if name in _READERS or name in _WRITERS:
        path = next((given[key] for key in _PATHS if isinstance(given.get(key), str)), "")
        if not path:
            return ()
        if name in _WRITERS:
            return (Touch(Access.WRITE, _normal(path, folder)),)
        part = any(given.get(key) is not None for key in _PARTIAL)
        return (Touch(Access.READ, _normal(path, folder), part),)
    return ()


def _folder(given: dict[str, object], cwd: str) -> str:
    own = given.get("workdir", given.get("cwd"))
    return posixpath.join(cwd, own) if isinstance(own, str) and own else cwd


def _patched(text: str, cwd: str) -> Iterator[Touch]:
    given = decoded(text)
    patch = next((value for value in given.values() if isinstance(value, str)), text)
    for match in _PATCHED.finditer(patch):
        yield Touch(Access.WRITE, _normal((match[1] or match[2]).strip(), cwd))


def _command(command: object, cwd: str) -> Iterator[Touch]:
    if isinstance(command, list):
        words = [str(word) for word in command]
        # ["bash", "-lc", "the script"] is how a shell is usually called.
        if len(words) == 3 and words[1].startswith("-") and words[1].endswith("c"):
            yield from _script(words[2], cwd)
        else:
            yield from _simple(words, cwd)
    elif isinstance(command, str):
        yield from _script(command, cwd)


def _script(script: str, cwd: str) -> Iterator[Touch]:
    patch = [*_patched(script, cwd)] if "*** Begin Patch" in script else []
    if patch:
        yield from patch
        return
    for words in _commands(script[:_LONGEST]):
        if words[0] == "cd" and len(words) == 2:
            cwd = posixpath.join(cwd, words[1])
            continue
        yield from _simple(words, cwd)


def _commands(script: str) -> Iterator[list[str]]:
    """The simple commands of a script, without the bodies of here-documents."""
    lines: list[str] = []
    end = ""
    for line in script.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        lines.append(line)
        if here := re.search(r"<<-?\s*['\"]?(\w+)['\"]?", line):
            end = here[1]
    lexer = shlex.shlex("\n;\n".join(lines), posix=True, punctuation_chars=";&|<>()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    try:
        for word in lexer:
            if word in _SEPARATORS or set(word) <= set(";&|()"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        return  # an unclosed quote: what came before it is still true
    if words:
        yield words


def _simple(words: Sequence[str], cwd: str) -> Iterator[Touch]:
    plain: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word in _REDIRECTS and at + 1 < len(words):
            # In 2>file the number of the stream has become a word of its own.
            if plain and plain[-1] in ("1", "2"):
                plain.pop()
            if words[at + 1] != "/dev/null":
                yield Touch(Access.WRITE, _normal(words[at + 1], cwd))
            at += 2
            continue
        if word.startswith(("<", ">")):
            at += 2
            continue
        plain.append(word)
        at += 1
    if plain:
        yield from _program(plain[0].rpartition("/")[2], plain[1:], cwd)


def _program(name: str, arguments: Sequence[str], cwd: str) -> Iterator[Touch]:
    files = [word for word in arguments if not word.startswith("-")]
    match name:
        case "cat" | "less" | "more" | "nl" | "bat":
            yield from _all(Access.READ, files, cwd)
        case "head" | "tail":
            yield from _all(Access.READ, _without_numbers(files), cwd, part=True)
        case "sed" if any(word.startswith(("-i", "--in-place")) for word in arguments):
            yield from _all(Access.WRITE, files[1:], cwd)
        case "sed" if files[1:]:
            yield from _all(Access.READ, files[1:], cwd, part=True)
        case "tee" | "rm" | "touch" | "truncate":
            yield from _all(Access.WRITE, files, cwd)
        case "mv":
            yield from _all(Access.WRITE, files, cwd)
        case "cp":
            yield from _all(Access.WRITE, files[-1:], cwd)
        case _:
            pass


def _all(access: Access, paths: Iterable[str], cwd: str, part: bool = False) -> Iterator[Touch]:
    for path in paths:
        yield Touch(access, _normal(path, cwd), part)


def _without_numbers(words: Sequence[str]) -> list[str]:
    return [word for word in words if not word.lstrip("+").isdigit()]


def _normal(path: str, cwd: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, path.strip()))
