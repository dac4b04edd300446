"""A summary taken apart: its sections, and the facts in each.

Sections begin at Markdown headings, at lines in bold, at numbered titles ("3. Files:") and at XML
tags, whichever the text uses; a text without any is one section. A fact is a list item, a sentence
of a paragraph, or a line of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec


class Fact(msgspec.Struct, frozen=True):
    """One thing that a summary says. `key` is what makes two facts the same: words without
    markup, case and punctuation at the ends."""

    text: str
    key: str

    @property
    def words(self) -> frozenset[str]:
        """The words of the key."""
        return frozenset(_WORDS.findall(self.key))


class Section(msgspec.Struct, frozen=True):
    """A section: its title ("" before the first), and its facts in order."""

    title: str
    facts: tuple[Fact, ...]

    @property
    def key(self) -> str:
        """What makes two sections the same, whatever their number."""
        return key_of(_NUMBER.sub("", self.title))


_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$")
_BOLD = re.compile(r"\s{0,3}(?:\d+[.)]\s+)?(?:\*\*|__)([^*_].*?)(?:\*\*|__):?\s*$")
_TITLED = re.compile(r"\s{0,3}(\d+[.)]\s+\S.{0,78}):\s*$")
_CAPTION = re.compile(r"([A-Z][\w/&' -]{1,58}):\s*$")
_TAG = re.compile(r"\s*<(/?)([A-Za-z][\w-]{0,40})>\s*$")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)]|[a-z][.)]|\[[ xX]\])\s+")
_NUMBER = re.compile(r"^\s*\d+[.)]\s*")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])")
_FENCE = re.compile(r"\s*(```|~~~)")
_MARKUP = re.compile(r"[`*_]+")
_WORDS = re.compile(r"\w+")
_LONG_LINE = 4_000
"""A longer line is one fact as it is."""


def sections(text: str) -> tuple[Section, ...]:
    """The sections in order. Lines before the first title are a section without one."""
    found: list[tuple[str, list[Fact]]] = [("", [])]
    fenced = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        title = None if fenced or len(line) > _LONG_LINE else _title(line)
        if title is not None:
            found.append((title, []))
            continue
        found[-1][1].extend(_facts(line, fenced))
    return tuple(Section(title, tuple(facts)) for title, facts in found if title or facts)


def key_of(text: str) -> str:
    """What makes two texts the same to a reader."""
    return " ".join(_MARKUP.sub("", text).casefold().split()).strip(".,;:!?- ")


def _title(line: str) -> str | None:
    if tag := _TAG.match(line):
        # A closing tag ends a section; what follows has no title of its own.
        return "" if tag[1] else tag[2]
    for pattern in (_HEADING, _BOLD, _TITLED, _CAPTION):
        if match := pattern.match(line):
            return match[1].strip().rstrip(":").strip()
    return None


def _facts(line: str, fenced: bool) -> Iterator[Fact]:
    said = line.strip()
    if not said:
        return
    if fenced or len(said) > _LONG_LINE:
        yield Fact(said, key_of(said) or said)
        return
    item = _ITEM.match(line)
    if item:
        said = line[item.end() :].strip()
    parts = [said] if item else _SENTENCE.split(said)
    for part in parts:
        if key := key_of(part):
            yield Fact(part.strip(), key)
