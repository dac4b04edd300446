"""A policy of your own: a class in a Python file, named as `path.py:MyPolicy`.

The class needs a method `plan(situation)`, a generator that yields the steps of
`thresher.core.compaction.policy` and receives their answers, and `moments`, the moments it is asked
at. It may have `title`, `marks(budget)`, and `Params`, a frozen msgspec struct of constants with
defaults; then it is made as `MyPolicy(params)`, and --set changes them.

The file is run by itself: its folder is not put on the import path, and nothing of it is cached, so
it is read anew each time. What goes wrong in it is said with the file and the line. An error while
it plans ends that pass as a failed compaction with the history unchanged, never the agent.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Generator, Mapping
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, ClassVar, get_args

import msgspec

from ...errors import ThresherError
from ...models import Budget
from ..policy import Answer, Mark, Moment, Plan, Situation, Skip, SkipKind, Step

STAGE = "custom"

_NAME = re.compile(r"(?P<path>.+\.py)(?::(?P<cls>.*))?", re.DOTALL)
_STEPS = get_args(Step)


def is_custom(name: str) -> bool:
    """Whether a policy's name means a file."""
    return _NAME.fullmatch(name) is not None


class NoParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy without constants."""


class Custom:
    """A user's policy behind a fence: what it yields is checked, what it raises is told."""

    name: ClassVar[str] = "custom"
    title: ClassVar[str] = "Custom"
    moments: ClassVar[frozenset[Moment]] = frozenset()

    def __init__(self, path: Path, policy: Any, params: msgspec.Struct) -> None:
        self.params = params
        self._path = path
        self._policy = policy

    def marks(self, budget: Budget) -> tuple[Mark, ...]:
        """Those of the policy; none when it has none or fails at them."""
        try:
            marks = tuple(getattr(self._policy, "marks", _no_marks)(budget))
        except Exception:
            return ()
        return tuple(mark for mark in marks if isinstance(mark, Mark))

    def plan(self, situation: Situation) -> Plan:
        """The policy's own plan, step by step."""
        plan: Any = None
        answer: Answer = None
        try:
            plan = self._policy.plan(situation)
            if not isinstance(plan, Generator):
                yield self._failed(f"plan() returned {_kind(plan)}; it must be a generator (yield)")
                return
            while True:
                try:
                    step = plan.send(answer)
                except StopIteration:
                    return
                if not isinstance(step, _STEPS):
                    line = getattr(getattr(plan, "gi_frame", None), "f_lineno", None)
                    where = f"line {line}: " if line else ""
                    yield self._failed(f"{where}plan() yielded {_kind(step)}, which is no step")
                    return
                answer = yield step
        except (Exception, SystemExit) as fault:
            yield self._failed(_told(fault, self._path))
        finally:
            if isinstance(plan, Generator):
                plan.close()

    def _failed(self, words: str) -> Skip:
        return Skip(SkipKind.FAILED, f"{self._path.name}, {words}.", STAGE)


def load(name: str, params: Mapping[str, Any] | None = None) -> Custom:
    """The policy that `name` means. Raises ThresherError, with file and line, for a file that is
    missing or cannot be run, a class that is not there or is no policy, and refused constants."""
    path, cls = _find(name)
    where = f"{path}:{cls.__name__}"
    try:
        made = _params(cls, params)
        policy = cls(made) if hasattr(cls, "Params") else cls()
    except msgspec.ValidationError as error:
        raise _refused(f"{where}: {error}. Correct the setting.") from error
    except (Exception, SystemExit) as error:
        words = f"cannot be made: {_told(error, path)}"
        raise _refused(f"{where} {words}. Correct it there.") from error
    fenced: type[Custom] = type(
        cls.__name__,
        (Custom,),
        {
            "__doc__": cls.__doc__,
            "__module__": cls.__module__,
            "name": name,
            "title": str(getattr(cls, "title", "") or cls.__name__),
            "moments": frozenset(getattr(cls, "moments", ())),
        },
    )
    return fenced(path, policy, made)


def params_of(name: str) -> type[msgspec.Struct]:
    """The struct of the constants of the policy that `name` means. Raises ThresherError."""
    _, cls = _find(name)
    found = getattr(cls, "Params", NoParams)
    return found if isinstance(found, type) else NoParams


def _find(name: str) -> tuple[Path, type]:
    match = _NAME.fullmatch(name)
    if match is None:
        raise _refused(f"{name!r} is no path.py:MyPolicy.")
    path = Path(match["path"]).expanduser()
    module = _run(path)
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    cls = next((each for each in classes if each.__name__ == match["cls"]), None)
    if cls is None:
        able = [each.__name__ for each in classes if hasattr(each, "plan")]
        there = f"It has {', '.join(able)}" if able else "It has no class with a method plan"
        asked = f"has no class {match['cls']!r}" if match["cls"] else "needs the name of a class"
        raise _refused(f"{path} {asked}. {there}: name it as {path}:MyPolicy.")
    if wrong := _no_policy(cls):
        line = _line_of(path, cls)
        raise _refused(f"{path}, line {line}: {cls.__name__} is no policy: {wrong}.")
    return path, cls


def _run(path: Path) -> ModuleType:
    try:
        source = path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise _refused(f"{path} cannot be read ({why}): give the path of a Python file.") from error
    module = ModuleType(f"thresher_custom_policy_{abs(hash(str(path.absolute()))):x}")
    module.__file__ = str(path)
    # Types are resolved by the name of their module: msgspec looks there for annotations.
    previous = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        if previous is None:
            del sys.modules[module.__name__]
        else:
            sys.modules[module.__name__] = previous
        raise _refused(f"{path}, {_told(error, path)}. Correct it there.") from error
    return module


def _no_policy(cls: type) -> str:
    """What is missing, in words; empty when nothing is."""
    if not callable(getattr(cls, "plan", None)):
        return "it has no method plan(self, situation)"
    moments = getattr(cls, "moments", None)
    whole = isinstance(moments, set | frozenset | tuple | list) and bool(moments)
    if not whole or not all(isinstance(moment, Moment) for moment in moments or ()):
        return "its `moments` must be a set of Moment, as {Moment.BEFORE_REQUEST}"
    params = getattr(cls, "Params", NoParams)
    if not (isinstance(params, type) and issubclass(params, msgspec.Struct)):
        return "its `Params` must be a msgspec.Struct"
    return ""


def _params(cls: type, params: Mapping[str, Any] | None) -> msgspec.Struct:
    found: type[msgspec.Struct] = getattr(cls, "Params", NoParams)
    known = found.__struct_fields__
    for name in params or {}:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise msgspec.ValidationError(
                f"there is no setting {name!r}; its settings are {listed}"
            )
    return msgspec.convert(dict(params or {}), found, strict=False)


def _told(fault: BaseException, path: Path) -> str:
    """An error with the last line of the file that it passed through."""
    if isinstance(fault, SyntaxError) and fault.filename == str(path):
        return f"line {fault.lineno}: {type(fault).__name__}: {fault.msg}"
    line = _last_line(fault.__traceback__, str(path))
    where = f"line {line}: " if line else ""
    words = " ".join(str(fault).split()) or "no message"
    return f"{where}{type(fault).__name__}: {words}"


def _last_line(trace: TracebackType | None, file: str) -> int | None:
    lines = [line for frame, line in traceback.walk_tb(trace) if frame.f_code.co_filename == file]
    return lines[-1] if lines else None


def _line_of(path: Path, cls: type) -> int:
    found = re.search(
        rf"^class\s+{re.escape(cls.__name__)}\b", path.read_text("utf-8", "replace"), re.MULTILINE
    )
    return path.read_text("utf-8", "replace")[: found.start()].count("\n") + 1 if found else 1


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _no_marks(budget: Budget) -> tuple[Mark, ...]:
    return ()


def _refused(words: str) -> ThresherError:
    return ThresherError("Custom policy not loaded", words)
