"""Search over everything a session says: words, and filters that can be named.

    fix "three blind mice" tool:bash role:output size:>10k

Words must all be there, in any case and any order; a phrase stands in quotes; a minus in front
excludes. Filters: `tool:` and `role:` (part of a name), `has:compaction`, `has:error`,
`removed:2` (by compaction 2; `removed:any`, by whatever), `in:summary`, `in:context`, `size:>10k`,
`size:<500` (tokens), `id:42`. Several filters of one name are alternatives.

The texts are lowered once. Building and searching are generators that work in slices, so a screen
can show what is there and stop at any key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from .. import events as e
from ..context import EntryId, Inserted, Replaced
from ..history import History
from ..items import CompactionSummary, Item
from ..state import SessionState
from .caps import Caps
from .naming import role_of, tool_of

SLICE = 2_000
"""Documents that are searched between two breaths."""
BUILD_SLICE = 500
"""Records that are read between two breaths."""


READ_SLICE = 200
"""Documents between two breaths where whole texts are read from the file."""


class What(StrEnum):
    """What a document is."""

    ENTRY = "entry"
    COMPACTION = "compaction"
    ERROR = "error"
    NOTE = "note"
    TURN = "turn"


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A document that matches: its journal line, and its entry where it is one. `at` is its place
    among all documents; hits come in the order of the journal."""

    at: int
    line: int
    what: What
    id: EntryId | None = None


class Query(msgspec.Struct, frozen=True):
    """A search, read. `faults` names what was not understood and is searched for as a word."""

    words: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    removed: tuple[int, ...] = ()
    """Ordinals; 0 stands for any."""
    places: tuple[str, ...] = ()
    ids: tuple[EntryId, ...] = ()
    least: int | None = None
    most: int | None = None
    faults: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """True when everything matches."""
        return self == Query(faults=self.faults)

    @property
    def looks_closer(self) -> bool:
        """Whether it asks for what only the state can tell."""
        filters = (self.has, self.removed, self.places, self.ids)
        return any(filters) or self.least is not None or self.most is not None

    def narrows(self, other: Query) -> bool:
        """Whether every hit of this one is a hit of the other, so that only its hits need to be
        looked at again: the case of a word that is still being typed."""
        same = msgspec.structs.replace(self, words=other.words, faults=other.faults)
        if same != other:
            return False
        return all(any(word in longer for longer in self.words) for word in other.words)


_TERM = re.compile(r'(-?)(?:([a-z]+):)?(?:"([^"]*)"?|(\S*))', re.I)
_SIZE = re.compile(r"(>=|<=|>|<|)(\d+(?:\.\d+)?)(k|m|)", re.I)
_UNIT = {"": 1, "k": 1_000, "m": 1_000_000}
_HAS = frozenset({What.COMPACTION.value, What.ERROR.value})
_PLACES = frozenset({"summary", "context"})


def parse(text: str) -> Query:
    """Read what a user typed. Never fails: what is no filter is a word."""
    query = Query()
    for match in _TERM.finditer(text):
        minus, name, quoted, bare = match[1], (match[2] or "").lower(), match[3], match[4] or ""
        value = (bare if quoted is None else quoted).lower()
        filtered = _filtered(query, name, value) if name and not minus else None
        if filtered is not None:
            query = filtered
        elif minus and value and not name:
            query = _more(query, without=value)
        elif whole := (f"{name}:{value}" if name else f"{minus}{value}"):
            query = _more(query, words=whole)
            if name in _FILTERS:
                query = _more(query, faults=whole)
    return query


_FILTERS = frozenset({"tool", "role", "has", "removed", "in", "id", "size"})


def _filtered(query: Query, name: str, value: str) -> Query | None:
    """The query with this filter; None when it is none, or has no such value."""
    match name:
        case "tool" if value:
            return _more(query, tools=value)
        case "role" if value:
            return _more(query, roles=value)
        case "has" if value in _HAS:
            return _more(query, has=value)
        case "in" if value in _PLACES:
            return _more(query, places=value)
        case "removed" if value == "any":
            return _more(query, removed=0)
        case "removed" if value.isdecimal():
            return _more(query, removed=int(value))
        case "id":
            try:
                return _more(query, ids=EntryId.parse(value))
            except ValueError:
                return None
        case "size" if size := _SIZE.fullmatch(value):
            tokens = float(size[2]) * _UNIT[size[3]]
            low, high = _bounds(size[1], tokens)
            return msgspec.structs.replace(
                query,
                least=query.least if low is None else low,
                most=query.most if high is None else high,
            )
        case _:
            return None


def _bounds(sign: str, tokens: float) -> tuple[int | None, int | None]:
    match sign:
        case ">":
            return int(tokens) + 1, None
        case "<":
            return None, math.ceil(tokens) - 1
        case "<=":
            return None, int(tokens)
        case _:
            return math.ceil(tokens), None


def _more(query: Query, **value: object) -> Query:
    ((name, new),) = value.items()
    return msgspec.structs.replace(query, **{name: (*getattr(query, name), new)})


# The index --------------------------------------------------------------------------------------


class _Document(msgspec.Struct, frozen=True, gc=False):
    """What is searched. `hay` is its lowered text; of an entry the item tells the rest. There are
    many, and none is part of a cycle, so the garbage collector need not look at them."""

    line: int
    what: What
    hay: str
    id: EntryId | None = None
    item: Item | None = None
    tool: str = ""
    role: str = ""


class Index:
    """The documents of a session, in the order of the journal. It grows with the history."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._documents: list[_Document] = []
        self._hays: list[str] = []
        self._tools: set[str] = set()
        self._roles: set[str] = set()
        self._heads = False
        """Of some items only heads are held."""
        self._read = 0
        self._caps = Caps()

    def __len__(self) -> int:
        """Documents so far."""
        return len(self._documents)

    @property
    def complete(self) -> bool:
        """Whether every record is in it."""
        return self._read >= len(self.history)

    @property
    def cut(self) -> int:
        """How many outputs were cut before they entered: what was cut off is not searched."""
        return len(self._caps.cut)

    def build(self) -> Iterator[int]:
        """Take in the records that are new, a slice at a time; gives the documents so far."""
        while not self.complete:
            end = min(self._read + BUILD_SLICE, len(self.history))
            records = self.history.records[self._read : end]
            self._caps.read(records)
            for record in records:
                for document in _documents(record, self.history.state):
                    self._documents.append(document)
                    self._hays.append(document.hay)
                    self._tools.add(document.tool)
                    self._roles.add(document.role)
                    self._heads = self._heads or _is_head(document)
            self._read = end
            yield len(self._documents)

    def search(self, query: Query, within: Iterable[Hit] | None = None) -> Iterator[list[Hit]]:
        """The hits, a list for each slice of documents, so that the caller can stop in between.

        Only what has been built is searched. `within` are the hits of a query that this one
        `narrows`.
        """
        places = range(len(self._documents)) if within is None else [hit.at for hit in within]
        size = READ_SLICE if self._heads and (query.words or query.without) else SLICE
        for start in range(0, len(places), size):
            yield self._matching(places[start : start + size], query)

    def find(self, query: Query) -> list[Hit]:
        """All hits at once, everything built first."""
        for _ in self.build():
            pass
        return [hit for hits in self.search(query) for hit in hits]

    def _matching(self, places: Sequence[int], query: Query) -> list[Hit]:
        # The words first: they cost least and leave least.
        hays, documents, state = self._hays, self._documents, self.history.state
        if self._heads and (query.words or query.without):
            places = [at for at in places if self._says(at, query)]
        else:
            for word in query.words:
                places = [at for at in places if word in hays[at]]
            for word in query.without:
                places = [at for at in places if word not in hays[at]]
        if query.tools:
            tools = {tool for tool in self._tools if _holds(tool, query.tools)}
            places = [at for at in places if documents[at].tool in tools]
        if query.roles:
            roles = {role for role in self._roles if _holds(role, query.roles)}
            places = [at for at in places if documents[at].role in roles]
        if query.looks_closer:
            places = [at for at in places if _passes(documents[at], query, state)]
        found = [(at, documents[at]) for at in places]
        return [Hit(at, document.line, document.what, document.id) for at, document in found]

    def _says(self, at: int, query: Query) -> bool:
        """Whether a document has the words, of which the rest of its text may be in the file."""
        hay, document = self._hays[at], self._documents[at]
        missing = [word for word in query.words if word not in hay]
        if any(word in hay for word in query.without):
            return False
        if not missing and not query.without:
            return True
        if document.item is None or not _is_head(document):
            return not missing
        whole = self.history.state.text(document.item).lower()
        missing = [word for word in missing if word not in whole]
        return not missing and not any(word in whole for word in query.without)


def _is_head(document: _Document) -> bool:
    return document.item is not None and document.item.body is not None


def snippet(text: str, query: Query, room: int = 80) -> tuple[str, str, str]:
    """A piece of a text around the first word found: what stands before, the word, and after.
    Foreign text, not clean; the word is empty where none is found."""
    # Lowering may change lengths (U+0130), so the place is looked for in the text itself.
    for word in query.words:
        found = re.search(re.escape(word), text, re.I)
        if found:
            start = max(0, found.start() - room // 3)
            end = min(len(text), found.end() + room - (found.start() - start))
            return text[start : found.start()], found[0], text[found.end() : end]
    return text[:room], "", ""


def _holds(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name for part in parts)


def _passes(document: _Document, query: Query, state: SessionState) -> bool:
    if query.has and document.what.value not in query.has:
        return False
    if query.ids and document.id not in query.ids:
        return False
    if query.removed and not _removed(document, query.removed, state):
        return False
    if query.places and not _placed(document, query.places, state):
        return False
    if query.least is None and query.most is None:
        return True
    tokens = None if document.id is None else state.cost(document.id)
    if tokens is None:
        return False
    return (query.least or 0) <= tokens and (query.most is None or tokens <= query.most)


def _removed(document: _Document, ordinals: tuple[int, ...], state: SessionState) -> bool:
    if document.id is None:
        return False
    fate = state.fate(document.id)
    return fate.gone if 0 in ordinals else bool(fate.removed_by) and fate.removed_by in ordinals


def _placed(document: _Document, places: tuple[str, ...], state: SessionState) -> bool:
    if "summary" in places and isinstance(document.item, CompactionSummary):
        return True
    here = document.id is not None and state.context.place(document.id) is not None
    return "context" in places and here


def _documents(record: e.Record, state: SessionState) -> Iterator[_Document]:
    line = record.n
    match record.event:
        case e.ItemAppended(item=item, part=part):
            yield _entry(EntryId(line, part), item, state)
        case e.HistoryCompacted() as event:
            # The summary is an entry of its own; here is what the card says beside it.
            said = (event.policy, event.stage, event.reason, event.focus, *event.marks)
            yield _said(line, What.COMPACTION, f"compaction {event.ordinal}", *said)
        case e.CompactionSkipped() | e.CompactionFailed() as event:
            said = ("compaction", event.outcome.value, event.policy, event.stage, event.reason)
            yield _said(line, What.COMPACTION, *said)
        case e.ErrorRaised() as event:
            yield _said(line, What.ERROR, event.kind, event.message, event.where)
        case e.ContextOverflowed(message=message):
            yield _said(line, What.ERROR, "context overflow", message)
        case e.SummaryAttemptFailed() as event:
            yield _said(line, What.ERROR, "summary failed", event.model, event.kind, event.message)
        case e.BreakerOpened(reason=reason):
            yield _said(line, What.ERROR, "breaker open", reason)
        case e.UnannouncedReduction(explanation=text) | e.Note(text=text):
            yield _said(line, What.NOTE, text)
        case e.SessionStarted() as event:
            yield _said(line, What.NOTE, event.title, event.session_id, event.model, event.cwd)
        case e.ModelChanged(model=model):
            yield _said(line, What.NOTE, "model", model)
        case e.PolicyChanged(policy=policy):
            yield _said(line, What.NOTE, "policy", policy)
        case e.TurnStarted(turn=turn):
            yield _said(line, What.TURN, f"turn {turn}")
        case _:
            pass
    part = 0
    for segment in getattr(record.event, "segments", ()):
        # The ids of new entries count on in the order of their segments (`Context.apply`).
        if isinstance(segment, Replaced | Inserted):
            yield _entry(EntryId(line, part), segment.item, state)
            part += 1


def _entry(id: EntryId, item: Item, state: SessionState) -> _Document:
    tool = tool_of(state, item)
    call_id = getattr(item, "call_id", "")
    hay = "\n".join(filter(None, (item.text, tool, call_id, str(id)))).lower()
    return _Document(id.line, What.ENTRY, hay, id, item, tool.lower(), role_of(item))


def _said(line: int, what: What, *texts: str) -> _Document:
    return _Document(line, what, "\n".join((*texts, f"#{line}")).lower(), role=what.value)
