from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.opencode import OpenCodeSource
from thresher.core.sources.opencode_changes import Change
from thresher.core.sources.opencode_stream import EventStream, checked

from .opencode_rig import database, rows, stream

PATIENCE = 10.0


class Server(ThreadingHTTPServer):
    daemon_threads = True
    answers: ClassVar[list[list[str]]] = []
    """The lines of one connection after the other; then connections stay open and silent."""

    def handle_error(self, *_: object) -> None:
        return


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        if self.path != "/global/event":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if self.server.answers:
            for line in self.server.answers.pop(0):
                self.wfile.write(f"data: {line}\n\n".encode())
            return
        self.wfile.flush()
        self.server.closing.wait(PATIENCE)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.answers = []
    made.closing = threading.Event()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.closing.set()
    made.shutdown()
    made.server_close()
    thread.join(PATIENCE)


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def until(done: Callable[[], bool]) -> None:
    waited = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if done():
            return
        waited.wait(0.02)
    raise AssertionError("it did not happen in time")


def recorded(tmp_path: Path) -> list[str]:
    path = stream("v1-two-summaries", "events.global.jsonl", tmp_path)
    return path.read_text().splitlines()


def test_pieces_are_read_again_after_the_server_cut_the_stream_off(
    server: Server, tmp_path: Path
) -> None:
    lines = recorded(tmp_path)
    server.answers += [lines[:4], lines[4:]]
    session = json.loads(lines[0])["payload"]["properties"]["sessionID"]
    reader = EventStream(address(server), session)
    reader.start()
    changes: list[Change] = []
    notes: list[str] = []

    def both() -> bool:
        more, told = reader.take()
        changes.extend(more)
        notes.extend(told)
        return sum("connected" in note for note in notes) >= 3

    until(both)
    reader.stop()
    deltas = [json.loads(line)["payload"] for line in lines]
    wanted = [each["properties"]["delta"] for each in deltas if each["type"].endswith("delta")]
    assert [each.data["delta"] for each in changes] == wanted
    assert any("cut off" in note for note in notes)


def test_pieces_of_other_sessions_are_left_out(server: Server, tmp_path: Path) -> None:
    server.answers.append(recorded(tmp_path))
    reader = EventStream(address(server), "ses_other")
    reader.start()
    notes: list[str] = []
    until(lambda: bool(notes.extend(reader.take()[1])) or len(notes) >= 2)
    reader.stop()
    assert reader.take()[0] == []


def test_a_followed_session_shows_the_summary_while_it_is_written(
    server: Server, tmp_path: Path
) -> None:
    path = database("v1-two-summaries", tmp_path)
    server.answers.append(recorded(tmp_path))
    tail = OpenCodeSource(path).tail_beside(address(server))
    found: list[e.Record] = []

    def streamed() -> bool:
        found.extend(tail.more())
        return any(isinstance(each.event, e.MessageDelta) for each in found)

    until(streamed)
    assert all(each.ephemeral for each in found if isinstance(each.event, e.MessageDelta))
    lasting = [each for each in found if not each.ephemeral]
    assert isinstance(lasting[0].event, e.Note | e.SessionStarted)
    assert len(rows(path, "SELECT * FROM event")) == 250


def test_a_server_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    reader = EventStream("http://127.0.0.1:9", "ses_x")
    reader.start()
    notes: list[str] = []
    until(lambda: bool(notes.extend(reader.take()[1])) or bool(notes))
    reader.stop()
    assert "cannot be read" in notes[0]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://192.0.2.1:4096", "another machine"),
        ("https://example.org", "another machine"),
        ("ftp://127.0.0.1", "no address"),
        ("http://127.0.0.1:99999", "no address"),
        ("http://127.0.0.1:port", "no address"),
        ("http://[::1", "no address"),
        ("", "no address"),
        ("http://user:secret@127.0.0.1:4096", "password"),
    ],
)
def test_other_machines_and_odd_addresses_are_refused(address: str, words: str) -> None:
    with pytest.raises(ThresherError, match=words):
        checked(address)


def test_addresses_of_this_machine_and_wanted_others_are_taken() -> None:
    assert checked("127.0.0.1:4096") == "http://127.0.0.1:4096"
    assert checked("http://localhost:4096/event?x=1") == "http://localhost:4096"
    assert checked("http://[::1]:4096") == "http://[::1]:4096"
    assert checked("http://192.0.2.1:4096", remote=True) == "http://192.0.2.1:4096"
