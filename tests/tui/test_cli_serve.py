from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import signal
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pyte
import pytest

from thresher.core.errors import ThresherError
from thresher.tui.cli.serve import allowed, command_line, free_port, require_loopback

from ..command_line import codex_session, environment, program, run
from .browser import browser

CHROMIUM = next(
    filter(
        None,
        map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome")),
    ),
    None,
)
DEADLINE = 60.0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.9.1", "LOCALHOST"])
def test_addresses_of_this_machine_alone_are_taken(host: str) -> None:
    require_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "", "192.168.1.2", "example.org", "127.0.0.1.example.org", "10.0.0.1"]
)
def test_any_other_address_is_refused_in_one_sentence(
    host: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, "serve", "--host", host)
    assert ran.code == 2
    assert ran.sentence.startswith("Not on loopback: ")
    assert "use 127.0.0.1, ::1 or localhost" in ran.sentence


@pytest.mark.parametrize("port", ["-1", "70000"])
def test_a_port_that_does_not_exist_is_refused(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, "serve", "--port", port)
    assert (ran.code, ran.sentence.split(":")[0]) == (2, "No such port")


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ThresherError) as told:
            free_port("127.0.0.1", taken.getsockname()[1])
    assert "choose another --port" in told.value.msg


def test_without_textual_serve_one_sentence_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thresher.tui.cli.serve.find_spec", lambda name: None)
    ran = run(capsys, "serve")
    assert ran.code == 2
    assert "pip install 'thresher[web]'" in ran.sentence


@pytest.mark.parametrize(
    ("host", "origin", "answered"),
    [
        ("127.0.0.1:8373", "", True),
        ("localhost:8373", "http://localhost:8373", True),
        ("[::1]:8373", "http://[::1]:8373", True),
        ("127.0.0.1:8373", "https://example.org", False),
        ("127.0.0.1:8373", "http://127.0.0.1:9999", False),
        ("rebound.example.org:8373", "", False),
        ("rebound.example.org:8373", "http://rebound.example.org:8373", False),
        ("", "", False),
        ("[", "", False),
    ],
)
def test_only_pages_of_this_machine_are_answered(host: str, origin: str, answered: bool) -> None:
    assert allowed(host, origin) is answered


def test_a_file_is_opened_whatever_its_name() -> None:
    assert command_line("a file; rm -rf x").endswith("open 'a file; rm -rf x'")


@contextlib.asynccontextmanager
async def served(tmp_path: Path, home: Path) -> AsyncIterator[str]:
    """The program serving a recorded session, by its address; it ends in order."""
    (home / "state").mkdir()
    (home / "state" / "screen.json").write_text('{"toured": true}')
    process = await asyncio.create_subprocess_exec(
        *program("serve", str(codex_session(tmp_path)), "--port", "0"),
        env=environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.search(rb"http://127\.0\.0\.1:\d+", await process.stdout.readline())
        assert found is not None
        url = found[0].decode()
        async with asyncio.timeout(DEADLINE):
            while not await asyncio.to_thread(_answers, url):
                pass
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(process.wait(), 30)
    assert code in (0, 130)


async def test_a_page_shows_the_console_and_takes_keys(tmp_path: Path, home: Path) -> None:
    async with served(tmp_path, home) as url, aiohttp.ClientSession() as client:
        async with client.get(url) as page:
            text = await page.text()
            assert page.headers["Content-Security-Policy"].startswith("default-src 'self'")
        address = re.search(r'data-session-websocket-url="([^"]+)"', text)
        assert address is not None
        assert address[1] == f"ws{url.removeprefix('http')}/ws"
        async with client.ws_connect(f"{address[1]}?width=120&height=40", max_msg_size=0) as socket:
            terminal = Terminal(socket)
            await terminal.wait_for("Read the whole log", "compaction 2", "Quit")
            await terminal.press("?")
            await terminal.wait_for("keys of this screen")
            await terminal.press("\x1b")
            await terminal.resize(80, 24)
            await terminal.wait_for("Read the whole", columns=80)


async def test_nobody_but_this_machine_reaches_it(tmp_path: Path, home: Path) -> None:
    async with served(tmp_path, home) as url:
        assert await asyncio.to_thread(_status, url, "rebound.example.org") == 403
        assert await asyncio.to_thread(_status, url, "", "https://example.org") == 403
        async with aiohttp.ClientSession() as client:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await client.ws_connect(f"{url}/ws", headers={"Origin": "https://example.org"})
        # A server on all addresses would answer here too; one on its own does not.
        port = urllib.parse.urlsplit(url).port
        with pytest.raises(OSError):  # noqa: PT011 -- refused, or no such address: both will do
            await asyncio.open_connection("127.0.0.2", port)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is on the PATH; a client drives the page")
async def test_a_browser_shows_the_console_and_takes_keys(tmp_path: Path, home: Path) -> None:
    assert CHROMIUM is not None
    async with (
        served(tmp_path, home) as url,
        browser(CHROMIUM, tmp_path / "profile") as page,
    ):
        await page.open(url)
        await page.wait_for("Read the whole log", "compaction 2")
        # Only a page that has the focus shows keys.
        await page.click(400, 500)
        await page.wait_for("Quit")
        (tmp_path / "page.png").write_bytes(await page.picture())
        await page.press("?")
        await page.wait_for("keys of this screen")
        assert all("127.0.0.1" not in address for address in page.refused)
        assert (tmp_path / "page.png").stat().st_size > 20_000


class Terminal:
    """What a page of the server shows, by its own websocket: keys go up as text, the terminal's
    output comes down as bytes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._screen = pyte.Screen(120, 40)
        self._stream = pyte.ByteStream(self._screen)

    async def press(self, keys: str) -> None:
        await self._socket.send_json(["stdin", keys])

    async def resize(self, width: int, height: int) -> None:
        self._screen.reset()
        self._screen.resize(height, width)
        await self._socket.send_json(["resize", {"width": width, "height": height}])

    async def wait_for(self, *words: str, columns: int = 120) -> None:
        assert self._screen.columns == columns
        shown = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DEADLINE):
                while True:
                    shown = "\n".join(self._screen.display)
                    if all(word in shown for word in words):
                        return
                    message = await self._socket.receive()
                    assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                    if message.type is aiohttp.WSMsgType.BINARY:
                        self._stream.feed(message.data)
        raise AssertionError(f"never saw {words}:\n{shown}")


def _answers(url: str) -> bool:
    try:
        return _status(url) == 200
    except OSError:
        return False


def _status(url: str, host: str = "", origin: str = "") -> int:
    headers = ({"Host": host} if host else {}) | ({"Origin": origin} if origin else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
