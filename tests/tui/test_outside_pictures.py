from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from thresher.tui.remembered import Remembered
from thresher.tui.theme import DARK_NAME, LIGHT_NAME, MONO_NAME

from ..command_line import codex_session
from ..core.hold.hooks import Hook
from .outside import RULE, Rig, transcript

NARROW, NORMAL = (80, 24), (120, 40)


@pytest.mark.parametrize(
    ("program", "size", "theme", "keys"),
    [
        pytest.param("claude", NORMAL, DARK_NAME, ("K",), id="claude_asked"),
        pytest.param("claude", NARROW, DARK_NAME, (), id="claude_narrow"),
        pytest.param("claude", NARROW, LIGHT_NAME, ("K", "v"), id="claude_request_narrow_light"),
        pytest.param("claude", NARROW, DARK_NAME, ("z",), id="claude_skip_narrow"),
        pytest.param("codex", NORMAL, LIGHT_NAME, ("v", "v"), id="codex_summary_light"),
        pytest.param("codex", NARROW, MONO_NAME, (), id="codex_narrow_mono"),
        pytest.param("claude", NARROW, DARK_NAME, ("B",), id="breakpoints_narrow"),
    ],
)
def test_a_held_program_looks_like_its_picture(
    snap_compare: Any, tmp_path: Path, program: str, size: tuple[int, int], theme: str,
    keys: tuple[str, ...],
) -> None:  # fmt: skip
    remembered = Remembered()
    remembered.keep(theme=theme)
    if program == "claude":
        path = transcript(tmp_path / "S.jsonl")
    else:
        path = codex_session(tmp_path, "hook_stops_compaction")
    rig = Rig(path, remembered=remembered, left=48)
    hooks: list[Hook] = []

    async def before(pilot: Pilot[None]) -> None:
        await rig.console(pilot)
        hooks.append(rig.hook())
        screen = await rig.stopped(pilot)
        texts = [line.entry.item.text for line in screen.lines]
        if RULE in texts:
            screen.rows.select(texts.index(RULE))
        await pilot.press(*keys)
        await rig.wait(pilot, lambda: True)

    assert snap_compare(rig.app, terminal_size=size, run_before=before)
    assert [hook.ended().code for hook in hooks] == [0]
