from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, TextArea

from thresher.core import events as e
from thresher.core.debug.stop import Fate, Point
from thresher.core.sessions.resume import read
from thresher.core.views import CardStatus
from thresher.tui.commands import commands
from thresher.tui.screens.confirm import ConfirmScreen
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.screens.debugging import BreakpointsScreen
from thresher.tui.screens.stop import StopScreen
from thresher.tui.screens.text import TextScreen
from thresher.tui.screens.write import WriteScreen
from thresher.tui.spans import text_of
from thresher.tui.widgets.choices import Choices
from thresher.tui.widgets.footer import KeyFooter
from thresher.tui.widgets.reader import Reader

from .stopping import RULE, Rig, reads, says, texts

SUMMARY = "The rules were read. Nothing was changed."


def turn(tmp_path: Path, *more: object, **options: object) -> Rig:
    """A turn that reads the rules, is compacted, and ends."""
    replies = more or (says(SUMMARY), says("Done."))
    return Rig(tmp_path, reads("RULES.md", "c1"), *replies, **options)  # type: ignore[arg-type] # by name


async def test_a_newcomer_pins_the_rule_that_must_survive_and_sees_it_in_the_next_request(
    tmp_path: Path,
) -> None:
    rig = turn(tmp_path, breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        await pilot.press("tab", "B")
        assert isinstance(rig.app.screen, BreakpointsScreen)
        await pilot.press("enter", "escape")
        assert [str(each) for each in rig.actor.breakpoints()] == ["compaction"]
        rig.actor.send("Read the rules.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        assert "before the summary of compaction 1" in texts(screen)
        assert "Apply" in texts(screen)
        assert "Pin" in texts(screen)
        rig.select(screen, RULE)
        assert screen.line is not None
        assert screen.line.fate is Fate.REMOVE
        await pilot.press("p")
        await rig.until(pilot, lambda: "pinned by you" in texts(screen))
        assert screen.line.fate is Fate.KEEP
        await pilot.press("a")
        screen = await rig.stopped(pilot, Point.EDIT)
        assert SUMMARY in texts(screen)
        await pilot.press("a")
        console = await rig.idle(pilot)
        assert RULE in rig.gateway.sent()
        assert SUMMARY in rig.gateway.sent()
        (card,) = rig.model.state.cards
        assert card.status is CardStatus.DONE
        assert any("pinned" in mark for mark in card.marks)
        assert "▣" in texts(console)
        await rig.app.action_quit()


async def test_without_a_pin_the_rule_is_gone_from_the_next_request(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("c")
        await rig.idle(pilot)
        assert RULE not in rig.gateway.sent()
        await rig.app.action_quit()


async def test_the_summary_is_edited_before_it_is_applied(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("a")
        await rig.stopped(pilot, Point.EDIT)
        await pilot.press("e")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, WriteScreen))
        await pilot.press(*"Mind the cents. ", "escape")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, StopScreen))
        assert rig.actor.proposal() is not None
        await pilot.press("e")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, WriteScreen))
        area = rig.app.screen.query_one(TextArea)
        assert area.text == f"Mind the cents. {SUMMARY}"
        await pilot.press("ctrl+s")
        await rig.until(pilot, lambda: "edited" in getattr(rig.actor.proposal(), "told", ""))
        screen = await rig.stopped(pilot, Point.EDIT)
        assert "summary edited by the user" in texts(screen)
        assert "Mind the cents." in texts(screen)
        await pilot.press("a")
        await rig.idle(pilot)
        assert f"Mind the cents. {SUMMARY}" in rig.gateway.sent()
        await rig.app.action_quit()


async def test_the_summary_is_written_by_hand_and_nothing_is_asked(tmp_path: Path) -> None:
    rig = turn(tmp_path, says("Done."))
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("e")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, WriteScreen))
        await pilot.press(*"All by hand.", "ctrl+s")
        screen = await rig.stopped(pilot, Point.EDIT)
        assert "summary written by the user" in texts(screen)
        await pilot.press("a")
        await rig.idle(pilot)
        assert len(rig.gateway.requests) == 2
        assert "All by hand." in rig.gateway.sent()
        await rig.app.action_quit()


async def test_skipping_leaves_the_context_as_it_was(tmp_path: Path) -> None:
    rig = turn(tmp_path, says("Done."))
    async with rig.app.run_test() as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("z")
        await rig.idle(pilot)
        assert RULE in rig.gateway.sent()
        assert rig.model.state.compactions == 0
        await rig.app.action_quit()


async def test_undo_shows_what_it_does_and_then_does_it(tmp_path: Path) -> None:
    rig = turn(tmp_path, breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.until(pilot, lambda: rig.opened is not None and rig.model.state.compactions == 1)
        await rig.idle(pilot)
        before = rig.model.state.cards[0].context_before
        assert before is not None
        await pilot.press("tab", "u")
        assert isinstance(rig.app.screen, ConfirmScreen)
        assert "undo compaction 1" in texts(rig.app.screen)  # type: ignore[arg-type] # a dialog
        await pilot.press("escape")
        assert rig.model.state.context.place(before.ids[-1]) is None
        await pilot.press("u", "enter")
        await rig.until(pilot, lambda: rig.model.state.cards[0].undone > 0)
        assert rig.model.state.context.ids[: len(before)] == before.ids
        records = read(rig.agent.session.path).records
        assert isinstance(records[-1].event, e.HistoryRestored)
        await rig.app.action_quit()


async def test_a_removed_entry_is_brought_back_with_what_belongs_to_it(tmp_path: Path) -> None:
    rig = turn(tmp_path, breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.until(pilot, lambda: rig.opened is not None and rig.model.state.compactions == 1)
        console = await rig.idle(pilot)
        state = rig.model.state
        at = next(n for n, row in enumerate(state.rows) if row.call_id == "c1")
        console.timeline.select(at)
        await pilot.press("tab", "R", "enter")
        await rig.until(pilot, lambda: any(RULE in i.item.text for i in rig.model.state.context))
        assert [type(x.item).__name__ for x in rig.model.state.context].count("FunctionCall") == 1
        await rig.app.action_quit()


async def test_dropping_and_keeping_an_entry_changes_the_proposal(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(160, 48)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules, and mind them.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        rig.select(screen, "mind them")
        assert screen.line is not None
        assert screen.line.fate is Fate.KEEP
        await pilot.press("minus")
        assert screen.line.fate is Fate.REMOVE
        assert "dropped by you" in texts(screen)
        await pilot.press("minus")
        assert screen.line.fate is Fate.KEEP
        await rig.app.action_quit()


async def test_the_selection_follows_its_entry_when_a_decision_moves_it(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(160, 48)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules, and mind them.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("home")
        assert screen.line is not None
        selected = screen.line.entry.id
        await pilot.press("minus")
        assert screen.rows.cursor > 0
        assert screen.line.entry.id == selected
        assert screen.line.by == "user"
        await pilot.press("minus")
        assert (screen.rows.cursor, screen.line.entry.id) == (0, selected)
        await rig.app.action_quit()


async def test_everything_at_a_stop_can_be_done_with_the_mouse(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(160, 48)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        footer = screen.query_one(KeyFooter)

        async def press(word: str) -> None:
            line = "".join(text for text, _ in footer.draw(footer.size.width, 1)[0])
            await pilot.click(KeyFooter, offset=(line.index(word), 0))

        at = next(n for n, line in enumerate(screen.lines) if RULE in line.entry.item.text)
        await pilot.click(screen.rows, offset=(20, at))
        await press("Pin")
        await rig.until(pilot, lambda: bool(rig.model.state.pins))
        await press("Summary")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, WriteScreen))
        await pilot.click(offset=(0, 0))
        await rig.until(pilot, lambda: rig.app.screen is screen)
        await press("Summary")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, WriteScreen))
        rig.app.screen.query_one(TextArea).text = "Mine."
        await pilot.click(Choices, offset=(1, 0))
        screen = await rig.stopped(pilot, Point.EDIT)
        await press("Apply")
        await rig.until(pilot, lambda: rig.model.state.compactions == 1)
        assert rig.model.state.cards[-1].summary == "Mine."
        await rig.app.action_quit()


async def test_a_footer_offers_no_decision_while_the_agent_works_on_one(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(160, 48)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        assert screen.offers("stop.apply") is True
        screen.stop = None
        assert {screen.offers(f"stop.{name}") for name in ("apply", "pin", "drop", "edit")} == {
            None
        }
        assert screen.offers("stop.leave") is True
        await rig.app.action_quit()


async def test_a_focus_is_sent_with_the_request_for_the_summary(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("f", *"cents", "enter")
        await rig.until(pilot, lambda: "focus given" in getattr(rig.actor.proposal(), "told", ""))
        screen = await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("v")
        await rig.until(pilot, lambda: "focus: cents" in texts(screen))
        await pilot.press("a")
        await rig.stopped(pilot, Point.EDIT)
        assert "cents" in rig.gateway.requests[1].items[0].text
        await rig.app.action_quit()


async def test_another_summary_is_asked_for(tmp_path: Path) -> None:
    rig = turn(tmp_path, says("a poor one"), says("a better one"), says("Done."))
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("a")
        screen = await rig.stopped(pilot, Point.EDIT)
        assert "a poor one" in texts(screen)
        await pilot.press("r")
        await rig.until(pilot, lambda: "a better one" in texts(screen))
        await pilot.press("a")
        await rig.idle(pilot)
        assert "a better one" in rig.gateway.sent()
        await rig.app.action_quit()


async def test_another_policy_proposes_for_this_time_only(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("P", "down", "down", "enter")
        await rig.until(pilot, lambda: "policy" in getattr(rig.actor.proposal(), "told", ""))
        screen = await rig.stopped(pilot, Point.SUMMARY)
        assert "policy codex chosen by the user" in texts(screen)
        assert rig.agent.engine.policy.name == "teaching"
        await rig.app.action_quit()


async def test_a_policy_that_would_do_nothing_is_refused_in_a_sentence(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40), notifications=True) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("P", "down", "enter")
        assert [n.title for n in rig.app._notifications] == ["Nothing proposed"]
        await rig.app.action_quit()


async def test_every_text_at_the_stop_can_be_read_to_its_end_and_copied(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    (tmp_path / "project" / "RULES.md").write_text(f"{RULE}\n" + f"{'word ' * 1_000}\n" * 9)
    async with rig.app.run_test(size=(120, 40), notifications=True) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        rig.select(screen, RULE)
        await pilot.pause()
        assert screen.line is not None
        whole = screen.line.entry.item.text
        tail = whole.split("\n")[2][-12:]
        assert not any(tail in text_of(line) for line in screen.page._lines)
        assert "not all of it is here: w reads all" in texts(screen)
        await pilot.press("y")
        assert rig.app.clipboard == whole
        await pilot.press("w")
        await rig.until(pilot, lambda: isinstance(rig.app.screen, TextScreen))
        reader = rig.app.screen.query_one(Reader)
        await rig.until(pilot, lambda: reader.max_scroll_y > 0)
        await pilot.press("G")
        await rig.until(pilot, lambda: reader.scroll_offset.y == reader.max_scroll_y)
        rows = "".join(reader.render_line(y).text.strip() for y in range(reader.size.height))
        assert tail in rows
        assert reader.line_count == len(whole.removesuffix("\n").split("\n"))
        await pilot.press("y")
        assert rig.app.clipboard == whole
        await pilot.press("escape", "v", "y")
        assert rig.app.clipboard.endswith(whole) or whole in rig.app.clipboard
        assert rig.app.clipboard.startswith("[")
        await pilot.press("a")
        screen = await rig.stopped(pilot, Point.EDIT)
        await pilot.press("y")
        assert rig.app.clipboard == SUMMARY
        await rig.app.action_quit()


async def test_the_stop_can_be_left_and_looked_at_again(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.stopped(pilot, Point.SUMMARY)
        await pilot.press("escape")
        console = await rig.console(pilot)
        assert console.stop_bar.display
        assert "STOPPED" in texts(console)
        names = [command.name for command in commands(rig.app, rig.app.screen)]
        assert "Debugger: Look at the stop" in names
        # The keys that the line names act at once, and are not typed into the input below it.
        await pilot.press("S")
        assert isinstance(rig.app.screen, StopScreen)
        await pilot.press("escape", "C")
        await rig.idle(pilot)
        assert rig.model.state.compactions == 1
        assert not console.stop_bar.display
        await rig.app.action_quit()


async def test_a_half_written_message_is_not_taken_for_a_decision(tmp_path: Path) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=(120, 40)) as pilot:
        console = await rig.console(pilot)
        await pilot.press("n", "o")
        rig.actor.send("Read the rules.")
        await rig.until(pilot, lambda: console.stop_bar.display)
        await pilot.press("z", "p")
        assert rig.app.screen is console
        assert console.query_one(Input).value == "nozp"
        assert rig.actor.proposal() is not None
        await rig.app.action_quit()


async def test_stepping_stops_after_the_next_round(tmp_path: Path) -> None:
    rig = Rig(tmp_path, reads("RULES.md", "c1"), reads("RULES.md", "c2"), says("Done."), breaks=())
    rig.gateway.replies[:] = [
        r.__class__(r.items, type(r.usage)(10, 5), r.stop) for r in rig.gateway.replies
    ]
    async with rig.app.run_test(size=(80, 24)) as pilot:
        await rig.console(pilot)
        await pilot.press("tab", "s")
        rig.actor.send("Read the rules.")
        screen = await rig.stopped(pilot, Point.ROUND)
        assert "after round 1" in texts(screen)
        assert "no compaction is held here" in texts(screen)
        await pilot.press("s")
        await rig.until(pilot, lambda: rig.agent.session.state.rounds == 2)
        await rig.stopped(pilot, Point.ROUND)
        await pilot.press("a")
        await rig.idle(pilot)
        assert len(rig.gateway.requests) == 3
        await rig.app.action_quit()


async def test_breakpoints_are_added_by_their_text_and_bad_ones_explained(tmp_path: Path) -> None:
    rig = turn(tmp_path, breaks=())
    async with rig.app.run_test(size=(120, 40), notifications=True) as pilot:
        await rig.console(pilot)
        await pilot.press("tab", "B", "tab", *"tokens:20000", "enter")
        assert [str(each) for each in rig.actor.breakpoints()] == ["tokens:20000"]
        await pilot.press(*"never", "enter")
        assert [n.title for n in rig.app._notifications] == ["No such breakpoint"]
        await pilot.press("shift+tab", "end", "enter")
        assert rig.actor.breakpoints() == ()
        await pilot.press("enter", "escape")
        assert [str(each) for each in rig.actor.breakpoints()] == ["tokens:20000"]
        await rig.app.action_quit()


async def test_a_pin_in_the_timeline_is_shown_and_taken_back(tmp_path: Path) -> None:
    rig = turn(tmp_path, breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        console = await rig.console(pilot)
        rig.actor.send("Read the rules.")
        await rig.until(pilot, lambda: rig.opened is not None and rig.model.state.compactions == 1)
        await rig.idle(pilot)
        state = rig.model.state
        said = next(id for id, x in state.known.items() if x.item.text == "Read the rules.")
        at = next(n for n, row in enumerate(state.rows) if row.id == said)
        console.timeline.select(at)
        await pilot.press("tab", "p")
        await rig.until(pilot, lambda: "▣" in texts(console))
        assert len(rig.model.state.pins) == 1
        await pilot.press("p")
        await rig.until(pilot, lambda: not rig.model.state.pins)
        assert "▣" not in texts(console)
        await rig.app.action_quit()


async def test_the_palette_switches_the_policy_on_record(tmp_path: Path) -> None:
    rig = turn(tmp_path, breaks=())
    async with rig.app.run_test(size=(120, 40)) as pilot:
        await rig.console(pilot)
        known = {command.name: command for command in commands(rig.app, rig.app.screen)}
        assert "Policy: Switch to teaching" not in known
        known["Policy: Switch to keep-all"].run()
        await rig.until(pilot, lambda: rig.model.state.policy == "keep-all")
        assert rig.agent.engine.policy.name == "keep-all"
        await rig.app.action_quit()


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (160, 48)])
async def test_every_view_of_the_stop_fits_every_size(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    rig = turn(tmp_path)
    async with rig.app.run_test(size=size) as pilot:
        await rig.console(pilot)
        rig.actor.send("Read the rules.")
        screen = await rig.stopped(pilot, Point.SUMMARY)
        assert "? Help" in texts(screen)
        for _ in range(4):
            await pilot.press("v")
            await pilot.pause()
            assert len(texts(screen).splitlines()) == size[1]
        await pilot.press("enter")
        await pilot.resize_terminal(200, 60)
        await pilot.resize_terminal(80, 24)
        await rig.app.action_quit()


async def test_a_recorded_session_says_that_it_cannot_be_held(tmp_path: Path) -> None:
    from . import build

    app = build.app_of(build.long_session, actor=False)
    async with app.run_test(notifications=True) as pilot:
        for key in ("B", "s", "S", "C", "p", "u", "R"):
            await pilot.press(key)
        assert isinstance(app.screen, ConsoleScreen)
        assert len(app._notifications) == 7
