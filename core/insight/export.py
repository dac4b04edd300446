"""Take it along: a session, or one compaction of it, as Markdown, HTML or JSON."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from .. import jsontext
from ..errors import ThresherError, storage_error
from ..history import History
from ..text import safe_json
from .export_html import html
from .export_markdown import markdown
from .redact import Redactor
from .report import Report, Rewound, make_report
from .taken import Taken, history_of, take


class Form(StrEnum):
    """How a report is written."""

    MARKDOWN = "md"
    HTML = "html"
    JSON = "json"

    @classmethod
    def of(cls, path: Path) -> Form | None:
        """What the ending of a file name says, if anything."""
        endings = {
            ".md": cls.MARKDOWN,
            ".markdown": cls.MARKDOWN,
            ".html": cls.HTML,
            ".htm": cls.HTML,
            ".json": cls.JSON,
        }
        return endings.get(path.suffix.lower())


def export(
    history: History,
    form: Form,
    *,
    only: int | None = None,
    redact: bool = True,
    position: int | None = None,
) -> tuple[str, Report]:
    """The report as text, and as data. The text can be sent to a terminal as it is.

    `only` is the ordinal of one compaction, `position` counts records, as `History` does. Raises
    ThresherError when there is no such compaction there.
    """
    report = report_of(take(history, position), only=only, redact=redact)
    return written(report, form), report


def report_of(taken: Taken, *, only: int | None = None, redact: bool = True) -> Report:
    """The report of what was taken of a session. Takes as long as it takes: call it in a thread
    from a screen. Raises ThresherError when there is nothing to tell, or no such compaction."""
    if not taken.records:
        raise ThresherError("Nothing to export", "nothing has happened yet at this position.")
    return make_report(
        history_of(taken, only),
        only=only,
        redactor=Redactor() if redact else None,
        rewound=Rewound(taken.line, taken.last) if taken.rewound else None,
    )


def written(report: Report, form: Form) -> str:
    """A report in one of the forms."""
    match form:
        case Form.MARKDOWN:
            return markdown(report)
        case Form.HTML:
            return html(report)
        case Form.JSON:
            return safe_json(jsontext.encode(report).decode()) + "\n"


def save(text: str, path: Path, *, force: bool = False, what: str = "report") -> None:
    """Write a report (or `what` it is) to a file. Raises ThresherError when it exists (without
    `force`), or cannot be written."""
    try:
        with path.open("w" if force else "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError as error:
        raise ThresherError(
            "File exists", f"{path} is there already: give another name, or --force to replace it."
        ) from error
    except OSError as error:
        title = f"{what.capitalize()} not written"
        raise storage_error(title, f"write the {what} to", path, error) from error
