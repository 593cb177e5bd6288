import pytest
from langchain_core.messages import AIMessage

from nodes.generate import MOST_TOOL_ROUNDS, generate
from services.bootstrap import Services
from services.errors import ModelFailed
from state.conversation import ConversationState
from tests.support.model_server import ModelServer, Reply, ToolCall
from tests.support.turns import Written, runtime, state

pytestmark = pytest.mark.untraced


async def _generate(
    services: Services, values: ConversationState, written: Written, message: str = "Hello"
) -> ConversationState:
    return await generate(
        values,
        runtime(written, message=message),
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
    update = await _generate(services, state(), written, "Hi")

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
    model_server.input_tokens = lambda _: 360
    await _generate(services, state(), [], "word " * 30)
    assert services.estimators.of("").count("word " * 200) < before
