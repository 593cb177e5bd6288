import pytest
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from services.bootstrap import Services
from services.tools.registry import ToolRegistry
from services.tools.tool import RegisteredTool, ToolServices


def test_the_builtin_tools_are_found_by_themselves() -> None:
    registry = ToolRegistry.of_builtin_tools(ToolServices())
    found = registry.get("get_current_time")
    assert found is not None
    assert found.tool not in registry.for_model
    assert found.tool in ToolRegistry.of_builtin_tools(ToolServices(), ["get_current_time"]).for_model
    assert registry.get("no_such_tool") is None


def test_no_tool_lets_the_model_say_who_the_user_is() -> None:
    for tool in ToolRegistry.of_builtin_tools(ToolServices()).for_model:
        described = convert_to_openai_tool(tool)["function"]["parameters"]["properties"]
        assert not {"user_id", "tenant_id", "runtime"} & set(described)


def test_tools_are_offered_by_priority_and_then_by_name() -> None:
    def nothing() -> str:
        return ""

    def made(name: str, priority: int) -> RegisteredTool:
        return RegisteredTool(StructuredTool.from_function(nothing, name=name, description="."), priority=priority)

    registry = ToolRegistry([made("b", 100), made("a", 100), made("c", 1)])
    assert [tool.name for tool in registry.for_model] == ["c", "a", "b"]


@pytest.mark.anyio
async def test_who_goes_without_a_part_of_memory_goes_without_its_tools(services: Services) -> None:
    everything = {tool.name for tool in services.tools.for_model}
    without = {tool.name for tool in services.tools.with_features(["tone"]).for_model}
    assert everything - without == {
        "remember",
        "search_memory",
    }
    assert services.tools.with_features(["core_memory", "recall"]) is services.tools
