"""A headless Chromium that opens a page of `thresher serve`.

It is driven over its own debugging protocol, and what the page shows is read from what arrives over
its websocket. Needs aiohttp, which comes with textual-serve.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pyte

DEADLINE = 20.0
ALONE = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-size=1200,800",
    "--disable-background-networking", "--remote-debugging-port=0",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip


class Page:
    """One page and the terminal in it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.screen = pyte.Screen(300, 100)
        self.refused: list[str] = []
        """Addresses that the page wanted and did not get."""
        self._stream = pyte.ByteStream(self.screen)
        self._socket = socket
        self._numbers = itertools.count(1)
        self._session = ""
        self._answers: dict[int, dict[str, Any]] = {}
        self._wanted: dict[str, str] = {}

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    async def open(self, url: str) -> None:
        made = await self._call("Target.createTarget", url="about:blank")
        attached = await self._call(
            "Target.attachToTarget", targetId=made["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        await self._call("Network.enable")
        await self._call("Page.enable")
        await self._call("Page.navigate", url=url)

    async def click(self, x: int, y: int) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self._call(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    async def press(self, text: str) -> None:
        await self._call("Input.dispatchKeyEvent", type="keyDown", text=text, key=text)
        await self._call("Input.dispatchKeyEvent", type="keyUp", key=text)

    async def picture(self) -> bytes:
        shot = await self._call("Page.captureScreenshot", format="png")
        return base64.b64decode(shot["data"])

    async def wait_for(self, *words: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE):
                while not all(word in self.text for word in words):
                    await self._hear()
        except TimeoutError:
            shown = "\n".join(line.rstrip() for line in self.screen.display if line.strip())
            raise AssertionError(f"never saw {words}; refused {self.refused}\n{shown}") from None

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        async with asyncio.timeout(DEADLINE):
            while number not in self._answers:
                await self._hear()
        answer = self._answers.pop(number)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def _hear(self) -> None:
        message = await self._socket.receive_json()
        if "id" in message:
            self._answers[message["id"]] = message
            return
        told = message.get("params", {})
        match message["method"]:
            case "Network.webSocketFrameReceived" if told["response"]["opcode"] == 2:
                self._stream.feed(base64.b64decode(told["response"]["payloadData"]))
            case "Network.requestWillBeSent":
                self._wanted[told["requestId"]] = told["request"]["url"]
            case "Network.loadingFailed":
                self.refused.append(self._wanted.get(told["requestId"], "?"))
            case _:
                pass


@contextlib.asynccontextmanager
async def browser(chromium: str, profile: Path) -> AsyncIterator[Page]:
    """A page of a browser that can reach nothing but this machine."""
    process = await asyncio.create_subprocess_exec(
        chromium, *ALONE, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        async with asyncio.timeout(DEADLINE):
            address = None
            while address is None:
                line = (await process.stderr.readline()).decode()
                assert line, "the browser ended"
                address = re.search(r"ws://127\.0\.0\.1:\S+", line)
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(address[0], max_msg_size=0) as socket,
        ):
            yield Page(socket)
    finally:
        process.kill()
        await process.wait()
