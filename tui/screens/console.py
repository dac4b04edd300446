"""The live console: an agent at work, its context, and every compaction in its place."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.getters import query_one

from thresher.core.state import Changed, Status
from thresher.core.text import clean_line

from ..bridge import TICK_SECONDS, Bridge
from ..figures import count
from ..keys import KEYS, Where, bindings
from ..model import ConsoleModel
from ..offering import offers
from ..outlook import outlook
from ..remembered import SPLIT_LEAST, SPLIT_MOST, Remembered
from ..spans import Line, Tone, span
from ..theme import STYLES, keyed
from ..widgets.approval import ApprovalBar
from ..widgets.banner import RewoundBanner
from ..widgets.chart import TokenChart, caption
from ..widgets.detail import Detail
from ..widgets.divider import Divider
from ..widgets.find_bar import FindBar
from ..widgets.footer import KeyFooter
from ..widgets.header import SessionHeader
from ..widgets.meter import ContextMeter
from ..widgets.prompt import Prompt
from ..widgets.tiles import Tiles
from ..widgets.timeline import Timeline
from ..widgets.title import Title
from .holding import HoldingScreen, StopBar
from .looking import LookingScreen

NARROW_BELOW = 110
"""Below this width there is one column: the detail takes the place of the timeline."""
LOW_BELOW = 34
"""Below this height there is no chart unless it is asked for, and no ruler."""

SPLIT = 60
"""The timeline's share of the width beside the detail, in per cent."""

_IN_FOOTER = tuple(key.id for key in KEYS if key.where is Where.CONSOLE and key.footer)
_BUSY = (Status.THINKING, Status.TOOL, Status.COMPACTING, Status.APPROVAL)


class ConsoleScreen(HoldingScreen, LookingScreen):
    """One session, live or recorded. Everything it shows is a fold of `model.history`."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Where.CONSOLE)
    CSS_PATH = STYLES / "console.tcss"

    header = query_one(SessionHeader)
    meter = query_one(ContextMeter)
    chart = query_one(TokenChart)
    tiles = query_one(Tiles)
    approval = query_one(ApprovalBar)
    prompt = query_one(Prompt)

    def __init__(self, model: ConsoleModel, remembered: Remembered | None = None) -> None:
        super().__init__(model)
        self._remembered = remembered or Remembered()
        self._split = self._remembered.tastes.split or SPLIT
        self.bridge = Bridge(model)
        self._chart_wanted: bool | None = None
        self._behind_shown = 0
        self._resumed = False
        self._indexed_shown: int | None = None
        self._offered: tuple[bool | None, ...] = ()

    def offers(self, id: str) -> bool | None:
        """Whether a key can do something in this session: now, at another time, or never."""
        return offers(id, self.model)

    def _offer(self) -> None:
        """Other keys in the footer, when others can do something now."""
        offered = tuple(self.offers(id) for id in _IN_FOOTER)
        if offered != self._offered:
            self._offered = offered
            self.refresh_bindings()

    def compose(self) -> ComposeResult:
        """Header, meter, chart and tiles, timeline and detail, and where the user answers."""
        yield SessionHeader()
        yield RewoundBanner()
        yield ContextMeter()
        with Horizontal(id="upper"):
            with Vertical(id="chart-pane"):
                yield Title("tokens by round", id="chart-title")
                yield TokenChart()
            with Vertical(id="tiles-pane"):
                yield Title("session", id="tiles-title")
                yield Tiles()
        with Horizontal(id="lower"):
            with Vertical(id="timeline-pane"):
                yield Title("timeline", id="timeline-title")
                yield Timeline()
            yield Divider()
            with Vertical(id="detail-pane"):
                yield Title("detail", id="detail-title")
                yield Detail()
        yield StopBar()
        yield ApprovalBar()
        yield FindBar()
        yield Prompt()
        yield KeyFooter()

    def on_mount(self) -> None:
        """Show what there is, then look for more about 12 times a second."""
        self.detail.insights = self.insights
        self.timeline.at_once = self._selected_by_key
        self._show_bookmarks()
        self.prompt.allow("" if self.model.actor is not None else self.model.read_only)
        self.timeline.follow = self.model.follow
        self._layout(self.size.width, self.size.height)
        self._show_split()
        self.redraw()
        self.set_focus(self.timeline if self.model.actor is None else self.prompt)
        if self.approval.display:
            self._approval_appeared()
        self.set_interval(TICK_SECONDS, self.drain)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Textual says so twice when a session is opened, and styles and paints everything anew
        each time: once is enough."""
        if self._resumed:
            event.prevent_default()
        self._resumed = True

    def on_screen_suspend(self) -> None:
        """Something lies over it."""
        self._resumed = False

    def on_resize(self, event: events.Resize) -> None:
        """One column or two; a chart where there is height for it."""
        self._layout(event.size.width, event.size.height)

    def _layout(self, width: int, height: int) -> None:
        low = height < LOW_BELOW
        self.set_class(width < NARROW_BELOW, "one-column")
        self.set_class(low, "low")
        wanted = self._chart_wanted
        self.set_class(low if wanted is None else not wanted, "no-chart")

    def _show_split(self) -> None:
        self.query_one("#timeline-pane").styles.width = f"{self._split}fr"
        self.query_one("#detail-pane").styles.width = f"{100 - self._split}fr"

    def action_split(self, change: int) -> None:
        """Give the timeline more of the width, or the detail."""
        if self.has_class("one-column"):
            self.say(f"There is one column below {NARROW_BELOW} cells.")
            return
        self._resplit(self._split + change)
        self._remembered.keep(split=self._split)

    @on(Divider.Dragged)
    def _dragged(self, message: Divider.Dragged) -> None:
        lower = self.query_one("#lower").region
        self._resplit(round(100 * (message.x - lower.x) / max(1, lower.width - 1)))
        if message.done:
            self._remembered.keep(split=self._split)

    def _resplit(self, split: int) -> None:
        self._split = max(SPLIT_LEAST, min(split, SPLIT_MOST))
        self._show_split()

    # -- from the bus to the widgets -------------------------------------------------------------

    def drain(self) -> None:
        """Take in what has arrived and refresh what it touched."""
        changed = self.bridge.drain()
        behind = self.model.behind if self.model.behind >= 1000 else 0
        indexed = self.model.indexed()
        if changed or (behind, indexed) != (self._behind_shown, self._indexed_shown):
            self._behind_shown, self._indexed_shown = behind, indexed
            self._news(changed)
            self._offer()
        self.look_for_stop()

    def _news(self, changed: Changed) -> None:
        """Live news: they move no rewound view, but ask and tell over it."""
        if not self.model.rewound:
            self.show_changed(changed)
            return
        with self.app.batch_update():
            self.header.show_state(self.model.state, self._behind_shown, self._indexed_shown)
            self.show_place()
            self.stop_bar.show_stop(self.model.history.state)
            if self.approval.show_request(self.model.history.state.approval):
                self._approval_appeared()

    def show_changed(self, changed: Changed) -> None:
        """Refresh the widgets whose part of the state in view changed."""
        model = self.model
        state = model.state
        with self.app.batch_update():
            self.header.show_state(state, self._behind_shown, self._indexed_shown)
            self.set_class(model.rewound, "rewound")
            self.show_place()
            self.stop_bar.show_stop(model.history.state)
            if self.approval.show_request(model.history.state.approval):
                self._approval_appeared()
            meters = Changed.METER | Changed.CONTEXT | Changed.STATUS | Changed.CARDS | Changed.META
            if changed & meters:
                marks = model.marks
                self.meter.show_state(state, marks, outlook(state, marks))
                self.chart.show_state(state, marks)
                self.query_one("#chart-title", Title).set(remark=caption(state))
                self.tiles.show_state(state)
            self.timeline.show_state(state, changed)
            self._show_detail()
        self._offer()

    def _show_detail(self) -> None:
        self.detail.show_row(self.timeline.state, self.timeline.row)

    @on(Timeline.Selected)
    def _selected(self) -> None:
        self._show_detail()

    def _selected_by_key(self) -> None:
        self._titles()
        self._show_detail()

    @on(Timeline.Moved)
    @on(Detail.FocusMoved)
    def _titles(self) -> None:
        timeline = self.timeline
        self.model.follow = timeline.follow
        remark: Line = []
        if timeline.unseen:
            rows = count(timeline.unseen, "new row")
            remark = [
                span(f"↓ {rows}", Tone.THRESHOLD),
                span(keyed(self.app, "  <rows.bottom> follows"), Tone.MUTED),
            ]
        elif timeline.follow and not self.model.rewound:
            remark = [span("following", Tone.MUTED)]
        elif timeline.state.rows:
            at = f"{timeline.cursor + 1:,} of {len(timeline.state.rows):,}"
            remark = [span(at, Tone.MUTED)]
        self.query_one("#timeline-title", Title).set(remark=remark, active=timeline.has_focus)
        links = self.detail.has_focus and self.detail.link is not None
        told = keyed(self.app, "<list.open> follows   <console.go_back> comes back")
        hint: Line = [span(told, Tone.FAINT)] if links else []
        short: Line = [span(keyed(self.app, "<list.open> follows"), Tone.FAINT)] if links else []
        self.query_one("#detail-title", Title).set(
            remark=hint, short=short, active=self.detail.has_focus
        )

    # -- opening and folding ---------------------------------------------------------------------

    @on(Timeline.Opened)
    def _opened(self) -> None:
        self.show_detail()

    def _set_detail_open(self, open: bool) -> None:
        self.set_class(open, "detail-open")
        if open:
            self.detail.again()

    def action_detail(self) -> None:
        """Show the detail in place of the timeline, or the timeline again; with two columns,
        go from one to the other."""
        if self.has_class("one-column"):
            self._set_detail_open(not self.has_class("detail-open"))
        self.set_focus(self.timeline if self.focused is self.detail else self.detail)

    def show_detail(self) -> None:
        """Bring the detail of the selected row to where it is seen."""
        self._set_detail_open(True)
        self.set_focus(self.detail)

    def action_chart(self) -> None:
        """Show or hide the chart."""
        self._chart_wanted = self.has_class("no-chart")
        self._layout(self.size.width, self.size.height)

    def action_expand_all(self) -> None:
        """Open all cards, or fold them."""
        self.timeline.expand_all()

    def action_follow(self) -> None:
        """Follow the newest row, or stop following."""
        self.timeline.set_follow(not self.timeline.follow)

    # -- the way back to the agent ---------------------------------------------------------------

    def _approval_appeared(self) -> None:
        # Only with an empty input line: a letter that is being typed must not become an answer.
        if not self.prompt.value:
            self.set_focus(self.approval)

    @on(ApprovalBar.Answered)
    def _answered(self, message: ApprovalBar.Answered) -> None:
        if self.model.actor is not None:
            self.model.actor.answer(message.decision)
            self.set_focus(self.prompt)

    @on(Prompt.Said)
    def _said(self, message: Prompt.Said) -> None:
        if self.model.actor is not None:
            self.action_live()
            self.model.actor.send(message.text)

    @on(Prompt.CompactWanted)
    def _compact_wanted(self, message: Prompt.CompactWanted) -> None:
        if self.model.actor is not None:
            self.action_live()
            self.model.actor.compact(message.focus)

    @on(Prompt.CommandUnknown)
    def _command_unknown(self, message: Prompt.CommandUnknown) -> None:
        self.say(f"There is no command {clean_line(message.command, 40)}; there is /compact.")

    def action_focus_prompt(self) -> None:
        """Go to the input line."""
        if self.prompt.disabled:
            self.say(clean_line(self.model.read_only, 200))
        else:
            self.set_focus(self.prompt)

    def action_compact(self) -> None:
        """Begin a manual compaction: the input line asks for a focus."""
        if self.prompt.disabled:
            self.say(clean_line(self.model.read_only, 200))
        else:
            self.prompt.ask_focus()

    def action_close_breaker(self) -> None:
        """Let automatic compaction run again."""
        if self.model.actor is None or not self.model.history.state.breaker_open:
            self.say("The breaker is not open.")
        else:
            self.model.actor.close_breaker()

    def action_back(self) -> None:
        """Close what is open, else interrupt a busy agent, else leave the input line."""
        if self.finding:
            self.close_find()
        elif self.has_class("detail-open") and self.has_class("one-column"):
            self._set_detail_open(False)
            self.set_focus(self.timeline)
        elif self.model.actor is not None and self.model.history.state.status in _BUSY:
            self.model.actor.interrupt()
        else:
            self.set_focus(self.timeline)
