"""The event stream of a running OpenCode server: what is being written, before it is stored.

The database stays the record. The stream only adds the pieces of texts as they come, and says that
there is something new to read. It is read from this machine alone unless the user says otherwise.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import deque
from typing import Final
from urllib.parse import SplitResult, urlsplit

from ..errors import ThresherError
from .lines import parse
from .opencode_changes import DELTA, Change, streamed

PATH: Final = "/global/event"
FIRST_WAIT, LAST_WAIT = 0.25, 5.0
"""Seconds before the connection is tried again, doubled each time."""
SILENCE: Final = 60.0
"""Seconds without a heartbeat after which the connection is given up."""
_WAITING: Final = 4096
"""Pieces that wait at most: the oldest go first, since the stored text follows anyway."""


class EventStream:
    """A thread that reads the stream of one session, and connects again when it is cut off."""

    def __init__(self, address: str, session: str, *, remote: bool = False) -> None:
        self.address = checked(address, remote=remote)
        self._session = session
        self._changes: deque[Change] = deque(maxlen=_WAITING)
        self._notes: deque[str] = deque(maxlen=16)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="opencode events", daemon=True)
        self._connected = False

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more. The thread ends with the next line, or when the connection does."""
        self._stop.set()

    @property
    def waiting(self) -> bool:
        """There is something to take."""
        return bool(self._changes or self._notes)

    def take(self) -> tuple[list[Change], list[str]]:
        """The pieces since the last call, and what became of the connection, in words."""
        changes = [self._changes.popleft() for _ in range(len(self._changes))]
        notes = [self._notes.popleft() for _ in range(len(self._notes))]
        return changes, notes

    def _run(self) -> None:
        wait = FIRST_WAIT
        while not self._stop.is_set():
            why = self._read()
            if self._stop.is_set():
                return
            if self._connected:
                self._notes.append(f"the event stream of {self.address} was cut off: {why}")
                wait = FIRST_WAIT
            elif wait == FIRST_WAIT:
                self._notes.append(f"the event stream of {self.address} cannot be read: {why}")
            self._connected = False
            self._stop.wait(wait)
            wait = min(2 * wait, LAST_WAIT)

    def _read(self) -> str:
        """Read until the connection ends; gives the reason."""
        import httpx2

        timeout = httpx2.Timeout(SILENCE, connect=FIRST_WAIT * 20)
        try:
            with (
                httpx2.Client(timeout=timeout, trust_env=False) as client,
                client.stream("GET", self.address + PATH) as response,
            ):
                if response.status_code != 200:
                    return f"HTTP status {response.status_code}"
                self._connected = True
                self._notes.append(f"connected to the event stream of {self.address}")
                for line in response.iter_lines():
                    if self._stop.is_set():
                        return "stopped"
                    if line.startswith("data:"):
                        self._line(line[5:])
            return "the server ended it"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return str(error) or type(error).__name__

    def _line(self, data: str) -> None:
        value, _ = parse(data.strip().encode("utf-8", "replace"))
        if value is None:
            return
        change, session, _ = streamed(value, -1, 0.0)
        if change is not None and change.type == DELTA and session in ("", self._session):
            self._changes.append(change)


def _parts(address: str) -> SplitResult | None:
    """An address taken apart; None where its host or its port cannot be one."""
    try:
        parts = urlsplit(address)
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def checked(address: str, *, remote: bool = False) -> str:
    """The address without what is behind its port. ThresherError for what is none, and for another
    machine unless that is wanted."""
    parts = _parts(address if "//" in address else f"http://{address}")
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ThresherError(
            "Bad address", f"{address!r} is no address of a server, as in http://127.0.0.1:4096."
        )
    if not remote and not _is_loopback(parts.hostname):
        raise ThresherError(
            "Not this machine",
            f"{address!r} is another machine, and only servers of this one are read; "
            "--remote reads it all the same.",
        )
    if "@" in parts.netloc:
        raise ThresherError("Bad address", "the address holds a password: leave it out.")
    return f"{parts.scheme}://{parts.netloc}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
