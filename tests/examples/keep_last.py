"""A policy of your own: above `most` items, all but the newest `keep` become a summary."""

from __future__ import annotations

import msgspec

from thresher.core.compaction.policy import (
    Edit,
    Moment,
    Skip,
    SkipKind,
    Summarise,
    Summary,
    Trigger,
)
from thresher.core.context import Inserted
from thresher.core.items import CompactionSummary, Kind, user
from thresher.core.validate import safe_cuts


class KeepLast:
    moments = frozenset({Moment.BEFORE_REQUEST, Moment.MANUAL})

    class Params(msgspec.Struct, frozen=True):
        most: int = 40
        keep: int = 12

    def __init__(self, params):
        self.params = params

    def plan(self, situation):
        context, p = situation.context, self.params
        head = 1 if len(context) and context.entries[0].kind is Kind.SYSTEM else 0
        cut = max(at for at in safe_cuts(context.items) if at <= max(0, len(context) - p.keep))
        if cut <= head or (situation.trigger is Trigger.AUTO and len(context) <= p.most):
            yield Skip(SkipKind.NOT_DUE, f"{len(context)} items are not above {p.most}.")
            return
        old = context.items[head:cut]
        answer = yield Summarise(items=(*old, user("Sum this up in ten lines.")), source=old)
        if isinstance(answer, Summary):
            new = Inserted(CompactionSummary(answer.text, "Earlier:\n"))
            kept = context.keep(range(cut, len(context)))
            why = f"Of {len(context)} items the oldest {len(old)} are summarised."
            order = (*context.keep(range(head)), new, *kept)
            yield Edit(stage="keep last", reason=why, segments=order, drops_newest_user=True)
