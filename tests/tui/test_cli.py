from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thresher.core
from thresher.core.compaction.policies.registry import names
from thresher.tui.cli import listing, main, make_app

from ..command_line import ROOT, Ran, codex_session, environment, program, run, run_apart

COMMANDS = [name for name in make_app() if not name.startswith("-")]


def test_every_command_of_the_readme_exists() -> None:
    assert set(COMMANDS) == {
        "compactions", "context", "demo", "doctor", "hold", "hook", "keys", "models", "open",
        "policies", "report", "requests", "resume", "run", "serve", "sessions", "verify",
    }  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"Usage: thresher {command}" in ran.out
    assert f"Example: thresher {command}" in ran.out


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, "--help")
    assert ran.code == 0
    assert all(re.search(rf"^│ {command} ", ran.out, re.MULTILINE) for command in COMMANDS)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == Ran(0, f"{thresher.core.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["sesions"], "there is no command 'sesions'. Did you mean `thresher sessions`?"),
        (["no such thing"], "there is no command 'no such thing'. See `thresher --help`."),
        (["sessions", "--jsn"], "Unknown option: --jsn. Did you mean --json?"),
        (["sessions", "more"], "'more' is one argument too many for `thresher sessions`."),
        (["compactions"], "requires an argument. See `thresher compactions --help`."),
        (["run", "x", "--window", "many"], 'unable to convert "many" into int'),
        (["run", "x", "--wire", "morse"], '"responses", "chat", "offline"'),
        (["run", "x", "--yes", "--read-only"], "exclude one another"),
        (["run", "x", "--set", "threshold"], "is not key=value"),
        (["context", "x.jsonl", "--json", "--raw"], "give one of them"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_sentence(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.sentence.startswith("Wrong usage: ")
    assert told in ran.sentence


def test_a_file_in_the_place_of_a_command_is_recognised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = codex_session(tmp_path)
    assert f"Did you mean `thresher open {path}`?" in run(capsys, path).sentence


@pytest.mark.parametrize("text", ["\x1b[2J", "a\u202eb", "one\ntwo"])
def test_foreign_text_in_a_complaint_is_clean(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(capsys, "models", text)
    assert ran.code == 2
    assert text not in ran.sentence


@pytest.mark.parametrize(
    ("arguments", "instead"),
    [
        ([], "`thresher sessions`"),
        (["demo"], "`thresher demo --headless`"),
        (["run", "do it", "--wire", "offline"], "--headless"),
        (["open", "FILE"], "`thresher compactions FILE`"),
    ],
)
def test_without_a_terminal_a_screen_is_refused_and_the_other_way_named(
    arguments: list[str], instead: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(codex_session(tmp_path))
    ran = run(capsys, *(path if each == "FILE" else each for each in arguments))
    assert ran.code == 2
    assert ran.sentence.startswith("No terminal: ")
    assert instead.replace("FILE", path) in ran.sentence


def test_an_unexpected_error_leaves_one_sentence_and_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    def broken() -> None:
        raise RuntimeError("the \x1b[31mroof is on fire")

    monkeypatch.setattr(listing, "own_sessions", broken)
    ran = run(capsys, "sessions")
    assert ran.code == 1
    assert ran.sentence.startswith("Unexpected error: RuntimeError: the ␛[31mroof is on fire")
    (story,) = (home / "state").glob("crash-*.txt")
    assert str(story) in ran.sentence
    assert "Traceback" in story.read_text()
    assert story.stat().st_mode & 0o777 == 0o600


def test_the_traceback_is_shown_to_who_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(listing, "own_sessions", lambda: 1 / 0)
    monkeypatch.setenv("THRESHER_DEBUG", "1")
    assert "Traceback" in run(capsys, "sessions").err


def test_ctrl_c_ends_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(listing, "own_sessions", interrupted)
    assert run(capsys, "sessions") == Ran(130, "", "")


@pytest.mark.parametrize("words", [("models",), ("--help",), ("open", "--help")])
def test_a_reader_that_goes_away_is_no_error(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        program(*words), env=environment(), stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, "")


def test_the_light_commands_load_nothing_heavy(tmp_path: Path) -> None:
    path = codex_session(tmp_path)
    script = """
import sys
from thresher.tui.cli import main
for arguments in (["--help"], ["sessions"], ["compactions", sys.argv[1]], ["models"]):
    assert main(arguments) == 0, arguments
    loaded = {"textual", "openai", "tiktoken", "httpx2"} & sys.modules.keys()
    assert not loaded, (arguments, loaded)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=environment(), capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


def test_a_locale_without_unicode_loses_no_character() -> None:
    ran = run_apart("models", env={"PYTHONIOENCODING": "ascii"})
    assert ran.code == 0
    ran = run_apart("doctor", env={"PYTHONIOENCODING": "ascii"})
    assert "\\u2713" in ran.out


def test_json_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    ran = run_apart("context", codex_session(tmp_path), "--json", env={"PYTHONIOENCODING": "ascii"})
    assert ran.records[0]["entries"]


# -- models, policies, doctor ------------------------------------------------------------------


def test_models_lists_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, "models", "--json")
    assert ran.code == 0
    assert len(ran.records) >= 50
    assert {"name", "context_window", "source", "as_of"} <= ran.records[0].keys()
    table = run(capsys, "models")
    assert all(record["name"] in table.out for record in ran.records)


def test_a_model_is_told_with_its_arithmetic(capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "models", "gpt-5-mini").out
    assert "window      400,000 tokens" in told
    assert "limit 272,000 = the smaller of" in told
    (record,) = run(capsys, "models", "gpt-5-mini", "--json").records
    assert record["context_window"] == 400_000


def test_an_unknown_model_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, "models", "gpt-5-mni")
    assert ran.code == 2
    assert "gpt-5-mini" in ran.sentence


def test_policies_tell_their_rule_and_every_constant(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run(capsys, "policies", "--json").records
    assert {"teaching", "keep-all"} <= {record["name"] for record in listed}
    (record,) = run(capsys, "policies", "teaching", "--json").records
    constants = {param["name"]: param for param in record["params"]}
    assert constants["threshold"]["default"] == 8_000
    assert all(param["meaning"] for param in record["params"])
    told = run(capsys, "policies", "teaching").out
    assert record["rule"] in told
    assert all(name in told for name in constants)


def test_an_unknown_policy_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run(capsys, "policies", "teachin")
    assert ran.code == 2
    assert "did you mean teaching?" in ran.sentence


def test_doctor_finds_nothing_wrong_on_a_fresh_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran = run(capsys, "doctor")
    assert ran.code == 0, ran.out
    assert "o200k_base" in ran.out
    assert ran.out.endswith("Nothing is wrong.\n")


def test_doctor_says_what_is_wrong_and_what_to_do(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text("[compaction]\npolicy = 'none'\n")
    (home / "state").write_text("in the way")
    monkeypatch.setenv("OPENAI_MODEL", "my-own-model")
    ran = run(capsys, "doctor", "--json")
    assert ran.code == 1
    (report,) = ran.records
    found = {(each["group"], each["name"]): each for each in report["findings"]}
    assert not report["healthy"]
    assert "set THRESHER_STATE_DIR" in found["folders", "state"]["advice"]
    assert "There are: teaching" in found["settings", "policy"]["advice"]
    assert "unknown" in found["settings", "window"]["value"]


def test_doctor_never_shows_the_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-value")
    ran = run(capsys, "doctor")
    assert "OPENAI_API_KEY is set" in ran.out
    assert "secret-key-value" not in ran.out


def test_settings_that_cannot_be_read_are_a_finding(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text("[model\n")
    ran = run(capsys, "doctor")
    assert ran.code == 1
    assert "is not valid TOML" in ran.out
    ran = run(capsys, "run", "x", "--headless")
    assert ran.code == 2
    assert "is not valid TOML" in ran.sentence


# -- width and colour --------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_fit_the_width_that_is_asked_for(
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(columns))
    path = codex_session(tmp_path)
    for command in (["models"], ["sessions"], ["context", str(path)], ["compactions", str(path)]):
        lines = run(capsys, *command).out.splitlines()
        tabled = [line for line in lines if not line.endswith(".")]
        assert max(map(cell_len, tabled), default=0) <= columns, command


def test_no_colours_leave_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(codex_session(tmp_path))
    for command in (["--help"], ["models"], ["doctor"], ["compactions", path]):
        assert "\x1b" not in run(capsys, *command).out


def test_the_program_can_be_started_as_a_module() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "thresher.tui", "policies", "--json"],
        env=environment(),
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0
    assert json.loads(ended.stdout.splitlines()[0])["name"]


def test_main_takes_the_arguments_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["thresher", "policies"])
    assert main() == 0
    assert "teaching" in capsys.readouterr().out


@pytest.mark.parametrize("name", names())
def test_every_constant_of_every_policy_says_what_it_means(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (record,) = run(capsys, "policies", name, "--json").records
    assert record["rule"]
    assert [param["name"] for param in record["params"] if not param["meaning"]] == []
