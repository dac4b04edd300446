"""Lines as spans: pieces of clean text, each with a tone. Made by pure functions, drawn by widgets.

A tone is what a piece means ("removed", "muted"), never a colour; a theme gives it one. Text in a
span has been through `thresher.core.text`. Widths are terminal cells, not characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size

from thresher.core.text import ELLIPSIS, clean_line


class Tone(StrEnum):
    """What a piece of a line means."""

    PLAIN = "plain"
    STRONG = "strong"
    MUTED = "muted"
    FAINT = "faint"
    RULE = "rule"
    ACCENT = "accent"
    REMOVED = "removed"
    KEPT = "kept"
    REWRITTEN = "rewritten"
    INSERTED = "inserted"
    SUMMARY = "summary"
    THRESHOLD = "threshold"
    FAILED = "failed"
    PART_SYSTEM = "part-system"
    PART_USER = "part-user"
    PART_ASSISTANT = "part-assistant"
    PART_OUTPUT = "part-output"
    PART_REASONING = "part-reasoning"
    PART_OTHER = "part-other"
    PART_SUMMARY = "part-summary"
    PART_FREE = "part-free"
    FILL_SYSTEM = "fill-system"
    FILL_USER = "fill-user"
    FILL_ASSISTANT = "fill-assistant"
    FILL_OUTPUT = "fill-output"
    FILL_REASONING = "fill-reasoning"
    FILL_OTHER = "fill-other"
    FILL_SUMMARY = "fill-summary"
    FILL_FREE = "fill-free"
    FILL_RESERVE = "fill-reserve"
    FILL_THRESHOLD = "fill-threshold"
    FOUND = "found"
    KEY = "key"


Span: TypeAlias = tuple[str, Tone]
Line: TypeAlias = list[Span]


def span(text: str, tone: Tone = Tone.PLAIN) -> Span:
    """A piece of a line; `text` must be clean."""
    return (text, tone)


def width(line: Iterable[Span]) -> int:
    """The cells a line takes."""
    return sum(cell_len(text) for text, _ in line)


def line_of(text: str, cells: int) -> str:
    """Outside text clean and on one line, long enough for `clip` to cut it to these cells."""
    return clean_line(text, 4 * max(20, cells))


def cut(text: str, cells: int) -> str:
    """Outside text clean, on one line, in at most this many cells."""
    return text_of(clip([(line_of(text, cells), Tone.PLAIN)], cells))


def ending(text: str, cells: int) -> str:
    """The end of a clean text that fits; what is cut off before it is an ellipsis."""
    if cell_len(text) <= cells:
        return text
    text, cells = text[-max(1, cells) :], cells - 1
    while (over := cell_len(text) - cells) > 0:
        text = text[max(1, over // 2) :]
    return f"{ELLIPSIS}{text}"


def text_of(line: Iterable[Span]) -> str:
    """The characters of a line, without tones."""
    return "".join(text for text, _ in line)


def clip(line: Line, cells: int) -> Line:
    """The beginning of a line that fits; what is cut ends in an ellipsis."""
    if width(line) <= cells:
        return line
    if cells <= 0:
        return []
    room = cells - 1
    cut: Line = []
    for text, tone in line:
        size = cell_len(text)
        if size >= room:
            cut.append((set_cell_size(text, room).rstrip() + ELLIPSIS, tone))
            return cut
        cut.append((text, tone))
        room -= size
    return cut


def pad(line: Line, cells: int) -> Line:
    """A line of exactly this width."""
    line = clip(line, cells)
    gap = cells - width(line)
    return [*line, (" " * gap, Tone.PLAIN)] if gap > 0 else line


def spread(left: Line, right: Line, cells: int, gap: int = 2) -> Line:
    """One part at each end; the left one gives way when there is no room for both."""
    right = clip(right, cells)
    size = width(right)
    if not size:
        return pad(left, cells)
    room = cells - size - gap
    return [*pad(left, room), (" " * gap, Tone.PLAIN), *right] if room > 0 else pad(right, cells)


def column(text: str, cells: int, tone: Tone = Tone.PLAIN, *, right: bool = False) -> Span:
    """A cell of a table: cut or filled to an exact width, at the left or the right."""
    size = cell_len(text)
    if size > cells:
        short = set_cell_size(text, max(0, cells - 1)).rstrip() + ELLIPSIS if cells else ""
        text, size = short, cell_len(short)
    blank = " " * (cells - size)
    return (blank + text, tone) if right else (text + blank, tone)


def wrap(text: str, cells: int) -> list[str]:
    """Clean text in lines of at most `cells`, broken at spaces where there are any."""
    cells = max(1, cells)
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.extend(_wrap_one(paragraph, cells))
    return lines


def _wrap_one(text: str, cells: int) -> list[str]:
    """One paragraph; a broken one hangs by its indent, and by its bullet when it has one."""
    if len(text) <= 4 * cells and cell_len(text) <= cells:
        return [text]
    start = _HANG.match(text[:80])
    indent = start.end() if start is not None else 0
    if indent > cells // 3:
        indent = 0
    hang = " " * indent
    lines: list[str] = []
    at, room, lead = indent, cells - indent, text[:indent]
    while at < len(text):
        # Only what can stand on this line is looked at, so a line of a megabyte costs no more.
        piece = text[at : at + 4 * room]
        fits = _fitting(piece, room)
        if at + fits >= len(text):
            lines.append(lead + text[at:])
            break
        end = _break(piece, fits)
        lines.append((lead + piece[:end]).rstrip(" "))
        lead = hang
        at += end
        while at < len(text) and text[at] == " ":
            at += 1
    return lines


def _fitting(text: str, cells: int) -> int:
    """How many characters of a text fit; at least one."""
    if text[:cells].isascii():
        return min(len(text), cells)
    used, fits = 0, len(text)
    for at, char in enumerate(text):
        used += cell_len(char)
        if used > cells:
            fits = at
            break
    # A sign and the selector after it may be wider together than one by one.
    while fits > 1 and cell_len(text[:fits]) > cells:
        fits -= 1
    return max(1, fits)


def _break(text: str, fits: int) -> int:
    """Where to break before `fits`: at a space, beside a character of a script without spaces,
    or, where there is neither, in the middle of a word."""
    for at in range(min(fits, len(text) - 1), 0, -1):
        before, after = text[at - 1], text[at]
        if before == " " or after == " " or max(ord(before), ord(after)) >= _NO_SPACES:
            return at
    return fits


_HANG = re.compile(r" *(?:(?:[-*+]|\d{1,3}[.)]) +)?")
_NO_SPACES = 0x2E80
"""Chinese, Japanese and Korean begin here: a line may break beside each of their characters."""
