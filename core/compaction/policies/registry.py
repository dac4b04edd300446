"""Every policy by its name. A new one is a file beside this, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import msgspec

from ...errors import ThresherError
from ..policy import Policy
from . import custom
from .claude_code import ClaudeCode
from .codex.local import Codex
from .codex.remote import CodexRemote
from .codex.token_budget import CodexTokenBudget
from .harnessx import HarnessX
from .keep_all import KeepAll
from .maf_dotnet import MafDotnet
from .maf_python import MafPython
from .opencode_v1 import OpenCodeV1
from .opencode_v2 import OpenCodeV2
from .teaching import Teaching


class _Registered(Policy, Protocol):
    """A policy that can be made from its constants."""

    Params: ClassVar[type[msgspec.Struct]]

    def __init__(self, params: Any = None) -> None: ...


_POLICIES: tuple[type[_Registered], ...] = (
    Teaching,
    KeepAll,
    Codex,
    CodexRemote,
    CodexTokenBudget,
    HarnessX,
    ClaudeCode,
    MafDotnet,
    MafPython,
    OpenCodeV1,
    OpenCodeV2,
)


def policies() -> dict[str, type[Policy]]:
    """The classes of all policies by name, in the order in which they are listed."""
    return {policy.name: policy for policy in _POLICIES}


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
    for policy in _POLICIES:
        if policy.name == name:
            return policy
    names = ", ".join(policy.name for policy in _POLICIES)
    raise ThresherError("Unknown policy", f"There is no policy {name!r}. There are: {names}.")
