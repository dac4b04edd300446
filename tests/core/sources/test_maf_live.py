from __future__ import annotations

import importlib.util
import json
import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from thresher.core.sources.maf import MafSource
from thresher.core.sources.report import compaction_records, state_at

# The framework calls its own session store experimental.
pytestmark = pytest.mark.filterwarnings("ignore:.*is experimental")

SCRIPT = Path(__file__).parents[2] / "fixtures" / "maf" / "make_sessions.py"


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sessions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def talked(
    made: ModuleType, strategy: Any, folder: Path, turns: int, **more: Any
) -> tuple[MafSource, list[dict[str, Any]], list[dict[str, Any]]]:
    """A conversation of so many turns: its stored session, its passes, and what the model got."""
    model, applied = made.Model(), made.Applied()
    log = logging.getLogger("agent_framework")
    log.setLevel(logging.INFO)
    log.addHandler(applied)
    try:
        session = await made.talk(made.made(model, strategy(model), **more), model, turns=turns)
    finally:
        log.removeHandler(applied)
    await made.FileSessionStore(folder).set("logs", session)
    (file,) = folder.glob("*.json")
    return MafSource(file), applied.rows, model.seen


@pytest.mark.parametrize("turns", [5, 13])
async def test_every_summary_of_a_real_session_is_a_card_and_speaks_for_what_it_replaced(
    made: ModuleType, tmp_path: Path, turns: int
) -> None:
    def strategy(model: Any) -> Any:
        return made.SummarizationStrategy(client=model, target_count=3, threshold=3)

    source, passes, seen = await talked(made, strategy, tmp_path, turns)
    cards = compaction_records(source.read())
    assert passes
    assert [card.ordinal for card in cards] == list(range(1, len(passes) + 1))
    asked = [row for row in seen if row.get("purpose") == "summary"]
    assert [card.summary[:9] for card in cards] == [f"Summary {n + 1}" for n in range(len(asked))]
    assert all(card.items is not None and card.items.removed > 0 for card in cards)


async def test_tool_results_that_a_real_session_folded_are_cards(
    made: ModuleType, tmp_path: Path
) -> None:
    def strategy(model: Any) -> Any:
        return made.ToolResultCompactionStrategy(keep_last_tool_call_groups=2)

    tokenizer = made.CharacterEstimatorTokenizer()
    source, passes, _ = await talked(made, strategy, tmp_path, 9, tokenizer=tokenizer)
    cards = compaction_records(source.read())
    assert len(cards) == len(passes) > 0
    assert {card.evidence for card in cards} == {"derived"}


@pytest.mark.parametrize("keep", [2, 4])
async def test_what_a_real_window_keeps_is_what_the_model_gets_next(
    made: ModuleType, tmp_path: Path, keep: int
) -> None:
    def strategy(model: Any) -> Any:
        return made.SlidingWindowStrategy(keep_last_groups=keep)

    source, passes, _ = await talked(made, strategy, tmp_path, 7)
    assert passes
    state = state_at(source.read())
    assert not state.problems
    stored = json.loads(source.path.read_bytes())["state"]
    (held,) = [value["messages"] for value in stored.values() if "messages" in value]
    left = [each for each in held if not each["additional_properties"].get("_excluded")]
    assert 0 < len(left) < len(held)
    assert json.loads(json.dumps(source.context_raw())) == [
        {"role": each["role"], "contents": each["contents"]} for each in left
    ]
