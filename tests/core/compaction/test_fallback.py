from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.core.compaction.rig import WORK, Rig, Scripted, steps
from thresher.core import events as e
from thresher.core.compaction.policy import Answer, Failure, FailureKind, Moment, Summarise, Summary
from thresher.core.compaction.summariser import (
    OFFLINE,
    GatewaySummariser,
    OfflineSummariser,
    SummaryFailed,
)
from thresher.core.events import Outcome
from thresher.core.gateways.base import (
    EndpointLimits,
    ErrorKind,
    GatewayError,
    ModelReply,
    ModelRequest,
    ReasoningDelta,
    StopReason,
    StreamPart,
    TextDelta,
)
from thresher.core.items import FunctionCall, Item, Reasoning, assistant, system, user
from thresher.core.tokens import Usage

ASK = Summarise(items=(system("shorten"), user("[user] hello")), source=WORK)


class Endpoint:
    """A gateway whose endpoint gives the answers it is told."""

    name = "endpoint"
    wire = "chat"

    def __init__(self, *answers: ModelReply | GatewayError) -> None:
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.streamed = 0

    def wire_messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        return [{"text": item.text} for item in request.items]

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, GatewayError):
            raise answer
        return answer

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        reply = await self.complete(request)
        self.streamed += 1
        yield ReasoningDelta("hm")
        for item in reply.items:
            yield TextDelta(item.text)
        yield reply

    async def limits(self, model: str) -> EndpointLimits | None:
        return None

    async def aclose(self) -> None:
        return None


def reply(*items: Item, stop: StopReason = StopReason.STOP) -> ModelReply:
    return ModelReply(items, Usage(100, 10), stop, "m-2026")


def passing(message: str = "busy", retry_after: float | None = None) -> SummaryFailed:
    return SummaryFailed(FailureKind.PROVIDER, message, passing=True, retry_after=retry_after)


def final(kind: FailureKind = FailureKind.CUT) -> SummaryFailed:
    return SummaryFailed(kind, "no use")


async def asked(rig: Rig, ask: Summarise = ASK) -> Summary | Failure:
    answers: list[Answer] = []
    rig.engine.set_policy(steps(ask, answers=answers))
    await rig.offer()
    (answer,) = answers
    assert isinstance(answer, Summary | Failure)
    return answer


# The chain ----------------------------------------------------------------------------------------


async def test_an_error_that_may_pass_is_tried_again_after_a_wait_that_doubles() -> None:
    rig = Rig(summarisers=[Scripted(passing(), passing(), "text")], backoff=0.5)
    answer = await asked(rig)
    assert isinstance(answer, Summary)
    assert (answer.text, answer.attempts, rig.waits) == ("text", 3, [0.5, 1.0])
    failed = rig.told(e.SummaryAttemptFailed)
    assert [(f.attempt, f.next_step) for f in failed] == [
        (1, "again in 0.5 s"),
        (2, "again in 1.0 s"),
    ]


async def test_the_wish_of_the_provider_counts_and_has_an_end() -> None:
    writer = Scripted(passing(retry_after=7.0), passing(retry_after=900.0), "text")
    rig = Rig(summarisers=[writer], backoff=0.5)
    await asked(rig)
    assert rig.waits == [7.0, 30.0]


async def test_an_error_that_stays_goes_to_the_next_at_once() -> None:
    rig = Rig(summarisers=[Scripted(final(), model="a"), Scripted("text", model="b")])
    answer = await asked(rig)
    assert isinstance(answer, Summary)
    assert (answer.model, answer.attempts, rig.waits) == ("b", 2, [])
    (failed,) = rig.told(e.SummaryAttemptFailed)
    assert (failed.model, failed.kind, failed.next_step) == ("a", "cut", "next: b")


async def test_the_last_resort_needs_no_model() -> None:
    rig = Rig(summarisers=[Scripted(passing()), OfflineSummariser()], retries=1)
    answer = await asked(rig)
    assert isinstance(answer, Summary)
    assert (answer.model, answer.usage) == (OFFLINE, None)
    assert "Please fix the parser." in answer.text
    assert len(rig.told(e.RequestSent)) == 2
    assert rig.told(e.SummaryAttemptFailed)[-1].next_step == f"next: {OFFLINE}"


async def test_a_history_too_long_for_its_own_summary_is_compacted_nevertheless() -> None:
    endpoint = Endpoint(GatewayError(ErrorKind.OVERFLOW, "too long"))
    rig = Rig(summarisers=[GatewaySummariser(endpoint, "small"), OfflineSummariser()])
    rig.report(500)
    assert (await rig.offer()).compacted
    (card,) = rig.state.cards
    assert [(f.model, f.kind) for f in card.failed_attempts] == [("small", "overflow")]
    assert card.summariser == e.Summariser(OFFLINE, attempts=2)
    assert len(endpoint.requests) == 1


async def test_when_all_fail_the_card_says_so_and_the_history_stays() -> None:
    rig = Rig(summarisers=[Scripted(final(), model="a"), Scripted(final(), model="b")])
    before = rig.state.context
    rig.report(500)
    assert (await rig.offer()).outcome is Outcome.FAILED
    (card,) = rig.state.cards
    assert [f.model for f in card.failed_attempts] == ["a", "b"]
    assert card.failed_attempts[-1].next_step == "no summariser is left"
    assert (card.failure_kind, rig.state.context) == ("cut", before)
    assert rig.told(e.CompactionFailed)[0].attempts == 2


async def test_an_offline_summary_of_nothing_is_empty() -> None:
    answer = await asked(Rig(summarisers=[OfflineSummariser()]), Summarise(items=()))
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.EMPTY


async def test_a_summariser_that_does_not_answer_is_given_up() -> None:
    async def never() -> str:
        await asyncio.Event().wait()
        return ""

    rig = Rig(summarisers=[Scripted(never)], summary_timeout=0.01, retries=1)
    answer = await asked(rig)
    assert isinstance(answer, Failure)
    assert (answer.kind, answer.attempts) == (FailureKind.TIMEOUT, 2)


async def test_a_model_that_the_policy_names_is_asked_by_the_first_link_only() -> None:
    first, second = Scripted(final(), model="a"), Scripted("text", model="b")
    answer = await asked(Rig(summarisers=[first, second]), Summarise(items=ASK.items, model="old"))
    assert isinstance(answer, Summary)
    assert ([ask.model for ask in first.asks], answer.model) == (["old"], "b")


async def test_what_a_failed_attempt_cost_is_counted_too() -> None:
    endpoint = Endpoint(
        reply(assistant("cut of"), stop=StopReason.LENGTH), reply(assistant("text"))
    )
    gateway = GatewaySummariser(endpoint, "m")
    rig = Rig(summarisers=[gateway, gateway])
    await asked(rig)
    assert rig.state.summariser_usage == Usage(200, 20, total_tokens=220)
    assert rig.state.usage is None


async def test_a_streamed_attempt_that_fails_is_void_on_the_card() -> None:
    endpoint = Endpoint(reply(assistant("half"), stop=StopReason.LENGTH), reply(assistant("whole")))
    gateway = GatewaySummariser(endpoint, "m")
    rig = Rig(summarisers=[gateway, gateway], stream_summaries=True)
    await rig.offer(Moment.MANUAL)
    (card,) = rig.state.cards
    assert (endpoint.streamed, card.summary, card.streamed) == (2, "whole", "")


# A model as summariser ----------------------------------------------------------------------------


async def test_the_request_has_no_tools_and_does_not_stream() -> None:
    endpoint = Endpoint(reply(Reasoning("hm"), assistant("  text  ")))
    written = await GatewaySummariser(endpoint, "m").write(ASK, None)
    (request,) = endpoint.requests
    assert (request.tools, request.tool_choice, request.model) == ((), "none", "m")
    assert request.items == ASK.items
    assert (written.text, written.model, written.usage) == ("text", "m-2026", Usage(100, 10))
    assert endpoint.streamed == 0


async def test_the_answer_streams_where_somebody_looks() -> None:
    shown: list[str] = []
    endpoint = Endpoint(reply(assistant("text")))
    written = await GatewaySummariser(endpoint, "m").write(ASK, shown.append)
    assert (shown, written.text) == (["text"], "text")


@pytest.mark.parametrize(
    ("wanted", "most", "sent"), [(340, 65, 65), (10, 65, 10), (340, None, 340), (None, 65, None)]
)
async def test_never_more_is_asked_for_than_the_model_can_give(
    wanted: int | None, most: int | None, sent: int | None
) -> None:
    endpoint = Endpoint(reply(assistant("text")))
    ask = Summarise(items=ASK.items, max_output=wanted)
    await GatewaySummariser(endpoint, "m", max_output=most).write(ask, None)
    assert endpoint.requests[0].max_output == sent


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (reply(assistant("text"), FunctionCall("1", "bash", "{}")), FailureKind.TOOL_CALL),
        (reply(assistant("text"), stop=StopReason.LENGTH), FailureKind.CUT),
        (reply(assistant("text"), stop=StopReason.FILTER), FailureKind.PROVIDER),
        (reply(assistant(" \n")), FailureKind.EMPTY),
        (reply(), FailureKind.EMPTY),
        (GatewayError(ErrorKind.OVERFLOW, "too long"), FailureKind.OVERFLOW),
        (GatewayError(ErrorKind.TIMEOUT, "late"), FailureKind.TIMEOUT),
        (GatewayError(ErrorKind.AUTH, "no"), FailureKind.PROVIDER),
        (GatewayError(ErrorKind.REFUSED, "no"), FailureKind.REFUSED),
    ],
)
async def test_every_bad_answer_has_its_kind(
    answer: ModelReply | GatewayError, kind: FailureKind
) -> None:
    with pytest.raises(SummaryFailed) as caught:
        await GatewaySummariser(Endpoint(answer), "m").write(ASK, None)
    assert caught.value.kind is kind
    if isinstance(answer, GatewayError):
        assert caught.value.passing == answer.retryable
    else:
        assert (caught.value.usage, caught.value.passing) == (answer.usage, False)


async def test_a_summary_request_the_provider_refuses_ends_in_a_failure_that_counts() -> None:
    endpoint = Endpoint(GatewayError(ErrorKind.REFUSED, "bad request"))
    rig = Rig(summarisers=[GatewaySummariser(endpoint, "m")])
    assert (await rig.offer(Moment.MANUAL)).outcome is Outcome.FAILED
    assert rig.state.cards[0].failure_kind == "refused"
