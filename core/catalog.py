"""The table of models shipped with thresher (`data/models.json`), and finding a name in it.

The table is the last to be asked: `models.resolve` prefers what the user, the endpoint and the
session say.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from .errors import ThresherError

_TABLE = Path(__file__).parent / "data" / "models.json"


class ModelFacts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One row of the table. Tokens, and US dollars for a million tokens; None is unknown.

    `price_holds_up_to` is the input size above which the provider asks more than the prices here.
    """

    name: str
    vendor: str
    source: str
    as_of: str = ""
    context_window: int | None = None
    max_input: int | None = None
    max_output: int | None = None
    price_input: float | None = None
    price_cached_input: float | None = None
    price_cache_write: float | None = None
    price_output: float | None = None
    price_holds_up_to: int | None = None
    aliases: tuple[str, ...] = ()
    note: str = ""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    as_of: str
    units: str
    models: tuple[ModelFacts, ...]


@cache
def table() -> tuple[ModelFacts, ...]:
    """All rows of the shipped table, each with its date, in the order of the file."""
    try:
        read = msgspec.json.decode(_TABLE.read_bytes(), type=_Table)
    except (OSError, msgspec.DecodeError) as error:
        raise ThresherError(
            "Model table unreadable", f"{_TABLE} cannot be read ({error}); reinstall thresher."
        ) from error
    return tuple(
        row if row.as_of else msgspec.structs.replace(row, as_of=read.as_of) for row in read.models
    )


def find(model: str) -> ModelFacts | None:
    """The row for a model name, or None. Never a near match.

    A name matches when it equals a row's name or alias, in any case, after taking off a date
    (`-2025-08-07`, `-20250929`, `@20250929`) and a path of known hosts that ends with the row's
    vendor (`openrouter/openai/gpt-5`). Everything else is unknown: `gpt-5-mini` is not `gpt-5`,
    and `ollama/llama-3.3-70b-instruct` runs in whatever window its server gives it.
    """
    *path, name = model.strip().lower().split("/")
    rows = _by_name()
    row = rows.get(name) or rows.get(_DATE.sub("", name))
    if row is None:
        return None
    if not path:
        return row
    *hosts, vendor = path
    owner = _VENDOR_PATHS.get(vendor) == row.vendor or (vendor in _HOSTS and not hosts)
    return row if owner and all(host in _HOSTS for host in hosts) else None


_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_DATE = re.compile(rf"(?:[-@]20[0-9][0-9]{_MONTH}{_DAY}|-20[0-9][0-9]-{_MONTH}-{_DAY})$")
_HOSTS = frozenset({"openrouter", "vercel", "vertex_ai", "azure"})
_VENDOR_PATHS = {
    "openai": "openai",
    "chatgpt": "openai",
    "azure": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "gemini": "google",
    "models": "google",
    "mistral": "mistral",
    "mistralai": "mistral",
    "deepseek": "deepseek",
    "xai": "xai",
    "x-ai": "xai",
    "moonshot": "moonshot",
    "moonshotai": "moonshot",
    "zai": "zai",
    "z-ai": "zai",
    "qwen": "qwen",
    "dashscope": "qwen",
    "alibaba": "qwen",
    "meta": "meta",
    "meta-llama": "meta",
}


@cache
def _by_name() -> dict[str, ModelFacts]:
    names: dict[str, ModelFacts] = {}
    for row in table():
        for name in (row.name, *row.aliases):
            if names.setdefault(name.lower(), row) is not row:
                raise ThresherError("Model table ambiguous", f"{name} stands for two models.")
    return names
