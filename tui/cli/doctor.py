"""`thresher doctor`: what there is, what is wrong, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

import thresher.core
from thresher.core import paths
from thresher.core.errors import ThresherError

from ..figures import count
from ..spans import Line, Tone, column, span, wrap
from . import output

Json = Annotated[
    bool, Parameter(name="--json", negative="", show_default=False, help="Print one JSON object.")
]

LIBRARIES = ("textual", "rich", "cyclopts", "msgspec", "openai", "tiktoken", "watchfiles")


class Health(StrEnum):
    """What a finding means."""

    GOOD = "good"
    NOTE = "note"
    """It may surprise, and nothing has to be done."""
    BAD = "bad"
    """Something will not work."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at; `advice` is set where something can be done."""

    group: str
    name: str
    value: str
    health: Health = Health.GOOD
    advice: str = ""


def add_to(app: App) -> None:
    """Register the command."""
    app.command(doctor, help_epilogue="Example: thresher doctor --json")


def doctor(*, json: Json = False) -> int:
    """Look at terminal, versions, vocabularies, folders and settings; say what is wrong.

    The exit code is 1 when something will not work.
    """
    findings = list(examine())
    bad = [finding for finding in findings if finding.health is Health.BAD]
    if json:
        output.put_json({"healthy": not bad, "findings": findings})
    else:
        output.put(_lines(findings, min(output.columns(), 120)))
        output.say()
        output.say(f"{count(len(bad), 'problem')}." if bad else "Nothing is wrong.")
    return 1 if bad else 0


def examine() -> Iterator[Finding]:
    """All findings, group by group."""
    yield from _program()
    yield from _terminal()
    yield from _vocabularies()
    yield from _folders()
    yield from _sessions()
    yield from _settings()


def _program() -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, version

    yield Finding("program", "thresher", thresher.core.__version__)
    yield Finding("program", "python", f"{platform.python_version()} ({sys.executable})")
    yield Finding("program", "system", platform.platform(terse=True))
    for name in LIBRARIES:
        try:
            yield Finding("program", name, version(name))
        except PackageNotFoundError:
            advice = "Install thresher again: pip install --force-reinstall thresher."
            yield Finding("program", name, "not installed", Health.BAD, advice)


def _terminal() -> Iterator[Finding]:
    if missing := no_terminal():
        yield Finding("terminal", "screens", missing, Health.NOTE, "Run it in a terminal window.")
    else:
        size = shutil.get_terminal_size()
        advice = "The console is made for 80 columns and 24 rows or more."
        small = size.columns < 80 or size.lines < 24
        yield Finding(
            "terminal",
            "size",
            f"{size.columns} x {size.lines}",
            Health.NOTE if small else Health.GOOD,
            advice if small else "",
        )
    yield Finding("terminal", "TERM", os.environ.get("TERM", "not set"))
    yield Finding("terminal", "colours", _colours())
    encoding = (sys.stdout.encoding or "unknown").lower()
    if encoding.replace("-", "") == "utf8":
        yield Finding("terminal", "encoding", encoding)
    else:
        advice = "Set LANG to a UTF-8 locale, such as C.UTF-8, else glyphs and text are garbled."
        yield Finding("terminal", "encoding", encoding, Health.NOTE, advice)


def no_terminal() -> str:
    """Why no screen can be shown here, or an empty text."""
    if os.environ.get("TEXTUAL_DRIVER", "").startswith("textual.drivers.web_driver"):
        # `thresher serve` runs us: the screen is a page in a browser.
        return ""
    streams = (("input", sys.stdin), ("output", sys.stdout), ("error output", sys.stderr))
    for name, stream in streams:
        if stream is None or stream.closed or not stream.isatty():
            return f"standard {name} is not a terminal"
    if os.environ.get("TERM", "") in ("dumb", "unknown"):
        return f"TERM is {os.environ['TERM']}, a terminal that cannot move its cursor"
    return ""


def _colours() -> str:
    if os.environ.get("NO_COLOR"):
        return "none (NO_COLOR is set)"
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return "16 million (COLORTERM)"
    return "256 or fewer (COLORTERM does not say truecolor)"


def _vocabularies() -> Iterator[Finding]:
    from thresher.core.tokenizer import DEFAULT_ENCODING, vocabularies

    for each in vocabularies():
        if not each.problem:
            yield Finding("vocabularies", each.name, f"{each.place}, SHA-256 as in tiktoken")
        elif each.name == DEFAULT_ENCODING:
            advice = f"{each.problem} Install thresher again."
            yield Finding("vocabularies", each.name, "not usable", Health.BAD, advice)
        elif each.place:
            yield Finding("vocabularies", each.name, "refused", Health.NOTE, each.problem)
        else:
            yield Finding("vocabularies", each.name, "not here; estimated instead")


def _folders() -> Iterator[Finding]:
    for name, path in (
        ("state", paths.state_dir()),
        ("config", paths.config_dir()),
        ("cache", paths.cache_dir()),
    ):
        yield _folder(name, path)


def _folder(name: str, path: Path) -> Finding:
    variable = f"THRESHER_{name.upper()}_DIR"
    told = f"{path}{f' ({variable})' if os.environ.get(variable) else ''}"
    nearest = path
    while not nearest.exists() and nearest.parent != nearest:
        nearest = nearest.parent
    advice = ""
    if not nearest.is_dir():
        advice = f"{nearest} is not a folder: move it away, or set {variable} to another place."
    elif not os.access(nearest, os.W_OK | os.X_OK):
        advice = f"{nearest} cannot be written: correct its permissions, or set {variable}."
    if advice:
        # Settings are only read, so only the other two must be writable.
        health = Health.NOTE if name == "config" and path.is_dir() else Health.BAD
        return Finding("folders", name, told, health, advice)
    return Finding("folders", name, told if path.is_dir() else f"{told}, not made yet")


def _sessions() -> Iterator[Finding]:
    from thresher.core.sessions import catalog
    from thresher.core.sources.finders import finders

    own = catalog.sessions(paths.sessions_dir())
    faulty = [info for info in own if info.problem]
    yield Finding("sessions", "thresher", f"{len(own):,} in {paths.sessions_dir()}")
    if faulty:
        first = faulty[0]
        advice = f"{first.path}: {first.problem}. `thresher sessions` lists them all."
        told = f"{count(len(faulty), 'session')} cannot be resumed"
        yield Finding("sessions", "faulty", told, Health.NOTE, advice)
    for finder in finders():
        found = finder.files(None)
        yield Finding("sessions", finder.words[0], f"{len(found):,} in {finder.home()}")


def _settings() -> Iterator[Finding]:
    from thresher.core import config

    path = config.default_path()
    try:
        settings = config.load()
    except ThresherError as error:
        yield Finding("settings", "file", str(path), Health.BAD, error.msg)
        return
    yield Finding("settings", "file", f"{path}{'' if path.is_file() else ', none'}")
    yield from _looks(settings)
    model, source = settings.model, settings.source
    yield Finding("settings", "endpoint", f"{model.base_url} ({source('model.base_url')})")
    yield Finding("settings", "wire", model.wire_in_use.value)
    if model.name:
        yield from _model(settings)
    else:
        advice = "Give --model, or set OPENAI_MODEL; `thresher demo` needs no model."
        yield Finding("settings", "model", "not set", Health.NOTE, advice)
    yield _key(settings)
    yield _policy(settings)


def _looks(settings: thresher.core.config.Settings) -> Iterator[Finding]:
    from .looks import looks_of

    try:
        looks_of(settings)
    except ThresherError as error:
        yield Finding("settings", "screen", "not usable", Health.BAD, error.msg)


def _model(settings: thresher.core.config.Settings) -> Iterator[Finding]:
    from thresher.core.models import resolve

    name = settings.model.name
    yield Finding("settings", "model", f"{name} ({settings.source('model.name')})")
    window = resolve(name, user=settings.stated_limits()).window
    if window.value is None:
        advice = "Set the window under [model] or with --window, unless the endpoint tells it."
        yield Finding("settings", "window", f"unknown: {window.source}", Health.NOTE, advice)
    else:
        yield Finding("settings", "window", f"{window.value:,} tokens ({window.source})")


def _key(settings: thresher.core.config.Settings) -> Finding:
    variable = settings.model.key_variable
    if not variable:
        return Finding("settings", "API key", "none wanted (key_variable is empty)")
    if os.environ.get(variable, "").strip():
        return Finding("settings", "API key", f"{variable} is set")
    advice = f"Set {variable} before `thresher run`; `thresher demo` needs none."
    return Finding("settings", "API key", f"{variable} is not set", Health.NOTE, advice)


def _policy(settings: thresher.core.config.Settings) -> Finding:
    from thresher.core.compaction.policies.registry import make

    chosen = settings.compaction
    try:
        make(chosen.policy, chosen.params)
    except ThresherError as error:
        return Finding("settings", "policy", chosen.policy, Health.BAD, error.msg)
    return Finding(
        "settings", "policy", f"{chosen.policy} ({settings.source('compaction.policy')})"
    )


_SIGNS = {
    Health.GOOD: ("✓", Tone.KEPT),
    Health.NOTE: ("!", Tone.THRESHOLD),
    Health.BAD: ("✗", Tone.FAILED),
}


def _lines(findings: list[Finding], cells: int) -> list[Line]:
    size = max(len(finding.name) for finding in findings)
    lines: list[Line] = []
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            lines += [[]] if lines else []
            lines.append([span(group, Tone.STRONG)])
        sign, tone = _SIGNS[finding.health]
        label = column(finding.name, size, Tone.MUTED)
        parts = wrap(finding.value, max(20, cells - size - 6))
        lines.append([span("  "), span(sign, tone), span(" "), label, span("  "), span(parts[0])])
        rest = [*parts[1:]]
        if finding.advice:
            rest += wrap(finding.advice, max(20, cells - size - 6))
        for part in rest:
            note = Tone.PLAIN if part in parts else tone
            lines.append([span(" " * (size + 6)), span(part, note)])
    return lines
