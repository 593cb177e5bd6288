import re

import pytest

from services.tools.executor import ToolExecutor
from services.tools.registry import ToolRegistry
from services.tools.tool import ToolServices
from tests.support.turns import opened


async def _ask(**arguments: str) -> tuple[str, str]:
    executor = ToolExecutor(ToolRegistry.of_builtin_tools(ToolServices()))
    call = {"name": "get_current_time", "args": arguments, "id": "c", "type": "tool_call"}
    (message,) = await executor.run([call], opened(timezone="Asia/Kathmandu"), lambda *_: None)  # type: ignore[list-item]
    return message.text, message.status


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "+05:30", "-3"])
async def test_it_tells_the_time_in_the_zone_asked_for(zone: str) -> None:
    text, status = await _ask(timezone=zone)
    assert status == "success"
    assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d \w+day \({re.escape(zone)}\)", text)


async def test_without_a_zone_it_is_the_users() -> None:
    text, _ = await _ask()
    assert text.endswith("(Asia/Kathmandu)")


async def test_a_zone_that_does_not_exist_is_answered_to_the_model() -> None:
    text, status = await _ask(timezone="Mars/Olympus")
    assert status == "error"
    assert "'Mars/Olympus' is no time zone" in text
