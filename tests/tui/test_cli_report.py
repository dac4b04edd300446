from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..command_line import codex_session, run


def test_a_report_is_printed_as_markdown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran = run(capsys, "report", codex_session(tmp_path))
    assert ran.code == 0
    assert ran.out.startswith("# ")
    assert "## Compaction 1" in ran.out
    assert "## Compaction 2" in ran.out
    assert "Taken out" in ran.err or "found none" in ran.err


def test_the_ending_of_the_file_tells_the_form(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = codex_session(tmp_path)
    page, data = tmp_path / "r.html", tmp_path / "r.json"
    assert run(capsys, "report", source, "-o", page).code == 0
    assert page.read_text().startswith("<!doctype html>")
    assert run(capsys, "report", source, "--out", data, "--compaction", "2").code == 0
    assert [part["ordinal"] for part in json.loads(data.read_text())["compactions"]] == [2]
    as_json = run(capsys, "report", source, "--format", "json")
    assert as_json.records[0]["format"] == "thresher report"


def test_a_report_of_an_earlier_place_says_which(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ran = run(capsys, "report", codex_session(tmp_path), "--at", "c1", "--format", "json")
    report = ran.records[0]
    assert [part["ordinal"] for part in report["compactions"]] == [1]
    assert report["rewound"]["line"] == report["compactions"][0]["line"] < report["rewound"]["last"]


def test_a_file_that_exists_is_never_overwritten_unasked(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source, out = codex_session(tmp_path), tmp_path / "r.md"
    out.write_text("mine")
    ran = run(capsys, "report", source, "-o", out)
    assert ran.code == 2
    assert "--force" in ran.sentence
    assert out.read_text() == "mine"
    assert run(capsys, "report", source, "-o", out, "--force").code == 0
    assert out.read_text().startswith("# ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--compaction", "99"], "there is no compaction 99"),
        (["-o", "{folder}"], "is a folder"),
        (["-o", "{folder}/none/r.md"], "cannot write the report to"),
        (["--format", "pdf"], "pdf"),
        (["--at", "c9"], "--at c9 is not in the session"),
    ],
)
def test_bad_arguments_are_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], words: str
) -> None:
    filled = [argument.format(folder=tmp_path) for argument in arguments]
    ran = run(capsys, "report", codex_session(tmp_path), *filled)
    assert ran.code == 2
    assert words in ran.sentence


def test_redaction_is_on_unless_it_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = codex_session(tmp_path)
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1"
    lines = source.read_text().split("\n")
    message = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": f"use {secret} in /home/alice/x"}],
    }
    line = {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": message}
    source.write_text("\n".join([*lines[:-1], json.dumps(line), ""]))
    plain = run(capsys, "report", source, "--format", "json", "--no-redact")
    assert secret in plain.out
    ran = run(capsys, "report", source, "--format", "json")
    assert secret not in ran.out
    assert "/home/alice" not in ran.out
    assert "GitHub token × 1" in ran.err
