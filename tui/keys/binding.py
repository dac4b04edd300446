"""The table as Textual's bindings."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from .table import KEYS
from .vocabulary import Where


def bindings(*places: Where) -> list[BindingType]:
    """What a screen, a widget or the app in these places binds."""
    return [
        Binding(
            key.keys,
            key.action,
            key.label,
            show=key.footer,
            tooltip=key.tip,
            id=key.id,
            priority=key.priority,
        )
        for key in KEYS
        if key.where in places
    ]
