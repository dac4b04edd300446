"""The scripted user of the demo: three requests and one compaction by hand.

The agent, its tools and the compactions are real; only the model is a stand-in. The three causes
of a compaction come about by themselves: the first task fills the context to the policy's
threshold, the user compacts once by hand, and the last task makes outputs larger than the window.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from .. import paths
from ..agent.assemble import Setup, prepare_setup
from ..agent.loop import Agent, TurnOutcome
from ..agent.tools.cap import OutputCap
from ..config import Settings
from ..errors import ThresherError
from ..gateways.offline import OfflineGateway
from .params import DEMO_PARAMS
from .project import write_project

WINDOW = 12_000
"""The stand-in's window in tokens: small, so that a minute is enough to fill it."""

CAP = OutputCap(max_chars=12_000, head=5_000, tail=5_000)


class Said(msgspec.Struct, frozen=True):
    """The user says something."""

    text: str


class Compacted(msgspec.Struct, frozen=True):
    """The user compacts by hand."""

    focus: str


SCRIPT: tuple[Said | Compacted, ...] = (
    Said(
        "Explore this project and say what each module does. Prices must stay integers in "
        "cents: never suggest floats."
    ),
    Said("Find every TODO and every error in the logs, and say which belong together."),
    Compacted("the outage around noon, and the rule about logs/"),
    Said("Read the whole server log and find the outage: when did it begin and when did it end?"),
)


def demo_workspace() -> Path:
    """A fresh folder with the demo project, below the state directory, where it stays for a look
    afterwards. Raises ThresherError when it cannot be written."""
    root = paths.ensure_dir(paths.state_dir() / "demo")
    for number in range(1, 100_000):
        folder = root / f"project-{number}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        except OSError as fault:
            raise _unwritable(root, fault) from fault
        try:
            write_project(folder)
        except OSError as fault:
            raise _unwritable(folder, fault) from fault
        return folder
    raise ThresherError("Demo not started", f"{root} is full of demo projects: remove some.")


def demo_setup(settings: Settings, workspace: Path, *, pace: float, window: int = WINDOW) -> Setup:
    """An agent setup with the stand-in. `pace` is the wait between pieces of text, in seconds."""
    gateway = OfflineGateway(workspace, window=settings.model.window or window, pace=pace)
    return prepare_setup(small(settings), workspace, gateway=gateway, cap=CAP)


def small(settings: Settings) -> Settings:
    """The settings with the policy's constants scaled to the demo's window, unless the user set
    them."""
    compaction = settings.compaction
    params = {**DEMO_PARAMS.get(compaction.policy, {}), **compaction.params}
    compaction = msgspec.structs.replace(compaction, params=params)
    return msgspec.structs.replace(settings, compaction=compaction)


async def run_demo(
    agent: Agent,
    *,
    pause: float = 0.0,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    script: tuple[Said | Compacted, ...] = SCRIPT,
) -> tuple[TurnOutcome, ...]:
    """Play the script on an agent, with `pause` seconds between its steps. An interrupted turn
    ends the script. Returns how the turns ended."""
    outcomes: list[TurnOutcome] = []
    for at, step in enumerate(script):
        if at:
            await sleep(pause)
        match step:
            case Said(text=text):
                outcomes.append(await agent.run_turn(text))
                if outcomes[-1] is TurnOutcome.INTERRUPTED:
                    break
            case Compacted(focus=focus):
                await agent.compact(focus)
    return tuple(outcomes)


def _unwritable(place: Path, fault: OSError) -> ThresherError:
    return ThresherError(
        "Demo not started",
        f"{place} cannot be written ({os.strerror(fault.errno or 0)}): set THRESHER_STATE_DIR to a "
        "folder that can be, or give --workspace.",
    )
