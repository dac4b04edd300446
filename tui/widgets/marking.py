"""Words that were searched for, marked in lines that are ready."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..spans import Line, Tone


def pattern_of(words: Sequence[str]) -> re.Pattern[str] | None:
    """What finds any of the words, in any case; None where there is none."""
    wanted = sorted(filter(None, words), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, wanted)), re.I) if wanted else None


def mark_words(line: Line, pattern: re.Pattern[str]) -> Line:
    """The line with everything that matches, marked."""
    marked: Line = []
    for text, tone in line:
        at = 0
        for match in pattern.finditer(text):
            if match.start() > at:
                marked.append((text[at : match.start()], tone))
            marked.append((match[0], Tone.FOUND))
            at = match.end()
        if at < len(text):
            marked.append((text[at:], tone))
    return marked
