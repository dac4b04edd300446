"""What every test stands on: no key, no network, no home directory, one kind of terminal."""

from __future__ import annotations

import ipaddress
import itertools
import os
import re
import runpy
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

_FOREIGN_VARIABLES = re.compile(
    r"(.*_(API_KEY|TOKEN|PROXY)|.*_SECRET.*|(OPENAI|OPENCODE|THRESHER|XDG|CODEX|TEXTUAL)_.*|NO_COLOR|FORCE_COLOR)",
    re.IGNORECASE,
)
# Kept: the picture plugin's word from the main process to its workers.
_PLUGIN_VARIABLES = {"TEXTUAL_SNAPSHOT_TEMPDIR"}
_TERMINAL = {
    "COLORTERM": "truecolor",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm-256color",
    "TEXTUAL_ANIMATIONS": "none",
    "TZ": "UTC",
}

settings.register_profile("ci", deadline=None, derandomize=True, max_examples=60, database=None)
settings.register_profile("dev", deadline=None, max_examples=60)
settings.register_profile("deep", deadline=None, max_examples=2000)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure() -> None:
    # The report of a failed picture holds the environment: what is secret leaves it here, for good.
    for name in list(os.environ):
        if _FOREIGN_VARIABLES.fullmatch(name) and name not in _PLUGIN_VARIABLES:
            del os.environ[name]
    os.environ.update(_TERMINAL)
    time.tzset()


FOREIGN_HOMES = (
    "CODEX_HOME",
    "CLAUDE_CONFIG_DIR",
    "OPENCODE_DB",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
)
"""Where other programs' sessions would be looked for."""
_home_numbers = itertools.count()


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory of the test's own, outside tmp_path, with thresher's three folders in it."""
    path = tmp_path_factory.getbasetemp() / f"home-{next(_home_numbers)}"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    # Tests that run side by side are told of a terminal of 80 columns that nobody has.
    for name in (*FOREIGN_HOMES, "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    for kind in ("state", "config", "cache"):
        monkeypatch.setenv(f"THRESHER_{kind.upper()}_DIR", str(path / kind))
    return path


@pytest.fixture(autouse=True)
def _same_pictures_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    # The picture plugin imports Textual, which reads its settings once, before this file is read.
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")


@pytest.fixture(autouse=True)
def strays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The hosts beyond this machine that were tried, and refused. Any left fails the test."""
    tried: list[str] = []

    def refuse_beyond_loopback(host: object) -> None:
        if not _is_loopback(host):
            tried.append(str(host))
            raise OSError(f"a test tried to reach {host}; only this machine may be reached")

    def guarded(original: Any) -> Any:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                refuse_beyond_loopback(address[0])
            return original(self, address)

        return connect

    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None:
            refuse_beyond_loopback(host)
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield tried
    # A client may have turned the refusal into an error of its own, so it is told here again.
    if tried:
        pytest.fail(f"reached beyond this machine: {', '.join(tried)}")


def _is_loopback(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _hostile() -> list[tuple[str, str]]:
    # importlib mode puts no folder of tests on sys.path, so the neighbour is run by its place.
    corpus: list[tuple[str, str]] = runpy.run_path(str(Path(__file__).with_name("hostile.py")))[
        "HOSTILE"
    ]
    return corpus


@pytest.fixture
def hostile_corpus() -> list[tuple[str, str]]:
    """Every hostile text with its name."""
    return _hostile()


@pytest.fixture(params=[pytest.param(text, id=name) for name, text in _hostile()])
def hostile_text(request: pytest.FixtureRequest) -> str:
    """Runs the test once for each hostile text."""
    text: str = request.param
    return text
