"""The flags of the commands that run an agent, and the settings that come of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from thresher.core import config
from thresher.core.config import Settings, Wire
from thresher.core.errors import ThresherError

Yes = Annotated[
    bool,
    Parameter(name="--yes", negative="", show_default=False, help="Run every tool unasked."),
]
ReadOnly = Annotated[
    bool,
    Parameter(
        name="--read-only", negative="", show_default=False, help="Refuse tools that change things."
    ),
]
WorkspaceFlag = Annotated[
    Path | None,
    Parameter(name="--workspace", help="The folder to work in; default: this one."),
]
Headless = Annotated[
    bool,
    Parameter(name="--headless", negative="", show_default=False, help="Work without a screen."),
]
Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative="",
        show_default=False,
        help="Without a screen, print every event as one JSON line.",
    ),
]

Break = Annotated[
    tuple[str, ...],
    Parameter(
        name="--break",
        negative="",
        show_default=False,
        help="Stop there and wait for you: compaction, stage:NAME, policy:NAME, tokens:N, "
        "percent:P, output:N, overflow or failure; may be repeated.",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class CompactionFlags:
    """How the context is compacted."""

    policy: Annotated[
        str | None, Parameter(help="The compaction policy; `thresher policies` lists them.")
    ] = None
    set: Annotated[
        tuple[str, ...],
        Parameter(
            name="--set",
            negative="",
            show_default=False,
            help="A constant of the policy, as key=value; may be repeated.",
        ),
    ] = ()
    threshold: Annotated[
        int | None, Parameter(help="Compact at this many tokens: --set threshold=N.")
    ] = None
    window: Annotated[int | None, Parameter(help="The model's window in tokens.")] = None

    def values(self) -> dict[str, Any]:
        """What was given, by the dotted names of the settings."""
        params = dict(_constant(text) for text in self.set)
        if self.threshold is not None:
            params["threshold"] = self.threshold
        return {
            "compaction.policy": self.policy,
            "model.window": self.window,
            **{f"compaction.params.{name}": value for name, value in params.items()},
        }


@Parameter(name="*")
@dataclass(frozen=True)
class ModelFlags:
    """Which model, and where it is."""

    model: Annotated[str | None, Parameter(help="The model's name (OPENAI_MODEL).")] = None
    base_url: Annotated[
        str | None, Parameter(help="An OpenAI-compatible server (OPENAI_BASE_URL).")
    ] = None
    wire: Annotated[
        Literal["responses", "chat", "offline"] | None,
        Parameter(help="The protocol (OPENAI_WIRE_API); offline is a stand-in without a model."),
    ] = None
    api_key_var: Annotated[
        str | None, Parameter(help="The environment variable that holds the key.")
    ] = None
    max_output: Annotated[int | None, Parameter(help="Most tokens of one answer.")] = None
    summariser: Annotated[
        str | None, Parameter(help="Another model for the summaries, or offline: no model.")
    ] = None

    def values(self) -> dict[str, Any]:
        """What was given, by the dotted names of the settings."""
        return {
            "model.name": self.model,
            "model.base_url": self.base_url,
            "model.wire": self.wire,
            "model.key_variable": self.api_key_var,
            "model.max_output": self.max_output,
            "compaction.summariser": self.summariser,
        }


def approval(yes: bool, read_only: bool) -> dict[str, Any]:
    """The setting that the two flags stand for. Raises ThresherError when both are given."""
    if yes and read_only:
        raise ThresherError("Wrong usage", "--yes and --read-only exclude one another: give one.")
    return {"agent.approval": "yes" if yes else "read-only" if read_only else None}


def breaks_of(texts: tuple[str, ...], without_screen: bool) -> tuple[str, ...]:
    """The breakpoints of the flag, as the session keeps them. Raises ThresherError for one that
    there is not, and where nobody could go on from it."""
    from thresher.core.debug.breakpoints import parse

    found = tuple(str(parse(text)) for text in texts)
    if found and without_screen:
        raise ThresherError(
            "Nobody to stop for",
            f"--break {found[0]} waits for you, and without a screen you cannot go on from there: "
            "leave it out, or leave out --headless and --json.",
        )
    return found


def settings_of(given: dict[str, Any]) -> Settings:
    """The settings with these flags. Raises ThresherError for what is not allowed.

    The constants in the user's file belong to the policy that is named there: another policy on
    the command line begins with its own.
    """
    settings = config.load(flags=given)
    policy = given.get("compaction.policy")
    if policy is not None and policy != config.load().compaction.policy:
        params = {
            name: value
            for name, value in settings.compaction.params.items()
            if given.get(f"compaction.params.{name}") is not None
        }
        chosen = msgspec.structs.replace(settings.compaction, params=params)
        settings = msgspec.structs.replace(settings, compaction=chosen)
    if settings.model.wire_in_use is Wire.OFFLINE and given.get("model.name") is None:
        # The name that is set belongs to a real model; the stand-in must not carry it.
        model = msgspec.structs.replace(settings.model, name="")
        settings = msgspec.structs.replace(settings, model=model)
    return settings


def workspace_of(path: Path | None) -> Path:
    """The folder to work in. Raises ThresherError when it is none."""
    folder = (path or Path()).expanduser().absolute()
    if not folder.is_dir():
        raise ThresherError(
            "No such folder", f"--workspace {folder} is not a folder: name one that exists."
        )
    return folder


def _constant(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not sign or not name.isidentifier():
        raise ThresherError(
            "Wrong usage", f"--set {text!r} is not key=value, as in --set threshold=8000."
        )
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
