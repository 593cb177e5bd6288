from typing import Any

from langchain_core.messages import AIMessage, SystemMessage, ToolMessage

from nodes.quick import quick
from services.bootstrap import Services
from state.conversation import ConversationState
from state.turn import Compose
from tests.support.model_server import ModelServer, Reply
from tests.support.turns import Written, runtime, state


def _call(number: int, name: str = "get_current_time", **arguments: Any) -> dict[str, Any]:
    return {"id": f"quick_{number}", "name": name, "arguments": arguments}


async def _quick(
    services: Services,
    values: ConversationState,
    written: Written,
    *,
    compose: Compose = "single",
    filler: bool = True,
) -> ConversationState:
    return await quick(
        values,
        runtime(written),
        models=services.models,
        executor=services.tool_executor,
        estimators=services.estimators,
        compose=compose,
        filler=filler,
    )


async def test_results_follow_the_calls_as_if_the_model_had_made_them(
    services: Services, model_server: ModelServer
) -> None:
    calls = [_call(1, timezone="Asia/Tokyo"), _call(2, "no_such_tool")]
    written: Written = []
    update = await _quick(services, state(quick_tools=calls), written)
    assert set(update) == {"messages", "tool_rounds"}
    asked, first, second = update["messages"]
    assert isinstance(asked, AIMessage)
    assert [call["id"] for call in asked.tool_calls] == ["quick_1", "quick_2"]
    assert isinstance(first, ToolMessage)
    assert isinstance(second, ToolMessage)
    assert (first.tool_call_id, "Asia/Tokyo" in first.text) == ("quick_1", True)
    assert (second.tool_call_id, second.status) == ("quick_2", "error")
    assert update["tool_rounds"] == 1
    assert [event["status"] for event in written[:3]] == ["filler", "tool_call", "tool_call"]
    assert model_server.requests == []


async def test_what_was_said_of_the_first_results_begins_the_answer(
    services: Services, model_server: ModelServer
) -> None:
    model_server.script(Reply(["Nobody knows such a tool."]))
    # A tool that does not exist has its result before one that runs.
    calls = [_call(1), _call(2, "no_such_tool")]
    written: Written = []
    update = await _quick(services, state(quick_tools=calls), written, compose="progressive")
    assert set(update) == {"messages", "tool_rounds", "answer", "usage", "timings"}
    assert update["answer"] == "Nobody knows such a tool.\n\n"
    assert "".join(event["content"] for event in written if event["status"] == "token") == update["answer"]
    assert update["usage"]["model_calls"] == 1
    assert set(update["timings"]) == {"first_token_ms"}
    kinds = [type(message) for message in update["messages"]]
    assert kinds == [AIMessage, ToolMessage, AIMessage, ToolMessage, SystemMessage]
    assert update["messages"][2].text == "Nobody knows such a tool."
