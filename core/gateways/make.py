"""Which gateway the settings ask for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..config import Settings, Wire
from ..errors import ThresherError
from .base import Gateway
from .offline import MODEL as OFFLINE_MODEL
from .offline import OfflineGateway
from .openai_chat import ChatGateway
from .openai_client import Connection, Endpoint, is_local
from .openai_responses import ResponsesGateway


def make_gateway(
    settings: Settings, workspace: Path, *, environ: Mapping[str, str] | None = None
) -> Gateway:
    """The gateway for the settings; it opens no connection yet.

    Raises ThresherError when the base URL cannot be one, when there is no model name, or when the
    variable for the key holds none although the server is not on this machine.
    """
    model = settings.model
    wire = model.wire_in_use
    if wire is Wire.OFFLINE:
        return OfflineGateway(workspace, window=model.window)
    endpoint = Endpoint(
        base_url=model.base_url.rstrip("/"),
        key_variable=model.key_variable,
        organization=model.organization,
        project=model.project,
        timeout=model.timeout,
        connect_timeout=model.connect_timeout,
    )
    key = _key(settings, os.environ if environ is None else environ)
    model_name(settings)
    connection = Connection(endpoint, key)
    return ResponsesGateway(connection) if wire is Wire.RESPONSES else ChatGateway(connection)


def model_name(settings: Settings) -> str:
    """The name of the model to ask for. Raises ThresherError when none is set."""
    if settings.model.wire_in_use is Wire.OFFLINE:
        return settings.model.name or OFFLINE_MODEL
    if not settings.model.name.strip():
        raise ThresherError(
            "No model set",
            'There is no model name: give --model, set OPENAI_MODEL, or write name = "..." '
            "under [model] in the settings file; `thresher demo` needs none.",
        )
    return settings.model.name.strip()


def _key(settings: Settings, environ: Mapping[str, str]) -> str:
    variable = settings.model.key_variable
    if not variable:
        return ""
    key = environ.get(variable, "").strip()
    if not key and not is_local(settings.model.base_url):
        raise ThresherError(
            "No API key",
            f"The environment variable {variable} holds no key for {settings.model.base_url}: set "
            "it, name another one with key_variable under [model], or try `thresher demo`, which "
            "needs none.",
        )
    if not key.isascii() or not key.isprintable():
        raise ThresherError(
            "API key not usable",
            f"The environment variable {variable} holds characters that no key has: set it again.",
        )
    return key
