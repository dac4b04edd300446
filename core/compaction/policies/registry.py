"""Every policy by its name. A new one is a file beside this, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Protocol

import msgspec

from ...errors import ThresherError
from ..policy import Policy
from . import custom


class _Registered(Policy, Protocol):
    """A policy that can be made from its constants."""

    Params: ClassVar[type[msgspec.Struct]]

    def __init__(self, params: Any = None) -> None: ...


_PLACES: Mapping[str, str] = {
    "teaching": "teaching:Teaching",
    "keep-all": "keep_all:KeepAll",
    "codex": "codex.local:Codex",
    "codex-remote": "codex.remote:CodexRemote",
    "codex-token-budget": "codex.token_budget:CodexTokenBudget",
    "harnessx": "harnessx:HarnessX",
    "claude-code": "claude_code:ClaudeCode",
    "maf-dotnet": "maf_dotnet:MafDotnet",
    "maf-python": "maf_python:MafPython",
    "opencode-v1": "opencode_v1:OpenCodeV1",
    "opencode-v2": "opencode_v2:OpenCodeV2",
}
"""Module and class of each, loaded when they are asked for: a session runs one of them."""


def policies() -> dict[str, type[Policy]]:
    """The classes of all policies by name, in the order in which they are listed."""
    return {name: _find(name) for name in _PLACES}


def names() -> tuple[str, ...]:
    """The names alone, without loading anything."""
    return tuple(_PLACES)


def params_type(name: str) -> type[msgspec.Struct]:
    """The struct of a policy's constants, with defaults and meaning. Raises ThresherError."""
    return custom.params_of(name) if custom.is_custom(name) else _find(name).Params


def make(name: str, params: Mapping[str, Any] | None = None) -> Policy:
    """A policy with the given constants, the others at their defaults.

    Raises ThresherError for a name that does not exist, and for a constant that does not exist or
    cannot have that value. Numbers may come as text, as they do from the command line. A name
    `path.py:MyPolicy` means a class in the user's own file.
    """
    if custom.is_custom(name):
        return custom.load(name, params)
    found = _find(name)
    try:
        return found(msgspec.convert(dict(params or {}), found.Params, strict=False))
    except msgspec.ValidationError as error:
        known = ", ".join(found.Params.__struct_fields__) or "none"
        raise ThresherError(
            "Policy setting refused", f"{name}: {error}. Its settings are: {known}."
        ) from error


def _find(name: str) -> type[_Registered]:
    place = _PLACES.get(name)
    if place is None:
        known = ", ".join(_PLACES)
        raise ThresherError("Unknown policy", f"There is no policy {name!r}. There are: {known}.")
    module, _, policy = place.partition(":")
    found: type[_Registered] = getattr(import_module(f".{module}", __package__), policy)
    return found
