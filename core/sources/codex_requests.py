"""Which model requests a rollout shows, and where in the file each of them went out.

Requests are not stored. A response is: its items, then a token_usage_record (0.171) or a changed
token_count (older). So a request went out before the first item of each response; a response
without items is seen by its usage alone. A repeated token_count without a response is a try that
failed, or the try of a local compaction.
"""

from __future__ import annotations

from ..events import Purpose


class Sent:
    """A request, as far as it is known; later lines may still say that it was a compaction's."""

    __slots__ = (
        "evidence", "failed", "kind", "line", "number", "position", "remote", "repeats",
    )  # fmt: skip

    def __init__(self, number: int, position: int, line: int, kind: Purpose, repeats: int) -> None:
        self.number = number
        """Counted from 1."""
        self.position = position
        """The last line before it went out."""
        self.line = line
        """The line that shows it."""
        self.kind = kind
        self.repeats = repeats
        self.failed = ""
        self.evidence = "derived"
        self.remote = False

    @property
    def attempts(self) -> int:
        """How often the file shows that it was sent. A compaction repeats the count each time,
        a turn only when a try fails."""
        if self.kind is Purpose.COMPACTION or self.failed:
            return max(1, self.repeats)
        return self.repeats + 1


class RequestTracker:
    """The fold over the lines that matter to requests. `sent` are the requests in order."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.doubtful: Sent | None = None
        """A response without items: a turn's or a compaction's, as the next line tells."""
        self.answering: Sent | None = None
        """A compaction whose answer is being recorded."""
        self.repeats = 0
        self._first_repeat = 0
        self._open = False
        self._sampled: int | None = None
        self._has_records = False

    def item(self, line: int, made: bool, sampled: int | None, answer: bool) -> Sent | None:
        """A response_item; gives the request that its response answers, when it is the first.

        `made` says that the model made it. `sampled` is the last item that the model had seen,
        where the file says so.
        """
        if answer:
            if self.answering is None:
                self.answering = self._new(line, Purpose.COMPACTION)
                return self.answering
            return None
        if not made:
            self._open = False
            return None
        same_response = self._open or (sampled is not None and sampled == self._sampled)
        self._open, self._sampled = True, sampled
        return None if same_response else self._new(line, Purpose.TURN)

    def usage_record(self, line: int) -> None:
        """A token_usage_record: the end of a response."""
        self._has_records = True
        if not self._open and self.answering is None:
            self.doubtful = self._new(line, Purpose.TURN)
        self._open = False

    def count(self, line: int, *, changed: bool) -> None:
        """A token_count that is not Codex's own estimate."""
        if not changed:
            self._first_repeat = self._first_repeat if self.repeats else line
            self.repeats += 1
            return
        self.repeats = 0
        if not self._has_records:
            self._open = False

    def confirmed(self) -> Sent | None:
        """The doubtful response was a turn's."""
        sent, self.doubtful = self.doubtful, None
        return sent

    def compacted(self, *, remote: bool, own_answer: bool) -> Sent | None:
        """A compacted line: the request it came from. `own_answer` says that the last response
        was its answer although nothing marks it (older files)."""
        sent = self.answering or self.doubtful
        if sent is None and own_answer and self.sent:
            sent = self.sent[-1]
        self.answering = self.doubtful = None
        self.repeats, self._open, self._sampled = 0, False, None
        if sent is not None:
            sent.kind, sent.remote = Purpose.COMPACTION, remote
        return sent

    def abandoned(self) -> Sent | None:
        """The answer of a compaction was recorded, and no compacted line came."""
        sent, self.answering = self.answering, None
        if sent is not None:
            sent.failed = "no compacted line followed"
        return sent

    def failed(self, line: int, kind: Purpose, error: str) -> Sent:
        """An error ended a request that left no item behind."""
        sent = self._new(line, kind)
        sent.failed, sent.evidence = error, "inferred"
        self._open = False
        return sent

    @property
    def open(self) -> bool:
        """Items of a response have come and not yet its end."""
        return self._open

    def _new(self, line: int, kind: Purpose) -> Sent:
        before = self._first_repeat if self.repeats else line
        sent = Sent(len(self.sent) + 1, before - 1, line, kind, self.repeats)
        self.sent.append(sent)
        self.repeats = 0
        return sent
