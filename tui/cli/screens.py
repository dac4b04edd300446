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

from . import output
from .doctor import no_terminal
from .flags import (
    CompactionFlags,
    Headless,
    Json,
    ModelFlags,
    ReadOnly,
    WorkspaceFlag,
    Yes,
    approval,
    settings_of,
    workspace_of,
)
from .targets import FILE_HELP, located

if TYPE_CHECKING:
    from thresher.core.agent.assemble import Setup
    from thresher.core.agent.loop import Agent, TurnOutcome
    from thresher.core.config import Settings
    from thresher.core.sessions.session import Session
    from thresher.core.state import SessionState

    from ..app import ThresherApp
    from ..opening import Opened
    from ..widgets.session_list import SessionRow

PACE, PAUSE = 0.015, 1.0
"""Seconds between two pieces of text, and between two steps, of the demo on a screen."""
BATCH = 20
"""Sessions that the picker gets at a time."""

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
    return _show(None)


def open_(file: Annotated[str, Parameter(help=FILE_HELP)], /) -> int:
    """Open any session, own or of another agent, and follow it while it grows."""
    from ..opening import open_file, tail_of

    path = located(file)
    tail_of(path)
    _require_terminal(f"`thresher compactions {file}` prints its compactions")
    return _show(lambda: open_file(path))


def demo(
    *,
    compaction: CompactionFlags = _NO_COMPACTION,
    workspace: WorkspaceFlag = None,
    fast: Annotated[
        bool, Parameter(name="--fast", negative="", show_default=False, help="Without pauses.")
    ] = False,
    yes: Yes = False,
    read_only: ReadOnly = False,
    headless: Headless = False,
    json: Json = False,
) -> int:
    """Watch an agent work on real files until its context is compacted. Needs no model and no key.

    The model is replaced by a stand-in that follows rules; the tools, the files and the
    compactions are real. Without --workspace it works on a small project of its own.
    """
    without_screen = headless or json
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
    return _show_agent(settings, make, work)


def run(
    task: Annotated[str | None, Parameter(help="What to do.")] = None,
    /,
    *,
    model: ModelFlags = _NO_MODEL,
    compaction: CompactionFlags = _NO_COMPACTION,
    workspace: WorkspaceFlag = None,
    yes: Yes = False,
    read_only: ReadOnly = False,
    headless: Headless = False,
    json: Json = False,
) -> int:
    """Run an agent on a folder, live: tools, context and compactions on one screen.

    Settings come from flags, then OPENAI_* variables, then the settings file (`thresher doctor`
    says where). The key is read from the variable that --api-key-var names (OPENAI_API_KEY).
    """
    text = (task or "").strip()
    given = {**model.values(), **compaction.values(), **approval(yes, read_only)}
    settings = settings_of(given)
    folder = workspace_of(workspace)

    def make(approver: Any) -> Agent:
        from thresher.core.agent.assemble import new_session, prepare_setup

        setup = prepare_setup(settings, folder, approver=approver)
        return _agent(setup, new_session(setup, title=text.split("\n")[0][:200]))

    return _work(settings, make, text, headless or json, json, "run")


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
    headless: Headless = False,
    json: Json = False,
) -> int:
    """Go on with a session that thresher recorded, exactly where it stopped.

    Model, protocol, policy and folder are those of the session unless flags say otherwise.
    """
    from thresher.core import paths
    from thresher.core.sessions import catalog

    text = (task or "").strip()
    path = catalog.find(which, paths.sessions_dir())
    given = {**model.values(), **compaction.values(), **approval(yes, read_only)}
    state = _settings_on_record(path)
    settings = _as_before(settings_of(given), state, given)
    folder = _folder_of(state, workspace)

    def make(approver: Any) -> Agent:
        from thresher.core.agent.assemble import prepare_setup
        from thresher.core.sessions.resume import resume as take_up

        setup = prepare_setup(settings, folder, approver=approver)
        session = take_up(path)
        _tell_changes(session, setup)
        return _agent(setup, session)

    return _work(settings, make, text, headless or json, json, "resume")


# -- screens and their absence -----------------------------------------------------------------

Make = Callable[[Any], "Agent"]
"""Makes the agent, given who is asked for approvals (None: nobody)."""
Work = Callable[["Agent"], Coroutine[Any, Any, Sequence["TurnOutcome"]]]


def _work(
    settings: Settings, make: Make, text: str, without_screen: bool, json: bool, command: str
) -> int:
    async def work(agent: Agent) -> Sequence[TurnOutcome]:
        return [await agent.run_turn(text)]

    if not without_screen:
        _require_terminal(f'`thresher {command} ... "TASK" --headless` prints what happens')
        return _show_agent(settings, make, work if text else None)
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


def _show_agent(settings: Settings, make: Make, work: Work | None) -> int:
    made: list[Agent] = []

    async def start() -> Opened:
        from ..live import AgentActor, Asking, open_live

        asking = Asking()
        agent = make(asking)
        made.append(agent)
        opened = open_live(agent, asking)
        actor = opened.model.actor

        async def begin() -> None:
            if work is not None and isinstance(actor, AgentActor):
                actor.play(work(agent))

        opened.background.append(begin)
        return opened

    code = _show(start, settings.screen.theme)
    for agent in made:
        output.remark(f"`thresher resume {agent.session.id}` goes on from here.")
    return code


def _show(start: Callable[[], Awaitable[Opened]] | None, theme: str = "") -> int:
    """Run the app. What cannot be opened ends it, and is told where the user then is."""
    from ..app import ThresherApp

    failures: list[ThresherError] = []

    async def guarded() -> Opened:
        try:
            return await start()  # type: ignore[misc]  # only used when there is a start
        except ThresherError as error:
            failures.append(error)
            app.exit()
            raise

    app = ThresherApp(guarded if start else None, lister=_sessions, theme=theme)
    with _quitting_when_told(app) as told:
        app.run()
    if failures:
        raise failures[0]
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

    before = {number: signal.signal(number, quit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _sessions() -> Iterator[Sequence[SessionRow]]:
    """What the picker lists, ours first, since they are quicker to look at."""
    from ..widgets.session_list import SessionRow
    from .known import codex_sessions, own_sessions

    rows: list[SessionRow] = []
    for found in (own_sessions(), codex_sessions()):
        for each in found:
            rows.append(
                SessionRow(
                    path=each.path,
                    agent=each.agent,
                    title=each.title,
                    model=each.model,
                    id=each.id,
                    size=each.size,
                    last_at=each.last,
                    compactions=each.compactions,
                    running=each.running,
                    problem=each.problem,
                )
            )
            if len(rows) >= BATCH:
                yield rows
                rows = []
    yield rows


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


# -- going on as before ------------------------------------------------------------------------


def _settings_on_record(path: Path) -> SessionState:
    """The state of a session as far as its settings go, read without taking it up."""
    from thresher.core import events as e
    from thresher.core.sessions.resume import read
    from thresher.core.state import SessionState

    state = SessionState()
    for record in read(path).records:
        if isinstance(record.event, e.SessionStarted | e.ModelChanged | e.PolicyChanged):
            state.apply(record)
    if not state.agent:
        raise ThresherError(
            "Not a session",
            f"{path} has no start of a thresher session that can be read: `thresher sessions` "
            "lists those that can be resumed.",
        )
    return state


def _as_before(settings: Settings, state: SessionState, given: dict[str, Any]) -> Settings:
    from thresher.core.config import Wire

    model, chosen = settings.model, settings.compaction
    if given.get("model.wire") is None and state.wire in set(Wire):
        model = msgspec.structs.replace(model, wire=Wire(state.wire))
    if given.get("model.name") is None and state.model:
        model = msgspec.structs.replace(model, name=state.model)
    window = state.budget.window.value if state.budget else None
    if model.wire is Wire.OFFLINE and model.window is None:
        model = msgspec.structs.replace(model, window=window)
    if given.get("compaction.policy") is None and state.policy:
        flags = {
            name.rpartition(".")[2]: value
            for name, value in given.items()
            if name.startswith("compaction.params.")
        }
        chosen = msgspec.structs.replace(
            chosen, policy=state.policy, params={**state.policy_params, **flags}
        )
    return msgspec.structs.replace(settings, model=model, compaction=chosen)


def _folder_of(state: SessionState, workspace: Path | None) -> Path:
    if workspace is not None or not state.cwd:
        return workspace_of(workspace)
    folder = Path(state.cwd)
    if not folder.is_dir():
        raise ThresherError(
            "No such folder",
            f"the session worked in {folder}, which is gone: name another with --workspace.",
        )
    return folder


def _tell_changes(session: Session, setup: Setup) -> None:
    """Put on record what is not as it was. The limits follow when the agent begins to work."""
    from thresher.core import events as e

    state = session.state
    if setup.model != state.model:
        session.emit(e.ModelChanged(model=setup.model, previous=state.model))
    params = msgspec.to_builtins(setup.policy.params)
    if (setup.policy.name, params) != (state.policy, state.policy_params):
        session.emit(e.PolicyChanged(policy=setup.policy.name, policy_params=params))
