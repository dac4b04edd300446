from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.core.compaction.rig import WORK, Rig, Scripted
from tests.policies.demo_run import demo, told
from thresher.core import events as e
from thresher.core.agent.loop import TurnOutcome
from thresher.core.compaction.policies.custom import is_custom
from thresher.core.compaction.policies.registry import make, params_type
from thresher.core.compaction.policy import Moment
from thresher.core.errors import ThresherError
from thresher.core.items import CompactionSummary, user
from thresher.core.models import Budget, Fact

EXAMPLE = Path(__file__).parents[1] / "examples" / "keep_last.py"
NAME = f"{EXAMPLE}:KeepLast"
NONE = Fact(None, "not said")
HEAD = "from thresher.core.compaction.policy import *\n"


def policy(tmp_path: Path, body: str, cls: str = "Mine") -> str:
    """A file with a class whose plan has this body; the body begins at line 5."""
    text = (
        "from thresher.core.compaction.policy import *\n"
        "class Mine:\n"
        "    moments = {Moment.BEFORE_REQUEST}\n"
        "    def plan(self, situation):\n"
        + "".join(f"        {line}\n" for line in body.splitlines())
    )
    return file(tmp_path, text, cls)


def file(tmp_path: Path, text: str, cls: str = "Mine") -> str:
    path = tmp_path / "mine.py"
    path.write_text(text)
    return f"{path}:{cls}"


async def failure(name: str, **settings: Any) -> str:
    """What is on record when it is asked: one failed compaction, and the context unchanged."""
    rig = Rig(WORK, make(name), **settings)
    verdict = await rig.offer(Moment.BEFORE_REQUEST)
    (failed,) = rig.told(e.CompactionFailed)
    assert not verdict.compacted
    assert rig.state.context.items == WORK
    return str(failed.reason)


def refusal(name: str, params: dict[str, Any] | None = None) -> str:
    with pytest.raises(ThresherError) as caught:
        make(name, params)
    assert caught.value.title == "Custom policy not loaded"
    return caught.value.msg


# -- the example -----------------------------------------------------------------------------------


def test_the_example_is_short_enough_for_the_readme() -> None:
    source = EXAMPLE.read_text().partition("class KeepLast")[2]
    assert len([line for line in source.splitlines() if line.strip()]) <= 30


async def test_the_example_compacts(tmp_path: Path) -> None:
    rig = Rig([*WORK, *[user(f"remark {n} " * 9) for n in range(40)]], make(NAME))
    verdict = await rig.offer(Moment.BEFORE_REQUEST)
    assert verdict.compacted
    assert len(rig.state.context) == 14
    assert isinstance(rig.state.context.items[1], CompactionSummary)
    (event,) = rig.told(e.HistoryCompacted)
    assert (event.policy, event.stage) == (NAME, "keep last")


async def test_the_example_plays_the_demo_with_settings_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("THRESHER_STATE_DIR", str(tmp_path))
    session, outcomes = await demo(NAME, most="30")
    assert outcomes[0] is TurnOutcome.COMPLETED
    done = told(session, e.HistoryCompacted)
    assert {str(event.trigger) for event in done} == {"auto", "manual", "overflow"}
    assert not told(session, e.CompactionFailed)
    assert told(session, e.SessionStarted)[0].policy_params == {"most": 30, "keep": 12}


def test_its_settings_are_those_of_its_class() -> None:
    assert params_type(NAME).__struct_fields__ == ("most", "keep")
    made = make(NAME, {"keep": "3"})
    assert (made.name, made.title) == (NAME, "KeepLast")
    assert msgspec.to_builtins(made.params) == {"most": 40, "keep": 3}
    assert made.marks(Budget(NONE, NONE, NONE, NONE)) == ()


@pytest.mark.parametrize(
    ("params", "words"),
    [({"kept": 1}, "there is no setting 'kept'; its settings are most, keep"),
     ({"keep": "many"}, "Expected `int`")],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_refused(params: dict[str, Any], words: str) -> None:
    assert words in refusal(NAME, params)


# -- loading ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "custom"),
    [("mine.py:Mine", True), ("a/b.py", True), ("teaching", False), ("py:Mine", False),
     ("C:/policies/mine.py:Mine", True)],
)  # fmt: skip
def test_a_name_means_a_file_when_it_ends_like_one(name: str, custom: bool) -> None:
    assert is_custom(name) is custom


def test_a_file_that_is_missing_or_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(f"{tmp_path}/no.py:Mine") == (
        f"{tmp_path}/no.py cannot be read (No such file or directory): "
        "give the path of a Python file."
    )
    (tmp_path / "folder.py").mkdir()
    assert "Is a directory" in refusal(f"{tmp_path}/folder.py:Mine")


def test_a_class_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    name = policy(tmp_path, "yield")
    path = name.removesuffix(":Mine")
    assert f"{path} has no class 'Other'. It has Mine: name it as" in refusal(f"{path}:Other")
    assert f"{path} needs the name of a class. It has Mine" in refusal(path)
    imported = file(tmp_path, HEAD, "Edit")
    assert "has no class 'Edit'. It has no class with a method plan" in refusal(imported)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("    moments = {Moment.MANUAL}", "it has no method plan(self, situation)"),
        ("    def plan(self, s):\n        yield", "its `moments` must be a set of Moment"),
        ("    moments = {'manual!'}\n    def plan(self, s):\n        yield", "its `moments` must"),
        ("    moments = ()\n    def plan(self, s):\n        yield", "its `moments` must"),
        (
            "    moments = {Moment.MANUAL}\n    Params = 5\n    def plan(self, s):\n        yield",
            "its `Params` must be a msgspec.Struct",
        ),
    ],
)
def test_a_class_that_is_no_policy_is_refused_with_its_line(
    tmp_path: Path, body: str, why: str
) -> None:
    name = file(tmp_path, f"{HEAD}\n\nclass Mine:\n{body}\n")
    words = refusal(name)
    assert f"mine.py, line 4: Mine is no policy: {why}" in words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ny = (\n", "mine.py, line 2: SyntaxError: '(' was never closed"),
        ("x = 1\n\nimport nothing_of_that_name\n", "line 3: ModuleNotFoundError: No module named"),
        ("x = 1\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        ("x = 1\0\n", "mine.py, "),
    ],
)
def test_a_file_that_cannot_be_run_is_refused_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    assert words in refusal(file(tmp_path, text))


def test_a_class_that_cannot_be_made_is_refused_with_its_line(tmp_path: Path) -> None:
    text = (
        f"{HEAD}class Mine:\n    moments = {{Moment.MANUAL}}\n    def __init__(self):\n"
        "        raise KeyError('threshold')\n    def plan(self, s):\n        yield\n"
    )
    assert "Mine cannot be made: line 5: KeyError: 'threshold'" in refusal(file(tmp_path, text))


def test_loading_leaves_nothing_behind_and_reads_the_file_anew(tmp_path: Path) -> None:
    path_before = list(sys.path)
    make(policy(tmp_path, "yield")).plan(None)  # type: ignore[arg-type]  # not run, only made
    assert sys.path == path_before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.py"]
    changed = file(tmp_path, f"{HEAD}class Mine:\n    title = 'Second'\n"
                             "    moments = {Moment.MANUAL}\n    def plan(self, s):\n"
                             "        yield\n")  # fmt: skip
    assert make(changed).title == "Second"


# -- planning --------------------------------------------------------------------------------------


async def test_an_error_while_planning_is_a_failed_compaction_with_its_line(tmp_path: Path) -> None:
    body = "yield Start('mine', 'because')\nreturn situation.context[99]"
    words = await failure(policy(tmp_path, body))
    assert words == "mine.py, line 6: TypeError: 'Context' object is not subscriptable."


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("yield 5", "mine.py, line 5: plan() yielded a int, which is no step."),
        ("yield None", "mine.py, line 5: plan() yielded nothing, which is no step."),
        ("return [1]", "mine.py, plan() returned a list; it must be a generator (yield)."),
        ("return None", "mine.py, plan() returned nothing; it must be a generator (yield)."),
        ("1 / 0", "mine.py, line 5: ZeroDivisionError: division by zero."),
        ("yield Start('a', 'b')\nraise SystemExit(1)", "mine.py, line 6: SystemExit: 1."),
        ("yield from deep(situation)", "mine.py, line 5: NameError: name 'deep' is not defined."),
    ],
)
async def test_whatever_a_plan_does_the_agent_goes_on(
    tmp_path: Path, body: str, words: str
) -> None:
    assert await failure(policy(tmp_path, body)) == words


async def test_an_edit_that_breaks_a_rule_is_refused_as_any_other(tmp_path: Path) -> None:
    body = "yield Edit(stage='gone', reason='all of it', segments=())"
    assert "refused: " in await failure(policy(tmp_path, body))


async def test_an_edit_after_an_answer_works_and_a_later_error_does_not_undo_it(
    tmp_path: Path,
) -> None:
    body = (
        "context = situation.context\n"
        "answer = yield Summarise(items=context.items[:1], source=context.items)\n"
        "yield Edit(stage='one', reason=answer.text, segments=context.keep([0, 1]))\n"
        "raise ValueError('too late')"
    )
    rig = Rig(WORK, make(policy(tmp_path, body)), summarisers=[Scripted("because")])
    verdict = await rig.offer(Moment.BEFORE_REQUEST)
    assert verdict.compacted
    assert rig.state.context.items == WORK[:2]
    assert rig.told(e.CompactionFailed)[0].reason == "mine.py, line 8: ValueError: too late."


def test_marks_that_fail_are_none(tmp_path: Path) -> None:
    name = policy(tmp_path, "yield\n\ndef nothing(): pass")
    path = Path(name.removesuffix(":Mine"))
    for marks in ("1 / 0", "return 5", "return [1, 2]"):
        path.write_text(
            f"{HEAD}class Mine:\n    moments = {{Moment.MANUAL}}\n    def plan(self, s):\n"
            f"        yield\n    def marks(self, budget):\n        {marks}\n"
        )
        assert make(name).marks(Budget(NONE, NONE, NONE, NONE)) == ()
