from __future__ import annotations

import gzip
from pathlib import Path

from thresher.core.compaction.policy import Moment
from thresher.core.history import History
from thresher.core.insight.moments import moments
from thresher.core.sources.codex import CodexSource

CODEX = Path(__file__).parents[2] / "fixtures" / "codex"


def test_a_programs_own_estimate_after_a_compaction_does_not_hide_the_compaction(
    tmp_path: Path,
) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(gzip.decompress((CODEX / "two_mid_turn.jsonl.gz").read_bytes()))
    history = History()
    history.extend(CodexSource(path).read())
    compacted = [offered for offered in moments(history) if offered.ordinal]
    assert [(offered.ordinal, offered.moment) for offered in compacted] == [
        (1, Moment.AFTER_ROUND),
        (2, Moment.AFTER_ROUND),
    ]
    for offered in compacted:
        state = history.at(offered.position)
        assert state.compactions == offered.ordinal - 1
