from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.events import Purpose
from thresher.core.sources.base import RebuiltRequest
from thresher.core.sources.request_log import Logged
from thresher.core.sources.verify import Grade, verify


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def rebuilt(position: int, *messages: dict[str, Any], missing: str = "") -> RebuiltRequest:
    return RebuiltRequest(position, Purpose.TURN, list(messages), missing=missing)


def logged(row: int, *messages: dict[str, Any], status: int = 200) -> Logged:
    system = {"role": "system", "content": "left out"}
    return Logged(row, [system, *messages], "chat", status=status)


def test_equal_requests_are_exact_whatever_their_system_texts() -> None:
    mine = [rebuilt(3, user("a")), rebuilt(9, user("a"), user("b"))]
    verdict = verify(mine, [logged(0, user("a")), logged(1, user("a"), user("b"))])
    assert verdict.grade is Grade.EXACT
    assert [each.position for each in verdict.requests] == [3, 9]


def test_a_text_that_differs_is_structure_and_shows_where() -> None:
    verdict = verify([rebuilt(1, user("hello world"))], [logged(0, user("hello there"))])
    (found,) = verdict.requests
    assert (verdict.grade, found.position) == (Grade.STRUCTURE, 1)
    (residue,) = found.residue
    assert residue.message == 0
    assert "world" in residue.rebuilt
    assert "there" in residue.sent


def test_a_message_too_few_differs() -> None:
    verdict = verify([rebuilt(1, user("a"))], [logged(0, user("a"), user("b"))])
    assert verdict.grade is Grade.DIFFERS
    assert "1 messages were rebuilt, 2 were sent" in verdict.requests[0].residue[0].what


def test_another_kind_of_message_differs() -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "read"}}]}
    verdict = verify([rebuilt(1, user("a"))], [logged(0, call)])
    assert verdict.grade is Grade.DIFFERS
    (residue,) = verdict.requests[0].residue
    assert residue.what == "another kind of message: user instead of assistant (read)"


def test_what_is_known_to_be_missing_is_structure() -> None:
    verdict = verify(
        [rebuilt(1, user("a"), missing="the prompt, the last item")],
        [logged(0, user("a"), user("the prompt"))],
    )
    assert verdict.grade is Grade.STRUCTURE
    assert verdict.requests[0].residue[0].what == "equal but for the prompt, the last item"


def test_a_part_that_the_log_leaves_out_is_structure_when_the_rest_is_equal() -> None:
    cut = "begin <<instructions left out: 9 characters, sha256 ab>> end"
    good = verify([rebuilt(1, user("begin whatever it was end"))], [logged(0, user(cut))])
    assert good.grade is Grade.STRUCTURE
    assert "as far as the log shows" in good.requests[0].residue[0].what
    bad = verify([rebuilt(1, user("begun whatever it was end"))], [logged(0, user(cut))])
    assert "differs" in bad.requests[0].residue[0].what


def test_a_request_without_a_counterpart_is_told_and_the_next_ones_still_match() -> None:
    mine = [rebuilt(1, user("a")), rebuilt(5, user("a"), user("c"))]
    long = [user(str(n)) for n in range(9)]
    last = logged(2, user("a"), user("c"))
    verdict = verify(mine, [logged(0, user("a")), logged(1, *long, status=400), last])
    assert [each.grade for each in verdict.requests] == ["exact", "differs", "exact"]
    assert verdict.requests[1].position is None
    assert "HTTP status 400" in verdict.requests[1].residue[0].what
    assert verdict.unlogged == 0


def test_rebuilt_requests_that_are_not_in_the_log_are_only_counted() -> None:
    mine = [rebuilt(n, user(str(n))) for n in range(5)]
    verdict = verify(mine, [logged(0, user("3"))])
    assert (verdict.grade, verdict.unlogged) == (Grade.EXACT, 4)


@pytest.mark.parametrize("huge", [1 << 80, float("inf"), "\ud800"])
def test_odd_values_are_compared_too(huge: Any) -> None:
    assert verify([rebuilt(1, user(huge))], [logged(0, user(huge))]).grade is Grade.EXACT


texts = st.sampled_from(["a", "b", "<<left out>>", ""])


@given(
    st.lists(st.lists(texts, max_size=3), max_size=5),
    st.lists(st.lists(texts, max_size=3), max_size=5),
)
def test_every_logged_request_gets_one_grade_and_the_exact_ones_are_equal(
    mine: list[list[str]], theirs: list[list[str]]
) -> None:
    verdict = verify(
        [rebuilt(n, *map(user, each)) for n, each in enumerate(mine)],
        [logged(n, *map(user, each)) for n, each in enumerate(theirs)],
    )
    assert verdict.exact + verdict.structure + verdict.differs == len(theirs) == verdict.logged
    for each in verdict.requests:
        equal = each.position is not None and mine[each.position] == theirs[each.row]
        assert (each.grade is Grade.EXACT) == (theirs[each.row] in mine) == equal
    assert msgspec.json.encode(verdict)


def test_a_request_that_was_refused_and_sent_again_is_the_same_one() -> None:
    log = [logged(0, user("a"), status=529), logged(1, user("a"))]
    verdict = verify([rebuilt(3, user("a"))], log)
    assert [each.position for each in verdict.requests] == [3, 3]
    assert (verdict.grade, verdict.unlogged) == (Grade.EXACT, 0)


def test_requests_of_parallel_subagents_may_stand_in_another_order() -> None:
    mine = [rebuilt(n, user(text)) for n, text in enumerate("abcd")]
    verdict = verify(mine, [logged(n, user(text)) for n, text in enumerate("acbd")])
    assert [each.position for each in verdict.requests] == [0, 2, 1, 3]
    assert verdict.exact == 4


def test_a_retry_without_the_oldest_messages_is_named_as_one() -> None:
    whole = [user("a"), user("b"), user("c")]
    mine = msgspec.structs.replace(
        rebuilt(1, *whole, missing="the prompt"), attempts=3, left_out="what later tries left out"
    )
    log = [logged(0, *whole, user("sum up")), logged(1, *whole[1:], user("sum up"))]
    verdict = verify([mine], log)
    assert [each.grade for each in verdict.requests] == [Grade.STRUCTURE, Grade.DIFFERS]
    (residue,) = verdict.requests[1].residue
    assert "a trimmed retry, which is not recorded: without the 1 oldest item" in residue.what


def test_what_lacks_the_newest_message_is_no_trimmed_retry() -> None:
    whole = [user("a"), user("b"), user("c")]
    mine = msgspec.structs.replace(rebuilt(1, *whole), attempts=3, left_out="something")
    (found,) = verify([mine], [logged(0, *whole[:2])]).requests
    assert not any("trimmed" in residue.what for residue in found.residue)


def test_a_request_is_found_by_all_but_its_missing_end_among_others_like_it() -> None:
    history = [user("a"), user("b")]
    mine = [rebuilt(1, *history, missing="the prompt"), rebuilt(2, *history, user("next"))]
    verdict = verify(mine, [logged(0, *history, user("sum up")), logged(1, *history, user("next"))])
    assert [each.position for each in verdict.requests] == [1, 2]
    assert [each.grade for each in verdict.requests] == [Grade.STRUCTURE, Grade.EXACT]
