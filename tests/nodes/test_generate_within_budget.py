from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from nodes.generate import generate
from services.bootstrap import Services
from services.errors import RequestBudgetExceeded
from state.budget import RequestBudget
from state.conversation import ConversationState, TokenUsage
from state.prompt import HistoryMessage
from tests.support.model_server import ModelServer, Reply
from tests.support.prompts import sections_of
from tests.support.turns import Written, runtime, state

pytestmark = pytest.mark.untraced

_LONG = "The harbour of Porto lies at the mouth of the Douro, and barges carry its wine. "


async def _generate(services: Services, budget: RequestBudget, **values: Any) -> ConversationState:
    written: Written = values.pop("written", [])
    return await generate(
        state(**values),
        runtime(written, budget=budget),
        models=services.models,
        tools=services.tools,
        estimators=services.estimators,
        handlers={},
    )


def _said(content: str) -> HistoryMessage:
    return HistoryMessage(message_id="m", role="user", content=content, parts=[], created_at=datetime.now(UTC))


def _measures(update: ConversationState) -> list[str]:
    assert ("request_budget" in update.get("degraded", [])) == bool(
        update["context_report"]["request_budget"]["measures"]
    )
    return list(update["context_report"]["request_budget"]["measures"])


def _used(calls: int, tokens: int) -> TokenUsage:
    return TokenUsage(
        input_tokens=tokens, output_tokens=0, total_tokens=tokens, cached_tokens=0, model_calls=calls
    )


async def test_few_tokens_leave_out_tools_then_context_and_limit_the_answer(
    services: Services, model_server: ModelServer
) -> None:
    history = [_said(_LONG * 5) for _ in range(12)]
    sections = sections_of(history=history)
    whole = await _generate(services, {"tokens": 100_000}, sections=sections)
    size = sum(whole["context_report"]["tokens"].values())
    assert _measures(whole) == []

    update = await _generate(services, {"tokens": size + 450}, sections=sections)
    assert _measures(update) == ["no_tools"]

    update = await _generate(services, {"tokens": 600}, sections=sections)
    assert _measures(update) == ["no_tools", "smaller_context"]
    sent = sum(update["context_report"]["tokens"].values())
    assert sent < size
    assert model_server.requests[-1].body["max_output_tokens"] == 600 - sent
    assert any(entry["section"] == "history" for entry in update["context_report"]["dropped"])


@pytest.mark.traced
async def test_an_answer_is_cut_off_when_the_server_ignores_its_length(
    services: Services, model_server: ModelServer
) -> None:
    model_server.script(Reply([_LONG] * 200, gap_s=0.001))
    update = await _generate(services, {"tokens": 300})
    assert "shorter_answer" in _measures(update)
    assert len(update["answer"]) < len(_LONG) * 100
    assert update["usage"]["output_tokens"] > 0


async def test_an_answer_is_cut_off_when_the_time_is_up(services: Services, model_server: ModelServer) -> None:
    model_server.script(Reply(["Half of it", " and the rest"], gap_s=30))
    written: Written = []
    # A second would be over on a busy machine before the model is asked.
    update = await _generate(services, {"seconds": 4.0}, written=written)
    assert _measures(update) == ["cut_off"]
    assert (update["answer"], update["context_report"]["finish"]) == ("Half of it", "length")
    assert update["usage"]["input_tokens"] > 0
    assert [event["content"] for event in written] == ["Half of it"]


@pytest.mark.parametrize(
    ("budget", "used"),
    [({"model_calls": 1}, _used(1, 100)), ({"tokens": 600}, _used(1, 590)), ({"seconds": 1e-6}, _used(1, 100))],
)
async def test_what_was_said_is_the_answer_when_no_call_is_left(
    services: Services, model_server: ModelServer, budget: RequestBudget, used: TokenUsage
) -> None:
    called = AIMessage("Let me look.", tool_calls=[{"name": "search_memory", "args": {}, "id": "c"}])
    after = [called, ToolMessage("nothing", tool_call_id="c")]
    update = await _generate(services, budget, messages=after, answer="Let me look.", usage=used, tool_rounds=1)
    assert _measures(update)[-1] == "cut_off"
    assert update["answer"] == "Let me look."
    last = update["messages"][-1]
    assert isinstance(last, AIMessage)
    assert not last.tool_calls
    assert model_server.requests == []


async def test_a_budget_that_holds_no_answer_is_refused_with_the_least_that_does(
    services: Services, model_server: ModelServer
) -> None:
    with pytest.raises(RequestBudgetExceeded, match=r"tokens=20\).*it takes \d+ or more"):
        await _generate(services, {"tokens": 20})
    model_server.script(Reply(["Late"], delay_s=60))
    with pytest.raises(RequestBudgetExceeded, match=r"seconds=4\.0"):
        await _generate(services, {"seconds": 4.0})  # a busy machine has asked the model by then
    assert len(model_server.requests) == 1
