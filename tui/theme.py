"""Our themes, and the colours that mean something.

Colour is spent on meaning only: what a compaction kept, removed, rewrote and inserted, summaries,
and the threshold. Each of these also has a glyph, so nothing is lost without colour. The parts of
the context are steps of one cool hue and carry their names. Stylesheets use these names, never a
number.

Besides dark and light there is one of high contrast (every text at least 7:1 against what is behind
it) and one without colour, for `NO_COLOR` and for whoever wants it so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.theme import BUILTIN_THEMES, Theme
from textual.types import CSSPathType

from thresher.core.errors import ThresherError
from thresher.core.text import clean_line

from .keys import KEYS, Key, shown

DARK_NAME = "thresher-dark"
LIGHT_NAME = "thresher-light"
CONTRAST_NAME = "thresher-contrast"
MONO_NAME = "thresher-mono"

STYLES = Path(__file__).resolve().parent / "styles"
"""As Textual names the stylesheet of a screen: with links resolved."""

DARK_VARIABLES: dict[str, str] = {
    "muted": "#8792a1",
    "faint": "#66717f",
    "rule": "#2a323d",
    "raised": "#171c23",
    "cursor-row": "#222b37",
    "removed": "#e5727d",
    "kept": "#79b98a",
    "rewritten": "#d8be6a",
    "inserted": "#5fb7d4",
    "summary": "#b595ea",
    "threshold": "#f0924c",
    "part-system": "#7b8798",
    "part-user": "#b4c6da",
    "part-assistant": "#7ea6d0",
    "part-output": "#4f7aa6",
    "part-reasoning": "#6a84a3",
    "part-other": "#5f6b7a",
    "part-ink": "#0e1217",
    "part-free": "#1c232c",
}

LIGHT_VARIABLES: dict[str, str] = {
    "muted": "#5d6875",
    "faint": "#7b8592",
    "rule": "#d5dbe2",
    "raised": "#eff2f5",
    "cursor-row": "#dde6f0",
    "removed": "#b3263a",
    "kept": "#2c7a45",
    "rewritten": "#8a6a00",
    "inserted": "#0b7191",
    "summary": "#7340bd",
    "threshold": "#b9540b",
    "part-system": "#7d8a9a",
    "part-user": "#33516f",
    "part-assistant": "#4c7cad",
    "part-output": "#86abd0",
    "part-reasoning": "#6b8bab",
    "part-other": "#96a1ad",
    "part-ink": "#fbfcfd",
    "part-free": "#e3e8ed",
}

DARK = Theme(
    name=DARK_NAME,
    dark=True,
    primary="#7ea6d0",
    secondary="#7b8798",
    accent="#7ea6d0",
    foreground="#d5dce4",
    background="#0f1318",
    surface="#0f1318",
    panel="#171c23",
    success="#79b98a",
    warning="#f0924c",
    error="#e5727d",
    boost="#171c23",
    variables=DARK_VARIABLES
    | {
        "footer-background": "#0f1318",
        "footer-key-foreground": "#b4c6da",
        "footer-description-foreground": "#8792a1",
        "border": "#7ea6d0",
        "border-blurred": "#2a323d",
        "scrollbar": "#2f3844",
        "scrollbar-hover": "#46515f",
        "scrollbar-active": "#7ea6d0",
        "scrollbar-background": "#0f1318",
        "scrollbar-background-hover": "#0f1318",
        "scrollbar-background-active": "#0f1318",
        "scrollbar-corner-color": "#0f1318",
    },
)

LIGHT = Theme(
    name=LIGHT_NAME,
    dark=False,
    primary="#2f6394",
    secondary="#5d6875",
    accent="#2f6394",
    foreground="#1d2630",
    background="#fbfcfd",
    surface="#fbfcfd",
    panel="#eff2f5",
    success="#2c7a45",
    warning="#b9540b",
    error="#b3263a",
    boost="#eff2f5",
    variables=LIGHT_VARIABLES
    | {
        "footer-background": "#fbfcfd",
        "footer-key-foreground": "#2f6394",
        "footer-description-foreground": "#5d6875",
        "border": "#2f6394",
        "border-blurred": "#d5dbe2",
        "scrollbar": "#ccd3db",
        "scrollbar-hover": "#a4adb8",
        "scrollbar-active": "#2f6394",
        "scrollbar-background": "#fbfcfd",
        "scrollbar-background-hover": "#fbfcfd",
        "scrollbar-background-active": "#fbfcfd",
        "scrollbar-corner-color": "#fbfcfd",
    },
)


def _theme(name: str, *, ground: str, ink: str, accent: str, colours: dict[str, str]) -> Theme:
    """A dark theme in which focus is one colour and everything else is a meaning."""
    return Theme(
        name=name,
        dark=True,
        primary=accent,
        secondary=colours["muted"],
        accent=accent,
        foreground=ink,
        background=ground,
        surface=ground,
        panel=colours["raised"],
        success=colours["kept"],
        warning=colours["threshold"],
        error=colours["removed"],
        boost=colours["raised"],
        variables=colours
        | {
            "footer-background": ground,
            "footer-key-foreground": accent,
            "footer-description-foreground": colours["muted"],
            "border": accent,
            "border-blurred": colours["rule"],
            "block-cursor-background": accent,
            "block-cursor-foreground": ground,
            "input-selection-background": colours["cursor-row"],
            "scrollbar": colours["rule"],
            "scrollbar-hover": colours["faint"],
            "scrollbar-active": accent,
            "scrollbar-background": ground,
            "scrollbar-background-hover": ground,
            "scrollbar-background-active": ground,
            "scrollbar-corner-color": ground,
        },
    )


CONTRAST = _theme(
    CONTRAST_NAME,
    ground="#000000",
    ink="#ffffff",
    accent="#ffff55",
    colours={
        "muted": "#d0d0d0",
        "faint": "#a8a8a8",
        "rule": "#808080",
        "raised": "#1c1c1c",
        "cursor-row": "#002a55",
        "removed": "#ff9a9a",
        "kept": "#6dff8c",
        "rewritten": "#ffe14d",
        "inserted": "#5ce1ff",
        "summary": "#e0b3ff",
        "threshold": "#ffb454",
        "part-system": "#9aa4b0",
        "part-user": "#ffffff",
        "part-assistant": "#a9d4ff",
        "part-output": "#7ab8ff",
        "part-reasoning": "#b9c9da",
        "part-other": "#8f9aa6",
        "part-ink": "#000000",
        "part-free": "#262626",
    },
)

MONO = _theme(
    MONO_NAME,
    ground="#000000",
    ink="#e6e6e6",
    accent="#ffffff",
    colours={
        "muted": "#b4b4b4",
        "faint": "#7d7d7d",
        "rule": "#4a4a4a",
        "raised": "#1a1a1a",
        "cursor-row": "#3a3a3a",
        "removed": "#9c9c9c",
        "kept": "#e6e6e6",
        "rewritten": "#cfcfcf",
        "inserted": "#ffffff",
        "summary": "#ffffff",
        "threshold": "#ffffff",
        "part-system": "#8c8c8c",
        "part-user": "#ffffff",
        "part-assistant": "#c4c4c4",
        "part-output": "#9a9a9a",
        "part-reasoning": "#b0b0b0",
        "part-other": "#7a7a7a",
        "part-ink": "#000000",
        "part-free": "#262626",
    },
)

OURS = (DARK, LIGHT, CONTRAST, MONO)


def require_theme(name: str, source: str) -> str:
    """The name, when there is such a theme. Raises ThresherError that says which there are."""
    known = (*(theme.name for theme in OURS), *BUILTIN_THEMES)
    if name and name not in known:
        raise ThresherError(
            "No such theme",
            f"{source} sets screen.theme to {clean_line(name, 40)!r}: there are "
            f"{', '.join(known)}.",
        )
    return name


class Rules(Stylesheet):
    """The rules of the program. A text is parsed once for a theme: Textual parses all of them again
    with every stylesheet that a screen brings, and for every session that is opened.

    `version` is another number whenever a widget that is styled already may get other styles: after
    other colours and other stylesheets, not after the defaults of a widget that is there for the
    first time."""

    version = 0
    _sheets: Sequence[object] = ()

    def set_variables(self, variables: dict[str, str]) -> None:
        """Other colours; the same ones change nothing."""
        if variables != self._variables:
            super().set_variables(variables)
            self.version += 1

    def reparse(self) -> None:
        """Parse what is not parsed yet with the colours in force."""
        self.parse()

    def parse(self) -> None:
        """Parse what is not parsed yet."""
        super().parse()
        sheets = [each for each in self.source.values() if not each.is_defaults]
        if sheets != self._sheets:
            self._sheets = sheets
            self.version += 1


class ThemedApp(App[None]):
    """An app with our themes; the built-in ones stay selectable and get our meanings too.

    `key_table` is the key table with the user's own keys, for whatever names a key.
    """

    CSS_PATH: ClassVar[CSSPathType | None] = STYLES / "app.tcss"

    key_table: Sequence[Key] = KEYS

    def __init__(self) -> None:
        super().__init__()
        for theme in OURS:
            self.register_theme(theme)
        self.theme = MONO_NAME if self.no_color else DARK_NAME
        self.stylesheet = Rules(variables=self.get_css_variables())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours with a meaning, for themes that do not bring them."""
        return DARK_VARIABLES if self.current_theme.dark else LIGHT_VARIABLES


def keyed(app: App[Any], text: str) -> str:
    """A sentence of ours with the user's own keys: `<list.open>` in it is the key of that id."""
    return re.sub(r"<([a-z]+\.[a-z_]+)>", lambda found: key_words(app, found[1]), text)


def key_words(app: App[Any], id: str, which: int = 1) -> str:
    """A key of an id as people read it, with the user's own keys: the first, or another one; the
    last where there are not so many."""
    table = app.key_table if isinstance(app, ThemedApp) else KEYS
    found = next((key.keys.split(",") for key in table if key.id == id), [""])
    return shown(found[min(which, len(found)) - 1])
