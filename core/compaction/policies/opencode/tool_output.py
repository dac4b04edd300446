"""The bound of a tool's output at entry: 2,000 lines or 51,200 bytes, in three forms.

`head` keeps the beginning (V1's default), `tail` the end (V1's shell), `both` half of each (V2).
The whole text is kept in a file, which the model is told of.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import StrEnum

import msgspec

from ....items import FunctionCallOutput
from ...policy import Answer, Edit, Persist, Situation, Skip, SkipKind, Step, Stored
from ...summaries import prompt

STAGE = "tool output"


class Form(StrEnum):
    """What of a long output the model sees."""

    HEAD = "head"
    TAIL = "tail"
    SHELL = "shell"
    """The tail, with the words that V1 uses for its shell."""
    BOTH = "both"


class Bounds(msgspec.Struct, frozen=True):
    """How much of an output may enter: lines, and bytes of UTF-8."""

    lines: int
    bytes: int

    def hold(self, text: str, form: Form) -> bool:
        """Whether a text is within both. V2 does not count an empty last line, V1 does."""
        lines = text.count("\n") + 1
        if form is Form.BOTH and (not text or text.endswith("\n")):
            lines -= 1
        return lines <= self.lines and _bytes(text) <= self.bytes


def tool_names(text: str) -> frozenset[str]:
    """The tools that a setting names, with commas between them."""
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


def bound(situation: Situation, bounds: Bounds, form: Form) -> Generator[Step, Answer, None]:
    """Cap the fresh output of a situation: the file first, then the text that names it."""
    output = situation.fresh_output
    if output is None or bounds.hold(output.output, form):
        yield Skip(SkipKind.NOT_DUE, "the output is within its bounds", STAGE)
        return
    path = output.saved
    if not path:
        stored = yield Persist(f"tool_{output.call_id}", output.output)
        path = stored.path if isinstance(stored, Stored) else ""
    text = cut(output.output, bounds, form, path)
    lines = output.output.count("\n") + 1
    yield Edit(
        stage=STAGE,
        reason=(
            f"{lines:,} lines and {_bytes(output.output):,} bytes of {output.name or 'a tool'} are "
            f"over {bounds.lines:,} lines or {bounds.bytes:,} bytes; the {form} form keeps "
            f"{_bytes(text):,} bytes."
        ),
        output=FunctionCallOutput(
            output.call_id, text, output.name, is_error=output.is_error, saved=path
        ),
    )


def cut(text: str, bounds: Bounds, form: Form, path: str) -> str:
    """A text over its bounds, cut. `path` is the file with all of it, or empty if there is none."""
    match form:
        case Form.HEAD:
            kept, left_out = _whole_lines(text, bounds, from_end=False)
            return f"{kept}\n\n{left_out}\n\n{_hint(path)}"
        case Form.TAIL:
            kept, left_out = _whole_lines(text, bounds, from_end=True)
            return f"{left_out}\n\n{_hint(path)}\n\n{kept}"
        case Form.SHELL:
            kept = _shell_tail(text, bounds)
            where = f"Full output saved to: {path}" if path else _hint(path)
            return f"...output truncated...\n\n{where}\n\n{kept}"
        case Form.BOTH:
            return _both_ends(text, bounds, path)


def _hint(path: str) -> str:
    if not path:
        return prompt("opencode_output_lost")
    return prompt("opencode_output_hint").replace("{path}", path)


def _whole_lines(text: str, bounds: Bounds, *, from_end: bool) -> tuple[str, str]:
    """As many whole lines as both bounds allow, and the words for what is left out."""
    lines = text.split("\n")
    walk = lines[::-1] if from_end else lines
    kept: list[str] = []
    used, full = 0, False
    for line in walk[: bounds.lines]:
        cost = _bytes(line) + (1 if kept else 0)
        if used + cost > bounds.bytes:
            full = True
            break
        kept.append(line)
        used += cost
    left_out = _bytes(text) - used if full else len(lines) - len(kept)
    words = f"...{left_out} {'bytes' if full else 'lines'} truncated..."
    return "\n".join(kept[::-1] if from_end else kept), words


def _shell_tail(text: str, bounds: Bounds) -> str:
    """The newest lines; of a single line that is too long by itself, its end."""
    kept, _ = _whole_lines(text, bounds, from_end=True)
    last = text[text.rfind("\n") + 1 :]
    return _suffix(last, bounds.bytes) if _bytes(last) > bounds.bytes else kept


def _both_ends(text: str, bounds: Bounds, path: str) -> str:
    """Half of what is left beside the marker from the beginning, and half from the end.

    Two blank lines around the marker cost four lines and four bytes. Where that leaves nothing,
    the marker stands alone.
    """
    where = f"full content saved to {path}" if path else "the full content could not be saved"
    marker = f"... output truncated; {where} ..."
    most_lines, most_bytes = bounds.lines - 4, bounds.bytes - _bytes(marker) - 4
    if most_lines <= 0 or most_bytes <= 0:
        return "\n".join(_prefix(marker, bounds.bytes).split("\n")[: bounds.lines])
    lines = text.split("\n")
    head, tail = text, ""
    if len(lines) > most_lines:
        newest = most_lines // 2
        head = "\n".join(lines[: most_lines - newest])
        tail = "\n".join(lines[len(lines) - newest :]) if newest else ""
    sampled = f"{head}\n{tail}" if tail else head
    if _bytes(sampled) > most_bytes:
        head, tail = (
            _prefix(sampled, most_bytes - most_bytes // 2),
            _suffix(sampled, most_bytes // 2),
        )
    return f"{head}\n\n{marker}\n\n{tail}" if tail else f"{head}\n\n{marker}"


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _prefix(text: str, most: int) -> str:
    """The longest beginning within so many bytes; no character is cut in two."""
    data = text.encode("utf-8", "surrogatepass")
    end = min(most, len(data))
    while 0 < end < len(data) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def _suffix(text: str, most: int) -> str:
    """The longest end within so many bytes."""
    data = text.encode("utf-8", "surrogatepass")
    start = max(0, len(data) - most)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")
