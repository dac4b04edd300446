"""The commands that show something: the picker, open, demo, run and resume."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import App, Parameter

from thresher.core.errors import ThresherError

from . import crash, output
from .as_before import as_before, folder_of, settings_on_record, tell_changes
from .doctor import no_terminal
from .flags import (
    Break,
    CompactionFlags,
    Headless,
    Json,
    ModelFlags,
    ReadOnly,
    WorkspaceFlag,
    Yes,
    approval,
    breaks_of,
    settings_of,
    workspace_of,
)
from .looks import looks_of
from .reading import SESSION_HELP, meant
from .targets import FILE_HELP, LATEST, located

if TYPE_CHECKING:
    from thresher.core.agent.assemble import Setup
    from thresher.core.agent.loop import Agent, TurnOutcome
    from thresher.core.config import Settings
    from thresher.core.sessions.session import Session
    from thresher.core.sources.base import Tail

    from ..app import ThresherApp
    from ..opening import Opened
    from ..widgets.session_list import SessionRow

PACE, PAUSE = 0.015, 1.0
"""Seconds between two pieces of text, and between two steps, of the demo on a screen."""

_NO_COMPACTION = CompactionFlags()
_NO_MODEL = ModelFlags()


def add_to(app: App) -> None:
    """Register the commands."""
    app.default(picker)
    app.command(demo, help_epilogue="Example: thresher demo --policy teaching --set threshold=6000")
    app.command(
        run,
        help_epilogue='Example: thresher run "fix the failing test" --model gpt-5-mini\n'
        "Example: thresher run --base-url http://127.0.0.1:8000/v1 --wire chat --model local",
    )
    app.command(resume, help_epilogue="Example: thresher resume latest")
    app.command(open_, name="open", help_epilogue="Example: thresher open latest:codex")


# -- commands ----------------------------------------------------------------------------------


def picker() -> int:
    """List the sessions of this machine and open the one you choose."""
    _require_terminal("`thresher sessions` prints the list")
    return _show(None, settings_of({}))


def open_(
    file: Annotated[str, Parameter(help=FILE_HELP)],
    /,
    *,
    session: Annotated[str | None, Parameter(help=SESSION_HELP)] = None,
    server: Annotated[
        str | None,
        Parameter(help="The address of a running OpenCode server, for what is not stored yet."),
    ] = None,
    remote: Annotated[
        bool,
        Parameter(
            name="--remote", negative="", show_default=False, help="SERVER may be another machine."
        ),
    ] = False,
    break_: Break = (),
) -> int:
    """Open any session, own or of another agent, and follow it while it grows.

    With --break compaction, Claude Code and Codex wait for you before they compact, where their
    settings have what `thresher hold` prints.
    """
    breaks = breaks_of(break_, without_screen=False)
    path = located(file)

    def told_apart() -> tuple[Path, Tail]:
        from ..opening import tail_of

        one = meant(path, session)
        return one, tail_of(one, server or "", remote=remote)

    if no_terminal():
        # What is wrong with the file is more worth knowing than that there is no terminal.
        told_apart()
        _require_terminal(f"`thresher compactions {file}` prints its compactions")

    async def start() -> Opened:
        # After the first paint: telling what a file is loads the readers of every format.
        from ..opening import open_file

        one, tail = told_apart()
        return await open_file(one, tail=tail, breaks=breaks)

    return _show(start, settings_of({}))


def demo(
    *,
    compaction: CompactionFlags = _NO_COMPACTION,
    workspace: WorkspaceFlag = None,
    fast: Annotated[
        bool, Parameter(name="--fast", negative="", show_default=False, help="Without pauses.")
    ] = False,
    yes: Yes = False,
    read_only: ReadOnly = False,
    break_: Break = (),
    headless: Headless = False,
    json: Json = False,
) -> int:
    """Watch an agent work on real files until its context is compacted. Needs no model and no key.

    The model is replaced by a stand-in that follows rules; the tools, the files and the
    compactions are real. Without --workspace it works on a small project of its own.
    """
    without_screen = headless or json
    breaks = breaks_of(break_, without_screen)
    if not without_screen:
        _require_terminal("`thresher demo --headless` prints what happens")
    # In a folder of its own it may do what it likes.
    alone = workspace is None and not read_only
    given = {**compaction.values(), **approval(yes or alone, read_only), "model.wire": "offline"}
    settings = settings_of(given)
    folder = None if workspace is None else workspace_of(workspace)

    def make(approver: Any) -> Agent:
        from thresher.core.agent.assemble import new_session
        from thresher.core.demo.driver import demo_setup, demo_workspace

        pace = 0.0 if fast or without_screen else PACE
        setup = demo_setup(settings, folder or demo_workspace(), pace=pace)
        setup = msgspec.structs.replace(setup, approver=approver)
        return _agent(setup, new_session(setup, title="Demo"))

    async def work(agent: Agent) -> Sequence[TurnOutcome]:
        from thresher.core.demo.driver import run_demo

        return await run_demo(agent, pause=0.0 if fast or without_screen else PAUSE)

    if without_screen:
        from . import headless as without

        return without.run(make(None), work, json=json)
    return _show_agent(settings, make, work, breaks)


def run(
    task: Annotated[str | None, Parameter(help="What to do.")] = None,
    /,
    *,
    model: ModelFlags = _NO_MODEL,
    compaction: CompactionFlags = _NO_COMPACTION,
    workspace: WorkspaceFlag = None,
    yes: Yes = False,
    read_only: ReadOnly = False,
    break_: Break = (),
    headless: Headless = False,
    json: Json = False,
) -> int:
    """Run an agent on a folder, live: tools, context and compactions on one screen.

    Settings come from flags, then OPENAI_* variables, then the settings file (`thresher doctor`
    says where). The key is read from the variable that --api-key-var names (OPENAI_API_KEY).
    """
    text = (task or "").strip()
    breaks = breaks_of(break_, headless or json)
    given = {**model.values(), **compaction.values(), **approval(yes, read_only)}
    settings = settings_of(given)
    folder = workspace_of(workspace)

    def make(approver: Any) -> Agent:
        from thresher.core.agent.assemble import new_session, prepare_setup

        setup = prepare_setup(settings, folder, approver=approver)
        return _agent(setup, new_session(setup, title=text.split("\n")[0][:200]))

    return _work(settings, make, text, headless or json, json, "run", breaks)


def resume(
    which: Annotated[str, Parameter(help="The beginning of a session's id, or latest.")] = "latest",
    task: Annotated[str | None, Parameter(help="What to do next.")] = None,
    /,
    *,
    model: ModelFlags = _NO_MODEL,
    compaction: CompactionFlags = _NO_COMPACTION,
    workspace: WorkspaceFlag = None,
    yes: Yes = False,
    read_only: ReadOnly = False,
    break_: Break = (),
    headless: Headless = False,
    json: Json = False,
) -> int:
    """Go on with a session that thresher recorded, exactly where it stopped.

    Model, protocol, policy and folder are those of the session unless flags say otherwise.
    """
    from thresher.core import paths
    from thresher.core.sessions import catalog

    text = (task or "").strip()
    breaks = breaks_of(break_, headless or json)
    # `latest` alone means one of ours here; another agent's session is refused as such.
    named = which.startswith(f"{LATEST}:")
    path = located(which) if named else catalog.find(which, paths.sessions_dir())
    given = {**model.values(), **compaction.values(), **approval(yes, read_only)}
    state = settings_on_record(path)
    settings = as_before(settings_of(given), state, given)
    folder = folder_of(state, workspace)

    def make(approver: Any) -> Agent:
        from thresher.core.agent.assemble import prepare_setup
        from thresher.core.sessions.resume import resume as take_up

        setup = prepare_setup(settings, folder, approver=approver)
        session = take_up(path)
        tell_changes(session, setup)
        return _agent(setup, session)

    return _work(settings, make, text, headless or json, json, "resume", breaks)


# -- screens and their absence -----------------------------------------------------------------

Make = Callable[[Any], "Agent"]
"""Makes the agent, given who is asked for approvals (None: nobody)."""
Work = Callable[["Agent"], Coroutine[Any, Any, Sequence["TurnOutcome"]]]
Start = Callable[[], Awaitable["Opened"]]


def _work(
    settings: Settings,
    make: Make,
    text: str,
    without_screen: bool,
    json: bool,
    command: str,
    breaks: tuple[str, ...],
) -> int:
    async def work(agent: Agent) -> Sequence[TurnOutcome]:
        return [await agent.run_turn(text)]

    if not without_screen:
        _require_terminal(f'`thresher {command} ... "TASK" --headless` prints what happens')
        return _show_agent(settings, make, work if text else None, breaks)
    if not text:
        raise ThresherError(
            "No task", f"without a screen there is nobody to give one: thresher {command} ... TASK."
        )
    from . import headless

    if settings.agent.approval == "ask":
        output.remark(
            "Nobody can be asked here: tools that change things are refused without --yes."
        )
    return headless.run(make(None), work, json=json)


def _show_agent(settings: Settings, make: Make, work: Work | None, breaks: tuple[str, ...]) -> int:
    made: list[Agent] = []

    async def start() -> Opened:
        from ..live import AgentActor, Asking, open_live

        asking = Asking()
        agent = make(asking)
        made.append(agent)
        opened = open_live(agent, asking)
        actor = opened.model.actor
        for text in breaks:
            if isinstance(actor, AgentActor):
                actor.set_break(text)

        async def begin() -> None:
            if work is not None and isinstance(actor, AgentActor):
                actor.play(work(agent))

        opened.background.append(begin)
        return opened

    code = _show(start, settings)
    for agent in made:
        output.remark(f"`thresher resume {agent.session.id}` goes on from here.")
    return code


def _show(start: Start | None, settings: Settings) -> int:
    """Run the app. What cannot be opened ends it, and is told where the user then is."""
    from ..collector import Collector

    # From here on every look for dead cycles would only delay the first contents.
    collector = Collector()
    collector.hold()
    from ..app import ThresherApp

    failures: list[ThresherError] = []

    def guarded(start: Start) -> Start:
        async def opened() -> Opened:
            try:
                return await start()
            except ThresherError as error:
                failures.append(error)
                app.exit()
                raise

        return opened

    def lister() -> Iterator[Sequence[SessionRow]]:
        from ..found import find_sessions

        return find_sessions()

    app = ThresherApp(
        guarded(start) if start else None, lister=lister, collector=collector, **looks_of(settings)
    )
    with _quitting_when_told(app) as told:
        app.run()
    if failures:
        raise failures[0]
    if app.fatal is not None:
        return crash.told(app.fatal)
    return 128 + told[0] if told else app.return_code or 0


@contextmanager
def _quitting_when_told(app: ThresherApp) -> Iterator[list[int]]:
    """A signal to end is a wish to quit: sessions and terminal are put in order first.

    Gives the list into which the signals go.
    """
    told: list[int] = []

    def quit(number: int, _frame: object) -> None:
        told.append(number)
        app.call_later(app.action_quit)

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, quit) for number in signals}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _require_terminal(instead: str) -> None:
    if missing := no_terminal():
        raise ThresherError(
            "No terminal", f"a screen cannot be shown, since {missing}; {instead} without one."
        )


def _agent(setup: Setup, session: Session) -> Agent:
    from thresher.core.agent.assemble import build_agent

    try:
        return build_agent(setup, session)
    except BaseException:
        session.close("the agent could not be made")
        raise
