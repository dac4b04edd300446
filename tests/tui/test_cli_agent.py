from __future__ import annotations

import json
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.paths import sessions_dir
from thresher.core.sessions.catalog import find, sessions
from thresher.core.sessions.resume import read

from ..command_line import Ran, run, run_apart
from ..loopback import Call, Reply, in_thread

Capture = pytest.CaptureFixture[str]

pytestmark = pytest.mark.usefixtures("workspace")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("the answer is 42\n")
    monkeypatch.chdir(folder)
    return folder


def events_of(ran: Ran) -> list[str]:
    return [record["event"]["event"] for record in ran.records]


READ = Reply("I will look.", calls=(Call("read_file", {"path": "notes.txt"}),))


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_task_is_done_without_a_screen(wire: str, capsys: Capture) -> None:
    with in_thread([READ, Reply("It is 42.")]) as server:
        ran = run(capsys, "run", "What is the answer?", "--headless", "--model", "m",
                  "--base-url", server.base_url, "--wire", wire)  # fmt: skip
    assert ran.code == 0
    assert "> What is the answer?" in ran.out
    assert 'read_file {"path": "notes.txt"}' in ran.out
    assert "1  the answer is 42" in ran.out
    assert ran.out.rstrip().endswith("It is 42.")
    assert len(server.model_requests) == 2
    assert server.model_requests[0].protocol == wire


def test_settings_come_from_the_environment(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_thread([Reply("Hello.")], key="k-1") as server:
        monkeypatch.setenv("OPENAI_MODEL", "env-model")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("MY_KEY", "k-1")
        ran = run(capsys, "run", "Hi", "--headless", "--api-key-var", "MY_KEY")
    assert ran.code == 0
    assert server.model_requests[0].body["model"] == "env-model"


def test_the_json_of_a_run_is_its_journal(tmp_path: Path, capsys: Capture) -> None:
    with in_thread([READ, Reply("It is 42.")]) as server:
        ran = run(capsys, "run", "What is the answer?", "--json", "--model", "m",
                  "--base-url", server.base_url)  # fmt: skip
    journal = find("latest", sessions_dir())
    assert ran.out == journal.read_text()
    assert events_of(ran)[0] == "session_started"
    assert events_of(ran)[-1] == "session_finished"
    kept = tmp_path / "kept.jsonl"
    kept.write_text(ran.out)
    (context,) = run(capsys, "context", kept, "--json").records
    assert context["entries"][-1]["item"]["content"] == "It is 42."


@pytest.mark.parametrize(
    ("flags", "written"), [([], False), (["--yes"], True), (["--read-only"], False)]
)
def test_tools_that_change_things_need_a_yes(
    flags: list[str], written: bool, workspace: Path, capsys: Capture
) -> None:
    write = Reply("", calls=(Call("write_file", {"path": "new.txt", "content": "x"}),))
    with in_thread([write, Reply("Done.")]) as server:
        ran = run(capsys, "run", "Write", "--headless", "--model", "m",
                  "--base-url", server.base_url, *flags)  # fmt: skip
    assert ran.code == 0
    assert (workspace / "new.txt").exists() is written
    assert ("without --yes" in ran.err) is (flags == [])


def test_flags_of_the_policy_reach_it(capsys: Capture) -> None:
    ran = run(capsys, "run", "Look", "--json", "--wire", "offline", "--threshold", "2500",
              "--set", "user_budget=500", "--window", "9000")  # fmt: skip
    started = ran.records[0]["event"]
    assert started["policy_params"]["threshold"] == 2500
    assert started["policy_params"]["user_budget"] == 500
    assert started["budget"]["window"]["value"] == 9000
    assert started["budget"]["window"]["source"] == "flag --window"


def test_another_policy_does_not_get_the_constants_of_the_one_in_the_file(
    home: Path, capsys: Capture
) -> None:
    (home / "config").mkdir()
    file = "[compaction]\npolicy = 'teaching'\n[compaction.params]\nthreshold = 3000\n"
    (home / "config" / "config.toml").write_text(file)
    ran = run(capsys, "run", "Look", "--json", "--wire", "offline", "--policy", "keep-all")
    assert ran.code == 0
    assert ran.records[0]["event"]["policy"] == "keep-all"
    ran = run(capsys, "run", "Look", "--json", "--wire", "offline")
    assert ran.records[0]["event"]["policy_params"]["threshold"] == 3000


def test_the_stand_in_never_carries_the_name_of_a_model(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "gpt-5")
    ran = run(capsys, "run", "Look", "--json", "--wire", "offline")
    assert ran.records[0]["event"]["model"] == "offline-stand-in"


@pytest.mark.parametrize(
    ("flags", "title"),
    [
        (["--policy", "none"], "Unknown policy"),
        (["--set", "nothing=1"], "Policy setting refused"),
        (["--threshold", "0"], "Policy setting refused"),
        (["--window", "0"], "Setting not valid"),
        (["--workspace", "nowhere"], "No such folder"),
    ],
)
def test_flags_that_cannot_work_are_refused_before_anything_is_recorded(
    flags: list[str], title: str, capsys: Capture
) -> None:
    ran = run(capsys, "run", "Look", "--headless", "--wire", "offline", *flags)
    assert ran.code == 2
    assert ran.err.splitlines()[-1].startswith(f"{title}: ")
    assert sessions(sessions_dir()) == []


def test_without_a_task_and_without_a_screen_there_is_nothing_to_do(capsys: Capture) -> None:
    ran = run(capsys, "run", "--headless", "--wire", "offline")
    assert ran.code == 2
    assert ran.sentence.startswith("No task: ")


# -- the demo ----------------------------------------------------------------------------------


def test_the_demo_compacts_for_three_reasons(capsys: Capture) -> None:
    ran = run(capsys, "demo", "--headless", "--json")
    assert ran.code == 0
    compactions = [
        record["event"] for record in ran.records if record["event"]["event"] == "history_compacted"
    ]
    assert {"auto", "manual", "overflow"} <= {each["trigger"] for each in compactions}
    assert {each["policy"] for each in compactions} == {"teaching"}
    assert "recorded in" in ran.sentence
    requests = run(capsys, "requests", "latest", "--json").records
    assert len(requests) > 10
    assert [each for each in requests if "missing" in each] == []


def test_the_demo_works_where_it_is_told_and_asks_before_it_writes(
    workspace: Path, capsys: Capture
) -> None:
    before = {path: path.read_bytes() for path in workspace.rglob("*")}
    ran = run(capsys, "demo", "--headless", "--workspace", workspace)
    assert str(workspace) in json.dumps([each.cwd for each in sessions(sessions_dir())])
    assert ran.out
    assert {path: path.read_bytes() for path in workspace.rglob("*")} == before


# -- resume ------------------------------------------------------------------------------------


def test_a_session_goes_on_where_it_stopped(capsys: Capture) -> None:
    flags = ["--headless", "--base-url"]
    with in_thread([READ, Reply("It is 42."), Reply("I said 42.")]) as server:
        run(capsys, "run", "What is it?", "--model", "m", *flags, server.base_url)
        ran = run(capsys, "resume", "latest", "What did you say?", *flags, server.base_url)
    assert ran.code == 0
    said = [message.get("content") for message in server.model_requests[2].messages]
    assert said[-1] == "What did you say?"
    assert "It is 42." in said
    assert server.model_requests[2].body["model"] == "m"
    assert len(sessions(sessions_dir())) == 1


def test_what_changes_on_resume_is_on_record(capsys: Capture) -> None:
    flags = ["--headless", "--base-url"]
    with in_thread([]) as server:
        run(capsys, "run", "Hi", "--model", "m", *flags, server.base_url)
        run(capsys, "resume", "latest", "Again", "--model", "n", "--policy", "keep-all",
            *flags, server.base_url)  # fmt: skip
        assert server.model_requests[-1].body["model"] == "n"
    events = [record.event for record in read(find("latest", sessions_dir())).records]
    assert any(isinstance(event, e.ModelChanged) and event.model == "n" for event in events)
    assert any(
        isinstance(event, e.PolicyChanged) and event.policy == "keep-all" for event in events
    )


def test_a_session_keeps_the_constants_it_was_begun_with(capsys: Capture) -> None:
    run(capsys, "run", "Look", "--headless", "--wire", "offline", "--threshold", "5000")
    ran = run(capsys, "resume", "latest", "Look again", "--json")
    assert ran.code == 0
    assert "policy_changed" not in events_of(ran)


def test_a_session_whose_folder_is_gone_asks_for_another(
    workspace: Path, tmp_path: Path, capsys: Capture
) -> None:
    run(capsys, "run", "Look", "--headless", "--wire", "offline")
    workspace.rename(tmp_path / "moved")
    ran = run(capsys, "resume", "latest", "Go on", "--headless")
    assert ran.code == 2
    assert "--workspace" in ran.sentence
    ran = run(capsys, "resume", "latest", "Go on", "--headless", "--workspace", tmp_path / "moved")
    assert ran.code == 0


def test_there_may_be_nothing_to_resume(capsys: Capture) -> None:
    ran = run(capsys, "resume")
    assert ran.code == 2
    assert ran.sentence.startswith("No session: ")


def test_an_agent_runs_in_a_process_of_its_own(workspace: Path) -> None:
    with in_thread([READ, Reply("It is 42.")]) as server:
        ran = run_apart("run", "What is it?", "--headless", "--model", "m", "--workspace",
                        workspace, env={"OPENAI_BASE_URL": server.base_url})  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.out.rstrip().endswith("It is 42.")
