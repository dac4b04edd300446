"""Draws the pictures in screenshots/ from recorded sessions.

`python -m thresher.tui.shots` writes them; with `--check` it compares them with what is there and
ends with 1 when one differs. Everything that could differ from run to run is given: size, clock,
home directory, theme, and how much of a session is in view. No number in a picture is made up.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from thresher.core import events as e
from thresher.core.history import History

from .gallery import draw_gallery
from .opening import CachedCost, Marks, Opened, tail_of

FOLDER = Path("screenshots")
SESSIONS = FOLDER / "sessions"
"""Recorded sessions, packed with gzip; its README says how each was recorded."""
FIXTURES = Path("tests") / "fixtures"
"""Recorded sessions of other agents: a scene names one with a slash and its ending."""

GALLERY = FOLDER / "policies.svg"
"""The cards of every policy, from the demos in SESSIONS/policies."""

DEMO, CODEX, CODEX_TURNS = "demo", "codex-two-mid-turn", "codex-pre-turn-twice"

Cut = Callable[[Sequence[e.Record]], int]
"""How many records of a session are in view."""


LAST = 0


def whole(records: Sequence[e.Record]) -> int:
    """All of them."""
    return len(records)


def before(kind: type[e.Event], number: int = 1) -> Cut:
    """Up to the event of this kind with this number (LAST: the last one), without it."""

    def cut(records: Sequence[e.Record]) -> int:
        at = [i for i, record in enumerate(records) if isinstance(record.event, kind)]
        return at[min(number, len(at)) - 1] if at else len(records)

    return cut


def after(kind: type[e.Event], number: int = 1) -> Cut:
    """Up to the event of this kind with this number, and with it."""
    return lambda records: min(len(records), before(kind, number)(records) + 1)


@dataclass(frozen=True)
class Scene:
    """One picture. `session` is a file of SESSIONS; None is the list of all of them."""

    name: str
    session: str | None
    size: tuple[int, int] = (120, 40)
    theme: str = ""
    cut: Cut = whole
    keys: tuple[str, ...] = ()
    live: bool = True

    @property
    def file(self) -> Path:
        """Where the picture lies."""
        return FOLDER / f"{self.name}.svg"

    @property
    def ready(self) -> bool:
        """True when its session has been recorded."""
        return self.session is None or packed(self.session).is_file()


DONE = before(e.SessionFinished)
"""All that the agent did."""

SCENES: tuple[Scene, ...] = (
    Scene("picker", None),
    Scene("near-threshold", DEMO, cut=before(e.UsageReported, LAST)),
    Scene("compacting", DEMO, cut=after(e.CompactionStarted)),
    Scene("card-open", DEMO, cut=after(e.HistoryCompacted), keys=("tab", "e")),
    Scene("narrow", DEMO, size=(80, 24), cut=DONE),
    Scene("wide", DEMO, size=(160, 48), cut=DONE, keys=("tab", "e")),
    Scene("light", DEMO, theme="thresher-light", cut=DONE),
    Scene("rewound", DEMO, cut=DONE, keys=("tab", "left_square_bracket", "left_square_bracket")),
    Scene("codex", CODEX, live=False),
    Scene("codex-narrow", CODEX, size=(80, 24), live=False),
    Scene(
        "codex-rewound", CODEX_TURNS, size=(160, 48), keys=("left_square_bracket",), live=False,
    ),
    Scene("codex-light", CODEX_TURNS, theme="thresher-light", live=False),
    Scene("claude-code", "claude_code/v2_1_197_auto_twice.jsonl", keys=("tab", "e"), live=False),
    Scene("opencode", "opencode/v1-two-summaries/opencode.db", live=False),
    Scene("pi", "pi/auto_manual.jsonl", live=False),
    Scene("maf", "maf/summarised.json", live=False),
    Scene("help", None, keys=("f1",)),
)  # fmt: skip


class NobodyThere:
    """An actor for a picture: the console looks live, and nothing happens."""

    def send(self, text: str) -> None:
        """Nothing."""

    def interrupt(self) -> None:
        """Nothing."""

    def compact(self, focus: str) -> None:
        """Nothing."""

    def answer(self, decision: str) -> None:
        """Nothing."""

    def close_breaker(self) -> None:
        """Nothing."""


def packed(name: str) -> Path:
    """Where a recorded session lies."""
    return FIXTURES / f"{name}.gz" if "/" in name else SESSIONS / f"{name}.jsonl.gz"


def unpacked(name: str, folder: Path) -> Path:
    """A recorded session as a plain file in this folder."""
    path = folder / (name.rpartition("/")[2] if "/" in name else f"{name}.jsonl")
    path.write_bytes(gzip.decompress(packed(name).read_bytes()))
    return path


def opened(scene: Scene, path: Path) -> Opened:
    """The session of a scene, counted, up to its cut."""
    from thresher.core.tokenizer import counter_for

    from .model import ConsoleModel

    records = list(tail_of(path).more())
    shown = records[: scene.cut(records)]
    history = History()
    history.extend(shown)
    counter = counter_for(history.state.model)
    history.recount(CachedCost(counter), counter.basis)
    actor = NobodyThere() if scene.live else None
    return Opened(ConsoleModel(history, actor=actor, marks_of=Marks()), path)


async def draw(scene: Scene, home: Path, now: float) -> str:
    """The picture of a scene as SVG. `home` is a home directory that holds the sessions, `now` the
    time on every clock."""
    from .app import ThresherApp
    from .found import find_sessions
    from .screens.error import ErrorScreen
    from .screens.opening import OpeningScreen
    from .screens.picker import PickerScreen

    async def start() -> Opened:
        return opened(scene, unpacked(scene.session or "", home))

    places = (home / "sessions", home / ".codex")
    app = ThresherApp(
        None if scene.session is None else start,
        lister=lambda: find_sessions(*places),
        clock=lambda: now,
        theme=scene.theme,
    )
    async with app.run_test(size=scene.size, notifications=True, tooltips=True) as pilot:
        await app.workers.wait_for_complete()
        while isinstance(app.screen, OpeningScreen):
            await pilot.pause()
        while isinstance(app.screen, PickerScreen) and app.screen.searching:
            await pilot.pause()
        for key in scene.keys:
            await pilot.press(key)
        for _ in range(3):
            await pilot.pause()
        if isinstance(app.screen, ErrorScreen):
            raise RuntimeError(f"the scene {scene.name} ends in an error")
        return stable(app.export_screenshot(title="thresher"))


def stable(svg: str) -> str:
    """An SVG without what differs between runs or needs the network: ids and web fonts."""
    svg = re.sub(r"\s*@font-face \{[^}]*\}", "", svg)
    svg = re.sub(r"terminal-\d+", "terminal", svg)
    return svg if svg.endswith("\n") else svg + "\n"


@contextmanager
def recorded_home() -> Iterator[tuple[Path, float]]:
    """A home directory with every recorded session where its agent would keep it, and a time a
    little after the last thing that any of them tells."""
    kept = os.environ.get("HOME")
    with tempfile.TemporaryDirectory(prefix="thresher-shots-") as name:
        home = Path(name)
        names = sorted(path.name for path in SESSIONS.glob("*.jsonl.gz"))
        ends = [_install(name.removesuffix(".jsonl.gz"), home) for name in names]
        os.environ["HOME"] = name
        try:
            yield home, max(ends, default=0.0) + 240
        finally:
            if kept is None:
                del os.environ["HOME"]
            else:
                os.environ["HOME"] = kept


def _install(name: str, home: Path) -> float:
    path = unpacked(name, home)
    records = list(tail_of(path).more())
    path.unlink()
    first, last = records[0].at, max(record.at for record in records)
    day = datetime.fromtimestamp(first, UTC)
    started = next((r.event for r in records if isinstance(r.event, e.SessionStarted)), None)
    id = started.session_id if started else name
    if name.startswith("codex"):
        folder = home / ".codex" / "sessions" / f"{day:%Y/%m/%d}"
        place = folder / f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{id}.jsonl"
    else:
        place = home / "sessions" / f"{day:%Y/%m/%d}" / id / "journal.jsonl"
    place.parent.mkdir(parents=True, exist_ok=True)
    unpacked(name, home).replace(place)
    os.utime(place, (last, last))
    return last


def _environment() -> None:
    fixed = {"TEXTUAL_ANIMATIONS": "none", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
    os.environ.update(fixed | {"TZ": "UTC"})
    os.environ.pop("NO_COLOR", None)
    time.tzset()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures, or compare them. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m thresher.tui.shots", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", help="only these scenes")
    options = parser.parse_args(arguments)
    _environment()
    stale = []
    with recorded_home() as (home, now):
        for scene in SCENES:
            if not scene.ready or (options.names and scene.name not in options.names):
                continue
            svg = asyncio.run(draw(scene, home, now))
            if not options.check:
                scene.file.write_text(svg, encoding="utf-8")
            elif not scene.file.is_file() or scene.file.read_text(encoding="utf-8") != svg:
                stale.append(scene.file)
    if not options.names or GALLERY.stem in options.names:
        svg = stable(asyncio.run(draw_gallery(SESSIONS / "policies")))
        if not options.check:
            GALLERY.write_text(svg, encoding="utf-8")
        elif not GALLERY.is_file() or GALLERY.read_text(encoding="utf-8") != svg:
            stale.append(GALLERY)
    for file in stale:
        sys.stderr.write(f"{file} is not what the screen looks like now\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
