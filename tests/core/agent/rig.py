"""An agent as a user has it: settings, a workspace with files, and the real openai client talking
to a model server on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from thresher.core import events as e
from thresher.core.agent.approvals import ApprovalRequest, Approver, Decision
from thresher.core.agent.assemble import build_agent, new_session, prepare_setup
from thresher.core.agent.loop import Agent
from thresher.core.agent.tools.cap import OutputCap
from thresher.core.config import load
from thresher.core.items import FunctionCallOutput, Message, Role
from thresher.core.sessions.session import Session
from thresher.core.validate import Dialect, validate

from ...loopback import Loopback, Script


class Rig(NamedTuple):
    """What a test works with."""

    agent: Agent
    session: Session
    server: Loopback
    workspace: Path

    def events(self, *kinds: type[e.Event]) -> list[Any]:
        """The events of these kinds, in order."""
        return [r.event for r in self.session.history.records if isinstance(r.event, kinds)]

    def outputs(self) -> list[FunctionCallOutput]:
        """Every tool output that was ever committed, in order."""
        items = [event.item for event in self.events(e.ItemAppended)]
        return [item for item in items if isinstance(item, FunctionCallOutput)]

    def said(self) -> list[str]:
        """What the model said, in order."""
        items = [event.item for event in self.events(e.ItemAppended)]
        return [i.text for i in items if isinstance(i, Message) and i.role is Role.ASSISTANT]

    def valid(self) -> bool:
        """The context could be sent as it is."""
        return not validate(self.session.state.context.items, Dialect.CHAT)


class Answering:
    """An approver that gives one answer after the other and notes what it was asked."""

    def __init__(self, *answers: Decision) -> None:
        self.answers = list(answers)
        self.asked: list[ApprovalRequest] = []

    async def ask(self, request: ApprovalRequest) -> Decision:
        self.asked.append(request)
        return self.answers.pop(0)


@asynccontextmanager
async def rig(
    tmp_path: Path,
    script: Script,
    *,
    wire: str = "chat",
    approval: str = "yes",
    approver: Approver | None = None,
    params: Mapping[str, Any] | None = None,
    window: int | None = None,
    cap: OutputCap | None = None,
    flags: Mapping[str, Any] | None = None,
    **server_options: Any,
):
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "notes.txt").write_text("the rule: keep prices in cents\n" * 40)
    async with Loopback(script, **server_options) as server:
        settings = load(
            environ={},
            flags={
                "model.name": "loop-model",
                "model.base_url": server.base_url,
                "model.wire": wire,
                "model.key_variable": "",
                "model.window": window,
                "agent.approval": approval,
                "compaction.params": dict(params or {}),
                **(flags or {}),
            },
        )
        setup = prepare_setup(settings, workspace, approver=approver, cap=cap)
        session = new_session(setup, root=tmp_path / "sessions")
        agent = build_agent(setup, session)
        agent.asker.retrying = agent.asker.retrying.__class__(first_wait=0.0, longest_wait=0.0)
        try:
            yield Rig(agent, session, server, workspace)
        finally:
            session.close()
            await setup.gateway.aclose()
