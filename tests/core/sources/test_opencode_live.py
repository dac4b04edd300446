from __future__ import annotations

import gzip
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.items import ImagePart, Message, TextPart
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.opencode import OpenCodeSource, choices
from thresher.core.sources.report import compaction_records, state_at
from thresher.core.sources.request_log import logged_requests
from thresher.core.sources.verify import Grade, verify

FIXTURES = Path(__file__).parents[2] / "fixtures" / "opencode_live"
NAMES = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())

# Of these, nothing is stored that would tell them from others.
UNKNOWABLE = {
    ("v1-mixed", 11): "the model takes no pictures",
    ("tree-1.1.65", 18): "the model takes no pictures",
    ("v2-mixed", 11): "sent again after HTTP status 500",
    ("v2-over", 14): "the newest part of a summary without an end",
    ("v2-over", 17): "the newest part of a summary without an end",
}


@pytest.fixture
def place(name: str, tmp_path: Path) -> Path:
    """Where the recording can be opened."""
    folder = FIXTURES / name
    if (folder / "storage.tar.gz").exists():
        with tarfile.open(folder / "storage.tar.gz") as tar:
            tar.extractall(tmp_path, filter="data")
        return tmp_path
    path = tmp_path / "opencode.db"
    path.write_bytes(lzma.decompress((folder / "opencode.db.xz").read_bytes()))
    return path


def sent(name: str) -> list[dict[str, Any]]:
    """What the endpoint got; every request begins with the messages of an earlier one."""
    found: dict[int, dict[str, Any]] = {}
    with gzip.open(FIXTURES / name / "requests.jsonl.gz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            earlier = found[row["as"]]["messages"][: row["first"]] if "as" in row else []
            found[row["n"]] = {**row, "messages": [*earlier, *row["messages"]]}
    return list(found.values())


def rebuilt(place: Path) -> list[RebuiltRequest]:
    return [each for choice in choices(place) for each in OpenCodeSource(choice.path).requests()]


def one(place: Path, says: Callable[[str], bool]) -> OpenCodeSource:
    return OpenCodeSource(next(each.path for each in choices(place) if says(each.title)))


def same(mine: RebuiltRequest, theirs: dict[str, Any]) -> bool:
    if (theirs["kind"] == "summary") != (mine.kind is e.Purpose.COMPACTION):
        return False
    text = theirs["messages"][0]["content"] if theirs["messages"] else ""
    if theirs["kind"] == "summary" and "<conversation>" in text and mine.input:
        return str(mine.input[0]["content"]).startswith(text)
    return mine.input == theirs["messages"]


@pytest.mark.parametrize("name", NAMES)
def test_every_request_of_every_session_is_rebuilt_message_for_message(
    name: str, place: Path
) -> None:
    left = rebuilt(place)
    for theirs in sent(name):
        found = next((each for each in left if same(each, theirs)), None)
        assert (found is None) == ((name, theirs["n"]) in UNKNOWABLE), theirs["n"]
        if found is not None:
            left.remove(found)
    unsure = [each for each in left if each.evidence == "inferred" or "pictures" in each.missing]
    assert left == unsure


@pytest.mark.parametrize("name", NAMES)
def test_the_context_in_wire_form_at_a_request_is_its_input(name: str, place: Path) -> None:
    for choice in choices(place):
        source = OpenCodeSource(choice.path)
        records = list(source.read())
        assert state_at(records).unknown == {}
        for request in source.requests():
            if request.kind is e.Purpose.TURN and request.evidence == "derived":
                assert source.context_raw(request.position) == request.input


@pytest.mark.parametrize("name", ["v1-mixed"])
def test_pictures_of_results_are_sent_behind_them_and_files_as_files(place: Path) -> None:
    source = one(place, lambda title: title == "mixed")
    items = [r.event.item for r in source.read() if isinstance(r.event, e.ItemAppended)]
    media = [item for item in items if isinstance(item, Message) and item.synthetic]
    assert any(
        isinstance(item.content, tuple)
        and isinstance(item.content[0], TextPart)
        and item.content[0].text == "Attached media from tool result:"
        and isinstance(item.content[1], ImagePart)
        for item in media
    )
    (pdf,) = one(place, lambda title: title == "second").requests()
    assert pdf.input[0]["content"][1]["file"]["filename"] == "x.pdf"
    assert "pictures and files" in pdf.missing


@pytest.mark.parametrize("name", ["v1-mixed"])
def test_what_another_model_thought_is_sent_to_the_next_one_as_text(place: Path) -> None:
    requests = list(one(place, lambda title: title == "mixed").requests())
    told = [message for each in requests for message in each.input if "I look" in str(message)]
    assert {message.get("reasoning_content") for message in told} == {"Let me look. 🤔", None}
    assert "Let me look. 🤔I look at it." in {message["content"] for message in told}


@pytest.mark.parametrize("name", ["v1-mixed"])
def test_a_fork_repeats_no_request_tool_or_usage_of_the_session_it_came_from(place: Path) -> None:
    source = one(place, lambda title: "fork" in title)
    assert [each.input[-1]["content"] for each in source.requests()] == ["In the fork #B1"]
    records = list(source.read())
    kinds = [type(each.event) for each in records]
    assert kinds.count(e.RequestSent) == kinds.count(e.UsageReported) == 1
    assert e.ToolStarted not in kinds
    assert state_at(records).turn == 9


@pytest.mark.parametrize("name", ["v1-task"])
def test_commands_and_tasks_of_the_user_are_no_requests(place: Path) -> None:
    source = one(place, lambda title: title == "tasks")
    kinds = [type(each.event) for each in source.read()]
    assert kinds.count(e.RequestSent) == len(list(source.requests())) == 8
    last = list(source.requests())[-1].input
    assert [m["content"] for m in last if m.get("tool_call_id", "").startswith("01")] == [
        next(m["content"] for m in last if "<task " in str(m["content"]) and "Done." in str(m)),
        "shell 🙂\n",
    ]


@pytest.mark.parametrize("name", ["v1-retry"])
def test_a_failed_compaction_is_tried_again_with_the_next_prompt_and_removes_nothing(
    place: Path,
) -> None:
    found = compaction_records(one(place, lambda title: title == "retry").read(), unsuccessful=True)
    assert [each.outcome for each in found] == ["failed", "done", "failed", "done", "done"]
    first, second = found[0], found[1]
    assert first.reason == "bad things"
    assert "the one before it failed" in second.reason
    assert second.items is not None
    assert (second.items.removed, second.items.inserted) == (0, 1)
    assert second.tokens_before is not None
    assert second.tokens_after is not None
    assert second.tokens_after - second.tokens_before > 0


@pytest.mark.parametrize("name", ["v1-retry"])
def test_the_compactions_of_a_fork_are_marked_as_those_of_its_origin(place: Path) -> None:
    forks = [each for each in choices(place) if "fork" in each.title]
    cards = [state_at(OpenCodeSource(each.path).read()).cards for each in forks]
    assert sorted(map(len, cards)) == [2, 5]
    done = [card for found in cards for card in found if card.summary]
    assert done
    assert all("forked from" in card.marks[0] for card in done)


@pytest.mark.parametrize("name", ["v2-over"])
def test_a_request_that_may_have_been_refused_is_listed_as_not_sure(place: Path) -> None:
    unsure = [
        each
        for each in rebuilt(place)
        if each.kind is e.Purpose.TURN and each.evidence == "inferred"
    ]
    assert len(unsure) == 2
    assert all("whether it was sent" in each.missing for each in unsure)
    refused = [each["messages"] for each in sent("v2-over") if each["status"] == 400]
    assert all(each.input in refused for each in unsure)


@pytest.mark.parametrize("name", ["v2-revert"])
def test_rows_that_the_user_took_back_are_out_of_the_context(place: Path) -> None:
    (choice,) = choices(place)
    records = list(OpenCodeSource(choice.path).read())
    back = [each.event for each in records if isinstance(each.event, e.HistoryRolledBack)]
    assert [(each.turns, each.inserted, each.removed > 0) for each in back] == [(1, 0, True)]
    assert "Three #A3" not in [entry.item.text for entry in state_at(records).context]


def logged(name: str, path: Path, left: Callable[[dict[str, Any]], bool]) -> Path:
    rows = [
        {"n": each["n"], "status": each["status"], "request": {"messages": each["messages"]}}
        for each in sent(name)
        if left(each)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["v1-mixed"])
def test_a_model_that_takes_no_pictures_is_no_difference_of_the_session(
    place: Path, tmp_path: Path
) -> None:
    source = one(place, lambda title: title == "mixed")
    log = logged("v1-mixed", tmp_path / "log.jsonl", lambda each: each["n"] < 13)
    verdict = verify(source.requests(), logged_requests(log), source.plain)
    assert [each.grade for each in verdict.requests if each.label != "11"] == [Grade.EXACT] * 11
    (other,) = [each for each in verdict.requests if each.label == "11"]
    assert other.grade is Grade.STRUCTURE


@pytest.mark.parametrize("name", ["v2-over"])
def test_a_request_that_may_not_have_been_sent_is_not_missed_in_a_log(
    place: Path, tmp_path: Path
) -> None:
    (choice,) = choices(place)
    source = OpenCodeSource(choice.path)
    log = logged("v2-over", tmp_path / "log.jsonl", lambda each: each["kind"] == "main")
    verdict = verify(source.requests(), logged_requests(log), source.plain)
    assert (verdict.exact, verdict.differs) == (14, 0)
    assert verdict.unlogged == 2


@pytest.mark.parametrize("name", ["v1-task"])
def test_a_subagent_is_named_with_its_session_when_it_begins(place: Path) -> None:
    ids = {choice.id for choice in choices(place)}
    records = list(one(place, lambda title: title == "tasks").read())
    notes = [
        each.event.text
        for each in records
        if isinstance(each.event, e.Note) and each.event.kind == "subagent"
    ]
    assert len(notes) == 3
    assert all(text.split()[-1] in ids for text in notes)
    assert notes[0].startswith("subagent (helper: read log)")
