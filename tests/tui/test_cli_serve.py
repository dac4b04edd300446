from __future__ import annotations

import asyncio
import re
import shutil
import signal
import socket
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

from thresher.core.errors import ThresherError
from thresher.tui.cli.serve import allowed, command_line, free_port, require_loopback

from ..command_line import codex_session, environment, program, run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
INSTALLED = find_spec("textual_serve") is not None
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


@pytest.mark.skipif(not INSTALLED, reason="textual-serve is not installed (thresher[web])")
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
async def test_a_browser_shows_the_console_and_takes_keys(tmp_path: Path, home: Path) -> None:
    from .browser import browser

    (home / "state").mkdir()
    (home / "state" / "screen.json").write_text('{"toured": true}')
    served = await asyncio.create_subprocess_exec(
        *program("serve", str(codex_session(tmp_path)), "--port", "0"),
        env=environment(), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        assert served.stdout is not None
        found = re.search(rb"http://127\.0\.0\.1:\d+", await served.stdout.readline())
        assert found is not None
        url = found[0].decode()
        async with asyncio.timeout(DEADLINE):
            while not await asyncio.to_thread(_answers, url):
                pass
        assert await asyncio.to_thread(_status, url, "rebound.example.org") == 403
        assert await asyncio.to_thread(_status, url, "", "https://example.org") == 403
        assert CHROMIUM is not None
        async with browser(CHROMIUM, tmp_path / "profile") as page:
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
    finally:
        served.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(served.wait(), 30)
    assert code in (0, 130)


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
