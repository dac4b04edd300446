"""Planning a pass with the MAF policies, against the length of the history and, where it is
installed, against agent-framework-core on the same history in the same run.

Run: PYTHONPATH=.dev python tests/benchmarks/bench_maf.py
With the framework: the same in an environment that also has agent-framework-core.

Ours is everything between a context and its edits: messages from items, groups, counting, the
strategy, segments. Theirs is one `apply_compaction` on messages that exist already. A run of theirs
is stopped after LIMIT seconds, and larger sizes are then not tried. Times are of the processor, and
those of one run compare only with each other.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from typing import Any

from thresher.core.compaction.policies.registry import make
from thresher.core.compaction.policy import (
    Answer,
    Applied,
    Edit,
    Moment,
    Policy,
    RequestShape,
    Situation,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import FunctionCall, FunctionCallOutput, Item, assistant, system, user
from thresher.core.ledger import Ledger
from thresher.core.models import Budget, Fact
from thresher.core.tokens import CharClassCounter

SIZES = (100, 1_000, 10_000, 100_000)
LIMIT = 20

ALWAYS_LEFT = 400
"""Tokens that strategies with a budget bring the history down to."""

PYTHON: dict[str, dict[str, Any]] = {
    "truncation": {"max_n": ALWAYS_LEFT, "compact_to": ALWAYS_LEFT, "tokenizer": "char_estimator"},
    "sliding_window": {"keep_last_groups": 4},
    "selective_tool_call": {"keep_last_tool_call_groups": 1},
    "tool_result": {"keep_last_tool_call_groups": 1},
    "token_budget": {"token_budget": ALWAYS_LEFT, "strategies": []},
    "context_window": {"max_context_window_tokens": 2 * ALWAYS_LEFT, "max_output_tokens": 0},
}
DOTNET: dict[str, dict[str, Any]] = {
    "tool_result": {"trigger": "always", "target": "never"},
    "summarization": {"trigger": "always", "target": "never"},
    "sliding_window": {"trigger": "always", "target": "never"},
    "truncation": {"trigger": {"tokens_exceed": ALWAYS_LEFT}},
    "context_window": {"params": {"max_context_window_tokens": 2 * ALWAYS_LEFT}},
}


def history(size: int) -> list[Item]:
    """A system message, then rounds of a question, a call, its output and an answer."""
    items: list[Item] = [system("You are an agent.")]
    number = 0
    while len(items) < size:
        number += 1
        items += [
            user(f"Question {number}: what does module {number} do?"),
            FunctionCall(f"c{number}", "read_file", f'{{"path": "src/module_{number}.py"}}'),
            FunctionCallOutput(f"c{number}", f"def run_{number}(): ...\n" * 6),
            assistant(f"Module {number} runs number {number}."),
        ]
    return items[:size]


def context_of(items: list[Item]) -> Context:
    return Context(Entry(EntryId(n), item, (EntryId(n),)) for n, item in enumerate(items))


def planned(policy: Policy, context: Context) -> float:
    """Play one pass: seconds spent in the policy, without what the engine does with its edits."""
    unknown = Fact(None, "benchmark")
    situation = Situation(
        moment=Moment.BEFORE_REQUEST,
        trigger=Trigger.AUTO,
        context=context,
        shape=RequestShape(),
        budget=Budget(unknown, unknown, unknown, unknown),
        measure=Ledger(CharClassCounter()),
    )
    plan = policy.plan(situation)
    answer: Answer = None
    edits, spent = 0, 0.0
    while True:
        gc.collect()
        start = time.process_time()
        try:
            step = plan.send(answer)
        except StopIteration:
            return spent + time.process_time() - start
        spent += time.process_time() - start
        answer = None
        if isinstance(step, Summarise):
            answer = Summary("what happened", "none")
        elif isinstance(step, Edit):
            edits += 1
            context = context.apply(step.segments, 1_000_000 + edits, edits).after
            answer = Applied(context)


class TooLong(Exception):
    pass


def theirs(name: str, params: dict[str, Any], items: list[Item], times: int) -> float | None:
    """Seconds of the framework's own strategy, or None when it was stopped."""
    import agent_framework as af  # installed for this comparison only

    classes = {
        "truncation": af.TruncationStrategy,
        "sliding_window": af.SlidingWindowStrategy,
        "selective_tool_call": af.SelectiveToolCallCompactionStrategy,
        "tool_result": af.ToolResultCompactionStrategy,
        "token_budget": af.TokenBudgetComposedStrategy,
        "context_window": af.ContextWindowCompactionStrategy,
    }
    arguments = dict(params)
    if name in ("truncation", "token_budget"):
        arguments["tokenizer"] = af.CharacterEstimatorTokenizer()
    best = float("inf")

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    for _ in range(times):
        messages = [_message(af, item, at) for at, item in enumerate(items)]
        strategy = classes[name](**arguments)
        gc.collect()
        signal.alarm(LIMIT)
        start = time.process_time()
        try:
            asyncio.run(af.apply_compaction(messages, strategy=strategy))
        except TooLong:
            return None
        finally:
            signal.alarm(0)
        best = min(best, time.process_time() - start)
    return best


def _message(af: Any, item: Item, at: int) -> Any:
    match item:
        case FunctionCall():
            contents = [
                af.Content.from_function_call(item.call_id, item.name, arguments=item.arguments)
            ]
            role = "assistant"
        case FunctionCallOutput():
            contents = [af.Content.from_function_result(item.call_id, result=item.output)]
            role = "tool"
        case _:
            contents = [af.Content.from_text(item.text)]
            role = str(getattr(item, "role", "assistant"))
    return af.Message(role=role, contents=contents, message_id=f"msg_{at}")


def main() -> int:
    try:
        from importlib.metadata import version

        framework = version("agent-framework-core")
    except ModuleNotFoundError:
        framework = ""
    print(
        f"against agent-framework-core {framework}"
        if framework
        else "agent-framework-core is not installed: only our own times"
    )
    slower = 0
    for name, params in PYTHON.items():
        policy = make("maf-python", {"strategies": [{"strategy": name, "params": params}]})
        print(f"\nmaf-python {name}")
        stopped = False
        for size in SIZES:
            items = history(size)
            context = context_of(items)
            times = 5 if size < 10_000 else 2
            ours = min(planned(policy, context) for _ in range(times))
            line = f"  {size:>7,} items  ours {ours * 1e3:>9.2f} ms"
            line += f"  ({ours / size * 1e6:5.2f} us an item)"
            if framework:
                other = None if stopped else theirs(name, params, items, times // 2)
                stopped = other is None
                bound = f"more than {LIMIT} s" if stopped else f"{other * 1e3:>9.2f} ms"
                ratio = (LIMIT if other is None else other) / ours
                slower += ratio <= 1
                line += f"  theirs {bound}  {ratio:,.1f} times{' and more' if stopped else ''}"
            print(line, flush=True)
    for name, spec in DOTNET.items():
        policy = make("maf-dotnet", {"strategies": [{"strategy": name, **spec}]})
        print(f"\nmaf-dotnet {name}")
        for size in SIZES:
            context = context_of(history(size))
            ours = min(planned(policy, context) for _ in range(5 if size < 10_000 else 2))
            print(
                f"  {size:>7,} items  ours {ours * 1e3:>9.2f} ms"
                f"  ({ours / size * 1e6:5.2f} us an item)",
                flush=True,
            )
    if slower:
        print(f"\nours was slower {slower} times")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
