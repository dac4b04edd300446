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
from .report import Report, make_report


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
    history: History, form: Form, *, only: int | None = None, redact: bool = True
) -> tuple[str, Report]:
    """The report as text, and as data. The text can be sent to a terminal as it is.

    `only` is the ordinal of one compaction. Raises ThresherError when there is no such one.
    """
    report = make_report(history, only=only, redactor=Redactor() if redact else None)
    return written(report, form), report


def written(report: Report, form: Form) -> str:
    """A report in one of the forms."""
    match form:
        case Form.MARKDOWN:
            return markdown(report)
        case Form.HTML:
            return html(report)
        case Form.JSON:
            return safe_json(jsontext.encode(report).decode()) + "\n"


def save(text: str, path: Path, *, force: bool = False) -> None:
    """Write a report to a file. Raises ThresherError when it exists (without `force`), or cannot
    be written."""
    try:
        with path.open("w" if force else "x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except FileExistsError as error:
        raise ThresherError(
            "File exists", f"{path} is there already: give another name, or --force to replace it."
        ) from error
    except OSError as error:
        raise storage_error("Report not written", "write the report to", path, error) from error
