from __future__ import annotations

import asyncio
from pathlib import Path

from thresher.core import events as e
from thresher.core.digest import wire_digests
from thresher.core.items import assistant, system, user
from thresher.core.sessions.requests import wire_form
from thresher.core.sessions.session import Session
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.opening import open_source


def recorded(tmp_path: Path) -> Session:
    session = Session.create(tmp_path, e.SessionStarted(session_id="s", agent="thresher"))
    session.emit(e.ItemAppended(item=system("Be brief.")))
    session.emit(e.ItemAppended(item=user("hello")))
    digests, digest = wire_digests(wire_form(session.state.context.items, "chat"))
    session.emit(e.RequestSent(request=1, digests=digests, digest=digest))
    session.emit(e.ItemAppended(item=assistant("hi")))
    return session


def test_a_journal_and_its_folder_are_the_same_source(tmp_path: Path) -> None:
    with recorded(tmp_path) as session:
        for place in (session.path, session.folder):
            assert detect(place).format is Format.THRESHER
            source = open_source(place)
            assert source.agent == "thresher"
            assert list(source.read()) == session.history.records


def test_requests_and_contexts_are_given_in_the_wire_form(tmp_path: Path) -> None:
    with recorded(tmp_path) as session:
        source = open_source(session.path)
        (request,) = source.requests()
        assert [each["content"] for each in request.input] == ["Be brief.", "hello"]
        assert request.missing == ""
        assert [each["content"] for each in source.context_raw()] == ["Be brief.", "hello", "hi"]
        assert source.context_raw(request.position) == request.input


async def test_a_running_session_is_followed(tmp_path: Path) -> None:
    stop = asyncio.Event()
    found: list[e.Record] = []
    with recorded(tmp_path) as session:
        async for batch in open_source(session.path).follow(stop):
            found += batch
            if len(found) == len(session.history.records):
                if isinstance(found[-1].event, e.Note):
                    stop.set()
                else:
                    session.emit(e.Note(kind="late", text="more"))
        assert found == session.history.records
