"""What the user decides at a stop: each decision is one call of whoever holds the agent, and the
stop is made anew after it. What is shown meanwhile is no concern of this file.
"""

from __future__ import annotations

from abc import abstractmethod

from thresher.core.debug import stop as held
from thresher.core.debug.stop import Fate, Stop
from thresher.core.text import clean

from ..keys import KEYS
from ..model import ConsoleModel, DebugActor, Holder
from .ask import AskScreen
from .attempts import attempt
from .base import FullScreen
from .choosing import choose_policy
from .debugging import choose_breakpoints, confirm_skip, confirm_undo
from .write import WriteScreen, Written

_OWN = frozenset({"pin", "drop", "edit", "fresh", "policy", "step_round", "apply", "undo"})
"""What only our own agent takes; another program just goes on."""


_DECISIONS = frozenset(
    f"stop.{name}"
    for name in (
        "apply", "skip", "pin", "drop", "edit", "focus", "keep", "fresh", "policy", "step", "go_on",
    )
)  # fmt: skip


_ACTIONS = {key.id: key.action for key in KEYS if key.id in _DECISIONS}


class DecidingScreen(FullScreen[None]):
    """The decisions of a screen over a stop. It shows `stop`, anew with every `tick`."""

    def __init__(self, model: ConsoleModel, holder: Holder) -> None:
        super().__init__()
        self.model, self.holder = model, holder
        self.stop: Stop | None = None
        """Where it stands still; None while the agent works on a decision."""
        self._draft = ""
        """A summary that was begun and not used."""

    @property
    @abstractmethod
    def line(self) -> held.Line | None:
        """The selected entry."""

    @abstractmethod
    def tick(self) -> None:
        """Take the stop as it is now."""

    @property
    def actor(self) -> DebugActor:
        """Our own agent, which takes more decisions than a program elsewhere."""
        assert isinstance(self.holder, DebugActor)  # the keys of the others are not bound
        return self.holder

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be decided here has a key."""
        own = isinstance(self.holder, DebugActor)
        if action in _OWN:
            return own
        if action == "ask_to_keep":
            return not own and self._may_focus
        if action == "focus_text":
            return own or self._may_focus
        if action == "skip_pass" and not own:
            return self.stop is None or self.stop.outside is None or self.stop.outside.may_skip
        return True

    def offers(self, id: str) -> bool | None:
        """While the agent works on a decision there is nothing to decide; what changes a
        compaction needs one."""
        if id not in _DECISIONS:
            return True
        if self.check_action(_ACTIONS[id], ()) is False:
            return False
        stop = self.stop
        if stop is None:
            return None
        if id == "stop.apply":
            return not stop.objections or None
        if id in ("stop.drop", "stop.skip", "stop.policy"):
            return bool(stop.pass_id) or stop.outside is not None or None
        if id in ("stop.edit", "stop.fresh"):
            return self._has_summary(stop) or None
        return True

    @staticmethod
    def _has_summary(stop: Stop) -> bool:
        """Whether this compaction writes a summary."""
        edit = stop.proposal.edit if stop.proposal is not None else None
        return stop.pending is not None or (edit is not None and edit.summary is not None)

    @property
    def _may_focus(self) -> bool:
        outside = self.stop.outside if self.stop is not None else None
        return outside is not None and outside.may_focus

    def _do(self, work: object, *arguments: object) -> None:
        attempt(self, work, *arguments)
        self.tick()

    def action_apply(self) -> None:
        """Ask for the summary as shown, apply the edit as shown, or go on where none is held."""
        if self.stop is not None and self.stop.pass_id:
            self._do(self.holder.decide, "apply")
        else:
            self._do(self.holder.go_on)

    def action_skip_pass(self) -> None:
        """Not this time; what that comes to elsewhere is said before it is done."""
        outside = self.stop.outside if self.stop is not None else None
        if outside is not None:
            confirm_skip(self, outside, lambda: self._do(self.holder.decide, "skip"))
            return
        self._do(self.holder.decide, "skip")

    def action_step_round(self) -> None:
        """Go on, and stop after the next round."""
        self._do(self.actor.step)

    def action_go_on(self) -> None:
        """Go on to the next breakpoint."""
        self._do(self.holder.go_on)

    def action_pin(self) -> None:
        """Let the selected entry survive every compaction, or let it go again."""
        line = self._of_context("pinned")
        if line is None:
            return
        id = line.entry.id
        if id in self.model.history.state.pins:
            self._do(self.actor.unpin, (id,))
        else:
            self._do(self.actor.pin, (id,))

    def action_drop(self) -> None:
        """Let the selected entry go with this edit, or leave it to the policy again."""
        line = self._of_context("dropped")
        if line is None or self.stop is None:
            return
        id = line.entry.id
        self._do(self.actor.keep if id in self.stop.drops else self.actor.drop, (id,))

    def _of_context(self, what: str) -> held.Line | None:
        line = self.line
        if line is not None and line.fate in (Fate.INSERT, Fate.REPLACEMENT):
            self.notify(f"It is not in the context yet, so it cannot be {what}.", markup=False)
            return None
        return line

    def action_ask_to_keep(self) -> None:
        """Ask the program's model to keep the selected entry word for word, or no longer."""
        line = self._of_context("asked for")
        if line is not None and self.model.outside is not None:
            self._do(self.model.outside.ask_to_keep, (line.entry.id,))

    def action_focus_text(self) -> None:
        """Say what the summary must keep above all, and have it asked for anew."""
        situation = self.stop.situation if self.stop is not None else None
        before = situation.focus if situation is not None else ""
        if self.stop is not None and self.stop.outside is not None:
            before = self.stop.outside.focus

        def answered(text: str | None) -> None:
            if text is not None:
                self._do(self.holder.focus, text)

        hint = "The summary is asked for with it."
        screen = AskScreen("what must the summary keep above all?", "a focus", hint, clean(before))
        self.app.push_screen(screen, answered)

    def action_edit(self) -> None:
        """Write the summary, or change the one that is there, before it is applied."""
        stop = self.stop
        edit = stop.proposal.edit if stop is not None and stop.proposal is not None else None
        summary = edit.summary if edit is not None and stop and stop.pending is None else None
        if stop is None or (stop.pending is None and summary is None):
            self.notify("This compaction has no summary to edit.", markup=False)
            return
        text = clean(summary.text) if summary is not None else ""

        def answered(written: Written | None) -> None:
            if written is None:
                return
            if not written.done:
                self._draft = written.text
            elif written.text != text:
                self._do(self.actor.write_summary, written.text)

        title = "the summary" if summary is not None else "write the summary"
        self.app.push_screen(WriteScreen(title, self._draft or text), answered)

    def action_fresh(self) -> None:
        """Ask for another summary."""
        self._do(self.actor.fresh_summary)

    def action_policy(self) -> None:
        """Let another policy make the proposal of this pass."""
        stop = self.stop
        if stop is None or not stop.pass_id:
            self.notify("No compaction is held here, so there is none to propose.", markup=False)
            return
        choose_policy(self, self.model, stop, lambda name: self._do(self.actor.choose_policy, name))

    def action_breakpoints(self) -> None:
        """Set and clear breakpoints."""
        choose_breakpoints(self, self.holder, self.holder.setting_up)

    def action_undo(self) -> None:
        """Take the last compaction back."""
        confirm_undo(self, self.model, self.actor)
