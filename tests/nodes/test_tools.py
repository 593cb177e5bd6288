import pytest
from langchain_core.messages import AIMessage, ToolMessage

from nodes.tools import tools
from services.memory.foreign_origins import ForeignOrigins
from services.platform.postgres import Database
from services.tools.executor import ToolExecutor
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices
from tests.support.turns import Written, runtime, state

pytestmark = pytest.mark.anyio


async def test_every_call_is_answered_in_order_and_reported() -> None:
    asked = AIMessage(
        "",
        tool_calls=[
            {"name": "get_current_time", "args": {"timezone": "Asia/Tokyo"}, "id": "c1"},
            {"name": "no_such_tool", "args": {}, "id": "c2"},
        ],
    )
    written: Written = []
    update = await tools(
        state(messages=[asked], tool_rounds=1),
        runtime(written),
        executor=ToolExecutor(ToolRegistry.of_builtin_tools(ToolServices())),
        origins=ForeignOrigins(Database("postgresql://nobody@127.0.0.1:9/none")),
    )
    assert set(update) == {"messages", "tool_rounds"}
    assert update["tool_rounds"] == 2
    first, second = update["messages"]
    assert isinstance(first, ToolMessage)
    assert isinstance(second, ToolMessage)
    assert (first.tool_call_id, first.status) == ("c1", "success")
    assert "Asia/Tokyo" in first.text
    assert (second.tool_call_id, second.status) == ("c2", "error")
    assert [event["status"] for event in written[:2]] == ["tool_call", "tool_call"]
    assert {event["content"]["id"]: event["content"]["ok"] for event in written[2:]} == {
        "c1": True,
        "c2": False,
    }
