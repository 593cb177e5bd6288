from typing import Any

from nodes.route import route
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices
from state.conversation import ConversationState, RouteDecision
from state.prompt import FEATURES
from tests.support.turns import Written, runtime


async def _route(written: Written | None = None, **values: Any) -> ConversationState:
    tools = ToolRegistry.of_builtin_tools(ToolServices())
    return await route(ConversationState(), runtime(written, **values), tools=tools, features=FEATURES)


async def test_without_a_knowledge_base_the_route_is_general() -> None:
    written: Written = []
    update = await _route(written, requested_kb_prefix=None, has_knowledge=False)
    assert set(update) == {
        "route_decision",
        "use_retrieval",
        "quick_tools",
        "time_reference",
        "features",
        "handler",
        "kb_instructions",
        "plain_forms",
    }
    assert update["route_decision"]["worker_name"] == "general"
    assert update["route_decision"]["kb_prefix"] is None
    assert update["use_retrieval"] is False
    assert written == [{"status": "route_decision", "content": update["route_decision"]}]


async def test_a_knowledge_base_that_the_caller_names_is_used() -> None:
    update = await _route(requested_kb_prefix="handbook")
    assert update["route_decision"] == RouteDecision(
        kb_prefix="handbook",
        worker_name="handbook",
        confidence=1.0,
        method="explicit",
        reason="the caller named the knowledge base",
    )
    assert update["use_retrieval"] is True


async def test_what_tools_or_records_answer_belongs_to_no_knowledge_base() -> None:
    for message in ("What time is it in Berlin?", "What did we talk about yesterday?"):
        update = await _route(message=message, has_knowledge=True)
        assert update["use_retrieval"] is False
        assert update["route_decision"]["kb_prefix"] is None


async def test_tools_for_which_the_message_asks_plainly_are_called_without_a_model() -> None:
    asked = {"id": "quick_1", "name": "get_current_time", "arguments": {"timezone": "Europe/Berlin"}}
    update = await _route(message="What time is it in Berlin?")
    assert update["quick_tools"] == [asked]
    assert update["route_decision"]["method"] == "default"
    assert (await _route(message="Berlin is a city."))["quick_tools"] == []


async def test_a_question_about_a_picture_is_left_to_the_model() -> None:
    update = await _route(message="What time is it?", images=["https://example.org/clock.png"])
    assert update["quick_tools"] == []
