"""Messages find their knowledge base by themselves: what the stream tells, and what the model is sent."""

import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.knowledge import a_base, put

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]

COFFEE = """# Care

## Descaling

Pour one sachet of descaler and 900 ml of water into the tank.

## Grinder

Vacuum it.
"""
HANDBOOK = "# 考勤与休假\n\n## 年假\n\n入职满一年有五天年假。\n\n## 病假\n\n病假要交医院证明。"


@pytest.fixture
async def bases(services: Services) -> None:
    """A manual in English whose handler cites, and a handbook in Chinese."""
    coffee = await a_base(
        services,
        "coffee",
        description="Manual of the Brevo coffee machine",
        keywords=("Brevo", "descale"),
        handler="cited",
        system_prompt="Name safety notes first.",
    )
    handbook = await a_base(services, "handbook", description="员工手册", keywords=("年假",))
    await put(services, coffee, "care.md", COFFEE)
    await put(services, handbook, "leave.md", HANDBOOK)
    await services.knowledge.indexing.index_waiting()


async def _events(client: httpx.AsyncClient, message: str, **values: Any) -> list[tuple[str, Any]]:
    body = {"user_id": "u-1", "session_id": "s-1", "message": message, **values}
    async with client.stream("POST", "/api/v1/chat/stream", json=body) as response:
        assert response.status_code == 200
        lines = [line async for line in response.aiter_lines() if line.startswith("data: ")]
    told = [json.loads(line.removeprefix("data: ")) for line in lines]
    return [(each["status"], each["content"]) for each in told]


def _routes(events: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    return [content for status, content in events if status == "route_decision"]


@pytest.mark.traced
@pytest.mark.usefixtures("bases")
async def test_a_question_that_goes_on_is_searched_for_with_the_one_before(client: httpx.AsyncClient) -> None:
    await _events(client, "入职满一年年假有几天？")
    events = await _events(client, "那它怎么休？")
    assert events[-1][1]["sources"][0]["heading"] == "考勤与休假 > 年假"


@pytest.mark.usefixtures("bases")
async def test_an_expert_without_knowledge_reads_a_base_only_when_told_to(client: httpx.AsyncClient) -> None:
    plain = {"name": "plain", "system_prompt": "Be plain.", "parts_off": ["knowledge", "quick_tools"]}
    (await client.post("/api/v1/experts", json=plain)).raise_for_status()
    events = await _events(client, "How do I descale the Brevo?", expert="plain", debug=True)
    assert _routes(events)[0]["kb_prefix"] is None
    assert "knowledge" not in events[-1][1]["context_report"]["parts"]
    assert "recall" in events[-1][1]["context_report"]["parts"]
    named = await _events(client, "How do I descale the Brevo?", expert="plain", kb_prefix="coffee", debug=True)
    assert named[-1][1]["sources"]
    nodes = [content["node"] for status, content in named if status == "execution_log"]
    assert nodes == ["route", "history", "retrieve", "generate_kb", "persist"]
