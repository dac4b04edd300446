"""The tools that a policy brings: offered to the model as long as that policy is in force.

They change nothing by themselves. The policy answers a call, and sees it in the context afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..compaction.engine import Engine
from ..compaction.policy import BringsTools, RequestShape, ToolSchema
from .tools.base import Tool, ToolContext, ToolResult, ToolSpec, failed


class PolicyTool:
    """One of them. `shape` gives the parts of a request that are not items."""

    def __init__(
        self, tool: ToolSchema, engine: Engine, shape: Callable[[], RequestShape], model: str
    ) -> None:
        self.spec = ToolSpec(tool.name, tool.description, tool.parameters, read_only=True)
        self._engine = engine
        self._shape = shape
        self._model = model

    async def run(self, arguments: Mapping[str, object], ctx: ToolContext) -> ToolResult:
        """The policy's answer."""
        output = self._engine.serve(self.spec.name, shape=self._shape(), model=self._model)
        if output is None:
            return failed(f"the policy in force has no tool {self.spec.name}.")
        return ToolResult(output)


class WithPolicyTools(Mapping[str, Tool]):
    """An agent's own tools by name, and behind them those of the policy that is in force now. A
    tool of the agent's own is not replaced by one of the same name."""

    def __init__(self, own: Mapping[str, Tool], engine: Engine, model: str) -> None:
        self._own = own
        self._engine = engine
        self._model = model

    def __getitem__(self, name: str) -> Tool:
        if name in self._own:
            return self._own[name]
        for tool in self._brought():
            if tool.name == name:
                return PolicyTool(tool, self._engine, self._shape, self._model)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (tool.name for tool in self._brought() if tool.name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _brought(self) -> tuple[ToolSchema, ...]:
        policy = self._engine.policy
        return policy.tools if isinstance(policy, BringsTools) else ()

    def _shape(self) -> RequestShape:
        specs = (tool.spec for tool in self.values())
        return RequestShape(
            tools=tuple(ToolSchema(spec.name, spec.description, spec.parameters) for spec in specs)
        )
