from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from thresher.core.items import FunctionCallOutput
from thresher.core.sources.opening import open_source
from thresher.core.sources.report import state_at

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
SESSIONS = {
    ".codex/sessions/2026/11/30/rollout-2026-11-30T08-00-00-0188aaaa-0000-7000-8000-000000000001"
    ".jsonl": "codex/two_mid_turn.jsonl.gz",
    ".claude/projects/-home-user-project/5563a46a-718d-4d5d-b44b-900000000001.jsonl": (
        "claude_code/v2_1_197_persisted_output.jsonl.gz"
    ),
    ".local/share/opencode/opencode.db": "opencode/v1-two-summaries/opencode.db.gz",
    ".pi/agent/sessions/--home-user--/2026-11-30T08-00-00_1.jsonl": "pi/auto_manual.jsonl.gz",
    "maf/session.json": "maf/summarised.json.gz",
    "otlp/spans.jsonl": "otlp/python.jsonl.gz",
    "chat/log.jsonl": "codex/mid_turn.requests.jsonl.gz",
    "thresher/journal.jsonl": "../../screenshots/sessions/demo.jsonl.gz",
}
SECRET = "secret-that-no-session-may-lead-to"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    for name, packed in SESSIONS.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(FIXTURES / packed) as source, path.open("wb") as target:
            shutil.copyfileobj(source, target)
    return home


def watched(home: Path, *paths: Path) -> list[list[str]]:
    """What the sources did while they read these sessions, and then looked for all of them."""
    places = {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "THRESHER_CACHE_DIR": str(home.parent / "cache"),
        "THRESHER_STATE_DIR": str(home.parent / "state"),
        "PYTHONPATH": str(ROOT / ".dev"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("watched.py")), *map(str, paths)],
        env={**kept, **places}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def tree(folder: Path) -> dict[str, tuple[int, int, str]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


def test_no_source_writes_outside_our_own_folders_or_starts_anything(home: Path) -> None:
    paths = [home / name for name in SESSIONS]
    before = tree(home)
    told = watched(home, *paths)
    assert tree(home) == before
    assert [row for row in told if row[0] == "start"] == []
    ours = (str(home.parent / "cache"), str(home.parent / "state"))
    written = [row for row in told if row[0] == "write"]
    assert [row for row in written if not row[1].removeprefix("file:").startswith(ours)] == []
    opened = {row[1] for row in told if row[0] == "open"}
    assert {str(path) for path in paths if path.suffix != ".db"} <= opened


def test_sessions_whose_files_and_folders_are_read_only_open(home: Path) -> None:
    paths = [home / name for name in SESSIONS]
    for path in sorted(home.rglob("*"), reverse=True):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(home)
    try:
        watched(home, *paths)
        assert tree(home) == before
    finally:
        for path in home.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_no_path_that_stands_in_a_session_is_followed(home: Path) -> None:
    elsewhere = home.parent / "elsewhere"
    (elsewhere / "tool-results").mkdir(parents=True)
    secrets = [elsewhere / f"{SECRET}.txt", elsewhere / "tool-results" / "toolu_1.txt"]
    for secret in secrets:
        secret.write_text(SECRET)
    base = home / ".claude" / "projects" / "-home-user-project"
    session = base / "0000aaaa-0000-4000-8000-000000000001.jsonl"
    saved = [*map(str, secrets), f"../../../../elsewhere/{SECRET}.txt", "tool-results/../../x"]
    lines = [
        {"type": "user", "uuid": "u0", "parentUuid": None, "sessionId": session.stem,
         "cwd": str(elsewhere), "version": "2.1.197", "message": {"role": "user", "content": "go"}}
    ]  # fmt: skip
    for at, path in enumerate(saved, 1):
        use = {"type": "tool_use", "id": f"toolu_{at}", "name": "Bash", "input": {}}
        text = f"<persisted-output>\nOutput too large. Full output saved to: {path}\n"
        block = {"type": "tool_result", "tool_use_id": f"toolu_{at}", "content": text}
        said = {"role": "assistant", "id": f"m{at}", "model": "c", "content": [use]}
        told = {"role": "user", "content": [block]}
        lines += [
            {"type": "assistant", "uuid": f"a{at}", "parentUuid": f"u{at - 1}", "message": said},
            {"type": "user", "uuid": f"u{at}", "parentUuid": f"a{at}", "message": told,
             "toolUseResult": {"persistedOutputPath": path}},
        ]  # fmt: skip
    (base / session.stem).mkdir()
    (base / session.stem / "tool-results").symlink_to(elsewhere / "tool-results")
    session.write_text("".join(json.dumps(line) + "\n" for line in lines))
    rollout = home / ".codex" / "sessions" / "rollout-2026-11-30T09-00-00-0188bbbb.jsonl"
    meta = {
        "id": "0188bbbb", "cwd": str(elsewhere), "cli_version": "0.171.0",
        "forked_from_id": f"../../../elsewhere/{SECRET}", "rollout_path": str(secrets[0]),
        "parent_rollout_path": str(secrets[0]), "history_base": {
            "thread_id": f"../../../elsewhere/{SECRET}", "path": str(secrets[0]),
            "end_ordinal_exclusive": 5,
        },
    }  # fmt: skip
    rollout.write_text(json.dumps({"type": "session_meta", "payload": meta}) + "\n")
    told_of = watched(home, session, rollout)
    below = [row for row in told_of if str(elsewhere) in os.path.realpath(row[1])]
    assert below == []
    assert any(row[1] == str(session) for row in told_of)
    outputs = [entry.item for entry in state_at(open_source(session).read()).known.values()]
    assert [item.saved for item in outputs if isinstance(item, FunctionCallOutput)] == [""] * 4
