from __future__ import annotations

import json

import pytest
from hypothesis import given

from thresher.core.context import Kept, Replaced
from thresher.core.insight.inspect import Repeat, inspect, wire_rows
from thresher.core.insight.touches import Access, touches
from thresher.core.items import FunctionCall, FunctionCallOutput, user

from .sessions import RANDOM, Writer, random_history

LONG = "def f():\n    return 1\n" * 20


@given(RANDOM["steps"](most=30))
def test_the_parts_add_up(script: list[object]) -> None:
    state = random_history(script).state
    seen = inspect(state)
    assert [row.id for row in seen.rows] == list(state.context.ids)
    assert seen.total.value == sum(row.tokens for row in seen.rows)
    assert seen.total.value == sum(tile.tokens for tile in seen.tiles())
    for tile in seen.tiles(most=2):
        assert tile.tokens == sum(inner.tokens for inner in tile.inside)
    if seen.total.value:
        assert seen.rows[-1].cumulative == pytest.approx(1)
        assert sum(tile.share for tile in seen.tiles()) == pytest.approx(1)
    sizes = [row.tokens for row in seen.biggest()]
    assert sizes == sorted(sizes, reverse=True)


def test_a_file_read_twice_is_a_duplicate_and_stale_after_a_change() -> None:
    w = Writer()
    _, first = w.call("read_file", '{"path": "src/a.py"}', LONG)
    _, second = w.call("read_file", '{"path": "/w/src/./a.py"}', LONG)
    seen = inspect(w.history.state)
    (found,) = seen.duplicates()
    assert (found.kind, found.what, found.ids) == (Repeat.FILE, "/w/src/a.py", (first, second))
    assert found.spare == found.tokens // 2
    assert seen.stale() == ()
    changed, _ = w.call("bash", '{"command": "cat > src/a.py <<EOF\\nx > y\\nEOF"}', "")
    stale = inspect(w.history.state).stale()
    assert [(each.read, each.path, each.changed) for each in stale] == [
        (first, "/w/src/a.py", changed),
        (second, "/w/src/a.py", changed),
    ]
    _, third = w.call("read_file", '{"path": "src/a.py"}', LONG)
    assert third not in {each.read for each in inspect(w.history.state).stale()}


def test_a_change_that_failed_or_a_placeholder_makes_nothing_stale() -> None:
    w = Writer()
    call, output = w.call("read_file", '{"path": "a.py"}', LONG)
    w.call("edit_file", '{"path": "a.py"}', "no such text", is_error=True)
    assert inspect(w.history.state).stale() == ()
    w.call("edit_file", '{"path": "a.py"}', "done")
    assert len(inspect(w.history.state).stale()) == 1
    placeholder = FunctionCallOutput("c1", "[cleared]", name="read_file")
    w.compact([Kept(call.bare, call.bare), Replaced(output.bare, placeholder)])
    assert inspect(w.history.state).stale() == ()


def test_a_change_that_left_the_context_still_makes_a_reading_stale() -> None:
    w = Writer()
    call, output = w.call("read_file", '{"path": "a.py"}', LONG)
    changed, _ = w.call("write_file", '{"path": "a.py", "content": ""}', "done")
    w.compact([Kept(call.bare, output.bare)])
    assert [each.changed for each in inspect(w.history.state).stale()] == [changed]


def test_the_same_long_text_of_two_tools_is_a_duplicate() -> None:
    w = Writer()
    w.call("bash", '{"command": "make"}', LONG)
    w.item(user("again"))
    w.call("bash", '{"command": "make test"}', LONG)
    w.call("bash", '{"command": "true"}', "ok")
    w.call("bash", '{"command": "true"}', "ok")
    (found,) = inspect(w.history.state).duplicates()
    assert found.kind is Repeat.TEXT


@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("read_file", {"path": "a"}, ["r:/w/a"]),
        ("Read", {"file_path": "/x/a", "offset": 3}, ["r:/x/a"]),
        ("Edit", {"file_path": "b"}, ["w:/w/b"]),
        ("bash", {"command": "cd src && cat a.py | head -3"}, ["r:/w/src/a.py"]),
        (
            "bash",
            {"command": "echo hi >> log.txt; rm -f b 2>/dev/null"},
            ["w:/w/log.txt", "w:/w/b"],
        ),
        ("bash", {"command": "sed -n '1,5p' a.py"}, ["r:/w/a.py"]),
        ("bash", {"command": "sed -i 's/a/b/' a.py"}, ["w:/w/a.py"]),
        ("bash", {"command": "mv a b && tail -n 5 c"}, ["w:/w/a", "w:/w/b", "r:/w/c"]),
        ("bash", {"command": "echo 'unclosed > x"}, []),
        ("shell", {"command": ["bash", "-lc", "cat a"], "workdir": "sub"}, ["r:/w/sub/a"]),
        ("exec_command", {"cmd": "cat a"}, ["r:/w/a"]),
        (
            "apply_patch",
            {"input": "*** Begin Patch\n*** Update File: a.py\n*** Add File: b\n"},
            ["w:/w/a.py", "w:/w/b"],
        ),
        (
            "shell",
            {"command": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: a\nE"},
            ["w:/w/a"],
        ),
        ("grep", {"pattern": "x"}, []),
    ],
)
def test_calls_tell_the_files_they_touch(
    name: str, arguments: dict[str, object], found: list[str]
) -> None:
    call = FunctionCall("c", name, json.dumps(arguments))
    told = [
        f"{'w' if touch.access is Access.WRITE else 'r'}:{touch.path}"
        for touch in touches(call, "/w")
    ]
    assert told == found


def test_hostile_arguments_touch_nothing_and_raise_nothing(
    hostile_corpus: list[tuple[str, str]],
) -> None:
    for _, text in hostile_corpus:
        touches(FunctionCall("c", "bash", json.dumps({"command": text})), "/w")
        touches(FunctionCall("c", "read_file", text), "/w")


def test_the_wire_form_is_told_message_by_message() -> None:
    rows = wire_rows([{"role": "user", "content": "hé"}, {"type": "function_call", "name": "x"}])
    assert [(row.role, row.at) for row in rows] == [("user", 0), ("function_call", 1)]
    assert rows[0].bytes == len(rows[0].json.encode())
