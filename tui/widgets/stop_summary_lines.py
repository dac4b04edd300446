"""The summary of a stop as lines of spans: the request that would be sent for it, and what came
back. Pure functions of the stop and the state."""

from __future__ import annotations

from thresher.core.compaction.gate import Pending
from thresher.core.compaction.policy import CompactRemotely, Summarise
from thresher.core.debug.stop import Stop
from thresher.core.insight.naming import role_of
from thresher.core.state import SessionState
from thresher.core.text import clean

from .. import figures
from ..spans import Line, Tone, cut, span, spread, width, wrap
from .stop_lines import said, text_lines


def request_lines(pending: Pending | None, stop: Stop | None, cells: int) -> list[Line]:
    """The request for the summary as it would be sent."""
    if pending is None:
        return said(_no_request(stop), cells)
    ask, measure = pending.ask, pending.situation.measure
    sizes = [measure.item(item) for item in ask.items]
    total = sum(sizes) + (measure.text(ask.instructions) if ask.instructions else 0)
    basis = figures.mark(measure.basis)
    by = cut(ask.model, 40) or "the summariser"
    kind = "the provider compacts these itself" if isinstance(ask, CompactRemotely) else f"to {by}"
    left: Line = [span(f"{figures.count(len(ask.items), 'message')} {kind}", Tone.STRONG)]
    figure = f"{basis}{total:,} tokens"
    # The sign before it says what kind of figure it is, where the word has no room.
    full = f"{figure} {measure.basis}"
    told = full if width(left) + len(full) + 2 <= cells else figure
    found: list[Line] = [spread(left, [span(told, Tone.MUTED)], cells)]
    if isinstance(ask, Summarise) and ask.max_output:
        found.append([span(f"at most {ask.max_output:,} tokens of answer", Tone.MUTED)])
    if isinstance(ask, Summarise) and ask.focus:
        found += [[span(line, Tone.ACCENT)] for line in wrap(f"focus: {clean(ask.focus)}", cells)]
    if ask.instructions:
        found += [[], *_headed("instructions", "", ask.instructions, cells)]
    for item, size in zip(ask.items, sizes, strict=True):
        found += [[], *_headed(role_of(item), f"{basis}{size:,}", item.text, cells)]
    return found


def request_text(pending: Pending, state: SessionState) -> str:
    """All of the request, to be read or copied."""
    ask = pending.ask
    parts = [f"[instructions]\n{ask.instructions}"] if ask.instructions else []
    parts += (f"[{role_of(item)}]\n{state.text(item)}" for item in ask.items)
    return "\n\n".join(parts)


def _no_request(stop: Stop | None) -> str:
    if stop is None:
        return "It has been sent."
    if not stop.pass_id:
        return "No compaction is held here."
    edit = stop.proposal.edit if stop.proposal is not None else None
    if edit is not None and edit.summary is not None:
        return "It has been sent and answered; the summary is in the next view."
    return "This compaction asks for no summary."


def _headed(name: str, remark: str, text: str, cells: int) -> list[Line]:
    rule = "─" * max(0, cells - len(name) - len(remark) - 2)
    head: Line = [
        span(f"{name} ", Tone.MUTED),
        span(rule, Tone.RULE),
        span(f" {remark}", Tone.MUTED),
    ]
    return [head, *text_lines(text, cells)]


def summary_lines(
    stop: Stop | None, streamed: str, cells: int, keys: tuple[str, str]
) -> list[Line]:
    """The summary, or what can be done while there is none; `keys` ask for it and write one."""
    if stop is None:
        head = said("The summary is being written.", cells)
        return [*head, [], *text_lines(streamed, cells)] if streamed else head
    if stop.pending is not None:
        ask, write = keys
        return [
            [span("It is not written yet.", Tone.STRONG)],
            *_keyed(ask, "asks for it; you see it before it is applied", cells),
            *_keyed(write, "writes it yourself, and nothing is asked", cells),
        ]
    edit = stop.proposal.edit if stop.proposal is not None else None
    summary = edit.summary if edit is not None else None
    if summary is None:
        return said("This compaction writes no summary.", cells)
    facts = [f"by {cut(summary.model, 40)}" if summary.model else "by the user"]
    if summary.usage is not None:
        facts.append(f"{summary.usage.output_tokens:,} tokens reported")
    if summary.seconds:
        facts.append(figures.seconds(summary.seconds))
    found: list[Line] = [[span(", ".join(facts), Tone.MUTED)]]
    if summary.note:
        found += [[span(line, Tone.THRESHOLD)] for line in wrap(clean(summary.note), cells)]
    if summary.encrypted and not summary.text:
        return [*found, [], *said("The provider sealed it: it cannot be read.", cells)]
    return [*found, [], *text_lines(summary.text, cells)]


def _keyed(key: str, does: str, cells: int) -> list[Line]:
    """What a key does."""
    first, *rest = wrap(does, max(8, cells - len(key) - 1))
    indent = " " * (len(key) + 1)
    return [[span(f"{key} ", Tone.KEY), span(first)], *([span(indent + more)] for more in rest)]
