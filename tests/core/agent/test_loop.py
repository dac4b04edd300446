from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from thresher.core import events as e
from thresher.core.agent.approvals import Decision
from thresher.core.agent.calls import ABORTED
from thresher.core.agent.loop import TurnOutcome
from thresher.core.agent.tools.cap import OutputCap
from thresher.core.compaction.policy import Trigger
from thresher.core.items import CompactionSummary, FunctionCall, Message, Role
from thresher.core.sessions.resume import resume

from ...loopback import Call, Fail, Hang, Reply, Request, overflow
from .rig import Answering, Rig, rig

READ = Call("read_file", {"path": "notes.txt"})
BOTH = pytest.mark.parametrize("wire", ["chat", "responses"])


def summary_or(*steps: Reply):
    """Summary requests are told by their missing tools; the others follow the steps."""
    left = list(steps)

    def answer(request: Request) -> Reply:
        if not request.body.get("tools"):
            return Reply("Goal: read the notes. Rule: prices stay in cents.")
        return left.pop(0) if left else Reply("Done.")

    return answer


@BOTH
async def test_a_turn_calls_tools_and_ends_with_the_answer(tmp_path: Path, wire: str) -> None:
    script = [Reply("I will read.", calls=(READ,)), Reply("Prices stay in cents.")]
    async with rig(tmp_path, script, wire=wire) as r:
        assert await r.agent.run_turn("What is the rule?") is TurnOutcome.COMPLETED
        assert r.said() == ["I will read.", "Prices stay in cents."]
        assert "keep prices in cents" in r.outputs()[0].output
        assert r.valid()
        assert r.session.state.rounds == 2
        assert r.session.state.reported is not None


@BOTH
async def test_parallel_calls_are_answered_in_their_order(tmp_path: Path, wire: str) -> None:
    calls = (READ, Call("glob", {"pattern": "*"}), Call("grep", {"pattern": "rule"}))
    async with rig(tmp_path, [Reply(calls=calls), Reply("ok")], wire=wire) as r:
        await r.agent.run_turn("go")
        asked = [
            ev.item.call_id for ev in r.events(e.ItemAppended) if isinstance(ev.item, FunctionCall)
        ]
        assert [output.call_id for output in r.outputs()] == asked
        assert [output.name for output in r.outputs()] == ["read_file", "glob", "grep"]


@BOTH
async def test_reaching_the_threshold_compacts_and_the_next_request_is_the_short_one(
    tmp_path: Path, wire: str
) -> None:
    usage = {"chat": {"prompt_tokens": 9000, "completion_tokens": 10, "total_tokens": 9010}}
    usage["responses"] = {"input_tokens": 9000, "output_tokens": 10, "total_tokens": 9010}
    script = summary_or(Reply("reading", calls=(READ,), usage=usage[wire]), Reply("Done."))
    async with rig(tmp_path, script, wire=wire) as r:
        assert await r.agent.run_turn("Read the notes") is TurnOutcome.COMPLETED
        (done,) = r.events(e.HistoryCompacted)
        assert done.reason == "Reported token usage 9,010 reached the compaction threshold 8,000."
        assert (done.items_before, done.items_after) == (5, 3)
        texts = [str(message) for message in r.server.model_requests[-1].messages]
        assert len(texts) == 3
        assert any("Rule: prices stay in cents." in text for text in texts)
        assert not any("keep prices in cents\n" in text for text in texts)
        assert r.session.state.summariser_usage is not None


async def test_below_the_threshold_nothing_is_compacted(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 7989, "completion_tokens": 10, "total_tokens": 7999}
    async with rig(tmp_path, summary_or(Reply(calls=(READ,), usage=usage))) as r:
        await r.agent.run_turn("Read the notes")
        assert r.events(e.HistoryCompacted, e.CompactionStarted) == []


async def test_a_refused_request_is_compacted_and_sent_again(tmp_path: Path) -> None:
    refused = []

    def answer(request: Request) -> Reply | Fail:
        if not request.body.get("tools"):
            return Reply("Summary of the work.")
        if len(request.messages) > 4 and not refused:
            refused.append(True)
            return Fail(400, overflow(9000, 8192))
        return Reply("Done.") if refused else Reply("reading", calls=(READ,))

    async with rig(tmp_path, answer) as r:
        assert await r.agent.run_turn("Read the notes") is TurnOutcome.COMPLETED
        (full,) = r.events(e.ContextOverflowed)
        assert (full.used, full.limit) == (9000, 8192)
        (done,) = r.events(e.HistoryCompacted)
        assert done.trigger is Trigger.OVERFLOW
        assert r.valid()


async def test_a_request_that_stays_too_long_ends_the_turn_and_names_the_largest_part(
    tmp_path: Path,
) -> None:
    def answer(request: Request) -> Reply | Fail:
        if not request.body.get("tools"):
            return Reply("Summary.")
        if any(message.get("role") == "tool" for message in request.messages):
            return Fail(400, overflow(9000, 8192))
        if any("Summary." in str(message) for message in request.messages):
            return Fail(400, overflow(8500, 8192))
        return Reply("reading", calls=(READ,))

    async with rig(tmp_path, answer) as r:
        assert await r.agent.run_turn("Read the notes") is TurnOutcome.FAILED
        last = r.events(e.TurnFinished)[-1]
        assert "The largest part is #" in last.message
        assert len(r.events(e.ContextOverflowed)) == 2
        assert len(r.events(e.HistoryCompacted)) == 1
        assert r.valid()


async def test_a_wrong_key_ends_the_turn_with_the_reason_and_is_not_tried_again(
    tmp_path: Path,
) -> None:
    fail = Fail(401, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}})
    async with rig(tmp_path, [fail]) as r:
        assert await r.agent.run_turn("hello") is TurnOutcome.FAILED
        assert [ev.kind for ev in r.events(e.ErrorRaised)] == ["auth"]
        assert len(r.server.model_requests) == 1


async def test_a_busy_server_is_asked_again_and_the_wait_is_on_record(tmp_path: Path) -> None:
    script = [Fail(429, None, {"retry-after": "0"}), Fail(503), Reply("Hello.")]
    async with rig(tmp_path, script) as r:
        assert await r.agent.run_turn("hello") is TurnOutcome.COMPLETED
        kinds = [ev.kind for ev in r.events(e.ErrorRaised)]
        assert kinds == ["rate_limit", "server"]


async def test_a_stream_that_breaks_off_is_asked_again_and_not_kept(tmp_path: Path) -> None:
    script = [Reply("Half of an ans", cut="dropped"), Reply("A whole answer.")]
    async with rig(tmp_path, script) as r:
        assert await r.agent.run_turn("hello") is TurnOutcome.COMPLETED
        assert r.said() == ["A whole answer."]


async def test_interrupting_a_tool_writes_an_aborted_output_for_every_open_call(
    tmp_path: Path,
) -> None:
    calls = (Call("bash", {"command": "sleep 60"}), Call("bash", {"command": "sleep 61"}))
    async with rig(tmp_path, [Reply("waiting", calls=calls), Reply("Back.")]) as r:
        turn = asyncio.create_task(r.agent.run_turn("wait"))
        await until(r, e.ToolStarted)
        assert r.agent.interrupt()
        assert await turn is TurnOutcome.INTERRUPTED
        assert [output.output for output in r.outputs()] == [ABORTED, ABORTED]
        assert r.valid()
        assert await r.agent.run_turn("go on") is TurnOutcome.COMPLETED


async def test_interrupting_a_stream_keeps_what_was_said_so_far(tmp_path: Path) -> None:
    never = asyncio.Event()
    reply = Reply("The first part and the rest of it", hold=never, hold_after=3, chunk=8)
    async with rig(tmp_path, [reply]) as r:
        deltas = r.session.bus.subscribe()
        turn = asyncio.create_task(r.agent.run_turn("talk"))
        while not any(isinstance(rec.event, e.MessageDelta) for rec in deltas.take()):
            await deltas.wait()
        r.agent.interrupt()
        assert await turn is TurnOutcome.INTERRUPTED
        (said,) = r.said()
        assert said
        assert "The first part and the rest of it".startswith(said)
        assert r.valid()


async def test_interrupting_a_summary_leaves_the_history_as_it_was(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9000, "completion_tokens": 10, "total_tokens": 9010}

    def answer(request: Request) -> Reply | Hang:
        return Hang() if not request.body.get("tools") else Reply(calls=(READ,), usage=usage)

    async with rig(tmp_path, answer) as r:
        turn = asyncio.create_task(r.agent.run_turn("Read the notes"))
        await until(r, e.CompactionStarted)
        before = r.session.state.context
        r.agent.interrupt()
        assert await turn is TurnOutcome.INTERRUPTED
        assert r.session.state.context == before
        (failed,) = r.events(e.CompactionFailed)
        assert failed.outcome is e.Outcome.ABORTED


async def test_the_model_may_ask_for_compaction_and_the_whole_batch_is_committed_first(
    tmp_path: Path,
) -> None:
    asked = Call("compact", {"focus": "the rule about cents"})
    script = summary_or(Reply("enough", calls=(READ, asked, READ)), Reply("Done."))
    async with rig(tmp_path, script) as r:
        assert await r.agent.run_turn("Read the notes") is TurnOutcome.COMPLETED
        (done,) = r.events(e.HistoryCompacted)
        assert (done.trigger, done.focus) == (Trigger.MANUAL, "the rule about cents")
        assert len(r.outputs()) == 3
        asked_of = [q for q in r.server.model_requests if not q.body.get("tools")]
        assert "the rule about cents" in str(asked_of[0].messages)
        assert r.valid()


async def test_compacting_by_hand_while_the_agent_works_waits_for_the_end_of_the_round(
    tmp_path: Path,
) -> None:
    script = summary_or(
        Reply("slow", calls=(READ, Call("bash", {"command": "sleep 0.2"}))), Reply("Done.")
    )
    async with rig(tmp_path, script) as r:
        turn = asyncio.create_task(r.agent.run_turn("go"))
        await until(r, e.ToolStarted)
        assert await r.agent.compact("what I said") is None
        assert await turn is TurnOutcome.COMPLETED
        (done,) = r.events(e.HistoryCompacted)
        assert done.focus == "what I said"


async def test_compacting_a_session_with_nothing_in_it_is_a_no_op_that_is_said(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path, []) as r:
        await r.agent.compact()
        (skipped,) = r.events(e.CompactionSkipped)
        assert skipped.outcome is e.Outcome.NO_OP
        assert r.server.model_requests == []


async def test_what_changes_something_is_asked_for_and_a_refusal_reaches_the_model(
    tmp_path: Path,
) -> None:
    approver = Answering(Decision.NEVER, Decision.SESSION)
    write = Call("write_file", {"path": "new.txt", "content": "x"})
    run = Call("bash", {"command": "true"})
    script = [Reply(calls=(run,)), Reply(calls=(write,)), Reply(calls=(write,)), Reply("ok")]
    async with rig(tmp_path, script, approval="ask", approver=approver) as r:
        assert await r.agent.run_turn("go") is TurnOutcome.COMPLETED
        assert [request.tool for request in approver.asked] == ["bash", "write_file"]
        assert "refused" in r.outputs()[0].output
        assert (r.workspace / "new.txt").read_text() == "x"
        answers = [ev.decision for ev in r.events(e.ApprovalAnswered)]
        assert answers == ["never", "session"]


async def test_interrupting_a_question_denies_nothing_and_leaves_a_valid_history(
    tmp_path: Path,
) -> None:
    class Never:
        async def ask(self, request: object) -> Decision:
            await asyncio.Event().wait()
            return Decision.ONCE

    run = Call("bash", {"command": "true"})
    async with rig(tmp_path, [Reply(calls=(run,))], approval="ask", approver=Never()) as r:
        turn = asyncio.create_task(r.agent.run_turn("go"))
        await until(r, e.ApprovalRequested)
        r.agent.interrupt()
        assert await turn is TurnOutcome.INTERRUPTED
        assert r.events(e.ApprovalAnswered)[0].decision == "interrupted"
        assert r.session.state.approval is None
        assert r.valid()


async def test_read_only_offers_no_tool_that_changes_something(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("ok")], approval="read-only") as r:
        await r.agent.run_turn("go")
        names = {tool["function"]["name"] for tool in r.server.model_requests[0].body["tools"]}
        assert {"bash", "write_file", "edit_file"}.isdisjoint(names)
        assert {"read_file", "glob", "grep", "compact"} <= names


async def test_the_same_call_for_ever_is_told_and_then_stopped(tmp_path: Path) -> None:
    async with rig(tmp_path, lambda request: Reply(calls=(READ,))) as r:
        assert await r.agent.run_turn("go") is TurnOutcome.LIMIT
        assert len(r.server.model_requests) == 6
        told = [
            ev.item.text
            for ev in r.events(e.ItemAppended)
            if isinstance(ev.item, Message) and ev.item.synthetic and ev.item.role is Role.USER
        ]
        assert "3 times in a row" in told[0]
        assert r.valid()


async def test_rounds_are_bounded(tmp_path: Path) -> None:
    number = iter(range(100))

    def answer(request: Request) -> Reply:
        return Reply(calls=(Call("grep", {"pattern": f"p{next(number)}"}),))

    async with rig(tmp_path, answer, flags={"agent.max_rounds": 4}) as r:
        assert await r.agent.run_turn("go") is TurnOutcome.LIMIT
        assert r.session.state.rounds == 4
        assert "4 rounds" in r.events(e.TurnFinished)[-1].message


@pytest.mark.parametrize(
    "call",
    [
        Call("no_such_tool", {}),
        Call("read_file", "{not json"),
        Call("read_file", "[1]"),
        Call("read_file", {"path": 7}),
        Call("read_file", {"path": "../outside"}),
    ],
)
async def test_a_call_that_cannot_be_done_is_answered_and_the_turn_goes_on(
    tmp_path: Path, call: Call
) -> None:
    async with rig(tmp_path, [Reply(calls=(call,)), Reply("Sorry.")]) as r:
        assert await r.agent.run_turn("go") is TurnOutcome.COMPLETED
        (output,) = r.outputs()
        assert output.is_error
        assert output.output
        assert r.valid()


async def test_a_large_output_is_capped_at_entry_with_the_whole_text_on_disk(
    tmp_path: Path,
) -> None:
    run = Call("bash", {"command": "seq 1 4000"})
    cap = OutputCap(max_chars=2000, head=500, tail=500)
    async with rig(tmp_path, [Reply(calls=(run,)), Reply("ok")], cap=cap) as r:
        await r.agent.run_turn("count")
        (output,) = r.outputs()
        assert len(output.output) < 2000
        assert Path(output.saved).read_text().splitlines()[1999] == "2000"
        assert output.saved in output.output


async def test_a_subagent_has_its_own_history_and_neither_compact_nor_task(tmp_path: Path) -> None:
    task = Call("task", {"description": "look", "prompt": "SUBTASK: find the rule"})

    def answer(request: Request) -> Reply:
        text = str(request.messages)
        if "SUBTASK" in text and "delegate this" not in text:
            return Reply("The rule is about cents.")
        return Reply("I was told.") if "about cents" in text else Reply(calls=(task,))

    async with rig(tmp_path, answer) as r:
        assert await r.agent.run_turn("delegate this") is TurnOutcome.COMPLETED
        assert r.outputs()[0].output == "The rule is about cents."
        child = next(q for q in r.server.model_requests if "delegate this" not in str(q.messages))
        names = {tool["function"]["name"] for tool in child.body["tools"]}
        assert {"compact", "task"}.isdisjoint(names)
        (journal,) = r.session.folder.glob("agents/**/journal.jsonl")
        assert journal.stat().st_size > 0


async def test_an_empty_answer_does_not_become_an_empty_message(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("")]) as r:
        assert await r.agent.run_turn("hello") is TurnOutcome.COMPLETED
        assert r.said() == []


async def test_the_request_on_record_is_the_request_that_went_out(tmp_path: Path) -> None:
    async with rig(tmp_path, [Reply("reading", calls=(READ,)), Reply("Done.")]) as r:
        await r.agent.run_turn("go")
        sent = r.events(e.RequestSent)
        assert [len(event.digests) for event in sent] == [
            len(request.messages) for request in r.server.model_requests
        ]


async def test_a_second_session_takes_up_the_first_and_goes_on(tmp_path: Path) -> None:
    script = summary_or(
        Reply("r", calls=(READ, Call("compact", {}))), Reply("Done."), Reply("Still here.")
    )
    async with rig(tmp_path, script) as r:
        await r.agent.run_turn("Read the notes")
        context = r.session.state.context
        r.session.close()
        again = resume(r.session.path)
        assert again.state.context == context
        assert any(isinstance(item, CompactionSummary) for item in again.state.context.items)
        again.close()


async def until(r: Rig, kind: type[e.Event]) -> None:
    """Wait for the first event of a kind."""
    events = r.session.bus.subscribe()
    while not any(isinstance(record.event, kind) for record in events.take()):
        if r.events(kind):
            return
        await events.wait()


async def test_offline_as_the_summariser_asks_no_model(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9000, "completion_tokens": 10, "total_tokens": 9010}
    script = summary_or(Reply("reading", calls=(READ,), usage=usage), Reply("Done."))
    flags = {"compaction.summariser": "offline"}
    async with rig(tmp_path, script, flags=flags) as r:
        await r.agent.run_turn("Read the notes. Never use floats.")
        (done,) = r.events(e.HistoryCompacted)
        assert done.summariser is not None
        assert done.summariser.model == "offline (extractive)"
        assert "Never use floats." in (done.summary or "")
        assert all(request.body.get("tools") for request in r.server.model_requests)
