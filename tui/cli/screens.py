"""x"""
from __future__ import annotations
from cyclopts import App
def add_to(app: App) -> None:
    """x"""
