"""Take it along: what, in which form, without which secrets, and to which file.

What is taken out is shown before anything is written, and a file that is there is replaced only
after a question. The report is made in a thread, since a long session takes its time.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Input

from thresher.core.errors import ThresherError
from thresher.core.insight.export import report_of, save, written
from thresher.core.insight.redact import Redacted
from thresher.core.insight.report import Report
from thresher.core.insight.taken import take
from thresher.core.insight.wording import taken_out
from thresher.core.text import clean, clean_line
from thresher.core.views import Card, CardStatus

from .. import figures
from ..copying import copy_text
from ..exporting import FORMS, Choice, Source, What, place_of
from ..keys import Where, bindings
from ..picture import redacted_svg
from ..plain import PlainStatic
from ..spans import Line, Tone, column, span, wrap
from ..theme import key_words
from ..widgets.choices import Choice as Way
from ..widgets.choices import Choices
from ..widgets.row_list import RowList
from ..widgets.text_line import TextLine
from .confirm import ConfirmScreen
from .dialog import ENTER, Dialog


def meant_card(screen: Screen[object]) -> Card | None:
    """The compaction that is meant on a screen; None where there is none to tell of."""
    from .diff import DiffScreen
    from .looking import LookingScreen

    card = None
    if isinstance(screen, LookingScreen):
        card = screen.card_here
    elif isinstance(screen, DiffScreen):
        card = screen.card
    return card if card is not None and card.status is CardStatus.DONE else None


def take_along(app: App[Any], choice: str) -> None:
    """Show the dialog over the screen that is in view, and then where the file lies."""
    from .picker import PickerScreen

    screen = app.screen
    if isinstance(screen, ModalScreen):
        return
    model = getattr(app, "model", None) if not isinstance(screen, PickerScreen) else None
    if model is not None and (read := model.indexed()) is not None:
        app.notify(
            f"{read} % of the session is read so far: wait until all of it is.", markup=False
        )
        return
    card = meant_card(screen)
    source = Source(
        picture=app.export_screenshot(),
        taken=None if model is None else take(model.history, model.position),
        session_id="" if model is None else model.history.state.session_id,
        ordinal=0 if card is None else card.ordinal,
    )
    wanted = next((each for each in source.choices if each.id == choice), source.choices[0])

    def done(exported: Exported | None) -> None:
        if exported is not None:
            app.push_screen(ExportedScreen(exported))

    app.push_screen(ExportScreen(source, wanted, Path.cwd()), done)


class Exported(NamedTuple):
    """A file that was written."""

    path: Path
    size: int
    told: str
    """What was taken out."""


class ExportScreen(Dialog[Exported]):
    """The choices, what redaction finds in the one that is chosen, and the file. Answers what was
    written, or None."""

    def __init__(self, source: Source, choice: Choice, folder: Path) -> None:
        super().__init__()
        self._source = source
        self._choices = source.choices
        self._choice = choice if choice in self._choices else self._choices[0]
        self._redact = True
        self._reports: dict[tuple[What, bool], Report] = {}
        self._rows = RowList()
        self._folder = folder
        self._offered = ""
        self._input = TextLine(words="the file to write")

    def compose(self) -> ComposeResult:
        """The list, what is taken out, and the line with the file."""
        where = self._source.as_it_was
        with Vertical(classes="dialog wide export"):
            yield PlainStatic(
                f"take it along, {where}" if where else "take it along", classes="dialog-title"
            )
            yield self._rows
            yield PlainStatic(id="export-found")
            yield PlainStatic("into the file", classes="hint")
            yield self._input
            yield Choices(self._ways())

    def on_mount(self) -> None:
        """Begin with the choice that was asked for."""
        self._rows.fill(len(self._choices) + 1, self._line, cursor=self._at)
        self._rows.styles.height = len(self._choices) + 1
        self._offer()
        self._look()
        self._rows.focus()

    @property
    def _at(self) -> int:
        return self._choices.index(self._choice)

    def _line(self, at: int, cells: int) -> Line:
        if at == len(self._choices):
            on_ = self._redact
            mark = span("✓ " if on_ else "· ", Tone.ACCENT if on_ else Tone.FAINT)
            words = "take out keys, tokens, passwords and home folders"
            return [mark, span(words, Tone.PLAIN if on_ else Tone.THRESHOLD)]
        choice = self._choices[at]
        chosen = choice is self._choice
        first = not at or self._choices[at - 1].what is not choice.what
        name = self._source.words(choice.what) if first else ""
        return [
            span("● " if chosen else "· ", Tone.ACCENT if chosen else Tone.FAINT),
            column(name, 22, Tone.MUTED),
            span(FORMS[choice.form], Tone.STRONG if chosen else Tone.PLAIN),
        ]

    # -- the ways on -----------------------------------------------------------------------------

    def _ways(self) -> list[Way]:
        """What can be done where the keys go now."""
        tab, close = key_words(self.app, "app.focus"), key_words(self.app, "modal.close")
        out = Way(close, "closes", "close")
        if self._input.has_focus:
            return [Way(ENTER, "writes it there", "write"), Way(tab, "to the list", "list"), out]
        does = "turns it on or off" if self._rows.cursor == len(self._choices) else "to the file"
        return [
            Way(key_words(self.app, "list.open"), does, "choose"),
            *([Way(tab, "to the file", "file")] if does != "to the file" else []),
            out,
        ]

    @on(events.DescendantFocus)
    def _ways_changed(self) -> None:
        self.query_one(Choices).set(self._ways())

    def action_choose(self) -> None:
        """Take the selected line of the list."""
        self._rows.action_select()

    def action_file(self) -> None:
        """On to the file."""
        self._input.focus()

    def action_list(self) -> None:
        """Back to the list."""
        self._rows.focus()

    # -- choosing --------------------------------------------------------------------------------

    @on(RowList.Selected)
    def _selected(self) -> None:
        at = self._rows.cursor
        self._ways_changed()
        if 0 <= at < len(self._choices) and self._choices[at] is not self._choice:
            self._choice = self._choices[at]
            self._rows.again()
            self._offer()
            self._look()

    @on(RowList.Opened)
    def _opened(self) -> None:
        if self._rows.cursor < len(self._choices):
            self._input.focus()
            return
        self._redact = not self._redact
        self._rows.again()
        self._look()

    def _offer(self) -> None:
        """A name that fits the choice, unless the user has written one: then its ending, where
        that is one that was offered."""
        name = str(self._folder / self._source.file_name(self._choice))
        mine = self._input.value
        if mine in ("", self._offered):
            self._input.value = name
            self._input.cursor_position = len(name)
        self._offered = name

    def _look(self) -> None:
        self.run_worker(
            self._find(), name="export", group="export", exclusive=True, exit_on_error=False
        )

    async def _find(self) -> None:
        """Say what would be taken out."""
        found = self.query_one("#export-found", PlainStatic)
        if self._choice.what is What.SCREEN:
            told = taken_out(redacted_svg(self._source.picture)[1] if self._redact else None)
        else:
            found.show("looking for what must not leave ...")
            try:
                told = taken_out((await self._report()).redacted)
            except ThresherError as error:
                told = error.msg
        found.show(told)

    async def _report(self) -> Report:
        key = (self._choice.what, self._redact)
        known = self._reports.get(key)
        if known is None:
            taken = self._source.taken
            assert taken is not None  # a choice without it is the picture alone
            only = self._source.ordinal if key[0] is What.COMPACTION else None
            known = await asyncio.to_thread(report_of, taken, only=only, redact=key[1])
            self._reports[key] = known
        return known

    # -- writing ---------------------------------------------------------------------------------

    @on(Input.Submitted)
    def action_write(self) -> None:
        """Write it into the file that is named."""
        if not self._input.value.strip():
            self.notify("Name the file to write.", severity="error", markup=False)
            return
        path = place_of(self._input.value)
        if path.is_dir():
            self._tell(ThresherError("Not a file", f"{path} is a folder: name a file in it."))
        elif path.exists():
            self._ask(path)
        else:
            self._write(path, force=False)

    def _ask(self, path: Path) -> None:
        def told(cells: int) -> list[Line]:
            lines = wrap(clean_line(str(path), 400), min(cells, 60))[:6]
            return [[span(line, Tone.STRONG)] for line in lines]

        def answered(yes: bool | None) -> None:
            if yes:
                self._write(path, force=True)

        self.app.push_screen(
            ConfirmScreen("this file is there already: replace it", told), answered
        )

    def _write(self, path: Path, *, force: bool) -> None:
        self.run_worker(
            self._writing(path, force), name="export", group="export", exclusive=True,
            exit_on_error=False,
        )  # fmt: skip

    async def _writing(self, path: Path, force: bool) -> None:
        found: tuple[Redacted, ...] | None = None
        what = "picture" if self._choice.form is None else "report"
        try:
            if self._choice.form is None:
                text = self._source.picture
                if self._redact:
                    text, found = redacted_svg(text)
            else:
                report = await self._report()
                found = report.redacted
                text = await asyncio.to_thread(written, report, self._choice.form)
            await asyncio.to_thread(save, text, path, force=force, what=what)
        except ThresherError as error:
            self._tell(error)
            return
        self.dismiss(Exported(path, len(text.encode(errors="replace")), taken_out(found)))

    def _tell(self, error: ThresherError) -> None:
        self.notify(
            clean(error.msg[:400]), title=clean_line(error.title, 60), severity="error",
            markup=False,
        )  # fmt: skip


class ExportedScreen(Dialog[None]):
    """Where the file lies, and what was taken out of it."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.WRITTEN)

    def __init__(self, exported: Exported) -> None:
        super().__init__()
        self._exported = exported

    def compose(self) -> ComposeResult:
        """The path, in full."""
        done = self._exported
        with Vertical(classes="dialog wide"):
            yield PlainStatic(
                f"written, {figures.count(done.size, 'byte')}", classes="dialog-title"
            )
            yield PlainStatic(str(done.path), id="export-path")
            yield PlainStatic(done.told, classes="hint")
            yield Choices(
                [
                    Way(key_words(self.app, "written.copy"), "copies the path", "copy"),
                    Way(key_words(self.app, "written.close"), "closes", "close"),
                ]
            )

    def action_copy(self) -> None:
        """Copy the path."""
        copy_text(self.app, str(self._exported.path), "the path")
