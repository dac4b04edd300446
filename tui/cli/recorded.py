"""`thresher compactions`, `context` and `requests`: what a session file says, without a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from thresher.core.errors import ThresherError
from thresher.core.text import clean_line

from ..figures import change, count, seconds, with_basis
from ..spans import Line, Tone, span
from . import output
from .reading import SESSION_HELP, meant, remark_problems, replay, source_of
from .tables import Cell, Column, fields, table
from .targets import FILE_HELP, located

if TYPE_CHECKING:
    from thresher.core.context import EntryId
    from thresher.core.history import History
    from thresher.core.items import Item
    from thresher.core.sources.base import RebuiltRequest
    from thresher.core.state import SessionState
    from thresher.core.views import Card

File = Annotated[str, Parameter(help=FILE_HELP)]
SessionOption = Annotated[str | None, Parameter(name="--session", help=SESSION_HELP)]
Json = Annotated[
    bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON.")
]

SUMMARY_LINES = 8


def add_to(app: App) -> None:
    """Register the three commands."""
    app.command(compactions, help_epilogue="Example: thresher compactions latest:codex")
    app.command(context, help_epilogue="Example: thresher context session.jsonl --at 42")
    app.command(requests, help_epilogue="Example: thresher requests session.jsonl --json | head -1")


# -- compactions -------------------------------------------------------------------------------


def compactions(
    file: File,
    /,
    *,
    json: Json = False,
    session: SessionOption = None,
    all: Annotated[
        bool,
        Parameter(
            name="--all", negative="", show_default=False, help="Also those that changed nothing."
        ),
    ] = False,
) -> int:
    """Tell every compaction of a session: when, why, what it removed and kept, its summary.

    With --json, one JSON line for each, the whole summary in it.
    """
    from thresher.core.sources.report import compaction_records

    history = replay(meant(located(file), session))
    state = history.state
    if json:
        for record in compaction_records(history.records, unsuccessful=all):
            output.put_json(record)
    else:
        cells = min(output.columns(), 120)
        for card in state.cards:
            if all or card.ordinal:
                output.put(_card(card, cells))
                output.say()
        output.say(_total(state, all))
    remark_problems(state)
    return 0


def _card(card: Card, cells: int) -> list[Line]:
    number = f"{card.ordinal}" if card.ordinal else "-"
    outcome = (card.status.value, Tone.KEPT if card.status.value == "done" else Tone.FAILED)
    told = " · ".join(
        part for part in (card.policy, card.stage, card.trigger.value, card.phase) if part
    )
    head: Line = [
        span(f"{number:>3}  ", Tone.STRONG),
        outcome,
        span(f"  {clean_line(told, 100)}"),
        span(f"  #{card.n}", Tone.MUTED),
    ]
    return [head, *fields(_facts(card), cells, indent=" " * 5)]


def _facts(card: Card) -> list[tuple[str, Cell]]:
    facts: list[tuple[str, Cell]] = [("reason", _known_by(card.reason, card.reason_evidence))]
    if card.items_before or card.items_after:
        facts.append(("items", _items(card)))
    if card.before or card.after:
        facts.append(("tokens", change(card.before, card.after)))
    if card.focus:
        facts.append(("focus", card.focus))
    if card.summariser is not None:
        usage = card.summariser.usage
        cost = f", {usage.total:,} tokens" if usage else ""
        time = f", {seconds(card.summariser.seconds)}" if card.summariser.seconds else ""
        facts.append(("summary by", f"{card.summariser.model}{cost}{time}"))
    if card.opaque:
        facts.append(("summary", "sealed by the provider: it cannot be read"))
    elif card.summary is not None:
        facts.append(("summary", (_beginning(card.summary), Tone.SUMMARY)))
    if card.failure_kind:
        facts.append(("failed", f"{card.failure_kind}, {count(card.failures, 'failure')} in a row"))
    if card.next_step:
        facts.append(("next", card.next_step))
    if card.marks:
        facts.append(("marks", ("; ".join(card.marks), Tone.THRESHOLD)))
    if card.evidence != "recorded":
        facts.append(("known by", card.evidence))
    return facts


def _items(card: Card) -> str:
    if card.counts_unknown:
        sizes = [f"{size:,}" if size else "?" for size in (card.items_before, card.items_after)]
        return f"{' → '.join(sizes)}  (what stayed and what left is unknown)"
    parts = (
        (card.kept, "kept"),
        (card.removed, "removed"),
        (card.replaced, "rewritten"),
        (card.inserted, "inserted"),
    )
    told = ", ".join(f"{number:,} {word}" for number, word in parts if number)
    # Where the number stayed what it was, it is told once.
    numbers = dict.fromkeys((card.items_before, card.items_after))
    return " → ".join(f"{number:,}" for number in numbers) + (f"  ({told})" if told else "")


def _known_by(text: str, evidence: str) -> str:
    return f"{text} ({evidence})" if text and evidence != "recorded" else text


def _beginning(text: str) -> str:
    lines = text.strip().split("\n")
    shown = [clean_line(line, 400) for line in lines[:SUMMARY_LINES]]
    if len(lines) > SUMMARY_LINES:
        shown.append(f"… {count(len(lines) - SUMMARY_LINES, 'more line')}; --json has all of it")
    return "\n".join(shown) or "(empty)"


def _total(state: SessionState, all: bool) -> str:
    from thresher.core.views import CardStatus

    happened = sum(1 for card in state.cards if card.ordinal)
    told = count(happened, "compaction") if happened else "No compaction"
    told += f" in {count(state.position + 1, 'line')}"
    silent = sum(1 for card in state.cards if card.status is CardStatus.UNANNOUNCED)
    if silent:
        told += f", {count(silent, 'unannounced reduction')}" + ("" if all else " (--all tells it)")
    if others := len(state.cards) - happened - silent:
        told += f", {others:,} more that changed nothing" + ("" if all else " (--all tells them)")
    for (basis, scope), gone in state.removed_tokens.items():
        told += f"; {gone:,} tokens removed in total ({basis}, {scope})"
    return told + "."


# -- context -----------------------------------------------------------------------------------


def context(
    file: File,
    /,
    *,
    at: Annotated[str | None, Parameter(help="A line of the session: 42 or #42.")] = None,
    json: Json = False,
    session: SessionOption = None,
    raw: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Print the agent's own wire form, as a JSON array.",
        ),
    ] = False,
) -> int:
    """Tell what the model sees at a place of a session: by default at its end."""
    if json and raw:
        raise ThresherError("Wrong usage", "--json and --raw are two forms: give one of them.")
    path = meant(located(file), session)
    history = replay(path)
    line = _line(at, history)
    if raw:
        output.put_json(source_of(path).context_raw(line))
        return 0
    state = history.at(history.position_of(line))
    costs, basis = _counted(state)
    if json:
        output.put_json(_context_record(line, state, costs, basis))
    else:
        _tell_context(line, state, costs, basis)
    remark_problems(state)
    return 0


def _line(at: str | None, history: History) -> int:
    last = history.records[-1].n
    if at is None:
        return last
    try:
        line = int(at.removeprefix("#"))
    except ValueError:
        raise ThresherError("No such place", f"--at {at} is not a line number.") from None
    if not 0 <= line <= last:
        raise ThresherError(
            "No such place", f"--at {line} is not in the session: its lines are 0 to {last:,}."
        )
    return line


def _counted(state: SessionState) -> tuple[dict[EntryId, int], str]:
    """The tokens of each entry by the best counter of this machine, and how they come about."""
    from thresher.core.ledger import item_tokens
    from thresher.core.tokenizer import counter_for

    counter = counter_for(state.model)
    costs = {entry.id: item_tokens(counter, entry.item) for entry in state.context}
    return costs, counter.basis.value


def _context_record(
    line: int, state: SessionState, costs: dict[EntryId, int], basis: str
) -> dict[str, Any]:
    return {
        "position": line,
        "agent": state.agent,
        "session_id": state.session_id,
        "model": state.model,
        "instructions": state.instructions,
        "tokens": {"value": sum(costs.values()), "basis": basis, "scope": "messages"},
        "reported": state.reported,
        "entries": [
            {
                "id": str(entry.id),
                "kind": entry.kind.value,
                "tokens": costs[entry.id],
                "made_by": entry.made_by,
                "origin": [str(id) for id in entry.origin],
                "item": entry.item,
            }
            for entry in state.context
        ],
    }


def _tell_context(line: int, state: SessionState, costs: dict[EntryId, int], basis: str) -> None:
    total = sum(costs.values())
    mark = "~" if basis == "estimated" else ""
    columns = (
        Column("id", tone=Tone.STRONG),
        Column("kind"),
        Column("tokens", right=True),
        Column("share", right=True, tone=Tone.MUTED),
        Column("from", tone=Tone.MUTED),
        Column("text", least=20),
    )
    rows = [
        (
            str(entry.id),
            entry.kind.value,
            f"{mark}{costs[entry.id]:,}",
            f"{100 * costs[entry.id] / total:.0f} %" if total else "",
            f"compaction {entry.made_by}" if entry.made_by else "",
            _first_line(entry.item),
        )
        for entry in state.context
    ]
    output.say(
        f"After line #{line}: {count(len(rows), 'entry', 'entries')}, {mark}{total:,} tokens "
        f"{basis} (messages only)."
    )
    if state.reported is not None:
        output.say(f"The last figure of the session: {with_basis(state.reported)} (whole request).")
    if rows:
        output.say()
        output.put(table(columns, rows, output.columns()))


def _first_line(item: Item) -> str:
    text = item.text.lstrip()
    if not text:
        return "(sealed)" if getattr(item, "encrypted", "") else "(no text)"
    first, _, rest = text.partition("\n")
    return clean_line(first, 300) + (" ⏎" if rest.strip() else "")


# -- requests ----------------------------------------------------------------------------------


def requests(file: File, /, *, json: Json = False, session: SessionOption = None) -> int:
    """Rebuild every model request of a session, in order.

    With --json, one line for each: {position, kind, input}, where input is in the agent's own
    wire form and position is the line of the session after which it went out.
    """
    found = source_of(meant(located(file), session)).requests()
    if json:
        for request in found:
            output.put_json(request)
        return 0
    columns = (
        Column("line", tone=Tone.STRONG),
        Column("kind"),
        Column("items", right=True),
        Column("bytes", right=True),
        Column("note", least=20),
    )
    rows = [_request_row(request) for request in found]
    output.put(table(columns, rows, output.columns()))
    if rows:
        output.say()
    output.say(f"{count(len(rows), 'request')} can be rebuilt. --json prints them.")
    return 0


def _request_row(request: RebuiltRequest) -> tuple[str, ...]:
    from thresher.core import jsontext

    notes = [request.missing and f"missing: {request.missing}"]
    notes.append(request.left_out and f"left out: {request.left_out}")
    notes.append(request.failed and f"failed: {request.failed}")
    notes.append(f"sent {request.attempts} times" if request.attempts > 1 else "")
    return (
        f"#{request.position}",
        request.kind.value,
        f"{len(request.input):,}",
        f"{len(jsontext.encode(request.input)):,}",
        "; ".join(note for note in notes if note),
    )
