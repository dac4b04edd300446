from __future__ import annotations

from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.tui import shots

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def records(*events: e.Event) -> list[e.Record]:
    return [e.Record(n, float(n), event) for n, event in enumerate(events)]


def test_a_cut_ends_before_or_after_the_event_it_names() -> None:
    some = records(e.TurnStarted(turn=1), e.Note(kind="", text=""), e.TurnStarted(turn=2))
    assert shots.whole(some) == 3
    assert shots.before(e.TurnStarted, 2)(some) == 2
    assert shots.before(e.TurnStarted, shots.LAST)(some) == 2
    assert shots.before(e.TurnStarted, 9)(some) == 2
    assert shots.after(e.TurnStarted)(some) == 1
    assert shots.before(e.SessionFinished)(some) == 3


def test_scenes_have_names_of_their_own_and_recorded_sessions() -> None:
    assert len({scene.file for scene in shots.SCENES}) == len(shots.SCENES)
    assert all(scene.ready for scene in shots.SCENES)


async def test_a_scene_drawn_twice_is_the_same_picture_and_needs_no_network() -> None:
    scene = next(scene for scene in shots.SCENES if scene.name == "codex-narrow")
    with shots.recorded_home() as (home, now):
        first = await shots.draw(scene, home, now)
        assert await shots.draw(scene, home, now) == first
    assert "@font-face" not in first
    assert first.count("http") == 2  # the namespace and the maker's name, neither is loaded


async def test_the_list_of_recorded_sessions_names_no_folder_of_this_machine() -> None:
    scene = next(scene for scene in shots.SCENES if scene.name == "picker")
    with shots.recorded_home() as (home, now):
        picture = await shots.draw(scene, home, now)
        assert str(home) not in picture
    assert "codex" in picture
