"""What can be taken along from the screen, and the name that it gets if the user gives no other."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from thresher.core.insight.export import Form
from thresher.core.insight.taken import Taken


class What(StrEnum):
    """What is taken along."""

    COMPACTION = "compaction"
    SESSION = "session"
    SCREEN = "screen"


class Choice(NamedTuple):
    """One thing in one form; `form` is None for a picture."""

    what: What
    form: Form | None = None

    @property
    def id(self) -> str:
        """It in a word or two: "compaction md"."""
        return self.what.value if self.form is None else f"{self.what} {self.form}"

    @property
    def ending(self) -> str:
        """The ending of the file's name."""
        return "svg" if self.form is None else self.form.value


FORMS = {
    Form.MARKDOWN: "Markdown",
    Form.HTML: "HTML, one file without scripts",
    Form.JSON: "JSON",
    None: "SVG",
}

REPORTS = tuple(Choice(what, form) for what in (What.COMPACTION, What.SESSION) for form in Form)
SCREEN = Choice(What.SCREEN)

COMMANDS: tuple[tuple[Choice, str, str], ...] = (
    *(
        (
            Choice(what, form),
            f"{name} as {word}",
            "A file to take along; secrets are taken out, and what was is shown before",
        )
        for what, name in (
            (What.COMPACTION, "This compaction"),
            (What.SESSION, "The session"),
        )
        for form, word in ((Form.MARKDOWN, "Markdown"), (Form.HTML, "HTML"), (Form.JSON, "JSON"))
    ),
    (SCREEN, "The screen as SVG", "A picture file; secrets are dotted out"),
)
"""The entries of the command palette: what, its name, and a sentence."""


class Source(NamedTuple):
    """What there is to take: a session up to the position in view (None on a screen without one),
    the ordinal of the compaction that is meant (0 for none), and the picture of the screen."""

    picture: str
    taken: Taken | None = None
    session_id: str = ""
    ordinal: int = 0

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What can be chosen."""
        reports = REPORTS if self.taken is not None else ()
        return (
            *(each for each in reports if self.ordinal or each.what is not What.COMPACTION),
            SCREEN,
        )

    def words(self, what: What) -> str:
        """What it is, for people."""
        match what:
            case What.COMPACTION:
                return f"compaction {self.ordinal}"
            case What.SESSION:
                return "the session"
            case What.SCREEN:
                return "the screen as it is"

    @property
    def as_it_was(self) -> str:
        """Which position that is; empty where it is the newest."""
        if self.taken is None or not self.taken.rewound:
            return ""
        return f"as it was at #{self.taken.line} of #{self.taken.last}"

    def file_name(self, choice: Choice) -> str:
        """A name that says what is in the file, of letters that every system takes."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", self.session_id).strip("-")[:24].strip("-")
        parts = ["thresher", name]
        if choice.what is What.COMPACTION:
            parts.append(f"compaction-{self.ordinal}")
        if choice.what is What.SCREEN:
            parts.append("screen")
        if self.taken is not None and self.taken.rewound:
            parts.append(f"at-{self.taken.line}")
        return f"{'-'.join(filter(None, parts))}.{choice.ending}"


def place_of(text: str) -> Path:
    """The file that a user means."""
    return Path(text.strip()).expanduser().absolute()
