"""Choosing the policy that proposes at a stop, with what each of them would come to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen

from thresher.core.debug.candidates import Candidate, candidate
from thresher.core.debug.stop import Stop
from thresher.core.state import SessionState
from thresher.core.text import clean_line

from .. import figures
from ..model import ConsoleModel
from ..plain import PlainStatic
from ..spans import Line, Tone, clip, column, cut, span, wrap
from ..widgets.choices import Choices
from ..widgets.lines import Lines
from ..widgets.row_list import RowList
from .listing import Entry, ListScreen

IN_FORCE = "● is the policy in force, and stays it."
_LOOKING = "What it would do is being looked at."
_TOLD_LINES = 3


class _Told(Lines):
    """What the selected policy would come to, in a sentence."""

    DEFAULT_CSS = f"""
    _Told {{ height: {_TOLD_LINES}; margin-top: 1; }}
    """

    def __init__(self) -> None:
        super().__init__()
        self._line: Line = []

    def tell(self, text: str, tone: Tone) -> None:
        """Another sentence."""
        self._line = [span(text, tone)]
        self.show()

    def draw(self, width: int, height: int) -> list[Line]:
        """The sentence; what has no room is cut."""
        if not self._line:
            return []
        ((text, tone),) = self._line
        lines = wrap(text, width)
        if len(lines) > height:
            lines = [*lines[: height - 1], " ".join(lines[height - 1 :])]
        return [clip([span(line, tone)], width) for line in lines]


class PolicyScreen(ListScreen[str]):
    """The policies by name. Each one's edit is worked out after the list is there, one after the
    other, so that the list is never waited for."""

    def __init__(self, stop: Stop, state: SessionState, titles: Mapping[str, str]) -> None:
        names = list(titles)
        now = state.policy
        super().__init__(
            "let another policy propose",
            [Entry([], [], name) for name in names],
            does="lets it propose",
            cursor=names.index(now) if now in names else 0,
        )
        self._stop, self._state, self._titles = stop, state, titles
        self._found: dict[str, Candidate] = {}
        self._told = _Told()

    def compose(self) -> ComposeResult:
        """The policies, and a sentence about the selected one."""
        with Vertical(classes="dialog list wide"):
            yield PlainStatic(self._title, classes="dialog-title")
            yield self.rows
            yield self._told
            yield PlainStatic(IN_FORCE, classes="hint")
            yield Choices(self.choices(), classes="")

    def on_mount(self) -> None:
        """Begin with the policy in force, and look at all of them."""
        self.run_worker(self._look(), name="candidates", group="candidates", exit_on_error=False)

    @property
    def complete(self) -> bool:
        """Whether all of them have been looked at."""
        return len(self._found) == len(self._titles)

    async def _look(self) -> None:
        for name in self._titles:
            # The list draws and takes keys in between.
            await asyncio.sleep(0)
            self._found[name] = candidate(name, self._stop, self._state)
            self.rows.again()
            self._tell()

    def _line(self, at: int, cells: int) -> Line:
        name = self.entries[at].value or ""
        found = self._found.get(name)
        right = right_of(found)
        room = cells - sum(len(text) for text, _ in right) - 2
        left = [
            span("● " if name == self._state.policy else "  ", Tone.ACCENT),
            column(name, 21, Tone.STRONG),
            span(cut(self._titles[name], max(1, room - 24)), Tone.MUTED),
        ]
        gap = max(0, room - sum(len(text) for text, _ in left)) + 2
        return clip([*left, span(" " * gap), *right], cells)

    @on(RowList.Selected)
    def _tell(self) -> None:
        at = self.rows.cursor
        if at >= 0:
            found = self._found.get(self.entries[at].value or "")
            self._told.tell(*sentence(found))


def right_of(found: Candidate | None) -> Line:
    """The figures of a policy, in columns of the same widths for all."""
    if found is None:
        return [column("…", 25, Tone.FAINT, right=True)]
    if found.after is None or found.change is None:
        return [column("?" if found.asks else "nothing here", 25, Tone.FAINT, right=True)]
    change = found.change
    counts = (
        ("-", len(change.removed), Tone.REMOVED),
        ("~", len(change.replaced), Tone.REWRITTEN),
        ("+", len(change.inserted), Tone.INSERTED),
    )
    line: Line = [column(f"→ {figures.figure(found.after)}", 10, Tone.PLAIN, right=True)]
    for sign, number, tone in counts:
        told = figures.thousands(number)
        line.append(span(f"  {sign}", tone if number else Tone.FAINT))
        line.append(column(told, 2 if len(told) < 3 else len(told), Tone.PLAIN if number else
                           Tone.FAINT, right=True))  # fmt: skip
    return line


def sentence(found: Candidate | None) -> tuple[str, Tone]:
    """What choosing a policy comes to, in words."""
    if found is None:
        return _LOOKING, Tone.FAINT
    why = clean_line(found.reason, 300)
    if found.before is None or found.after is None or found.change is None:
        if found.asks:
            return f"It asks for a summary; what follows cannot be foreseen: {why}", Tone.MUTED
        return f"It would do nothing here: {why}", Tone.MUTED
    change, size = found.change, found.before
    told = (
        f"{figures.figure(size)} → {figures.figure(found.after)} tokens "
        f"{size.basis}, {size.scope}: "
        f"{len(change.removed):,} removed, {len(change.replaced):,} rewritten, "
        f"{len(change.inserted):,} inserted, {len(change.kept):,} kept."
    )
    if found.asks:
        told += " It asks for a summary first, whose text is not in the figure."
    if why:
        return f"{told} It could not be applied: {why}", Tone.THRESHOLD
    return told, Tone.MUTED


def choose_policy(
    node: Screen[Any], model: ConsoleModel, stop: Stop, then: Callable[[str], None]
) -> None:
    """Choose one of the policies by name."""
    from thresher.core.compaction.policies.registry import policies

    titles = {name: kind.title for name, kind in policies().items()}

    def chosen(name: str | None) -> None:
        if name is not None:
            then(name)

    node.app.push_screen(PolicyScreen(stop, model.history.state, titles), chosen)
