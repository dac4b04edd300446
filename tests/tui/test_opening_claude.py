from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from thresher.core.state import Status
from thresher.core.views import CardStatus
from thresher.tui.opening import open_file
from thresher.tui.widgets import card_lines

FIXTURES = Path(__file__).parents[1] / "fixtures" / "claude_code"


def unpacked(name: str, tmp_path: Path) -> Path:
    path = tmp_path / "S.jsonl"
    path.write_bytes(gzip.decompress((FIXTURES / f"{name}.jsonl.gz").read_bytes()))
    return path


def words(lines: list[list[object]]) -> str:
    return "\n".join("".join(str(getattr(each, "text", each)) for each in line) for line in lines)


@pytest.mark.parametrize(
    ("name", "compactions", "context"),
    [
        ("v1_0_128_auto_manual", 13, 2),
        ("v2_1_197_auto_thrash", 6, 13),
        ("v2_1_197_manual_hooks", 2, 11),
        ("v2_1_197_subagent.agent-a7470dfd9d74177ee", 0, 8),
    ],
)
async def test_a_transcript_opens_as_a_session_that_can_be_watched(
    name: str, compactions: int, context: int, tmp_path: Path
) -> None:
    opened = await open_file(unpacked(name, tmp_path), follow=False, count=False)
    state = opened.model.history.state
    assert (state.compactions, len(state.context)) == (compactions, context)
    assert state.status is Status.IDLE
    assert not opened.live
    await opened.close()


async def test_an_unannounced_reduction_is_a_card_that_says_what_it_rests_on(
    tmp_path: Path,
) -> None:
    opened = await open_file(unpacked("v2_0_76_microcompact", tmp_path), follow=False, count=False)
    (card,) = opened.model.history.state.cards
    assert card.status is CardStatus.UNANNOUNCED
    folded = words(card_lines.folded_lines(card, 110))
    assert "reduction" in folded
    assert "145,241 → 76,193" in folded
    assert "rewritten" in folded
    assert "what left is unknown" not in folded
    assert "inferred from two signals" in words(card_lines.open_lines(card, 110))
    await opened.close()


async def test_a_reduction_of_what_the_record_never_held_says_that_it_is_unknown(
    tmp_path: Path,
) -> None:
    opened = await open_file(unpacked("v2_0_76_auto_manual", tmp_path), follow=False, count=False)
    cards = opened.model.history.state.cards
    (card,) = [each for each in cards if each.status is CardStatus.UNANNOUNCED]
    assert "what left is unknown" in words(card_lines.folded_lines(card, 110))
    await opened.close()
