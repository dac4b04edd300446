"""Putting an agent together from the user's settings: session, gateway, engine, tools."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import msgspec

from .. import __version__, paths
from .. import events as e
from ..compaction.engine import Engine, EngineSettings, Guard
from ..compaction.policies import registry
from ..compaction.policy import Moment, Policy
from ..compaction.store import FileStore
from ..compaction.summariser import GatewaySummariser, OfflineSummariser, Summariser
from ..config import Settings
from ..debug.debugger import Debugger
from ..gateways.base import EndpointLimits, Gateway
from ..gateways.make import make_gateway, model_name
from ..items import Message, Role
from ..measure import LateMeasure
from ..models import Fact, ModelLimits, Origin, Stated, resolve
from ..sessions.session import Session
from ..tokens import Scope, Tokens
from ..validate import Dialect
from .approvals import ApprovalPolicy, Approvals, Approver, Mode
from .asking import Asker, Retrying, fixed_size
from .calls import Batch, RecordingApprover
from .delegate import CompactTool, TaskTool
from .loop import Agent, LoopSettings, TurnOutcome
from .policy_tools import WithPolicyTools
from .remote import RemoteCompactor
from .rereading import rereading
from .tools.base import Tool, ToolContext
from .tools.cap import OutputCap
from .tools.registry import builtin_tools
from .tools.workspace import Workspace

AGENTS_FOLDER = "agents"
"""Where the sessions of subagents lie, beside the journal of their parent."""

ALSO_AT = frozenset({Moment.TURN_START, Moment.OVERFLOW})
"""Moments the engine offers to every policy of our own agent, whatever its system does: a turn
must not begin over the limit, and a refused request must be recoverable."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is built from. `approver` is asked for tools that change something; without
    one such calls are refused unless the mode is yes."""

    settings: Settings
    workspace: Path
    gateway: Gateway
    model: str
    policy: Policy
    limits: ModelLimits
    approver: Approver | None = None
    cap: OutputCap = OutputCap()
    loop: LoopSettings = LoopSettings()
    retrying: Retrying = Retrying()
    system_prompt: str = ""


def prepare_setup(
    settings: Settings,
    workspace: Path,
    *,
    gateway: Gateway | None = None,
    approver: Approver | None = None,
    cap: OutputCap | None = None,
) -> Setup:
    """Resolve everything that can be known without asking anyone. Raises ThresherError for
    settings that cannot work (no model, unknown policy, a constant out of range)."""
    model = model_name(settings)
    policy = registry.make(settings.compaction.policy, settings.compaction.params)
    return Setup(
        settings=settings,
        workspace=workspace,
        gateway=gateway or make_gateway(settings, workspace),
        model=model,
        policy=policy,
        limits=resolve(model, user=settings.stated_limits()),
        approver=approver,
        cap=cap or OutputCap(),
        loop=LoopSettings(max_rounds=settings.agent.max_rounds),
        system_prompt=system_prompt(),
    )


def system_prompt() -> str:
    """The agent's own instructions."""
    return resources.files(__package__).joinpath("prompts/system.md").read_text("utf-8").strip()


def new_session(setup: Setup, *, root: Path | None = None, title: str = "") -> Session:
    """Begin a session for this setup below `root` (the user's sessions by default)."""
    return Session.create(
        root or paths.sessions_dir(),
        started(setup, title=title),
    )


def started(setup: Setup, *, title: str = "", parent: str = "") -> e.SessionStarted:
    """The first event of a session of this setup."""
    return e.SessionStarted(
        session_id="",
        agent="thresher",
        cwd=str(setup.workspace),
        model=setup.model,
        wire=setup.gateway.wire,
        policy=setup.policy.name,
        policy_params=msgspec.to_builtins(setup.policy.params),
        budget=setup.limits.budget(_reserve(setup.settings)),
        version=__version__,
        title=title,
        parent=parent,
    )


def build_agent(setup: Setup, session: Session, *, subagent: bool = False) -> Agent:
    """An agent on this session. A subagent gets neither `compact` nor `task`."""
    measure = LateMeasure(setup.model)
    dialect = Dialect.RESPONSES if setup.gateway.wire == "responses" else Dialect.CHAT
    compaction = setup.settings.compaction
    workspace = Workspace(setup.workspace)
    engine = Engine(
        session,
        setup.policy,
        summarisers=summarisers(setup),
        settings=EngineSettings(
            guard=Guard(compaction.guard),
            dialect=dialect,
            also_at=ALSO_AT,
            max_failures=compaction.max_failures,
            retries=compaction.retries,
            stream_summaries=True,
            threshold_share=compaction.threshold_share,
        ),
        measure=measure,
        store=FileStore(session.outputs),
        reread=rereading(workspace),
        remote=RemoteCompactor(
            session,
            setup.gateway,
            model=setup.model,
            measure=measure,
            retrying=setup.retrying,
        ),
    )
    read_only = setup.settings.agent.approval == "read-only"
    extra = () if subagent else (CompactTool(), TaskTool(_Delegation(setup, session)))
    tools: Mapping[str, Tool] = builtin_tools(read_only, extra)
    if not subagent:
        tools = WithPolicyTools(tools, engine, setup.model)
    approver = RecordingApprover(session, setup.approver) if setup.approver else None
    mode = Mode(setup.settings.agent.approval.replace("-", "_"))
    batch = Batch(
        session,
        engine,
        tools,
        ToolContext(
            workspace=workspace,
            outputs_dir=session.outputs,
            stream=lambda _: None,
            cap=setup.cap,
            secret_variables=frozenset({setup.settings.model.key_variable}),
        ),
        Approvals(ApprovalPolicy(mode), approver),
    )
    agent = Agent(
        session=session,
        engine=engine,
        asker=Asker(
            session, setup.gateway, dialect=dialect, measure=measure, retrying=setup.retrying
        ),
        batch=batch,
        measure=measure,
        model=setup.model,
        system_prompt=setup.system_prompt,
        tools=tools,
        settings=setup.loop,
    )
    if not subagent:
        agent.debugger = Debugger(session, size=lambda: agent.size)
        engine.set_gate(agent.debugger)
    agent.prepare = _Preparation(setup, agent, measure)
    return agent


def summarisers(setup: Setup) -> tuple[Summariser, ...]:
    """The chain: the summariser the user named, the session's own model, the extractive one. The
    name "offline" means the extractive one alone."""
    most = setup.limits.max_output.value
    named = setup.settings.compaction.summariser
    if named == "offline":
        return (OfflineSummariser(),)
    chain: list[Summariser] = []
    if named and named != setup.model:
        chain.append(GatewaySummariser(setup.gateway, named))
    chain.append(GatewaySummariser(setup.gateway, setup.model, max_output=most))
    chain.append(OfflineSummariser())
    return tuple(chain)


def _reserve(settings: Settings) -> Fact | None:
    reserve = settings.model.reserve
    if reserve is None:
        return None
    return Fact(reserve, settings.source("model.reserve"), Origin.USER)


class _Preparation:
    """What an agent does once, before its first work: load the tokenizer, ask the endpoint for
    the model's limits, and say what is wrong with them."""

    def __init__(self, setup: Setup, agent: Agent, measure: LateMeasure) -> None:
        self.setup = setup
        self.agent = agent
        self.measure = measure

    async def __call__(self) -> None:
        await self.measure.load()
        session = self.agent.session
        session.history.recount(self.measure.item, self.measure.basis)
        told = await self.setup.gateway.limits(self.setup.model)
        limits = resolve(
            self.setup.model, user=self.setup.settings.stated_limits(), endpoint=_stated(told)
        )
        budget = limits.budget(_reserve(self.setup.settings))
        before, known = session.state.model, session.state.budget
        if budget != known or self.setup.model != before:
            if before and before != self.setup.model:
                self.agent.changed_from = (before, known)
            session.emit(e.ModelChanged(model=self.setup.model, budget=budget, previous=before))
        marks = self.setup.policy.marks(budget)
        fixed = fixed_size(self.measure, self.agent.shape) + self.measure.text(
            self.setup.system_prompt
        )
        for warning in budget.warnings(
            threshold=min((mark.tokens for mark in marks), default=None),
            fixed=Tokens(fixed, self.measure.basis, Scope.REQUEST),
        ):
            session.emit(e.Note(kind="limits", text=warning.message))


def _stated(told: EndpointLimits | None) -> Stated | None:
    if told is None:
        return None
    return Stated(told.source, told.context_window, None, told.max_output)


class _Delegation:
    """Runs a subagent on a session of its own, below that of its parent."""

    def __init__(self, setup: Setup, parent: Session) -> None:
        self.setup = setup
        self.parent = parent

    async def __call__(self, description: str, prompt: str) -> str:
        session = Session.create(
            self.parent.folder / AGENTS_FOLDER,
            started(self.setup, title=description, parent=self.parent.id),
        )
        with session:
            self.parent.emit(
                e.Note(kind="subagent", text=f"subagent {session.id} began: {description}")
            )
            agent = build_agent(self.setup, session, subagent=True)
            outcome = await agent.run_turn(prompt)
            answer = last_words(session)
            self.parent.emit(
                e.Note(kind="subagent", text=f"subagent {session.id} ended: {outcome.value}")
            )
        if outcome is not TurnOutcome.COMPLETED:
            return f"The subagent did not finish ({outcome.value}). Its last words: {answer}"
        return answer


def last_words(session: Session) -> str:
    """The newest assistant text of a session, or a sentence that there is none."""
    for entry in reversed(session.state.context.entries):
        if isinstance(entry.item, Message) and entry.item.role is Role.ASSISTANT:
            return entry.item.text
    return "(it said nothing)"
