from __future__ import annotations

from typing import Any

from thresher.core import events as e
from thresher.core.sources.opencode_changes import Change
from thresher.core.sources.opencode_events import Translator
from thresher.core.sources.opencode_fold import SessionInfo
from thresher.core.sources.report import compaction_records, state_at


class Session:
    """Changes of a made-up V1 session."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def add(self, type: str, data: dict[str, Any]) -> Session:
        n = len(self.changes)
        self.changes.append(Change(n, 1000.0 + n, type, data))
        return self

    def message(self, id: str, at: int, role: str, **more: Any) -> Session:
        return self.add(
            "message.updated", {"id": id, "role": role, "time": {"created": at}, **more}
        )

    def part(self, id: str, message: str, type: str, **more: Any) -> Session:
        return self.add(
            "message.part.updated", {"id": id, "messageID": message, "type": type, **more}
        )

    def user(self, at: int, text: str) -> Session:
        return self.message(f"m{at}", at, "user").part(f"p{at}", f"m{at}", "text", text=text)

    def answer(self, at: int, text: str, **more: Any) -> Session:
        time = {"created": at, "completed": at + 1}
        return (
            self.message(f"m{at}", at, "assistant")
            .part(f"p{at}", f"m{at}", "text", text=text, time={"end": at})
            .add(
                "message.updated",
                {"id": f"m{at}", "role": "assistant", "time": time, "finish": "stop", **more},
            )
        )

    def read(self) -> list[e.Record]:
        self.translator = Translator(SessionInfo("ses_x", made=0.001), collect=True)
        found = [record for each in self.changes for record in self.translator.feed(each)]
        return found + self.translator.flush()

    def last_request(self) -> list[str]:
        self.read()
        return [str(each["content"]) for each in self.translator.drain()[-1].input]


def compaction(session: Session, at: int, *, auto: bool, tail: str = "", **ending: Any) -> Session:
    """A compaction that begins at this time; `ending` is the end of its summary message."""
    part = {"auto": auto, "overflow": False}
    session.message(f"m{at}", at, "user").part(f"p{at}", f"m{at}", "compaction", **part)
    said = {"parentID": f"m{at}", "summary": True}
    session.message(f"m{at + 1}", at + 1, "assistant", **said)
    session.part(f"p{at + 1}", f"m{at + 1}", "text", text="SUMMARY", time={"end": 1})
    done = {"created": at + 1, "completed": at + 2}
    session.add(
        "message.updated",
        {"id": f"m{at + 1}", "role": "assistant", **said, "time": done, **ending},
    )
    if tail:
        session.part(f"p{at}", f"m{at}", "compaction", **part, tail_start_id=tail)
    return session


def test_a_manual_compaction_without_a_tail_leaves_question_and_summary() -> None:
    session = Session().user(10, "first").answer(20, "one")
    compaction(session, 30, auto=False, finish="stop")
    (report,) = compaction_records(session.read())
    assert (report.trigger, str(report.moment)) == ("manual", "manual")
    assert report.reason_evidence == "recorded"
    session.user(40, "next").answer(50, "two")
    assert session.last_request() == ["What did we do so far?", "SUMMARY", "next"]


def test_a_kept_tail_stands_behind_the_summary() -> None:
    session = Session().user(10, "first").answer(20, "one").user(30, "second").answer(40, "two")
    compaction(session, 50, auto=True, tail="m30", finish="stop")
    session.user(60, "next").answer(70, "three")
    assert session.last_request() == [
        "What did we do so far?", "SUMMARY", "second", "two", "next",
    ]  # fmt: skip


def test_the_newer_of_two_compactions_decides_and_the_older_summary_falls_out() -> None:
    session = Session().user(10, "first").answer(20, "one")
    compaction(session, 30, auto=True, finish="stop")
    session.user(40, "second").answer(50, "two")
    compaction(session, 60, auto=True, tail="m40", finish="stop")
    session.user(70, "third").answer(80, "three")
    assert session.last_request() == [
        "What did we do so far?", "SUMMARY", "second", "two", "third",
    ]  # fmt: skip


def test_a_failed_summary_with_a_tail_cuts_the_view_unannounced() -> None:
    session = Session().user(10, "first").answer(20, "one").user(30, "second").answer(40, "two")
    error = {"name": "APIError", "data": {"message": "down"}}
    compaction(session, 50, auto=True, tail="m30", finish="error", error=error)
    session.user(60, "next").answer(70, "three")
    records = session.read()
    failed, cut = compaction_records(records, unsuccessful=True)
    assert (failed.outcome, failed.reason) == ("failed", "down")
    assert (cut.stage, cut.evidence) == ("failed compaction", "unannounced")
    assert cut.items is not None
    assert cut.items.removed == 2
    assert "first" not in session.last_request()
    assert state_at(records).problems == []


def test_a_message_that_is_removed_leaves_the_context_and_is_no_compaction() -> None:
    session = Session().user(10, "first").answer(20, "one").user(30, "wrong").answer(40, "two")
    session.add("message.removed", {"messageID": "m30"})
    session.add("message.removed", {"messageID": "m40"})
    records = session.read()
    assert compaction_records(records) == []
    assert [entry.item.text for entry in state_at(records).context] == ["first", "one"]


def test_an_answer_that_failed_is_taken_back_and_one_that_was_broken_off_stays() -> None:
    session = Session().user(10, "first")
    session.answer(20, "half", error={"name": "MessageAbortedError"}).user(30, "second")
    session.answer(40, "lost", error={"name": "APIError", "data": {"message": "down"}})
    session.user(50, "third").answer(60, "three")
    records = session.read()
    assert [entry.item.text for entry in state_at(records).context] == [
        "first", "half", "second", "third", "three",
    ]  # fmt: skip
    assert session.last_request() == ["first", "half", "second", "third"]


def test_several_steps_in_one_message_are_several_requests_and_messages() -> None:
    session = Session().user(10, "go").message("m20", 20, "assistant")
    for at in (1, 2):
        session.part(f"p2{at}a", "m20", "step-start")
        session.part(f"p2{at}b", "m20", "text", text=f"step {at}", time={"end": 1})
        tokens = {"input": 100 * at, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
        session.part(f"p2{at}c", "m20", "step-finish", tokens=tokens)
    session.user(30, "on").answer(40, "done")
    records = session.read()
    requests = [each.event for each in records if isinstance(each.event, e.RequestSent)]
    assert len(requests) == 3
    assert session.last_request() == ["go", "step 1", "step 2", "on"]


def test_a_v2_compaction_that_never_ended_is_a_refusal() -> None:
    changes = [
        Change(0, 1.0, "session.next.prompted", {"messageID": "m1", "prompt": {"text": "go"}}),
        Change(1, 2.0, "session.next.compaction.started", {"messageID": "m2", "reason": "auto"}),
        Change(2, 3.0, "session.next.step.started", {"assistantMessageID": "m3"}),
    ]
    translator = Translator(SessionInfo("ses_x", made=0.001))
    records = [record for each in changes for record in translator.feed(each)]
    (report,) = compaction_records(records + translator.flush(), unsuccessful=True)
    assert (report.outcome, report.evidence) == ("failed", "inferred")
    assert "no reason" in report.reason


def test_a_v2_step_that_failed_with_an_overflow_is_told() -> None:
    error = {"type": "context-overflow", "message": "prompt is too long"}
    changes = [
        Change(0, 1.0, "session.next.prompted", {"messageID": "m1", "prompt": {"text": "go"}}),
        Change(1, 2.0, "session.next.step.started", {"assistantMessageID": "m3"}),
        Change(2, 3.0, "session.next.step.failed", {"assistantMessageID": "m3", "error": error}),
    ]
    translator = Translator(SessionInfo("ses_x", made=0.001), collect=True)
    records = [record for each in changes for record in translator.feed(each)]
    records += translator.flush()
    assert [
        each.event.message for each in records if isinstance(each.event, e.ContextOverflowed)
    ] == ["prompt is too long"]
    (request,) = translator.drain()
    assert request.failed == "context-overflow"


def test_a_tail_that_is_stored_after_the_compaction_was_told_comes_back() -> None:
    session = Session().user(10, "first").answer(20, "one").user(30, "second").answer(40, "two")
    compaction(session, 50, auto=False, finish="stop")
    session.user(60, "next")
    session.part("p50", "m50", "compaction", auto=False, tail_start_id="m30")
    session.user(70, "last").answer(80, "three")
    assert session.last_request() == [
        "What did we do so far?", "SUMMARY", "second", "two", "next", "last",
    ]  # fmt: skip
    texts = [entry.item.text for entry in state_at(session.read()).context]
    assert sorted(texts) == sorted(
        ["What did we do so far?", "SUMMARY", "second", "two", "next", "last", "three"]
    )


def test_a_prune_behind_a_summary_is_told_after_it_and_only_of_what_is_still_seen() -> None:
    session = Session().user(10, "first")
    done = {"status": "completed", "input": {}, "output": "long " * 50}
    session.message("m20", 20, "assistant")
    session.part("t20", "m20", "tool", callID="c", tool="read", state=done)
    session.add(
        "message.updated",
        {"id": "m20", "role": "assistant", "time": {"created": 20, "completed": 21},
         "finish": "tool-calls"},
    )  # fmt: skip
    compaction(session, 30, auto=False, finish="stop")
    pruned = {**done, "time": {"compacted": 99}}
    session.part("t20", "m20", "tool", callID="c", tool="read", state=pruned)
    records = session.user(40, "next").read()
    assert [each.stage for each in compaction_records(records)] == ["compaction"]
    notes = [each.event.text for each in records if isinstance(each.event, e.Note)]
    assert any("1 output that the model no longer saw" in text for text in notes)
    assert len(state_at(records).context) == 3
