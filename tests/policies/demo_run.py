"""The demo without a screen: the scripted user, the stand-in model, real tools and files."""

from __future__ import annotations

from typing import Any

from thresher.core import events as e
from thresher.core.agent.assemble import build_agent, new_session
from thresher.core.agent.loop import TurnOutcome
from thresher.core.config import load
from thresher.core.demo.driver import demo_setup, demo_workspace, run_demo
from thresher.core.demo.params import DEMO_PARAMS
from thresher.core.sessions.session import Session


async def demo(policy: str, **params: Any) -> tuple[Session, tuple[TurnOutcome, ...]]:
    """Play the demo's script with a policy and its constants for the demo. Set THRESHER_STATE_DIR
    first. The session is closed; its history stays readable."""
    flags: dict[str, Any] = {
        "agent.approval": "yes",
        "model.wire": "offline",
        "compaction.policy": policy,
    }
    for name, value in {**DEMO_PARAMS.get(policy, {}), **params}.items():
        flags[f"compaction.params.{name}"] = value
    setup = demo_setup(load(environ={}, flags=flags), demo_workspace(), pace=0)
    with new_session(setup, title="demo") as session:
        outcomes = await run_demo(build_agent(setup, session))
    return session, outcomes


def told(session: Session, kind: type[e.Event]) -> list[Any]:
    return [r.event for r in session.history.records if isinstance(r.event, kind)]
