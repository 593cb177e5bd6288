import pytest
from langchain_core.messages import AIMessage, ToolMessage

from graph.edges import after_generate, after_history, after_retrieve, generation
from tests.support.turns import state

CALL = {"name": "t", "args": {}, "id": "1"}


@pytest.mark.parametrize(
    ("use_retrieval", "next_node"), [(True, "retrieve"), (False, "generate_rag"), (None, "generate_rag")]
)
def test_a_knowledge_base_is_read_only_when_routed_to(use_retrieval: bool | None, next_node: str) -> None:
    assert after_history(state(use_retrieval=use_retrieval)) == next_node


def test_no_model_is_asked_about_days_on_which_nothing_was_said() -> None:
    assert after_history(state(use_retrieval=True, told_without_model=True)) == "no_record"


def test_a_knowledge_base_may_name_who_puts_its_prompts_together() -> None:
    routed = state(use_retrieval=True, handler="cited")
    assert after_history(routed) == "retrieve"
    assert after_retrieve(routed) == generation(routed) == "generate_kb"
    assert generation(state(handler=None)) == "generate_rag"


@pytest.mark.parametrize(
    ("last", "next_node"),
    [
        (AIMessage("done"), "persist"),
        (AIMessage("", tool_calls=[CALL]), "tools"),
        (AIMessage("with text", tool_calls=[CALL]), "tools"),
        (ToolMessage("result", tool_call_id="1"), "persist"),
    ],
)
def test_tool_calls_lead_to_the_tools(last: AIMessage | ToolMessage, next_node: str) -> None:
    assert after_generate(state(messages=[last])) == next_node


def test_quick_tools_run_before_the_model_is_asked() -> None:
    asked = [{"id": "quick_1", "name": "get_current_time", "arguments": {}}]
    assert after_history(state(quick_tools=asked)) == "quick"
    assert after_history(state(quick_tools=asked, use_retrieval=True)) == "retrieve"
    assert after_retrieve(state(quick_tools=asked)) == "quick"
    assert after_retrieve(state(quick_tools=[])) == "generate_rag"
