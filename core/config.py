"""Settings: what the user chose, and where.

They are read from a TOML file, then the environment (`OPENAI_*`), then the command line; each later
source replaces what an earlier one says. Of every value its source is known, so that a screen can
say "model from OPENAI_MODEL" and an error can say where to look. The API key itself is no setting:
here is only the name of the variable that holds it.

    [model]
    name = "gpt-5-mini"                       # or OPENAI_MODEL
    base_url = "https://api.openai.com/v1"    # or OPENAI_BASE_URL
    wire = "responses"                        # "responses", "chat" or "offline"; or OPENAI_WIRE_API
    key_variable = "OPENAI_API_KEY"           # "" for a server that wants no key
    window = 400000                           # tokens; only if nobody else knows, or is wrong

    [compaction]
    policy = "teaching"

    [compaction.params]                       # the policy's own constants
    threshold = 8000

    [screen]
    theme = "thresher-contrast"               # else the one that was chosen last
    tour = false                              # no tour on the first start

    [keys]                                    # the ids are those of `thresher keys`
    console.follow = "F"
    app.quit = "ctrl+q"                       # several: "q, ctrl+q"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from . import paths
from .errors import ThresherError
from .models import Stated

FILE = "config.toml"

_Tokens = Annotated[int, Meta(gt=0)]
_Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class Wire(StrEnum):
    """How a model is spoken to."""

    RESPONSES = "responses"
    CHAT = "chat"
    OFFLINE = "offline"


class ModelSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """[model]: which model, where. Tokens and seconds; None is "not set"."""

    name: str = ""
    base_url: str = "https://api.openai.com/v1"
    wire: Wire | None = None
    key_variable: str = "OPENAI_API_KEY"
    organization: str = ""
    project: str = ""
    window: _Tokens | None = None
    max_input: _Tokens | None = None
    max_output: _Tokens | None = None
    reserve: _Tokens | None = None
    timeout: _Seconds = 600.0
    """How long the server may stay silent."""
    connect_timeout: _Seconds = 10.0

    @property
    def wire_in_use(self) -> Wire:
        """The wire that was chosen, else Responses for OpenAI itself and Chat for other servers,
        since only few of those speak Responses."""
        if self.wire is not None:
            return self.wire
        at_openai = self.base_url.startswith("https://api.openai.com/")
        return Wire.RESPONSES if at_openai else Wire.CHAT


class CompactionSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """[compaction]: which policy, its constants, and the engine around it."""

    policy: str = "teaching"
    params: dict[str, Any] = {}
    guard: Annotated[str, Meta(pattern="^(enforce|report)$")] = "enforce"
    summariser: str = ""
    """A model that writes the summaries; "offline": none, they are extracted by rules; empty: the
    session's own model."""
    threshold_share: Annotated[float, Meta(gt=0, le=1)] | None = None
    """Compact at this share of the limit, instead of the policy's own number of tokens."""
    max_failures: Annotated[int, Meta(ge=1)] = 3
    retries: Annotated[int, Meta(ge=0, le=10)] = 2


class AgentSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """[agent]: how far it may go by itself."""

    approval: Annotated[str, Meta(pattern="^(ask|yes|read-only)$")] = "ask"
    max_rounds: Annotated[int, Meta(ge=1, le=10_000)] = 50


class ScreenSettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """[screen]: how it looks; `theme` is the name of one, empty for the one chosen last. `tour`
    says whether the first start shows the tour."""

    theme: str = ""
    tour: bool = True


class Settings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Everything that can be set. `sources` names where each value that was set comes from, by its
    dotted name ("model.base_url")."""

    model: ModelSettings = ModelSettings()
    compaction: CompactionSettings = CompactionSettings()
    agent: AgentSettings = AgentSettings()
    screen: ScreenSettings = ScreenSettings()
    keys: dict[str, dict[str, str]] = {}
    """[keys]: keys by the two parts of an id of the key table."""
    sources: dict[str, str] = {}

    def source(self, name: str) -> str:
        """Where a value comes from: a file, a variable, a flag, or "default"."""
        return self.sources.get(name, "default")

    @property
    def keymap(self) -> dict[str, str]:
        """The user's keys by the ids of the key table; whether there are such is not known here."""
        return {f"{at}.{id}": keys for at, ids in self.keys.items() for id, keys in ids.items()}

    def stated_limits(self) -> Stated | None:
        """The limits that the user set, as the first side of `models.resolve`; None if none."""
        model = self.model
        names = ("window", "max_input", "max_output")
        said = [self.source(f"model.{name}") for name in names if getattr(model, name) is not None]
        if not said:
            return None
        return Stated(
            " and ".join(dict.fromkeys(said)), model.window, model.max_input, model.max_output
        )


VARIABLES: Mapping[str, str] = {
    "OPENAI_MODEL": "model.name",
    "OPENAI_BASE_URL": "model.base_url",
    "OPENAI_WIRE_API": "model.wire",
    "OPENAI_ORG_ID": "model.organization",
    "OPENAI_PROJECT_ID": "model.project",
}
"""The environment variables that are read, and what each sets."""


FLAGS: Mapping[str, str] = {
    "model.name": "--model",
    "model.key_variable": "--api-key-var",
    "agent.approval": "--yes or --read-only",
    "compaction.params.threshold": "--threshold",
}
"""The flags that are not named like what they set."""


def _flag(name: str) -> str:
    if name in FLAGS:
        return FLAGS[name]
    tables, _, key = name.rpartition(".")
    return f"--set {key}" if tables == "compaction.params" else f"--{key.replace('_', '-')}"


def default_path() -> Path:
    """Where the user's file lies; it need not exist."""
    return paths.config_dir() / FILE


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Read file, environment and flags.

    `path` None means `default_path`, which may be missing; a file that is named must exist.
    `flags` maps dotted names ("model.name") to values of the command line; None is "not given".
    Raises ThresherError for a file that cannot be read and a value or name that is not allowed,
    saying where it stands.
    """
    tree: dict[str, Any] = {}
    sources: dict[str, str] = {}
    file = path if path is not None else default_path()
    found = _read(file, required=path is not None)
    for name, value in _leaves(found, str(file)):
        _put(tree, sources, name, value, str(file))
    for variable, name in VARIABLES.items():
        if value := (os.environ if environ is None else environ).get(variable, "").strip():
            _put(tree, sources, name, value, f"environment variable {variable}")
    for name, given in (flags or {}).items():
        if given is not None:
            _put(tree, sources, name, given, f"flag {_flag(name)}")
    try:
        settings = msgspec.convert(tree, Settings)
    except msgspec.ValidationError as error:
        raise _refused(str(error), sources, str(file)) from None
    return msgspec.structs.replace(settings, sources=sources)


def _read(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        if not required:
            return {}
        raise ThresherError(
            "Settings not found", f"{path} does not exist: name a file that does."
        ) from None
    except OSError as error:
        raise ThresherError(
            "Settings not readable",
            f"{path} cannot be read ({error.strerror}): make it a readable file, or move it away.",
        ) from None
    except UnicodeDecodeError:
        raise ThresherError(
            "Settings not readable", f"{path} is not valid UTF-8: save it as UTF-8."
        ) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ThresherError(
            "Settings not valid", f"{path} is not valid TOML: {error}. Correct it there."
        ) from None


def _leaves(found: Mapping[str, Any], file: str) -> list[tuple[str, Any]]:
    """(dotted name, value) of the file; the table of a policy's constants stays one value each."""
    leaves: list[tuple[str, Any]] = []
    for table, content in found.items():
        if table == "sources" or not isinstance(content, Mapping):
            raise _refused(f"unknown field `{table}`", {}, file)
        for key, value in content.items():
            if (table, key) == ("compaction", "params") and isinstance(value, Mapping):
                leaves.extend((f"compaction.params.{name}", each) for name, each in value.items())
            elif table == "keys":
                leaves.extend(_keys(key, value, file))
            else:
                leaves.append((f"{table}.{key}", value))
    return leaves


def _keys(key: str, value: object, file: str) -> list[tuple[str, Any]]:
    """The keys of an id, which TOML reads as a table of its first part unless it is quoted."""
    parts = value.items() if isinstance(value, Mapping) else [("", value)]
    found = [(f"{key}.{name}" if name else key, keys) for name, keys in parts]
    for id, keys in found:
        if id.count(".") != 1:
            raise ThresherError(
                "No such key", f"{file} sets keys.{id}, and ids have two parts: console.follow."
            )
        if not isinstance(keys, str):
            raise ThresherError(
                "Setting not valid",
                f'{file} sets keys.{id} to something that is no text: write it as "F", '
                'several keys as "F, ctrl+f".',
            )
    return [(f"keys.{id}", keys) for id, keys in found]


def _put(
    tree: dict[str, Any], sources: dict[str, str], name: str, value: object, source: str
) -> None:
    *tables, key = name.split(".", 2)
    at = tree
    for table in tables:
        at = at.setdefault(table, {})
    at[key] = value
    sources[name] = source


def _refused(problem: str, sources: Mapping[str, str], file: str) -> ThresherError:
    """msgspec's message with the place named: `Expected `int`, got `str` - at `$.model.window``."""
    what, _, place = problem.partition(" - at `$.")
    name = place.rstrip("`")
    source = sources.get(name, file)
    if "unknown field" in what:
        field = what.rpartition("field ")[2].strip("`")
        table = f"[{name}] " if name else ""
        source = sources.get(f"{name}.{field}", file)
        return ThresherError(
            "Setting unknown",
            f"{source} sets {table}{field}, which is no setting: correct the name or remove it.",
        )
    return ThresherError(
        "Setting not valid",
        f"{source} sets {name or 'a value'} to something that is not allowed ({what}): "
        "correct it there.",
    )
