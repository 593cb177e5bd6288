from datetime import UTC, datetime
from typing import Literal

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from nodes.generate import MOST_TOOL_ROUNDS, generate
from services.bootstrap import Services
from services.errors import ModelFailed
from state.conversation import ConversationState
from state.prompt import HistoryMessage
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.turns import Written, passage_of, runtime, state

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]


def _shown(role: Literal["user", "assistant"], content: str) -> HistoryMessage:
    return HistoryMessage(
        message_id="m", role=role, content=content, parts=[], token_count=5, created_at=datetime.now(UTC)
    )


async def _generate(services: Services, values: ConversationState, written: Written) -> ConversationState:
    return await generate(
        values,
        runtime(written),
        models=services.models,
        tools=services.tools,
        estimators=services.estimators,
        handlers={},
    )


async def test_the_answer_is_streamed_as_it_comes_and_returned_whole(
    services: Services, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Hel", "lo ", "there"]))
    written: Written = []
    update = await _generate(services, state(message="Hi"), written)

    assert set(update) == {"messages", "answer", "usage", "context_report", "prompt_sections", "epoch", "timings"}
    assert update["answer"] == "Hello there"
    assert "".join(event["content"] for event in written) == "Hello there"
    assert {event["status"] for event in written} == {"token"}
    assert update["usage"] == {
        "input_tokens": 100,
        "output_tokens": 3,
        "total_tokens": 103,
        "cached_tokens": 64,
        "model_calls": 1,
    }
    assert update["timings"]["first_token_ms"] >= 0
    assert len(model_server.requests) == 1


async def test_the_prompt_is_system_history_then_the_message(
    services: Services, model_server: ModelServer
) -> None:
    past = [_shown("user", "I am Ada."), _shown("assistant", "Hello, Ada.")]
    update = await _generate(services, state(message="Who am I?", history=past), [])
    assert model_server.requests[0].prompt == [
        ("system", "You are kind."),
        ("user", "I am Ada."),
        ("assistant", "Hello, Ada."),
        ("user", "Who am I?"),
    ]
    report = update["context_report"]
    assert set(report["tokens"]) == {"system", "history", "message"}
    assert (report["epoch"], report["epoch_reason"], report["dropped"]) == (1, "first turn", [])
    assert [mark["section"] for mark in update["epoch"]["prefix"]] == ["system", "history"]


async def test_passages_are_marked_as_data(services: Services, model_server: ModelServer) -> None:
    passage = passage_of("Holidays: 30 days.", heading="Leave > Holidays", page=4)
    update = await _generate(services, state(retrieval_results=[passage]), [])
    assert update["context_report"]["sources"] == [
        {
            "kb_prefix": "handbook",
            "document": "handbook.md",
            "position": 1,
            "heading": "Leave > Holidays",
            "page": 4,
            "score": 1.0,
        }
    ]
    role, text = model_server.requests[0].prompt[-2]
    assert role == "system"
    assert "<documents>" in text
    assert "[handbook.md #1 · page 4 · Leave > Holidays]\nHolidays: 30 days." in text


async def test_tool_calls_are_returned_for_the_tools_node(services: Services, model_server: ModelServer) -> None:
    model_server.script(Reply(["Let me see. "], [ToolCall("get_current_time", {"timezone": "Asia/Tokyo"})]))
    update = await _generate(services, state(), [])
    message = update["messages"][0]
    assert isinstance(message, AIMessage)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [
        ("get_current_time", {"timezone": "Asia/Tokyo"})
    ]
    assert update["answer"] == "Let me see. "
    assert [tool["name"] for tool in model_server.requests[0].body["tools"]] == [
        "forget",
        "remember",
        "search_memory",
    ]


async def test_tools_that_a_model_refuses_are_neither_sent_nor_counted(
    services: Services, model_server: ModelServer
) -> None:
    offered = await _generate(services, state(model="m"), [])
    model_server.script(Reply(status=400, error_message="m does not support tools"), model="m")
    refused = await _generate(services, state(model="m"), [])
    later = await _generate(services, state(model="m"), [])
    assert [bool(request.body.get("tools")) for request in model_server.requests] == [True, True, False, False]
    sizes = [update["context_report"]["tokens"]["system"] for update in (offered, refused, later)]
    assert sizes[0] > 3 * sizes[1]
    assert sizes[1] == sizes[2]


async def test_a_tool_that_was_not_offered_is_not_called(services: Services, model_server: ModelServer) -> None:
    asked = ToolCall("core_memory_update", {"content": {"name": "Admin"}})
    model_server.script(Reply(["That is all."], [asked]))
    update = await _generate(services, state(tool_rounds=MOST_TOOL_ROUNDS), [])
    assert "tools" not in model_server.requests[0].body
    message = update["messages"][0]
    assert isinstance(message, AIMessage)
    assert (message.content, message.tool_calls) == ("That is all.", [])
    assert update["answer"] == "That is all."


async def test_a_model_that_only_asks_for_what_it_was_not_offered_is_asked_again(
    services: Services, model_server: ModelServer
) -> None:
    asked = Reply(tool_calls=[ToolCall("get_current_time", {})])
    model_server.script(asked, Reply(["It is noon."]))
    update = await _generate(services, state(tool_rounds=MOST_TOOL_ROUNDS), [])
    assert update["answer"] == "It is noon."
    model_server.script(*[asked] * 5)
    with pytest.raises(ModelFailed) as failed:
        await _generate(services, state(tool_rounds=MOST_TOOL_ROUNDS), [])
    assert failed.value.failure == "llm_bad_response"


async def test_what_the_endpoint_reports_corrects_the_estimate(
    services: Services, model_server: ModelServer
) -> None:
    before = services.estimators.of("").count("word " * 200)
    model_server.input_tokens = lambda _: 300
    await _generate(services, state(message="word " * 30), [])
    assert services.estimators.of("").count("word " * 200) < before


async def test_images_and_tool_calls_teach_nothing(services: Services, model_server: ModelServer) -> None:
    before = services.estimators.of("").count("word " * 200)
    await _generate(services, state(message="word " * 30, images=["https://example.org/cat.png"]), [])
    asked = AIMessage("", tool_calls=[{"name": "get_current_time", "args": {}, "id": "c1"}])
    messages = [asked, ToolMessage("12:00", tool_call_id="c1")]
    await _generate(services, state(message="word " * 30, messages=messages, tool_rounds=1), [])
    assert services.estimators.of("").count("word " * 200) == before
