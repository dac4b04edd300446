"""The screen as a picture: an SVG file, with secrets dotted out.

Textual draws it through Rich: a text element for every run of one style, all of a line under one
clip path. A secret may be of several styles, so a line is looked at as a whole.
"""

from __future__ import annotations

import html
import re
from itertools import groupby

from thresher.core.insight.redact import Redacted, Redactor

_TEXT = re.compile(r'(<text [^>]*clip-path="url\(#([^)"]+)\)"[^>]*>)([^<]*)(</text>)')


def redacted_svg(svg: str) -> tuple[str, tuple[Redacted, ...]]:
    """The picture without keys, tokens, passwords and home folders, each a row of dots, and what
    was found. What is broken over two lines of the screen is found only as far as each half of it
    looks like a secret."""
    redactor = Redactor(masked=True)
    found = list(_TEXT.finditer(svg))
    parts: list[str] = []
    end = 0
    for _, run in groupby(found, key=lambda match: match[2]):
        line = list(run)
        texts = [html.unescape(match[3]).replace("\xa0", " ") for match in line]
        # Every dot stands for a character, so the line is cut where it was.
        clean = redactor.text("".join(texts))
        at = 0
        for match, text in zip(line, texts, strict=True):
            now = clean[at : at + len(text)]
            at += len(text)
            shown = match[3] if now == text else html.escape(now).replace(" ", "&#160;")
            parts += (svg[end : match.start()], match[1], shown, match[4])
            end = match.end()
    return "".join((*parts, svg[end:])), redactor.found
