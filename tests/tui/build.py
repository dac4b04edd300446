"""Sessions for the tests of the screens, made of real events, with a fixed clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from thresher.core import events as e
from thresher.core.compaction.policy import Mark, Moment, Trigger
from thresher.core.context import Inserted, Replaced
from thresher.core.history import History
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Role,
)
from thresher.core.models import Budget, Fact, Origin
from thresher.core.state import SessionState
from thresher.core.tokens import Basis, Scope, Tokens, Usage
from thresher.tui.keys import Where, bindings
from thresher.tui.model import ConsoleModel
from thresher.tui.screens.console import ConsoleScreen
from thresher.tui.theme import LIGHT_NAME, ThemedApp

START = 1_790_000_000.0
THRESHOLD = 16_000
LIMIT = 20_000

SUMMARY = """## Goal
Make `parse_when` accept dates without a year, as the user asked in turn 1.

## Rules of the user
- never touch the public signature of `parse_when`
- tests first, then code

## Done
- read core/when.py and tests/test_when.py
- the failure is in `_split`: it treats "3 May" as a time, because the colon test comes first
- added three tests; two pass, `test_leap_day` still fails with ValueError: day is out of range

## Open
- 29 February without a year: use the next leap year, not the current year
- run the whole suite once, then write the note for the changelog"""


def known_budget(window: int = 24_096, reserve: int = 4_096) -> Budget:
    """A budget whose limit is 20,000."""
    return Budget(
        Fact(window, "--window 24096", Origin.USER),
        Fact(None, "not stated"),
        Fact(None, "not stated"),
        Fact(reserve, "setting", Origin.USER),
    )


def unknown_budget() -> Budget:
    """A model that nobody knows."""
    missing = Fact(None, "the table has no model 'local-7b'")
    return Budget(missing, missing, missing, Fact(None, "no reserve set"))


def tokens(value: int, basis: Basis = Basis.COUNTED, scope: Scope = Scope.MESSAGES) -> Tokens:
    return Tokens(value, basis, scope)


class Script:
    """Writes a session event by event, as a journal would hold it."""

    def __init__(self) -> None:
        self.history = History()
        self.emitted: list[e.Record] = []
        self.n = 0
        self.at = START
        self.turn = 0
        self.rounds = 0
        self.calls = 0
        self.passes = 0
        self.ordinal = 0

    @property
    def state(self) -> SessionState:
        return self.history.state

    def emit(self, event: e.Event, after: float = 0.4) -> e.Record:
        self.at += after
        if isinstance(event, e.EPHEMERAL):
            record = e.Record(-1, self.at, event)
        else:
            record = e.Record(self.n, self.at, event)
            self.n += 1
        self.history.append(record)
        self.emitted.append(record)
        return record

    def start(self, **more: object) -> Script:
        fields: dict[str, object] = {
            "session_id": "s-7f3a",
            "agent": "thresher",
            "cwd": "~/dates",
            "model": "gpt-5-mini",
            "wire": "responses",
            "policy": "teaching",
            "budget": known_budget(),
            "title": "dates without a year",
        }
        self.emit(e.SessionStarted(**(fields | more)))  # type: ignore[arg-type] # fields by name
        self.emit(
            e.ItemAppended(item=Message(Role.SYSTEM, "You are a careful coding agent. " * 40))
        )
        return self

    def user(self, text: str) -> Script:
        self.turn += 1
        self.emit(e.TurnStarted(turn=self.turn))
        self.emit(e.ItemAppended(item=Message(Role.USER, text), turn=self.turn))
        return self

    @property
    def size(self) -> int:
        """What a provider would report now: the messages, and 1,150 for instructions and tools."""
        return sum(self.state.parts.values()) + 1_150

    def reason(self) -> str:
        share = 100 * THRESHOLD // LIMIT
        return (
            f"usage {self.size:,} >= threshold {THRESHOLD:,} ({share} % of the limit {LIMIT:,}); "
            f"{len(self.state.context)} items, at least 4 are needed"
        )

    def round(self, *, reported: bool = True, estimated: bool = False) -> Script:
        self.rounds += 1
        self.emit(e.RequestSent(request=self.rounds, turn=self.turn, round=self.rounds))
        if reported:
            size = self.size
            usage = Usage(size - 150, 150, cached_tokens=size // 2)
            self.emit(e.UsageReported(usage=usage, estimated=estimated))
        return self

    def says(self, text: str) -> Script:
        self.emit(e.ItemAppended(item=Message(Role.ASSISTANT, text), turn=self.turn))
        return self

    def tool(
        self, name: str, arguments: dict[str, object], output: str, *, exit_code: int | None = None,
        seconds: float = 0.02, ok: bool = True,
    ) -> Script:  # fmt: skip
        call = self.calling(name, arguments)
        self.emit(e.ToolStarted(call_id=call, name=name, arguments=json.dumps(arguments)))
        self.emit(
            e.ToolFinished(
                call_id=call, name=name, ok=ok, exit_code=exit_code, seconds=seconds,
                size=len(output),
            ),
            seconds,
        )  # fmt: skip
        item = FunctionCallOutput(call, output, name=name, is_error=not ok)
        self.emit(e.ItemAppended(item=item, turn=self.turn))
        return self

    def calling(self, name: str, arguments: dict[str, object]) -> str:
        self.calls += 1
        call = f"call_{self.calls}"
        item = FunctionCall(call, name, json.dumps(arguments, ensure_ascii=False))
        self.emit(e.ItemAppended(item=item, turn=self.turn))
        return call

    def compaction_starts(
        self, reason: str, *, trigger: Trigger = Trigger.AUTO, focus: str = "",
        stage: str = "summarise", moment: Moment = Moment.AFTER_ROUND,
    ) -> str:  # fmt: skip
        self.passes += 1
        name = f"p{self.passes}"
        self.emit(
            e.CompactionStarted(
                pass_id=name, policy="teaching", stage=stage, moment=moment, trigger=trigger,
                reason=reason, focus=focus,
            )
        )  # fmt: skip
        return name

    def compacted(
        self, name: str, *, keep_last: int = 2, summary: str = SUMMARY, seconds: float = 2.1,
        trigger: Trigger = Trigger.AUTO, marks: tuple[str, ...] = (), reason: str | None = None,
        after: Tokens | None = None, rewrite: bool = False,
    ) -> Script:  # fmt: skip
        figure = Tokens(sum(self.state.parts.values()), Basis.ESTIMATED, Scope.MESSAGES)
        usage = Usage(figure.value + 420, 380, cached_tokens=0)
        self.emit(e.UsageReported(usage=usage, purpose=e.Purpose.COMPACTION, model="gpt-5-mini"))
        before = self.state.context
        size = len(before)
        cut = max(1, size - keep_last)
        while cut < size and isinstance(before.entries[cut].item, FunctionCallOutput):
            cut += 1
        gone = before.ids[1:cut]
        first = before.entries[0]
        head = (
            [Replaced(first.id.bare, Message(Role.SYSTEM, first.item.text + "\nBe brief."))]
            if rewrite
            else before.keep([0])
        )
        segments = (
            *head,
            Inserted(CompactionSummary(summary), before.span(gone)),
            *before.keep(range(cut, size)),
        )
        self.ordinal += 1
        card = self.state.cards[-1]
        change = before.apply(segments, self.n, self.ordinal)
        now = sum(self.state.costs.cost(entry.item) for entry in change.after)
        self.emit(
            e.HistoryCompacted(
                ordinal=self.ordinal, pass_id=name, policy="teaching", stage=card.stage,
                moment=Moment.AFTER_ROUND, trigger=trigger, reason=reason or card.reason,
                segments=segments, items_before=size, items_after=len(change.after),
                kept=len(change.kept), removed=len(change.removed),
                replaced=len(change.replaced), inserted=len(change.inserted),
                removed_ids=before.span(change.removed), before=figure,
                after=after or Tokens(now, Basis.ESTIMATED, Scope.MESSAGES), summary=summary,
                summariser=e.Summariser("gpt-5-mini", usage, attempts=1, seconds=seconds),
                digest=change.after.digest(), marks=marks,
            ),
            seconds,
        )  # fmt: skip
        return self

    def ends(self, outcome: str = "completed") -> Script:
        self.emit(e.TurnFinished(turn=self.turn, outcome=outcome))
        return self


READ = "def parse_when(text: str) -> datetime:\n    head, tail = _split(text)\n" * 230
GREP = "core/when.py:41:def _split(text: str) -> tuple[str, str]:\n" * 70
PYTEST = "FAILED tests/test_when.py::test_leap_day - ValueError: day is out of range\n" * 110
EDIT = {
    "path": "tests/test_when.py",
    "old": "",
    "new": "def test_no_year() -> None:\n    ...\n" * 40,
}


def working(script: Script, first: int, rounds: int) -> Script:
    """Some rounds of ordinary work."""
    for k in range(rounds):
        script.round()
        which = (first + k) % 4
        if which == 0:
            script.says("I look at the parser first, then at its tests.")
            script.tool("read_file", {"path": "core/when.py"}, READ)
        elif which == 1:
            script.tool("grep", {"pattern": "def _split", "path": "core"}, GREP)
        elif which == 2:
            script.says("The colon test comes too early. I write a failing test for it.")
            script.tool("edit_file", EDIT, "edited tests/test_when.py (+80 -0)")
        else:
            script.tool(
                "bash", {"command": "pytest -q tests/test_when.py"}, PYTEST,
                exit_code=1, seconds=3.2, ok=False,
            )  # fmt: skip
    return script


RULE = "Please make parse_when accept dates without a year. Never touch its public signature."


def long_session() -> Script:
    """Three turns, two compactions, a failed one, and work after that."""
    s = Script().start().user(RULE)
    working(s, 0, 7)
    s.compacted(s.compaction_starts(s.reason()))
    working(s, 3, 4)
    s.says("Dates without a year parse now; the leap day is open.").ends()
    s.user("Good. 29 February should use the next leap year.")
    working(s, 1, 3)
    s.compacted(
        s.compaction_starts(
            "asked for by the user", trigger=Trigger.MANUAL, focus="keep the leap day rule"
        ),
        trigger=Trigger.MANUAL,
        rewrite=True,
    )
    working(s, 0, 4)
    return s


def near_threshold() -> Script:
    """One round short of the threshold."""
    s = Script().start().user(RULE)
    return working(s, 0, 6)


def compacting() -> Script:
    """The rule has fired and the summary is being written."""
    s = near_threshold().round()
    name = s.compaction_starts(s.reason())
    s.emit(e.MessageDelta(text=SUMMARY[:330], channel="summary", pass_id=name))
    return s


def failed_compaction() -> Script:
    """The summariser failed twice, then the pass was given up."""
    s = near_threshold().round()
    name = s.compaction_starts(s.reason())
    for attempt in (1, 2):
        s.emit(
            e.SummaryAttemptFailed(
                pass_id=name, model="gpt-5-mini", kind="timeout", attempt=attempt,
                message="no answer within 60 seconds", next_step="try again in 2 s",
            )
        )  # fmt: skip
    s.emit(
        e.CompactionFailed(
            pass_id=name, policy="teaching", stage="summarise", moment=Moment.AFTER_ROUND,
            trigger=Trigger.AUTO, outcome=e.Outcome.FAILED, attempts=2, failures=1,
            reason="the summariser did not answer within 60 seconds, twice", kind="timeout",
            next_step="go on without a compaction; the next round tries again",
        )
    )  # fmt: skip
    return s.round().says("I go on with the test.")


def breaker_open() -> Script:
    """Three failures in a row."""
    s = failed_compaction()
    for failures in (2, 3):
        name = s.compaction_starts(s.reason())
        s.emit(
            e.CompactionFailed(
                pass_id=name, policy="teaching", stage="summarise", moment=Moment.AFTER_ROUND,
                trigger=Trigger.AUTO, outcome=e.Outcome.EMPTY, failures=failures,
                reason="the summary came back empty", kind="empty",
                next_step="go on without a compaction",
            )
        )  # fmt: skip
    s.emit(e.BreakerOpened(failures=3, reason="3 compactions failed in a row"))
    return s


def overflow() -> Script:
    """The provider refused the request as too long, and the recovery is under way."""
    s = near_threshold()
    s.tool("read_file", {"path": "data/log.txt"}, "0123456789abcdef " * 3000)
    s.round(reported=False)
    s.emit(
        e.ContextOverflowed(
            message="This model's maximum context length is 24096 tokens, however you requested "
            "31207 tokens.",
            used=31_207,
            limit=24_096,
            request=7,
        )
    )
    s.compaction_starts(
        "the provider refused 31,207 tokens; its limit is 24,096",
        trigger=Trigger.OVERFLOW,
        moment=Moment.OVERFLOW,
    )
    return s


def chinese() -> Script:
    """A session in Chinese."""
    s = (
        Script()
        .start(title="没有年份的日期", cwd="~/日期")
        .user("请让 parse_when 接受没有年份的日期。不要改动它的公开签名，先写测试，再写代码。")
    )
    s.round().says("我先读解析器，再读它的测试；然后写一个会失败的测试。")
    s.tool("read_file", {"path": "核心/时间.py"}, "定义解析时间（文本）：返回日期\n" * 1000)
    s.round()
    name = s.compaction_starts("用量 16,800 ≥ 阈值 16,000（上限 20,000 的 80 %）")
    s.compacted(
        name, summary="## 目标\n让 parse_when 接受没有年份的日期。\n\n## 规则\n- 不改签名\n" * 3
    )
    return s.round().says("摘要之后继续：二月二十九日用下一个闰年。")


def hostile(texts: Iterable[str]) -> Script:
    """Every hostile text in every place where outside text can stand."""
    s: Script | None = None
    for text in texts:
        if s is None:
            s = Script().start(
                title=text, session_id=text, model=text, cwd=text, agent=text, policy=text
            )
        s.user(text).round().says(text)
        s.tool(text or "bash", {"command": text}, text, exit_code=1, ok=False)
        name = s.compaction_starts(text, focus=text, stage=text)
        s.emit(e.MessageDelta(text=text, channel="summary", pass_id=name))
        s.emit(e.SummaryAttemptFailed(pass_id=name, model=text, kind=text, message=text))
        s.compacted(name, summary=text, reason=text, marks=(text,))
        s.emit(e.ErrorRaised(kind=text, message=text, where=text))
        s.emit(e.Note(kind=text, text=text))
        s.emit(e.UnknownRecord(type=text, line=3))
        s.ends(text)
    assert s is not None
    return s


def threshold_marks(state: SessionState) -> tuple[Mark, ...]:
    """The teaching policy's mark, as its registry entry would give it."""
    limit = state.budget.limit if state.budget else None
    return () if limit is None else (Mark("threshold", limit * 8 // 10, "80 % of the limit"),)


class RecordingActor:
    """Remembers what the screen asked of the agent."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def send(self, text: str) -> None:
        self.asked.append(("send", text))

    def interrupt(self) -> None:
        self.asked.append(("interrupt",))

    def compact(self, focus: str) -> None:
        self.asked.append(("compact", focus))

    def answer(self, decision: str) -> None:
        self.asked.append(("answer", decision))

    def close_breaker(self) -> None:
        self.asked.append(("close_breaker",))


def model_of(script: Script | None, actor: RecordingActor | None = None) -> ConsoleModel:
    history = History() if script is None else script.history
    return ConsoleModel(history, actor=actor, marks_of=threshold_marks)


class ConsoleApp(ThemedApp):
    """The console alone, for tests."""

    BINDINGS = bindings(Where.APP)

    def __init__(self, model: ConsoleModel, *, light: bool = False) -> None:
        super().__init__()
        self.screen_in_test = ConsoleScreen(model)
        if light:
            self.theme = LIGHT_NAME

    def on_mount(self) -> None:
        self.push_screen(self.screen_in_test)


def app_of(
    make: Callable[[], Script] | None, *, actor: bool = True, light: bool = False
) -> ConsoleApp:
    model = model_of(make() if make else None, RecordingActor() if actor else None)
    return ConsoleApp(model, light=light)


def approving() -> Script:
    """A tool waits for the user's word."""
    s = near_threshold()
    call = s.calling("bash", {"command": "rm -rf build && python -m build"})
    s.emit(
        e.ApprovalRequested(
            call_id=call, name="bash", arguments='{"command": "rm -rf build && python -m build"}'
        )
    )
    return s


def unknown_window() -> Script:
    """Nobody knows how large the model's window is."""
    s = Script().start(model="local-7b", budget=unknown_budget()).user(RULE)
    return working(s, 0, 6)


def streaming() -> Script:
    """The model is writing its answer."""
    s = near_threshold()
    s.round()
    s.emit(e.MessageDelta(text="The colon test comes too early, so 3 May is read as a time. I "))
    s.emit(e.MessageDelta(text="change `_split` so that it looks for a month name first."))
    return s


def empty() -> Script:
    """Nothing yet."""
    return Script()


def a_little_hostile() -> Script:
    """One of each kind of attack, in one short session."""
    return hostile(
        [
            "[@click=app.quit]press[/] [/] [b]bold",
            "\x1b]52;c;cm0gLXJmIH4=\x07 \x1b[2J \x9b31m",
            "user\u202e// admin \u200bzero\u2028line\ttab\x00",
        ]
    )
