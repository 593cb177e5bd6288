"""Messages find their knowledge base by themselves: what the stream tells, and what the model is sent."""

import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.knowledge import a_base, put

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]

HANDBOOK = "# 考勤与休假\n\n## 年假\n\n入职满一年有五天年假。\n\n## 病假\n\n病假要交医院证明。"


@pytest.fixture
async def bases(services: Services) -> None:
    """A handbook in Chinese."""
    handbook = await a_base(services, "handbook", description="员工手册", keywords=("年假",))
    await put(services, handbook, "leave.md", HANDBOOK)
    await services.knowledge.indexing.index_waiting()


async def _events(client: httpx.AsyncClient, message: str, **values: Any) -> list[tuple[str, Any]]:
    body = {"user_id": "u-1", "session_id": "s-1", "message": message, **values}
    async with client.stream("POST", "/api/v1/chat/stream", json=body) as response:
        assert response.status_code == 200
        lines = [line async for line in response.aiter_lines() if line.startswith("data: ")]
    told = [json.loads(line.removeprefix("data: ")) for line in lines]
    return [(each["status"], each["content"]) for each in told]


@pytest.mark.traced
@pytest.mark.usefixtures("bases")
async def test_a_question_that_goes_on_is_searched_for_with_the_one_before(client: httpx.AsyncClient) -> None:
    await _events(client, "入职满一年年假有几天？")
    events = await _events(client, "那它怎么休？")
    assert events[-1][1]["sources"][0]["heading"] == "考勤与休假 > 年假"
