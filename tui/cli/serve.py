"""`thresher serve`: the console in a browser of this machine, through textual-serve.

Every page that is opened starts a console of its own, which may read files and run an agent. So the
server listens on loopback alone, and answers only requests that name it by a loopback name and come
from its own page: a page from elsewhere that sends the browser here gets nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
import shlex
import socket
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any
from urllib.parse import urlsplit

from cyclopts import App, Parameter

from thresher.core.errors import ThresherError

from . import output
from .targets import FILE_HELP, located

PORT = 8373
MISSING = (
    "textual-serve is not installed: pip install 'thresher[web]', or run `thresher` in a terminal."
)

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; "
    "connect-src 'self' ws://{page}"
)
"""What a page may load: nothing from elsewhere, also not the font that its template names."""


def add_to(app: App) -> None:
    """Register the command."""
    app.command(serve, help_epilogue="Example: thresher serve latest --port 8400")


def serve(
    file: Annotated[str | None, Parameter(help=FILE_HELP)] = None,
    /,
    *,
    host: Annotated[str, Parameter(help="A loopback address of this machine.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="The port; 0 takes a free one.")] = PORT,
) -> int:
    """Show the console in a browser of this machine: the list of sessions, or one of them.

    It is never offered to other machines. Ctrl+C ends it.
    """
    require_loopback(host)
    if not 0 <= port <= 65535:
        raise ThresherError("No such port", f"--port {port} is not between 0 and 65535.")
    if file is not None:
        located(file)
    if find_spec("textual_serve") is None:
        raise ThresherError("Not installed", MISSING)
    port = free_port(host, port)
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{port}"
    output.say(f"thresher is at {url} for this machine; Ctrl+C ends it.")
    output.flush()
    _server(command_line(file), host, port, url).serve()
    return 0


def require_loopback(host: str) -> None:
    """Raises ThresherError for an address that other machines could reach."""
    if host.lower() == "localhost":
        return
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_loopback:
            return
    raise ThresherError(
        "Not on loopback",
        f"--host {host} could be reached from other machines, and whoever reaches it may run "
        "commands as you: use 127.0.0.1, ::1 or localhost.",
    )


def free_port(host: str, port: int) -> int:
    """The port, or a free one for 0. Raises ThresherError when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            raise ThresherError(
                "Port not free",
                f"{host}:{port} cannot be listened on ({error.strerror}): choose another --port, "
                "or 0 for a free one.",
            ) from None
        found: int = probe.getsockname()[1]
        return found


def command_line(file: str | None) -> str:
    """What a page runs."""
    return shlex.join(
        [sys.executable, "-m", "thresher.tui", *([] if file is None else ["open", file])]
    )


def allowed(host: str, origin: str) -> bool:
    """Whether a request may be answered: it names this machine, and comes from no other page."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        require_loopback(name)
    except (ThresherError, ValueError):
        return False
    return not origin or urlsplit(origin).netloc == host


def _server(command: str, host: str, port: int, url: str) -> Any:
    # By name: both are there only with the extra.
    web = import_module("aiohttp.web")
    server = import_module("textual_serve.server").Server(
        command, host=host.strip("[]"), port=port, title="thresher", public_url=url
    )
    policy = POLICY.format(page=url.partition("//")[2])

    async def only_from_here(request: Any, handler: Any) -> Any:
        headers = request.headers
        if not allowed(headers.get("Host", ""), headers.get("Origin", "")):
            raise web.HTTPForbidden(text="This is for pages of this machine alone.")
        answer = await handler(request)
        if not answer.prepared:
            answer.headers["Content-Security-Policy"] = policy
        return answer

    make_app = server._make_app

    async def guarded() -> Any:
        app = await make_app()
        app.middlewares.append(web.middleware(only_from_here))
        return app

    async def no_banner(app: object) -> None:
        """The address has been told."""

    server._make_app = guarded
    server.on_startup = no_banner
    server.initialize_logging = lambda: None
    return server
