"""Runs one MAF vector on the strategies and tells what came of it, in the words of the vectors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from thresher.core.compaction.policies.maf import dotnet_compose, python_compose
from thresher.core.compaction.policies.maf.dotnet_groups import MessageGroup
from thresher.core.compaction.policies.maf.dotnet_index import MessageIndex
from thresher.core.compaction.policies.maf.dotnet_strategies import (
    ContextWindow,
    Pipeline,
    Single,
    Strategy,
)
from thresher.core.compaction.policies.maf.dotnet_triggers import condition
from thresher.core.compaction.policies.maf.messages import (
    Call,
    ChatMessage,
    Content,
    Result,
    Text,
    Thought,
)
from thresher.core.compaction.policies.maf.python_composed import (
    ContextWindow as PythonContextWindow,
)
from thresher.core.compaction.policies.maf.python_messages import Marked, MessageList
from thresher.core.compaction.policies.maf.python_strategies import apply
from thresher.core.compaction.policies.maf.python_text import Tokenizer, result_text
from thresher.core.compaction.policies.maf.spec import Limits, StrategySpec
from thresher.core.compaction.policies.maf.steps import Changed, Core, Log, Request, Run
from thresher.core.compaction.policy import Answer, Failure, FailureKind, Summary
from thresher.core.compaction.summaries import prompt

Vector = Mapping[str, Any]
NO_LIMITS = Limits(None)


def message(given: Mapping[str, Any], *, named: bool) -> ChatMessage:
    """A message of a vector; `named` says whether its id is the framework's message id too."""
    contents: list[Content] = []
    if given.get("reasoning") is not None:
        contents.append(Thought(given["reasoning"]))
    text = given.get("text")
    if repeat := given.get("text_repeat"):
        text = repeat["unit"] * repeat["times"]
    if given.get("tool_call_id") is not None:
        result = given.get("result_json", text)
        contents.append(
            Result(given["tool_call_id"], result_text("" if result is None else result))
        )
    elif text is not None:
        contents.append(Text(text))
    for call in given.get("tool_calls") or ():
        contents.append(Call(call["id"], call["name"], call.get("arguments", {})))
    return ChatMessage(
        given["role"],
        tuple(contents),
        id=given["id"] if named else None,
        summary=given.get("summary") is True,
    )


class Driver:
    """Answers what a strategy yields, and keeps it."""

    def __init__(self, vector: Vector, default_prompt: str) -> None:
        self.vector = vector
        self.default_prompt = default_prompt
        self.labels: dict[int, str] = {}
        self.alive: list[ChatMessage] = []
        self.logs: list[Log] = []
        self.requests: list[list[Any]] = []

    def take_in(self, given: Mapping[str, Any], *, named: bool) -> ChatMessage:
        made = message(given, named=named)
        self.alive.append(made)
        self.labels[id(made)] = given["id"]
        return made

    def label(self, found: ChatMessage) -> str | None:
        return self.labels.get(id(found))

    def run(self, run: Run) -> bool:
        answer: Answer = None
        while True:
            try:
                step = run.send(answer)
            except StopIteration as end:
                return bool(end.value)
            answer = None
            match step:
                case Request():
                    self.requests.append([self._asked(each) for each in step.messages])
                    answer = self._summary()
                case Log():
                    self.logs.append(step)
                case _:
                    pass

    def _asked(self, each: ChatMessage) -> Any:
        if (label := self.label(each)) is not None:
            return label
        text = "<default prompt>" if each.text == self.default_prompt else each.text
        return {"role": each.role, "text": text}

    def _summary(self) -> Answer:
        stub = self.vector.get("summarizer") or {}
        if "error" in stub:
            return Failure(FailureKind.PROVIDER, stub["error"])
        return Summary(stub.get("reply", ""), "stub")


# .NET ---------------------------------------------------------------------------------------------


class Counted(Single):
    """The unit tests' strategy without a rule: it counts how often it is reached."""

    name = "TestStrategy"
    calls = 0

    def _core(self, index: MessageIndex, reason: str) -> Core:
        self.calls += 1
        yield from ()
        return Changed(self.stage, reason)


class ExcludeOldest(Single):
    """The unit tests' stub: excludes the N oldest included groups outside System."""

    name = "ExcludeOldestStrategy"

    def __init__(self, count: int, **conditions: Any) -> None:
        super().__init__(**conditions)
        self.count = count

    def _core(self, index: MessageIndex, reason: str) -> Core:
        for at in index.eligible()[: self.count]:
            index.exclude(index.groups[at], None)
        yield from ()
        return Changed(self.stage, reason)


def dotnet_strategy(given: Mapping[str, Any]) -> Strategy:
    name, params = given["strategy"], dict(given.get("params", {}))
    trigger, target = given.get("trigger"), given.get("target")
    match name:
        case "base":
            return Counted(condition(trigger or "always"))
        case "exclude_oldest":
            return ExcludeOldest(params.get("count", 1), trigger=condition(trigger or "always"))
        case "pipeline":
            return Pipeline([dotnet_strategy(each) for each in params["strategies"]])
        case "context_window":
            trigger = target = None
        case _:
            trigger = trigger or "always"
    return dotnet_compose.compose(StrategySpec(name, params, trigger, target), NO_LIMITS)


def run_dotnet(vector: Vector) -> dict[str, Any]:
    driver = Driver(vector, prompt("maf_dotnet_summary"))
    given, following = vector["messages"], vector.get("next_messages", [])
    # Labels are not message ids, unless one label has two texts.
    said = {each["id"]: each for each in given}
    named = any(said.get(each["id"], each).get("text") != each.get("text") for each in following)
    index = MessageIndex.of([driver.take_in(each, named=named) for each in given])
    excluded = {each["id"] for each in given if each.get("excluded")}
    for each in index.groups:
        if any(driver.label(m) in excluded for m in each.messages):
            index.exclude(each, None)
    outcome: dict[str, Any] = {}
    match vector["strategy"]:
        case "group":
            pass
        case "index_update":
            index.update([driver.take_in(each, named=named) for each in following])
        case _:
            strategy = dotnet_strategy(vector)
            outcome |= _passes(
                vector, [driver.run(strategy.compact(index)) for _ in _times(vector)]
            )
            if isinstance(strategy, Counted):
                outcome["core_calls"] = strategy.calls
            if isinstance(strategy, ContextWindow):
                outcome["input_budget_tokens"] = strategy.input_budget
                outcome["tool_eviction_threshold"] = strategy.tool_share
                outcome["truncation_threshold"] = strategy.truncation_share
    gone = [each for each in index.groups if each.excluded]
    included = [_generated_or_label(driver, m) for m in index.included]
    names = [driver.label(m) for each in gone for m in each.messages]
    return outcome | {
        "included": included,
        "included_count": len(included),
        "excluded": [name for name in names if name is not None],
        "excluded_groups_total": len(gone),
        "excluded_group_count": Counter(each.kind.value for each in gone),
        "group_count": len(index.groups),
        "raw_message_count": index.raw_messages,
        "total_turns": index.turns,
        "included_groups": index.included_groups,
        "groups": [_dotnet_group(driver, each) for each in index.groups],
        "state": _state(
            [n for m in index.included if (n := driver.label(m))], [n for n in names if n]
        ),
        "summarizer_requests": driver.requests,
        "logs": driver.logs,
        "tokens": index.included_tokens,
    }


def _dotnet_group(driver: Driver, each: MessageGroup) -> dict[str, Any]:
    return {
        "kind": each.kind.value,
        "members": [_generated_or_label(driver, m) for m in each.messages],
        "bytes": each.size,
        "tokens": each.tokens,
        "turn": each.turn,
        "excluded": each.excluded,
        "exclude_reason": each.reason,
    }


# Python -------------------------------------------------------------------------------------------


class Words:
    """The vectors' own tokenizer: words of texts and results; a call is 1 and its arguments'."""

    def count(self, text: str) -> int:
        try:
            parsed = json.loads(text)
        except ValueError:
            return len(text.split())
        if not isinstance(parsed, dict) or "contents" not in parsed:
            return len(text.split())
        total = 0
        for content in parsed["contents"]:
            if content["type"] == "function_call":
                arguments = content.get("arguments") or {}
                total += 1 + sum(len(str(value).split()) for value in arguments.values())
            else:
                total += len(str(content.get("text") or content.get("result") or "").split())
        return total


TOKENIZERS: dict[str, Tokenizer] = {**python_compose.TOKENIZERS, "words": Words()}


def run_python(vector: Vector) -> dict[str, Any]:
    driver = Driver(vector, prompt("maf_python_summary"))
    entries = [
        Marked(driver.take_in(each, named=True), excluded=bool(each.get("excluded")))
        for each in vector["messages"]
    ]
    messages = MessageList(entries)
    tokenizer = TOKENIZERS[vector["tokenizer"]] if "tokenizer" in vector else None
    if tokenizer is not None:
        messages.count(tokenizer)
    outcome: dict[str, Any] = {"tokens_before": messages.included_tokens}
    strategy = None
    if vector["strategy"] != "group":
        spec = StrategySpec(vector["strategy"], dict(vector["params"]))
        strategy = python_compose.compose(spec, NO_LIMITS, TOKENIZERS)
        results = [driver.run(apply(messages, strategy, tokenizer)) for _ in _times(vector)]
        outcome |= _passes(vector, results)
    if isinstance(strategy, PythonContextWindow):
        outcome["input_budget_tokens"] = strategy.input_budget
        outcome["tool_eviction_threshold"] = strategy.tool_share
        outcome["truncation_threshold"] = strategy.truncation_share
    included = [each for each in messages.entries if not each.excluded]
    excluded = [each for each in messages.entries if each.excluded]
    return outcome | {
        "included": [_marked(driver, each) for each in included],
        "included_count": len(included),
        "excluded": [{"id": each.id, "reason": each.reason} for each in excluded],
        "state": _state([each.id for each in included], [each.id for each in excluded]),
        "groups": [
            {
                "group_id": group.id,
                "kind": group.kind.value,
                "index": group.index,
                "has_reasoning": group.has_reasoning,
                "members": [each.id for each in group.members],
            }
            for group in messages.groups
        ],
        "summarized_by": {
            each.id: each.summarized_by for each in messages.entries if each.summarized_by
        },
        "summarizer_requests": driver.requests,
        "logs": driver.logs,
        "tokens_after": messages.included_tokens,
        "message_tokens": {each.id: each.tokens for each in messages.entries},
        "group_count": len(messages.groups),
        "raw_message_count": len(messages.entries),
        "included_groups": len(messages.included_groups()),
    }


def _marked(driver: Driver, each: Marked) -> Any:
    if (label := driver.label(each.message)) is not None:
        return label
    return {
        "role": each.message.role,
        "text": each.message.text,
        "summary_id": each.id,
        "summary_of_message_ids": list(each.summary_of_messages),
        "summary_of_group_ids": list(each.summary_of_groups),
    }


# Both ---------------------------------------------------------------------------------------------


def _times(vector: Vector) -> range:
    return range(vector.get("passes", 1))


def _passes(vector: Vector, results: list[bool]) -> dict[str, Any]:
    return {"compacted": results if "passes" in vector else results[0]}


def _generated_or_label(driver: Driver, each: ChatMessage) -> Any:
    label = driver.label(each)
    if label is not None:
        return label
    return {"role": each.role, "text": each.text, "summary": each.summary}


def _state(included: list[str], excluded: list[str]) -> dict[str, str]:
    return dict.fromkeys(included, "included") | dict.fromkeys(excluded, "excluded")


def run(vector: Vector) -> dict[str, Any]:
    return run_dotnet(vector) if vector["impl"] == "dotnet" else run_python(vector)
