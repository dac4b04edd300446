"""Which model requests a rollout shows, and where in the file each of them went out.

Requests are not stored. A response is: its items, then a token_usage_record (0.16x) or a changed
token_count (older). So a request went out before the first item of each response; a response
without items is seen by its usage alone. A repeated token_count marks that a stream began whose
usage has not come: of a try of a local compaction, of a request that was cut short, and up to
0.130 of every response ("headed" files; the first ones have no figures at all). Files of 2025 write
the usage of a response before its items.
"""

from __future__ import annotations

from ..events import Purpose

INTERRUPTED = "interrupted"
OVERFLOW = "context_window_exceeded"


class Sent:
    """A request, as far as it is known; later lines may still say that it was a compaction's.

    `tried` are the times (seconds, UTC) at which the file shows that a try of it began.
    """

    __slots__ = (
        "evidence", "failed", "headed", "kind", "line", "number", "position", "remote", "tried",
    )  # fmt: skip

    def __init__(
        self,
        number: int,
        position: int,
        line: int,
        kind: Purpose,
        tried: tuple[float, ...],
        headed: bool,
    ) -> None:
        self.number = number
        """Counted from 1."""
        self.position = position
        """The last line before it went out."""
        self.line = line
        """The line that shows it."""
        self.kind = kind
        self.tried = tried
        self.headed = headed
        self.failed = ""
        self.evidence = "derived"
        self.remote = False

    @property
    def attempts(self) -> int:
        """How often the file shows that it was sent. Each try of a compaction leaves a mark; a turn
        leaves one only when a try fails, but in a headed file always."""
        if self.headed or self.failed or self.kind is Purpose.COMPACTION:
            return max(1, len(self.tried))
        return len(self.tried) + 1


class RequestTracker:
    """The fold over the lines that matter to requests. `sent` are the requests in order."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.doubtful: Sent | None = None
        """A response without items so far: a turn's or a compaction's, as later lines tell."""
        self.answering: Sent | None = None
        """A compaction whose answer is being recorded."""
        self.headed = False
        """Every response of this file begins with a token_count."""
        self._tried: list[float] = []
        self._first_try = 0
        self._overtaken = False
        self._open = False
        self._owed = False
        """Items of a response have come whose usage has not."""
        self._usage_first = False
        """Items come whose usage has come before them."""
        self._sampled: int | None = None
        self.has_records = False
        """The end of each response is told by a token_usage_record."""

    @property
    def repeats(self) -> int:
        """Streams that have begun and given nothing yet."""
        return len(self._tried)

    @property
    def last_try(self) -> float:
        """When the last of them began (seconds, UTC); 0 without any."""
        return self._tried[-1] if self._tried else 0.0

    @property
    def open(self) -> bool:
        """Items of a response have come and not yet its end."""
        return self._open

    def item(self, line: int, made: bool, sampled: int | None, answer: bool) -> tuple[Sent, ...]:
        """A response_item; gives the requests that it is the first to tell of.

        `made` says that the model made it. `sampled` is the last item that the model had seen,
        where the file says so.
        """
        if answer:
            if self.answering is None:
                self.answering = self._new(line, Purpose.COMPACTION)
                return (self.answering,)
            return ()
        if not made:
            self._open = self._usage_first = False
            # What comes in while a stream has given nothing yet ends that stream.
            self._overtaken = bool(self._tried) and not self.headed
            return ()
        if self._usage_first:
            return ()
        same_response = self._open or (sampled is not None and sampled == self._sampled)
        self._open, self._sampled = True, sampled
        if same_response:
            return ()
        cut = (self.failed(line, Purpose.TURN, INTERRUPTED),) if self._overtaken else ()
        self._open = self._owed = True
        return (*cut, self._new(line, Purpose.TURN))

    def usage_record(self, line: int) -> None:
        """A token_usage_record: the end of a response."""
        self.has_records = True
        if not self._open and self.answering is None:
            self.doubtful = self._new(line, Purpose.TURN)
        self._open = False

    def began(self, line: int, at: float) -> None:
        """A token_count that repeats the one before, or has no figures: a stream began."""
        if self.headed:
            self._open = self._usage_first = False
        elif self._open:
            # Of the response whose items have come: it was cut short, and is counted already.
            self._open = False
            return
        if not self._tried:
            self._first_try = line
        self._tried.append(at)

    def count(self, line: int) -> None:
        """A token_count with new figures that are a report."""
        if not self.has_records:
            if not self._owed and self.answering is None:
                self.doubtful = self._new(line, Purpose.TURN)
            self._open = self._owed = False
        self._forget_tries()

    def confirmed(self, *, by_item: bool = False) -> Sent | None:
        """The doubtful response was a turn's; `by_item` says that an item of it comes now."""
        sent, self.doubtful = self.doubtful, None
        self._usage_first = by_item and sent is not None
        return sent

    def compacted(self, *, remote: bool, own_answer: bool) -> Sent | None:
        """A compacted line: the request it came from. `own_answer` says that the last response
        was its answer although nothing marks it (older files)."""
        sent = self.answering or self.doubtful
        if sent is None and own_answer and self.sent:
            sent = self.sent[-1]
        self.answering = self.doubtful = None
        self._open = self._owed = self._usage_first = False
        self._sampled = None
        self._forget_tries()
        if sent is not None:
            sent.kind, sent.remote = Purpose.COMPACTION, remote
        return sent

    def answered(self, line: int, *, remote: bool) -> Sent:
        """A compacted line of which nothing else tells the request."""
        sent = self._new(line, Purpose.COMPACTION)
        sent.remote = remote
        return sent

    def abandoned(self) -> Sent | None:
        """The answer of a compaction was recorded, and no compacted line came."""
        sent, self.answering = self.answering, None
        if sent is not None:
            sent.failed = "no compacted line followed"
        return sent

    def failed(self, line: int, kind: Purpose, error: str, before: int | None = None) -> Sent:
        """A request that left no item behind. Where the file has no mark of its tries, it went out
        before the line `before`, or before this one."""
        tried = bool(self._tried)
        sent = self._new(line, kind)
        if before is not None and not tried:
            sent.position = before - 1
        sent.failed, sent.evidence = error, "inferred"
        self._open = False
        return sent

    def ended(self) -> None:
        """A task is over: what began in it and gave nothing is not of the next one."""
        self._open = self._usage_first = False
        self._forget_tries()

    def _new(self, line: int, kind: Purpose) -> Sent:
        before = self._first_try if self._tried else line
        tried = tuple(self._tried)
        sent = Sent(len(self.sent) + 1, before - 1, line, kind, tried, self.headed)
        self.sent.append(sent)
        self._forget_tries()
        return sent

    def _forget_tries(self) -> None:
        self._tried.clear()
        self._overtaken = False
