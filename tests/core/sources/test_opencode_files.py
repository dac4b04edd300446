from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.errors import ThresherError
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.opencode import OpenCodeSource, choices
from thresher.core.sources.report import CompactionReport, compaction_records, state_at

from .opencode_rig import V1, changed, database, export, stream, tree


def facts(reports: list[CompactionReport]) -> list[tuple[Any, ...]]:
    return [(each.outcome, each.items, each.tokens_after, each.summary) for each in reports]


@pytest.mark.parametrize("name", V1)
def test_a_json_tree_and_an_export_tell_the_same_as_the_tables(name: str, tmp_path: Path) -> None:
    path = changed(database(name, tmp_path), "DELETE FROM event")
    tables = OpenCodeSource(path)
    told = facts(compaction_records(tables.read(), unsuccessful=True))
    asked = [each.input for each in tables.requests()]
    root = tree(path, tmp_path / "data" / "storage")
    whole = tmp_path / "export.json"
    whole.write_text(json.dumps(export(path)))
    (session,) = (root / "session").glob("*/*.json")
    for place in (root, root.parent, session, whole):
        assert detect(place).format is Format.OPENCODE
        source = OpenCodeSource(place)
        assert facts(compaction_records(source.read(), unsuccessful=True)) == told
        assert [each.input for each in source.requests()] == asked


def test_bad_files_of_a_tree_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    root = tree(database("v1-one-summary", tmp_path), tmp_path / "storage")
    first, second, *_ = sorted((root / "part").glob("*/*.json"))
    first.write_bytes(b'{"cut')
    second.write_bytes(b"\x00\x00")
    state = state_at(OpenCodeSource(root).read())
    assert {each.message.split(" ")[0] for each in state.problems} == {first.name, second.name}
    assert state.compactions == 1


def test_a_tree_that_grows_is_followed(tmp_path: Path) -> None:
    root = tree(database("v1-one-summary", tmp_path), tmp_path / "storage")
    messages = sorted((root / "message").glob("*/*.json"))
    last = messages[-1].read_bytes()
    messages[-1].unlink()
    tail = OpenCodeSource(root).tail()
    assert list(tail.more())
    messages[-1].write_bytes(last)
    news = list(tail.more())
    assert [each for each in news if isinstance(each.event, e.RequestSent)]


def test_choices_of_a_tree_open_their_own_session(tmp_path: Path) -> None:
    root = tree(database("v1-one-summary", tmp_path), tmp_path / "storage")
    (choice,) = choices(root)
    assert choice.id.startswith("ses_")
    assert len(compaction_records(OpenCodeSource(choice.path).read())) == 1


def test_a_folder_without_a_session_is_none(tmp_path: Path) -> None:
    (tmp_path / "storage" / "session").mkdir(parents=True)
    (tmp_path / "storage" / "message").mkdir()
    with pytest.raises(ThresherError, match="holds no OpenCode session"):
        list(OpenCodeSource(tmp_path).read())


# -- streams -----------------------------------------------------------------------------------


def test_the_stream_of_a_v2_session_tells_its_compactions(tmp_path: Path) -> None:
    path = stream("v2-two-summaries", "events.session.jsonl", tmp_path)
    assert detect(path).format is Format.OPENCODE
    reports = compaction_records(OpenCodeSource(path).read())
    assert [(each.ordinal, each.policy, len(each.summary or "")) for each in reports] == [
        (1, "opencode-v2", 637),
        (2, "opencode-v2", 527),
    ]


def test_the_stream_of_a_directory_tells_a_compaction_and_the_summary_as_it_is_written(
    tmp_path: Path,
) -> None:
    path = stream("v1-two-summaries", "events.jsonl", tmp_path)
    records = list(OpenCodeSource(path).read())
    (report,) = compaction_records(records)
    assert report.trigger == "auto"
    pieces = [
        each.event.text
        for each in records
        if isinstance(each.event, e.MessageDelta) and each.event.channel == "summary"
    ]
    assert "".join(pieces) == report.summary
    assert state_at(records).cards[0].streamed == ""


def test_the_global_stream_counts_each_change_once(tmp_path: Path) -> None:
    path = stream("v1-two-summaries", "events.global.jsonl", tmp_path)
    assert detect(path).format is Format.OPENCODE
    records = list(OpenCodeSource(path).read())
    texts = [json.loads(line) for line in path.read_text().splitlines()]
    doubled = [each for each in texts if each["payload"]["type"] == "sync"]
    assert doubled
    deltas = [each for each in texts if each["payload"]["type"] == "message.part.delta"]
    assert sum(isinstance(each.event, e.MessageDelta) for each in records) == len(deltas)


def test_a_prune_in_a_stream_rewrites_what_the_stream_had_shown(tmp_path: Path) -> None:
    path = stream("v1-prune", "events.jsonl", tmp_path)
    state = state_at(OpenCodeSource(path).read())
    assert not [each for each in state.problems if each.kind == "record"]


def test_bad_lines_of_a_stream_are_named(tmp_path: Path) -> None:
    path = stream("v2-two-summaries", "events.session.jsonl", tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"{broken\n", *lines[3:]]))
    state = state_at(OpenCodeSource(path).read())
    assert [each.message.split(":")[0] for each in state.problems] == ["event 4 is left out"]
    assert state.compactions == 2


def test_a_growing_stream_is_followed_and_a_packed_one_is_read(tmp_path: Path) -> None:
    path = stream("v2-two-summaries", "events.session.jsonl", tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:8]))
    tail = OpenCodeSource(path).tail()
    found = list(tail.more())
    with path.open("ab") as file:
        file.write(b"".join(lines[8:]))
    found += tail.more()
    assert len(compaction_records(found)) == 2
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(b"".join(lines)))
    assert len(compaction_records(OpenCodeSource(packed).tail().more())) == 2


def test_messages_that_are_taken_out_of_a_tree_leave_the_context(tmp_path: Path) -> None:
    root = tree(database("v1-tool-output", tmp_path), tmp_path / "data" / "storage")
    tail = OpenCodeSource(root).tail()
    records = list(tail.more())
    before = len(state_at(records).context)
    messages = sorted((root / "message").glob("*/*.json"))
    for each in messages[-2:]:
        each.unlink()
    assert tail.changed()
    records += tail.more()
    after = state_at(records)
    assert any(isinstance(each.event, e.HistoryRolledBack) for each in records)
    assert 0 < len(after.context) < before
    assert after.problems == []
