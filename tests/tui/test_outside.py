from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from thresher.core.errors import ThresherError
from thresher.core.hold import past
from thresher.tui.opening import open_file
from thresher.tui.screens.ask import AskScreen
from thresher.tui.screens.confirm import ConfirmScreen
from thresher.tui.screens.stop import StopScreen

from ..command_line import codex_session
from ..core.hold.hooks import about, run_hook
from .outside import RULE, Rig, transcript
from .stopping import texts

PI = Path(__file__).parents[1] / "fixtures" / "pi"


async def test_a_program_that_waits_is_shown_and_goes_on_when_it_is_let(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        screen = await rig.stopped(pilot)
        shown = texts(screen)
        assert "Claude Code 2.1.197 waits before compaction 1" in shown
        assert "168,010 tokens reported" in shown
        assert "goes on by itself in" in shown
        assert "forecast" in shown
        assert "not possible here: pins, drops" in shown
        assert hook.waits
        await pilot.press("c")
        assert hook.ended() == (0, "", "")
        console = await rig.console(pilot)
        await rig.wait(pilot, lambda: rig.model.history.state.stopped is None)
        assert "went on: let go by the user" in texts(console)


async def test_a_focus_and_texts_to_keep_go_to_its_model(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        screen = await rig.stopped(pilot)
        at = next(at for at, line in enumerate(screen.lines) if line.entry.item.text == RULE)
        screen.rows.select(at)
        await pilot.press("K")
        assert "asks its model to keep 1" in texts(screen)
        await pilot.press("K", "K", "f")
        assert isinstance(rig.app.screen, AskScreen)
        await pilot.press(*"the prices", "enter")
        assert hook.waits
        await pilot.press("v", "v") if screen.view == "summary" else await pilot.press("v")
        assert "a wish to its model" in texts(screen)
        await pilot.press("c")
        ran = hook.ended()
        wanted = f"the prices\n\nKeep these texts word for word in the summary:\n- {RULE}"
        assert (ran.code, ran.out) == (0, wanted)


async def test_skipping_is_done_only_after_its_consequence_was_read(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        await rig.stopped(pilot)
        await pilot.press("z")
        assert isinstance(rig.app.screen, ConfirmScreen)
        shown = " ".join(texts(rig.app.screen).split())  # type: ignore[arg-type] # any screen
        assert "asks again before the one after it" in shown.replace(" │ ", " ")
        await pilot.press("escape")
        assert hook.waits
        await pilot.press("z", "y")
        assert hook.ended().code == 2
        assert past.on_record(rig.path)[-1].event.how == past.SKIPPED  # type: ignore[union-attr] # a note of a hold


async def test_what_no_hook_allows_has_no_key(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        screen = await rig.stopped(pilot)
        await pilot.press("p", "minus", "e", "r", "P", "u", "s", "a")
        assert rig.app.screen is screen
        assert not screen.stop or not screen.stop.drops
        assert hook.waits
        await pilot.press("c")
        assert hook.ended().code == 0


async def test_codex_gets_no_focus_and_the_record_that_it_writes_late_is_in_the_forecast(
    tmp_path: Path,
) -> None:
    path = codex_session(tmp_path, "hook_stops_compaction")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    rig = Rig(path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        screen = await rig.stopped(pilot)
        before = len(screen.lines)
        await pilot.press("f", "K")
        assert rig.app.screen is screen
        with path.open("ab") as file:
            file.write(
                b'{"timestamp":"2026-11-30T09:00:00.000Z","type":"response_item","payload":'
                b'{"type":"message","role":"assistant","content":[{"type":"output_text",'
                b'"text":"one more"}]}}\n'
            )
        await rig.wait(pilot, lambda: len(screen.lines) > before)
        assert any(line.entry.item.text == "one more" for line in screen.lines)
        await pilot.press("z", "y")
        assert '"continue":false' in hook.ended().out


async def test_a_hold_that_nobody_decides_ends_by_itself_and_that_is_told(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40), notifications=True) as pilot:
        await rig.console(pilot)
        hook = rig.hook("manual", "--timeout", "1")
        screen = await rig.shown(pilot)
        await rig.wait(pilot, lambda: rig.app.screen is not screen)
        ran = hook.ended()
        assert (ran.code, ran.out) == (0, "")
        assert "its time is over" in ran.sentence
        titles = [each.title for each in rig.app._notifications]
        assert "Claude Code 2.1.197 goes on" in titles


async def test_leaving_the_console_lets_the_program_go_on(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        await rig.stopped(pilot)
    assert hook.ended() == (0, "", "")
    assert run_hook(about(rig.path)).ended() == (0, "", "")


async def test_going_back_from_the_stop_goes_on_waiting_and_the_line_says_so(
    tmp_path: Path,
) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        hook = rig.hook()
        await rig.stopped(pilot)
        await pilot.press("escape")
        console = await rig.console(pilot)
        assert console.stop_bar.display
        assert "goes on in" in texts(console)
        assert hook.waits
        await pilot.press("S")
        assert isinstance(rig.app.screen, StopScreen)
        await pilot.press("escape")
        await rig.console(pilot)
        await pilot.press("C")
        assert hook.ended().code == 0
        await rig.wait(pilot, lambda: not console.stop_bar.display)


async def test_without_a_breakpoint_nothing_is_held_until_one_is_set(tmp_path: Path) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"), breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        assert rig.hook().ended() == (0, "", "")
        assert not (past.on_record(rig.path))
        await pilot.press("B")
        assert "thresher hold claude-code" in texts(rig.app.screen)  # type: ignore[arg-type] # any screen
        await pilot.press("enter", "escape")
        hook = rig.hook()
        await rig.stopped(pilot)
        await pilot.press("c")
        assert hook.ended().code == 0


async def test_a_breakpoint_is_kept_with_the_session(tmp_path: Path) -> None:
    path = transcript(tmp_path / "S.jsonl")
    rig = Rig(path)
    async with rig.app.run_test() as pilot:
        await rig.console(pilot)
        await rig.wait(pilot, lambda: rig.actor.desk.watching)
    rig = Rig(path, breaks=())
    async with rig.app.run_test() as pilot:
        await rig.console(pilot)
        await rig.wait(pilot, lambda: rig.actor.desk.watching)
        hook = rig.hook()
        await rig.stopped(pilot)
        rig.actor.clear_break("compaction")
        assert hook.ended() == (0, "", "")
    rig = Rig(path, breaks=())
    async with rig.app.run_test() as pilot:
        await rig.console(pilot)
        assert rig.hook().ended() == (0, "", "")
        assert not rig.actor.desk.watching


async def test_a_fault_of_ours_lets_the_program_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(transcript(tmp_path / "S.jsonl"))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        # A disk that is full from now on.
        monkeypatch.setattr("thresher.core.sessions.journal.Journal._write", _full)
        hook = rig.hook()
        await rig.wait(pilot, lambda: not hook.waits)
        assert hook.ended() == (0, "", "")
        assert rig.actor.proposal() is None


def _full(handle: int, data: bytes) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("text", ["overflow", "tokens:5"])
async def test_another_breakpoint_is_refused_at_start(tmp_path: Path, text: str) -> None:
    with pytest.raises(ThresherError, match="before a compaction and nowhere else"):
        await open_file(transcript(tmp_path / "S.jsonl"), breaks=(text,), count=False)


async def test_a_program_that_waits_for_nobody_is_refused_at_start(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    data = next(PI.glob("*.jsonl*")).read_bytes()
    path.write_bytes(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    with pytest.raises(ThresherError, match="waits for nobody"):
        await open_file(path, breaks=("compaction",), count=False)
