"""A real task through a real server in a real process, which is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.items import CompactionSummary
from thresher.core.sessions.resume import read, resume
from thresher.core.state import SessionState

from ..command_line import environment, program
from ..loopback import Call, Hang, Reply, Request, in_thread

STEPS = [
    (Call("glob", {"pattern": "**/*"}),),
    (Call("read_file", {"path": "data.txt"}), Call("grep", {"pattern": "total"})),
    (Call("read_file", {"path": "data.txt", "offset": 100}),),
    (Call("write_file", {"path": "answer.txt", "content": "total 4950\n"}),),
    (Call("bash", {"command": "cat answer.txt"}),),
]


class Model:
    """Works through the steps, whatever is left of the conversation, and summarises when asked.

    After `hold` rounds it keeps the client waiting, so that it can be killed there.
    """

    def __init__(self, done: int = 0, hold: int | None = None) -> None:
        self.done = done
        self.hold = hold

    def __call__(self, request: Request) -> Reply | Hang:
        if not request.body.get("tools"):
            return Reply("Goal: the total of data.txt. Rule: write it to answer.txt.")
        if self.done == self.hold:
            return Hang()
        if self.done >= len(STEPS):
            return Reply("The total is 4950; it is in answer.txt.")
        self.done += 1
        return Reply(f"Step {self.done}.", calls=STEPS[self.done - 1])


def thresher(*arguments: str, **more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        program(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**more),
        start_new_session=True,
    )


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_killed_session_is_resumed_to_the_identical_context_and_the_task_is_finished(
    tmp_path: Path, wire: str
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "data.txt").write_text("".join(f"row {n} total {n}\n" for n in range(100)) * 4)
    flags = ["--wire", wire, "--api-key-var", "", "--model", "m", "--yes", "--json"]
    flags += ["--workspace", str(workspace), "--threshold", "2500"]
    seen: list[e.Event] = []
    with in_thread(Model(hold=4)) as server:
        first = thresher("run", "Find the total", *flags, OPENAI_BASE_URL=server.base_url)
        assert first.stdout is not None
        for line in first.stdout:
            record = e.decode(line)
            if not record.ephemeral:
                seen.append(record.event)
            compacted = any(isinstance(event, e.HistoryCompacted) for event in seen)
            asked = sum(isinstance(event, e.RequestSent) and not _summary(event) for event in seen)
            if compacted and asked == 5:
                break
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        first.stdout.close()
        assert first.stderr is not None
        first.stderr.close()

    (journal,) = Path(os.environ["THRESHER_STATE_DIR"]).glob("sessions/**/journal.jsonl")
    records = read(journal).records
    assert [record.event for record in records][: len(seen)] == seen
    killed = SessionState()
    for record in records:
        killed.apply(record)
    assert any(isinstance(item, CompactionSummary) for item in killed.context.items)

    session = resume(journal)
    assert session.state.context == killed.context
    assert session.state.context.digest() == killed.context.digest()
    assert session.state.problems == []
    session.close()

    with in_thread(Model(done=4)) as server:
        second = thresher("resume", "latest", "Go on", *flags, OPENAI_BASE_URL=server.base_url)
        out, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors.decode()
    assert (workspace / "answer.txt").read_text() == "total 4950\n"
    answers = [json.loads(line) for line in out.splitlines()]
    assert "it is in answer.txt" in json.dumps(answers[-5:])


def _summary(event: e.RequestSent) -> bool:
    return event.purpose is e.Purpose.COMPACTION
