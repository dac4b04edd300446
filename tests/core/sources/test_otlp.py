from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from thresher.core import events as e
from thresher.core.compaction.policy import Moment
from thresher.core.errors import ThresherError
from thresher.core.sources.detect import Format, detect
from thresher.core.sources.otlp import OtlpSource, OtlpTail
from thresher.core.sources.report import compaction_records, state_at
from thresher.tui.widgets.card_lines import counts

FIXTURES = Path(__file__).parents[2] / "fixtures"
PYTHON = FIXTURES / "otlp" / "python.jsonl.gz"
DOTNET = FIXTURES / "otlp" / "dotnet_by_hand.json"


def rows() -> list[bytes]:
    return gzip.decompress(PYTHON.read_bytes()).splitlines(keepends=True)


def test_only_the_innermost_passes_of_nested_strategies_are_compactions() -> None:
    found = compaction_records(OtlpSource(DOTNET).read(), unsuccessful=True)
    assert [(each.stage.removesuffix("CompactionStrategy"), each.outcome) for each in found] == [
        ("ToolResult", "done"),
        ("Truncation", "done"),
        ("Summarization", "done"),
        ("Summarization", "failed"),
        ("ToolResult", "no-op"),
    ]
    summary = found[2]
    assert (summary.policy, summary.moment) == ("maf-dotnet", Moment.BEFORE_REQUEST)
    assert summary.reason == "20 → 9 groups, 12 groups summarised, a summary of 843 characters"
    assert summary.tokens_before is not None
    assert summary.tokens_after is not None
    assert (summary.tokens_before.value, summary.tokens_after.value) == (5200, 1900)
    assert (summary.seconds, summary.summary) == (1.5, None)


def test_counts_that_an_export_cannot_tell_are_unknown_everywhere() -> None:
    records = list(OtlpSource(DOTNET).read())
    first = compaction_records(records)[0]
    assert first.items is not None
    assert (first.items.before, first.items.after) == (41, 29)
    assert (first.items.kept, first.items.removed, first.items.inserted) == (None, None, None)
    card = state_at(records).cards[0]
    assert card.counts_unknown
    assert "unknown" in str(counts(card, words=True))


def test_the_log_records_of_a_real_run_are_its_compactions() -> None:
    records = list(OtlpSource(PYTHON).read())
    found = compaction_records(records)
    told = [line for line in rows() if b"compaction_strategy" in line]
    assert len(found) == len(told) == 9
    assert {(each.policy, each.phase, each.moment) for each in found} == {
        ("maf-python", "in_run", Moment.BEFORE_REQUEST)
    }
    assert [(each.items.before, each.items.after) for each in found if each.items][-1] == (27, 11)
    state = state_at(records)
    assert (state.title, state.requests) == ("log-reader", 14)
    assert state.usage is not None
    assert not state.problems


def test_exported_requests_say_when_a_compaction_ran_inside_them() -> None:
    with gzip.open(FIXTURES / "otlp" / "python.requests.jsonl.gz", "rt") as file:
        given = [json.loads(line)["messages"] for line in file]
    rebuilt = list(OtlpSource(PYTHON).requests())
    assert len(rebuilt) == len(given) == 14
    exact = 0
    for request, messages in zip(rebuilt, given, strict=True):
        roles = [[each["role"] for each in sent] for sent in (request.input, messages)]
        exact += roles[0] == roles[1]
        # The span of a request begins before the compaction that runs inside it.
        assert (roles[0] != roles[1]) == bool(request.left_out)
        assert request.evidence == "recorded"
    assert exact == 5
    assert OtlpSource(PYTHON).context_raw() == rebuilt[-1].input
    assert list(OtlpSource(DOTNET).requests()) == []


@pytest.mark.parametrize("path", [PYTHON, DOTNET], ids=lambda path: path.name)
def test_an_export_is_recognised(path: Path) -> None:
    assert detect(path).format is Format.OTLP


def test_a_growing_export_gives_the_same_records(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    whole = b"".join(rows())
    path.write_bytes(whole[:700])
    tail = OtlpTail(path)
    found = list(tail.more())
    for end in (701, len(whole) // 3, len(whole)):
        path.write_bytes(whole[:end])
        found += tail.more()
    records = list(OtlpSource(PYTHON).read())
    assert [each for each in found if each.n > 0] == [each for each in records if each.n > 0]
    path.unlink()
    (gone,) = tail.more()
    assert isinstance(gone.event, e.ErrorRaised)


def test_a_document_is_followed_by_reading_it_once() -> None:
    tail = OtlpTail(DOTNET)
    assert list(tail.more()) == list(OtlpSource(DOTNET).read())
    assert list(tail.more()) == []


def span(**attributes: Any) -> dict[str, Any]:
    return {
        "name": "compaction.compact",
        "spanId": "1",
        "attributes": [{"key": key, "value": value} for key, value in attributes.items()],
    }


def exported(path: Path, *spans: dict[str, Any]) -> list[e.Record]:
    row = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    path.write_text(json.dumps(row) + "\n")
    return list(OtlpSource(path).read())


def test_sizes_that_are_missing_are_unknown_too(tmp_path: Path) -> None:
    yes = {"boolValue": True}
    compacted = span(**{"compaction.triggered": yes, "compaction.compacted": yes})
    (card,) = compaction_records(exported(tmp_path / "x.jsonl", compacted))
    assert card.items is not None
    assert (card.items.before, card.items.after) == (None, None)
    assert (card.tokens_before, card.tokens_after) == (None, None)


@pytest.mark.parametrize(("after", "told"), [(9, "20 → 9 groups"), (20, "20 groups")])
def test_groups_that_are_as_many_as_before_are_told_once(
    tmp_path: Path, after: int, told: str
) -> None:
    yes = {"boolValue": True}
    groups = {"before": {"intValue": "20"}, "after": {"intValue": str(after)}}
    attributes = {f"compaction.{when}.groups": value for when, value in groups.items()}
    attributes |= {"compaction.triggered": yes, "compaction.compacted": yes}
    (card,) = compaction_records(exported(tmp_path / "x.jsonl", span(**attributes)))
    assert card.reason == told


def test_bad_lines_and_other_objects_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"".join([rows()[0], b"17\n", b'{"a": 1}\n', *rows()[1:]]))
    state = state_at(OtlpSource(path).read())
    (problem,) = state.problems
    assert problem.message.startswith("line 2 (byte ")
    assert state.unknown == {"no export request": 1}
    assert state.compactions == 9


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ThresherError, match="cannot be read"):
        list(OtlpSource(tmp_path / "none.json").read())
