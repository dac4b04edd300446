"""The command palette: the key table's entries, as far as they make sense right now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher
from textual.screen import Screen

from thresher.core.errors import ThresherError
from thresher.core.text import clean_line

from .keys import KEYS, Group, Key, Where
from .model import ConsoleModel, DebugActor
from .offering import offers
from .opening import Opened


@runtime_checkable
class Host(Protocol):
    """The app, as far as its commands need it."""

    @property
    def model(self) -> ConsoleModel | None: ...

    @property
    def opened(self) -> Sequence[Opened]: ...

    @property
    def shown(self) -> Opened | None: ...

    def go_to(self, opened: Opened) -> None: ...

    def search_themes(self) -> None: ...

    def action_export(self, choice: str = "") -> None: ...

    def report(self, error: BaseException) -> None: ...

    async def run_action(self, action: str) -> bool: ...


class Command(NamedTuple):
    """One entry: `name` reads "Group: Verb object" and is clean, `tip` is our own sentence."""

    name: str
    tip: str
    run: Callable[[], object]


def makes_sense(key: Key, screen: Screen[object], model: ConsoleModel | None) -> bool:
    """Whether the entry of a key can do something on this screen, in this state."""
    if not key.palette:
        return False
    if key.where is Where.APP:
        return key.id != "app.sessions" or Where.PICKER is not _place(screen)
    if key.where is not _place(screen):
        return False
    if model is None or key.where is not Where.CONSOLE:
        return screen.check_action(key.action.partition("(")[0], ()) is not False
    return offers(key.id, model) is True


def commands(app: Host, screen: Screen[object]) -> Iterator[Command]:
    """All entries for this screen in this state, in the order of the groups."""
    model = app.model if _place(screen) is Where.CONSOLE else None
    for group in Group:
        for key in KEYS:
            if key.group is group and makes_sense(key, screen, model):
                target = app if key.where is Where.APP else screen
                name = f"{_WORD.get(group, group.value)}: {key.palette}"
                yield Command(name, key.tip, _runner(target, key.action))
        if group is Group.SESSION:
            for opened in app.opened:
                if opened is not app.shown or model is None:
                    name = f"Session: Go to {clean_line(opened.title, 60)}"
                    yield Command(name, "A session that is open", _goer(app, opened))
        if group is Group.COMPACTION and model is not None:
            yield Command(
                "Compaction: Forecast of all policies", "When each would compact next",
                _runner(screen, "forecast"),
            )  # fmt: skip
            yield Command(
                "Compaction: Compare two positions...", "Any two of the session",
                _runner(screen, "compare"),
            )  # fmt: skip
        if group is Group.COMPACTION and model is not None:
            yield from _policies(app, model)
        if group is Group.SESSION:
            yield from _exports(app, screen)
        if group is Group.VIEW:
            yield Command("View: Choose a theme...", "All themes there are", app.search_themes)


def _exports(app: Host, screen: Screen[object]) -> Iterator[Command]:
    """One entry for everything that can be taken along from this screen, in each of its forms."""
    from .exporting import COMMANDS, What
    from .screens.export import meant_card

    for choice, name, tip in COMMANDS:
        if choice.what is not What.SCREEN and (app.model is None or _place(screen) is Where.PICKER):
            continue
        if choice.what is What.COMPACTION and meant_card(screen) is None:
            continue
        yield Command(f"Export: {name}", tip, _exporter(app, choice.id))


def _exporter(app: Host, choice: str) -> Callable[[], object]:
    return lambda: app.action_export(choice)


def _policies(app: Host, model: ConsoleModel) -> Iterator[Command]:
    """One entry for each policy that is not in force."""
    from thresher.core.compaction.policies.registry import names

    actor = model.actor
    if not isinstance(actor, DebugActor):
        return
    for name in names():
        if name != model.history.state.policy:
            yield Command(
                f"Policy: Switch to {name}", "From the next moment on, on record",
                _switcher(app, actor, name),
            )  # fmt: skip


def _switcher(app: Host, actor: DebugActor, name: str) -> Callable[[], object]:
    def switch() -> None:
        try:
            actor.set_policy(name)
        except ThresherError as error:
            app.report(error)

    return switch


_WORD = {Group.TIME: "Go"}
"""Where the palette has a verb for what the help calls by a noun."""


def _place(screen: Screen[object]) -> Where | None:
    from .screens.console import ConsoleScreen
    from .screens.context import ContextScreen
    from .screens.diff import DiffScreen
    from .screens.picker import PickerScreen
    from .screens.stop import StopScreen

    if isinstance(screen, ConsoleScreen):
        return Where.CONSOLE
    if isinstance(screen, StopScreen):
        return Where.STOP
    if isinstance(screen, DiffScreen):
        return Where.DIFF
    if isinstance(screen, ContextScreen):
        return Where.CONTEXT
    return Where.PICKER if isinstance(screen, PickerScreen) else None


def _runner(target: Host | Screen[object], action: str) -> Callable[[], object]:
    return lambda: target.run_action(action)


def _goer(app: Host, opened: Opened) -> Callable[[], object]:
    return lambda: app.go_to(opened)


class Commands(Provider):
    """Finds entries for what is typed; shows all of them before anything is."""

    @property
    def _all(self) -> Iterator[Command]:
        app = self.app
        return commands(app, self.screen) if isinstance(app, Host) else iter(())

    async def discover(self) -> Hits:
        """Everything that makes sense now."""
        for command in self._all:
            yield DiscoveryHit(
                Content(command.name), command.run, text=command.name, help=command.tip
            )

    async def search(self, query: str) -> Hits:
        """What fits the words."""
        matcher = self.matcher(query)
        for command in self._all:
            score = matcher.match(command.name)
            if score > 0:
                yield Hit(
                    score,
                    _highlighted(matcher, command.name),
                    command.run,
                    text=command.name,
                    help=command.tip,
                )


def _highlighted(matcher: Matcher, name: str) -> Content:
    # Not `Matcher.highlight`: that one parses the name as markup.
    content = Content(name)
    _, offsets = matcher.fuzzy_search.match(matcher.query, name)
    for at in offsets:
        content = content.stylize("bold underline", at, at + 1)
    return content
