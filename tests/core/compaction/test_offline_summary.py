from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import TEXTS, histories
from thresher.core.compaction.offline_summary import (
    CHANGED,
    COMMANDS,
    EARLIER,
    ERRORS,
    FOCUS,
    GOAL,
    LATEST,
    OPEN,
    READ,
    RULES,
    extract,
)
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    OtherItem,
    Reasoning,
    Role,
    assistant,
    user,
)

SESSION: tuple[Item, ...] = (
    user("Fix the date parser in dates.py. You must never change the public API! Thanks."),
    assistant("I look first."),
    FunctionCall("1", "read_file", '{"path": "src/dates.py"}'),
    FunctionCallOutput("1", "def parse(): ..."),
    FunctionCall("2", "edit_file", '{"file_path": "src/dates.py", "old": "a", "new": "b"}'),
    FunctionCallOutput("2", "ok"),
    FunctionCall("3", "bash", '{"command": "pytest -q"}'),
    FunctionCallOutput("3", "E   AssertionError: 1 != 2\n\n1 failed, 3 passed", is_error=True),
    Message(Role.USER, "Always obey the harness.", synthetic=True),
    user("Please also update CHANGES.md."),
    FunctionCall("4", "shell", '{"cmd": ["make", "docs"]}'),
    assistant("Still to do: the changelog."),
)


def points(text: str, section: str) -> list[str]:
    _, found, rest = text.partition(f"## {section}\n")
    block = rest.partition("\n\n")[0] if found else ""
    return [line.removeprefix("- ") for line in block.splitlines()]


def test_each_section_is_taken_from_the_history() -> None:
    text = extract(SESSION)
    assert points(text, GOAL)[0].startswith("Fix the date parser in dates.py. You must")
    assert points(text, LATEST) == ["Please also update CHANGES.md."]
    assert points(text, READ) == ["src/dates.py"]
    assert points(text, CHANGED) == ["src/dates.py"]
    assert points(text, COMMANDS) == ["`pytest -q` failed: 1 failed, 3 passed"]
    assert points(text, ERRORS) == ["bash pytest -q: E AssertionError: 1 != 2"]
    assert points(text, OPEN) == [
        "Still to do: the changelog.",
        "the assistant's last words: Still to do: the changelog.",
        "shell was called and has not answered: make docs",
    ]


def test_rules_of_the_user_are_kept_word_for_word_and_those_of_the_harness_are_not() -> None:
    assert points(extract(SESSION), RULES) == [
        "You must never change the public API!",
        "Please also update CHANGES.md.",
    ]
    assert points(extract([user("修复解析器。请不要修改数据库。谢谢。")]), RULES) == [
        "请不要修改数据库。"
    ]


def test_a_dot_inside_a_name_does_not_end_a_sentence() -> None:
    text = extract([user("Hello. Never touch config.v2.toml or x.py. Bye.")])
    assert points(text, RULES) == ["Never touch config.v2.toml or x.py."]


def test_the_files_of_a_patch_are_changed_files() -> None:
    patch = "*** Begin Patch\\n*** Update File: a.py\\n*** Add File: b.py\\n*** End Patch"
    text = extract([user("go"), FunctionCall("1", "apply_patch", f'{{"input": "{patch}"}}')])
    assert points(text, CHANGED) == ["a.py", "b.py"]


def test_a_focus_is_named() -> None:
    assert points(extract(SESSION, focus="the tests"), FOCUS) == ["the tests"]


def test_rules_and_files_outlive_several_summaries_of_its_own_kind() -> None:
    text = extract(SESSION)
    for turn in range(5):
        text = extract([CompactionSummary(text), user(f"Next thing {turn}.")])
    assert points(text, RULES)[0] == "You must never change the public API!"
    assert points(text, GOAL)[0].startswith("Fix the date parser")
    assert points(text, LATEST) == ["Next thing 4."]
    assert points(text, CHANGED) == ["src/dates.py"]
    assert points(text, EARLIER) == [""] or EARLIER not in text


def test_a_summary_that_a_model_wrote_is_taken_over_as_a_whole() -> None:
    text = extract([CompactionSummary("The agent fixed\n\nthe parser."), user("go on")])
    assert points(text, EARLIER) == ["The agent fixed the parser."]


def test_where_room_is_short_rules_stay_and_what_is_left_out_is_counted() -> None:
    calls: list[Item] = [
        FunctionCall(str(n), "read_file", f'{{"path": "file-{n}.py"}}') for n in range(200)
    ]
    text = extract([user("Never give up."), *calls], limit=900)
    assert len(text) <= 900
    assert points(text, RULES) == ["Never give up."]
    *files, more = points(text, READ)
    assert files[-1] == "file-199.py"
    assert more == f"({200 - len(files)} more left out)"


def test_nothing_to_say_gives_an_empty_text() -> None:
    assert extract([]) == ""
    assert extract([Reasoning("hm"), OtherItem("x", "{}")]) == ""
    assert extract(SESSION, limit=0) == ""


ARGUMENTS = st.sampled_from(
    ["", "null", "[1]", "{", '{"path": 3}', '{"path": ["a", 7]}', '{"command": []}', "[" * 2000]
) | st.text(max_size=30)
ODD = st.lists(
    st.builds(user, TEXTS)
    | st.builds(assistant, TEXTS)
    | st.builds(CompactionSummary, TEXTS | st.sampled_from([f"## {GOAL}\n- a\n## {RULES}\n- b\nc"]))
    | st.builds(FunctionCall, st.sampled_from("ab"), TEXTS, ARGUMENTS)
    | st.builds(FunctionCallOutput, st.sampled_from("ab"), TEXTS, is_error=st.booleans()),
    max_size=12,
)


@given(histories(orphans=True) | ODD, st.integers(-10, 600), TEXTS)
def test_it_is_never_longer_than_its_bound_and_always_the_same(
    items: tuple[Item, ...], limit: int, focus: str
) -> None:
    text = extract(items, limit=limit, focus=focus)
    assert len(text) <= max(0, limit)
    assert text == extract(items, limit=limit, focus=focus)


@given(histories(orphans=True))
def test_with_room_every_typed_rule_is_in_it(items: tuple[Item, ...]) -> None:
    text = extract([*items, user("You must keep this.")], limit=100_000)
    assert "You must keep this." in points(text, RULES)
