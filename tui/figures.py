"""Figures for people: thousands separators, and a token figure never without its basis."""

from __future__ import annotations

from thresher.core.amounts import count as count
from thresher.core.tokens import Basis, Scope, Tokens

UNKNOWN = "?"
MINUS = "-"

_SCOPES = {Scope.MESSAGES: "messages only", Scope.REQUEST: "whole request"}


def thousands(value: int | None) -> str:
    """12,345; an unknown value is a question mark, never a zero."""
    return UNKNOWN if value is None else f"{value:,}"


def mark(basis: Basis) -> str:
    """What stands before an estimate, and before nothing else."""
    return "~" if basis is Basis.ESTIMATED else ""


def figure(tokens: Tokens | None) -> str:
    """The number alone with its mark: 12,345 or ~12,345 or ?."""
    return UNKNOWN if tokens is None else f"{mark(tokens.basis)}{tokens.value:,}"


def with_basis(tokens: Tokens | None) -> str:
    """The number and how it came about: 12,345 reported."""
    return UNKNOWN if tokens is None else f"{figure(tokens)} {tokens.basis}"


def scope(tokens: Tokens) -> str:
    """What the figure covers, in words."""
    return _SCOPES[tokens.scope]


def change(before: Tokens | None, after: Tokens | None) -> str:
    """`before -> after`, with one basis where both have it, and with both where they differ."""
    if before is None and after is None:
        return f"{UNKNOWN} → {UNKNOWN}"
    if before is not None and after is not None and before.comparable(after):
        return f"{figure(before)} → {figure(after)} {before.basis}, {before.scope}"
    told = [f"{with_basis(t)}, {t.scope}" if t else UNKNOWN for t in (before, after)]
    return " → ".join(told)


def percent(part: int, whole: int) -> str:
    """A share in whole per cent; below one and not nothing it says so."""
    if whole <= 0:
        return UNKNOWN
    share = 100 * part / whole
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def compact(value: int) -> str:
    """A scale label: 128k, 1.5M, 950."""
    if abs(value) < 1000:
        return str(value)
    unit, suffix = (1_000_000, "M") if abs(value) >= 1_000_000 else (1000, "k")
    number = value / unit
    return (
        f"{number:.0f}{suffix}"
        if number >= 10 or number == int(number)
        else f"{number:.1f}{suffix}"
    )


def bytes_of(size: int) -> str:
    """A file size: 950 B, 12.3 kB, 1.5 MB."""
    if size < 1000:
        return f"{size} B"
    value = size / 1000
    for unit in ("kB", "MB"):
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def size(characters: int) -> str:
    """A length of text: 950 ch, 12.3k ch."""
    return f"{compact(characters)} ch"


def seconds(value: float) -> str:
    """A duration: <1ms, 20ms, 3.2s, 41s, 2m05s."""
    if value < 0.001:
        return "<1ms"
    if value < 0.1:
        return f"{value * 1000:.0f}ms"
    if value < 10:
        return f"{value:.1f}s"
    if value < 60:
        return f"{value:.0f}s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes}m{rest:02d}s"


def dollars(value: float) -> str:
    """A price; small ones keep two figures."""
    return f"${value:.2f}" if value >= 0.1 else f"${value:.4f}"
