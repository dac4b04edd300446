"""The two themes, and the colours that mean something.

Colour is spent on meaning only: what a compaction kept, removed, rewrote and inserted, summaries,
and the threshold. Each of these also has a glyph, so nothing is lost without colour. The parts of
the context are steps of one cool hue and carry their names. Stylesheets use these names, never a
number.
"""

from __future__ import annotations

from textual.app import App
from textual.theme import Theme

DARK_NAME = "thresher-dark"
LIGHT_NAME = "thresher-light"

DARK_VARIABLES: dict[str, str] = {
    "muted": "#8792a1",
    "faint": "#4d5765",
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
    "faint": "#a4adb8",
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


class ThemedApp(App[None]):
    """An app with both themes; the built-in ones stay selectable and get our meanings too."""

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK_NAME

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours with a meaning, for themes that do not bring them."""
        return DARK_VARIABLES if self.current_theme.dark else LIGHT_VARIABLES
