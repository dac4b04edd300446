"""Random conversations for property tests.

`histories()` draws what an agent really produces: turns of rounds with parallel calls whose outputs
come back in any order, reasoning in front of them, pictures, earlier summaries, messages a harness
wrote. With `orphans=True` some halves of pairs are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from thresher.core.context import Context, Entry, EntryId
from thresher.core.items import (
    CompactionSummary,
    FunctionCall,
    FunctionCallOutput,
    ImagePart,
    Item,
    Message,
    OtherItem,
    Reasoning,
    Role,
    TextPart,
    assistant,
    system,
    user,
)

TEXTS = st.text(max_size=40) | st.sampled_from(
    ["Never touch the tests.", "请不要修改数据库。", "🦀" * 30, "x" * 3000, "\x1b[2J[bold]", ""]
)
TOOLS = ("read_file", "write_file", "bash", "grep")


@st.composite
def rounds(draw: st.DrawFn, number: int) -> list[Item]:
    """What the model does in one round, with all outputs; call ids are made of the number."""
    items: list[Item] = []
    if draw(st.booleans()):
        items.append(Reasoning(summary=draw(TEXTS), encrypted=draw(st.sampled_from(["", "c2Vh"]))))
    if draw(st.booleans()):
        items.append(assistant(draw(TEXTS)))
    ids = [f"c{number}-{n}" for n in range(draw(st.integers(1, 4)))]
    for id in ids:
        name = draw(st.sampled_from(TOOLS))
        key = "command" if name == "bash" else "path"
        items.append(FunctionCall(id, name, f'{{"{key}": "{draw(st.sampled_from("abc"))}.py"}}'))
    for id in draw(st.permutations(ids)):
        items.append(FunctionCallOutput(id, draw(TEXTS), is_error=draw(st.booleans())))
    return items


@st.composite
def histories(
    draw: st.DrawFn, *, most_turns: int = 4, orphans: bool = False, summaries: bool = True
) -> tuple[Item, ...]:
    """A conversation from its beginning; legal for Responses and Chat unless `orphans`."""
    items: list[Item] = []
    if draw(st.booleans()):
        items.append(system(draw(TEXTS)))
    number = 0
    for _ in range(draw(st.integers(1, most_turns))):
        if summaries and draw(st.integers(0, 4)) == 0:
            items.append(CompactionSummary(draw(TEXTS), "Earlier:\n\n"))
        if draw(st.integers(0, 5)) == 0:
            items.append(Message(Role.USER, draw(TEXTS), synthetic=True))
        if draw(st.integers(0, 5)) == 0:
            parts = (TextPart(draw(TEXTS)), ImagePart("data:image/png;base64,AAAA"))
            items.append(Message(Role.USER, parts))
        else:
            items.append(user(draw(TEXTS)))
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            items.extend(draw(rounds(number)))
        if draw(st.integers(0, 5)) == 0:
            items.append(OtherItem("web_search_call", '{"type":"web_search_call"}', "searched"))
        if draw(st.booleans()):
            items.append(assistant(draw(TEXTS)))
    if orphans:
        halves = [
            at for at, i in enumerate(items) if isinstance(i, FunctionCall | FunctionCallOutput)
        ]
        gone = draw(st.sets(st.sampled_from(halves), max_size=3)) if halves else set()
        items = [item for at, item in enumerate(items) if at not in gone]
    return tuple(items)


def context_of(items: Sequence[Item], first_line: int = 0) -> Context:
    """A context with one journal line for each item."""
    ids = [EntryId(first_line + n) for n in range(len(items))]
    return Context(Entry(id, item, (id,)) for id, item in zip(ids, items, strict=True))


def contexts(**settings: Any) -> st.SearchStrategy[Context]:
    """Contexts of random histories."""
    return histories(**settings).map(context_of)
