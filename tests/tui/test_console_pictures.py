from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import build

NARROW, NORMAL, WIDE = (80, 24), (120, 40), (160, 48)
Make = Callable[[], build.Script]


@pytest.mark.parametrize(
    ("make", "size", "light", "keys"),
    [
        pytest.param(build.empty, NORMAL, False, (), id="empty"),
        pytest.param(build.streaming, NORMAL, False, (), id="running"),
        pytest.param(build.near_threshold, NORMAL, False, (), id="threshold_near"),
        pytest.param(build.compacting, NORMAL, False, (), id="compaction_running"),
        pytest.param(build.long_session, NORMAL, False, (), id="card_folded"),
        pytest.param(
            build.long_session, NORMAL, False, ("tab", "left_square_bracket", "enter"),
            id="rewound_and_card_open",
        ),
        pytest.param(build.long_session, WIDE, True, ("tab", "e"), id="wide_light_cards_open"),
        pytest.param(build.failed_compaction, NORMAL, True, (), id="failed_compaction_light"),
        pytest.param(build.breaker_open, NORMAL, False, (), id="breaker_open"),
        pytest.param(build.overflow, NORMAL, False, (), id="overflow"),
        pytest.param(build.unknown_window, NORMAL, False, (), id="unknown_window"),
        pytest.param(build.chinese, NORMAL, False, ("tab", "e"), id="chinese"),
        pytest.param(build.a_little_hostile, NORMAL, False, ("tab", "e"), id="hostile"),
        pytest.param(build.long_session, NARROW, False, (), id="narrow"),
        pytest.param(build.long_session, NARROW, True, ("tab", "enter"), id="narrow_detail_light"),
        pytest.param(build.approving, NARROW, False, (), id="narrow_approval"),
        pytest.param(build.long_session, (100, 30), False, ("tab", "v"), id="chart_in_one_column"),
    ],
)  # fmt: skip
def test_the_console_looks_like_its_picture(
    snap_compare: Any, make: Make, size: tuple[int, int], light: bool, keys: tuple[str, ...]
) -> None:
    app = build.app_of(make, light=light)
    assert snap_compare(app, press=keys, terminal_size=size)
