"""Going on with a session as it was: its settings are on its record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from thresher.core.errors import ThresherError

from .flags import workspace_of

if TYPE_CHECKING:
    from thresher.core.agent.assemble import Setup
    from thresher.core.config import Settings
    from thresher.core.sessions.session import Session
    from thresher.core.state import SessionState


def settings_on_record(path: Path) -> SessionState:
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


def as_before(settings: Settings, state: SessionState, given: dict[str, Any]) -> Settings:
    """The settings with what the session says in place of what no flag does."""
    from thresher.core.compaction.policies import custom
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
        if custom.is_custom(state.policy):
            # What is named in a file is never run by itself, not even in a file of our own.
            raise ThresherError(
                "Policy not loaded",
                f"the session ran with a policy from a Python file: give --policy {state.policy} "
                "to run that file again, or the name of another policy.",
            )
        flags = {
            name.rpartition(".")[2]: value
            for name, value in given.items()
            if name.startswith("compaction.params.")
        }
        chosen = msgspec.structs.replace(
            chosen, policy=state.policy, params={**state.policy_params, **flags}
        )
    return msgspec.structs.replace(settings, model=model, compaction=chosen)


def folder_of(state: SessionState, workspace: Path | None) -> Path:
    """The folder that the session works in. Raises ThresherError when it is gone."""
    if workspace is not None or not state.cwd:
        return workspace_of(workspace)
    folder = Path(state.cwd)
    if not folder.is_dir():
        raise ThresherError(
            "No such folder",
            f"the session worked in {folder}, which is gone: name another with --workspace.",
        )
    return folder


def tell_changes(session: Session, setup: Setup) -> None:
    """Put on record what is not as it was. The limits follow when the agent begins to work."""
    from thresher.core import events as e

    state = session.state
    if setup.model != state.model:
        session.emit(e.ModelChanged(model=setup.model, previous=state.model))
    params = msgspec.to_builtins(setup.policy.params)
    if (setup.policy.name, params) != (state.policy, state.policy_params):
        session.emit(e.PolicyChanged(policy=setup.policy.name, policy_params=params))
