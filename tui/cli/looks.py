"""What the settings say about the screen: theme, keys, tour. And the list of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from ..spans import Tone
from . import output
from .tables import Column, table

if TYPE_CHECKING:
    from thresher.core.config import Settings

Json = Annotated[
    bool,
    Parameter(name="--json", negative="", show_default=False, help="Print JSON, one line each."),
]


def add_to(app: App) -> None:
    """Register the command."""
    app.command(keys, help_epilogue="Example: thresher keys")


def keys(*, json: Json = False) -> int:
    """List the keys with their ids, as they are with your settings.

    [keys] of the settings file gives an id other keys: console.follow = "F".
    """
    from thresher.core import config

    from ..keymap import checked, effective
    from ..keys import KEYS, shown

    settings = config.load()
    rows = effective(checked(settings.keymap, settings.source))
    if json:
        for row in rows:
            at = row.keys.split(",")
            output.put_json({"id": row.id, "keys": at, "does": row.tip, "where": row.where.value})
        return 0
    given = {key.id: key.keys for key in KEYS}
    columns = (
        Column("id", least=18, tone=Tone.STRONG),
        Column("keys", least=8),
        Column("does"),
        Column("where", tone=Tone.MUTED),
        Column("", tone=Tone.MUTED),
    )
    cells = [
        (
            row.id,
            " ".join(shown(name) for name in row.keys.split(",")),
            row.tip,
            row.where.value,
            "" if row.keys == given[row.id] else "yours",
        )
        for row in rows
    ]
    output.put(table(columns, cells, output.columns()))
    return 0


def looks_of(settings: Settings) -> dict[str, Any]:
    """What the app is made with. Raises ThresherError for a theme or key that there is not."""
    from ..keymap import checked
    from ..remembered import Remembered
    from ..theme import require_theme

    return {
        "theme": require_theme(settings.screen.theme, settings.source("screen.theme")),
        "keymap": checked(settings.keymap, settings.source),
        "tour": settings.screen.tour,
        "remembered": Remembered.of_user(),
    }
