"""clean(): the only door through which foreign text reaches the screen.

A terminal obeys bytes that it finds in text: ESC and the C1 range start commands (clear the
screen, write the clipboard, type into the program), bidi controls make text read differently from
what it is, zero-width characters hide text, lone surrogates cannot be encoded. `clean` replaces
each such character by a visible stand-in, so that a reader sees that it was there.

The clean form is for eyes only. Journals, digests, diffs and token counts use the original.

Which characters: the categories Cc, Cs, Zl and Zp of the Unicode Character Database, its property
Default_Ignorable_Code_Point (DerivedCoreProperties.txt), the remaining Cf characters that show
nothing, and the noncharacters. The ranges are written out and not asked from `unicodedata`, so
that one text looks the same under every Python version. Kept on purpose: U+FE0E and U+FE0F, which
ordinary emoji carry, and the Arabic, Syriac and Kaithi signs that are Cf but visible.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

NEWLINE_MARK: Final = "\u23ce"
"""Stands for a newline where text must stay on one line."""

ELLIPSIS: Final = "\u2026"

_FORBIDDEN: Final = (
    (0x0000, 0x0008),  # C0 without tab, which expands, and newline
    (0x000B, 0x001F),
    (0x007F, 0x009F),  # DEL and C1
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark (bidi)
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian selectors and separator
    (0x200B, 0x200F),  # zero width, left-to-right and right-to-left marks
    (0x2028, 0x202E),  # line and paragraph separator, bidi embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates
    (0x3164, 0x3164),  # Hangul filler
    (0xD800, 0xDFFF),  # surrogates
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFE00, 0xFE0D),  # variation selectors 1-14
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFFB),  # unassigned ignorables, interlinear annotation
    (0xFFFE, 0xFFFF),  # noncharacters
    (0x13430, 0x1343F),  # Egyptian hieroglyph format controls
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags and variation selectors 17-256
    *((plane + 0xFFFE, plane + 0xFFFF) for plane in range(0x10000, 0x110000, 0x10000)),
)
"""Closed ranges of code points that never appear in the result of `clean`."""


def _class(ranges: Iterable[tuple[int, int]]) -> str:
    return "[" + "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in ranges) + "]"


_UNSAFE: Final = re.compile(_class(_FORBIDDEN))
# Python's `re` finds a class of the lowest 65,536 code points by one look-up, but tries ranges
# above them one by one. So the first search takes all of those together and is 4 times faster.
_SUSPECT: Final = re.compile(
    _class([*(r for r in _FORBIDDEN if r[1] < 0x10000), (0x10000, 0x10FFFF)])
)


def clean(text: str, *, tabs: int = 4, keep_newlines: bool = True) -> str:
    """Give `text` with every dangerous or invisible character made visible.

    Control characters become control pictures (ESC is U+241B), all others their number, as in
    `<U+202E>`. CR LF becomes a newline; a lone CR stays visible. Tabs expand to columns of `tabs`
    characters (at least 1). Newlines stay, or become NEWLINE_MARK when `keep_newlines` is false.

    The result of cleaning a clean text is that text; a safe text is returned as the same object.
    The result has at most max(10, tabs) characters for each one of the input.
    """
    suspect = _SUSPECT.search(text)
    if suspect and _UNSAFE.search(text, suspect.start()):
        text = _SUSPECT.sub(_stand_in, text.replace("\r\n", "\n"))
    if "\t" in text:
        text = text.expandtabs(max(1, tabs))
    if not keep_newlines and "\n" in text:
        text = text.replace("\n", NEWLINE_MARK)
    return text


def clean_line(text: str, limit: int) -> str:
    """Give `text` clean, on one line, in at most `limit` characters (not cells).

    Where it is cut it ends in an ellipsis and the number of characters of `text` that are not
    shown, or in the ellipsis alone where the number has no room. Costs what is shown, not what
    `text` holds.
    """
    if limit <= 0:
        return ""
    if len(text) <= 2 * limit:
        whole = clean(text, keep_newlines=False)
        if len(whole) <= limit:
            return whole
    # The note is at its longest when nothing is shown, so room for that one is always enough.
    longest_note = len(_more(len(text)))
    if longest_note > limit // 2:
        return _fitting(text, limit - 1)[0] + ELLIPSIS
    shown, used = _fitting(text, limit - longest_note)
    return shown + _more(len(text) - used)


def cap_lines(text: str, head: int, tail: int, width: int) -> str:
    """Give a clean preview of `text`: its first `head` and last `tail` lines.

    Between them one line says how many are left out. Each line has at most `width` characters and
    says how many more it had. Only the lines that are shown are cleaned.
    """
    body = text.removesuffix("\n")
    total = body.count("\n") + 1
    head, tail = max(0, head), max(0, tail)
    if total <= head + tail:
        lines = body.split("\n")
        return "\n".join(_row(line, width) for line in lines)
    first = body.split("\n", head)[:head]
    last = body.rsplit("\n", tail)[1:] if tail else []
    note = f"{ELLIPSIS} {total - head - tail:,} more lines"
    return "\n".join([*(_row(x, width) for x in first), note, *(_row(x, width) for x in last)])


def safe_json(text: str) -> str:
    """Give a JSON text with every character that `clean` would replace written as its escape.

    It is the same JSON value, for a terminal as for a program.
    """
    return _UNSAFE.sub(_escape, text) if _SUSPECT.search(text) else text


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _stand_in(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if code > 0xFFFF and not _UNSAFE.match(char):
        return char
    return f"<U+{code:04X}>"


def _fitting(text: str, room: int) -> tuple[str, int]:
    """The longest clean beginning of `text` of at most `room` characters, and how much it used."""

    def length(count: int) -> int:
        return len(clean(text[:count], keep_newlines=False))

    # A longer beginning is never shorter when clean; CR LF is the one pair that shrinks, to one.
    used = bisect_right(range(min(len(text), 2 * room) + 1), room, key=length) - 1
    return clean(text[:used], keep_newlines=False), used


def _more(count: int) -> str:
    return f"{ELLIPSIS} {count:,} more"


def _row(line: str, width: int) -> str:
    return clean_line(line.removesuffix("\r"), width)
