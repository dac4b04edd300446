from __future__ import annotations

from typing import Any

import pytest

from tests.core.compaction.rig import WORK
from thresher.core.compaction.policies.registry import names
from thresher.core.compaction.policy import Mark, Moment, Plan, Situation
from thresher.core.compaction.whatif import rulings, situation_at
from thresher.core.debug.candidates import candidate
from thresher.core.debug.stop import Point
from thresher.core.errors import ThresherError
from thresher.core.items import user

from .desk import Desk

ITEMS = (*WORK, user("and the tests"))


@pytest.mark.parametrize("name", names())
async def test_what_a_policy_is_said_to_do_is_what_choosing_it_comes_to(name: str) -> None:
    desk = Desk("compaction", items=ITEMS)
    desk.offer(Moment.MANUAL)
    stop = await desk.stop()
    told = candidate(name, stop, desk.state)
    assert desk.debugger.stop is stop
    assert desk.writer.asks == []
    if told.change is None and not told.asks:
        with pytest.raises(ThresherError, match=f"{name} would do nothing here") as error:
            desk.debugger.choose_policy(name)
        assert told.reason in error.value.msg
        desk.debugger.skip()
        await desk.end()
        return
    desk.debugger.choose_policy(name)
    stop = await desk.next()
    assert (stop.point is Point.SUMMARY) is told.asks
    proposal = stop.proposal
    assert proposal is not None
    assert proposal.before == told.before
    assert told.change is not None
    assert told.after is not None
    # The name of a file that is stored for the model is known only then.
    assert abs(proposal.after - told.after) <= 5
    assert proposal.change.removed == told.change.removed
    assert proposal.change.kept == told.change.kept
    desk.debugger.skip()
    await desk.end()


async def test_pins_and_drops_count_for_every_policy() -> None:
    desk = Desk("compaction", items=ITEMS)
    desk.offer(Moment.MANUAL)
    await desk.stop()
    output, asked = desk.id(4), desk.id(5)
    desk.debugger.pin([output])
    desk.debugger.drop([asked])
    stop = desk.debugger.stop
    assert stop is not None
    for name in ("teaching", "codex"):
        change = candidate(name, stop, desk.state).change
        assert change is not None
        assert output not in change.removed
        assert asked in change.removed
    desk.debugger.skip()
    await desk.end()


class Broken:
    """A user's policy that fails before it has made a plan."""

    name = "broken"
    title = "Broken"
    moments = frozenset({Moment.MANUAL})

    def plan(self, situation: Situation) -> Plan:
        raise RuntimeError("no plan")

    def marks(self, budget: object) -> tuple[Mark, ...]:
        return ()


async def test_a_policy_that_fails_is_told_as_the_reason() -> None:
    desk = Desk("compaction", items=ITEMS)
    desk.offer(Moment.MANUAL)
    stop = await desk.stop()
    nobody = candidate("nobody", stop, desk.state)
    assert nobody.after is None
    assert "nobody" in nobody.reason
    broken: Any = Broken()
    told = candidate("broken", stop, desk.state, make=lambda name, params: broken)
    assert (told.after, told.asks) == (None, False)
    assert told.reason == "broken raised RuntimeError: no plan"
    assert [each.reason for each in rulings(broken, situation_at(desk.state, Moment.MANUAL))] == [
        "cannot be said: RuntimeError: no plan"
    ]
    desk.debugger.skip()
    await desk.end()
