"""What a tool is: its description for the model, its result, and what it is given to work with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from ...errors import ThresherError
from .cap import Capped, OutputCap
from .workspace import Workspace


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model is told about it. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool
    """True: it changes nothing outside this program, so it runs without being approved."""


class ToolResult(msgspec.Struct, frozen=True):
    """What a call gave. `output` is the whole text that enters the model's context."""

    output: str
    ok: bool = True
    """False: the call failed, or the command it ran ended with another code than 0."""
    exit_code: int | None = None
    saved: str | None = None
    """Path of the full text, which exists on disk, when `output` holds only its two ends."""
    truncated_chars: int = 0
    """How many characters of the full text `output` leaves out."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What one call works with."""

    workspace: Workspace
    outputs_dir: Path
    """Where full outputs go (mode 0600). read_file and grep may read here too."""
    stream: Callable[[str], None]
    """Takes live output as it comes. It is foreign text, not clean."""
    cap: OutputCap
    call_id: str = "call"
    """The provider's id of the call; names the file of a full output."""
    secret_variables: frozenset[str] = frozenset()
    """Environment variables that no command may see, besides those known by their names."""

    def readable(self, path: str) -> tuple[Workspace, Path]:
        """Resolve `path` for reading: in the workspace, or else among the full outputs.

        Raises PathRefused as the workspace tells it when it is in neither.
        """
        try:
            return self.workspace, self.workspace.resolve(path)
        except ThresherError:
            if Path(path).is_absolute() and "\0" not in path and self.outputs_dir.is_dir():
                outputs = Workspace(self.outputs_dir)
                if outputs.holds(path):
                    return outputs, outputs.resolve(path)
            raise


class Tool(Protocol):
    """Anything the model can call. A failure is a result with ok=False, not an exception."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, arguments: Mapping[str, object], ctx: ToolContext) -> ToolResult: ...


class ToolError(ThresherError):
    """A call that cannot be done. `msg` tells the model what is wrong and what to do."""

    def __init__(self, msg: str) -> None:
        super().__init__("Tool call failed", msg)


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of one tool. A subclass is both the decoder and the JSON Schema."""


ArgsT = TypeVar("ArgsT", bound=Args)


class StructTool(ABC, Generic[ArgsT]):
    """A tool whose arguments are one Struct."""

    def __init__(self, name: str, description: str, args: type[ArgsT], *, read_only: bool) -> None:
        self.spec = ToolSpec(name, description, _parameters(args), read_only)
        self._args = args

    def decode(self, arguments: Mapping[str, object]) -> ArgsT:
        """Check the arguments. Raises ToolError in words for the model.

        null counts as "not given": some models send it for every optional argument.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        try:
            return msgspec.convert(given, self._args)
        except msgspec.ValidationError as error:
            known = ", ".join(self.spec.parameters["properties"])
            raise ToolError(
                f"Wrong arguments for {self.spec.name}: {error}. It takes: {known}. "
                "Correct the arguments and call it again."
            ) from None

    async def run(self, arguments: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        try:
            result = await self.call(self.decode(arguments), ctx)
        except ThresherError as error:
            result = failed(error.msg)
        except OSError as error:
            result = failed(f"{self.spec.name} failed: {reason(error)}.")
        return sendable(result)

    @abstractmethod
    async def call(self, args: ArgsT, ctx: ToolContext) -> ToolResult:
        """Do the work. May raise ThresherError and OSError, which become error results."""


def failed(message: str) -> ToolResult:
    """An error result. `message` says what is wrong and what the model can do about it."""
    return ToolResult(output=f"Error: {message}", ok=False)


def sendable(result: ToolResult) -> ToolResult:
    """The result without lone surrogates, which no request can carry (file names bring them)."""
    output = result.output.encode("utf-8", "backslashreplace").decode("utf-8")
    return result if output == result.output else msgspec.structs.replace(result, output=output)


def capped(part: Capped, note: str = "", *, ok: bool = True, code: int | None = None) -> ToolResult:
    """A result from text that went through the cap; `note` stands below it, never cut."""
    output = "\n".join(filter(None, (part.text.rstrip("\n") if note else part.text, note)))
    return ToolResult(output, ok, code, part.saved, part.truncated_chars)


def reason(error: OSError) -> str:
    """The operating system's reason in words, without numbers and paths."""
    return error.strerror or str(error) or type(error).__name__


def _parameters(args: type[Args]) -> dict[str, Any]:
    (_, components) = msgspec.json.schema_components((args,), ref_template="#/{name}")
    schema = components[args.__name__]
    return {
        "type": "object",
        "properties": schema["properties"],
        "required": schema.get("required", []),
        "additionalProperties": False,
    }
