"""Messages find their knowledge base by themselves: what the stream tells, and what the model is sent."""

import json
from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.knowledge import a_base, put
from tests.support.model_server import ModelServer

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


_MESSAGES = (
    ("How do I descale the Brevo?", "coffee", "cited", "similarity"),
    ("How much descaler goes into the water tank?", "coffee", "cited", "similarity"),
    ("病假要交什么证明？", "handbook", "handbook", "similarity"),
    ("Write a poem about the sea", None, "general", "default"),
    ("Thanks!", None, "general", "default"),
    ("What time is it in Berlin?", None, "general", "default"),
    ("What did we talk about yesterday?", None, "general", "default"),
)
"""Messages with the base, the worker and the method of their route."""


@pytest.mark.usefixtures("bases")
async def test_a_message_finds_its_base_and_says_once_where_it_went(client: httpx.AsyncClient) -> None:
    for number, (message, prefix, worker, method) in enumerate(_MESSAGES):
        events = await _events(client, message, session_id=f"s-{number}")
        assert events[0][0] == "turn"
        assert events[-1][0] == "done"
        [route] = _routes(events)
        assert (route["kb_prefix"], route["worker_name"], route["method"]) == (prefix, worker, method)
        assert {source["kb_prefix"] for source in events[-1][1]["sources"]} == ({prefix} if prefix else set())


@pytest.mark.usefixtures("bases")
async def test_the_handler_of_a_base_puts_its_prompt_together(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    await _events(client, "How do I descale the Brevo?")
    await _events(client, "年假有几天？", session_id="s-2")
    cited, usual = model_server.requests
    tail = cited.prompt[-2][1]
    for text in (
        "Name safety notes first.",
        "Answer from the passages alone.",
        "[1: care.md #0 · Care > Descaling]",
    ):
        assert text in tail
    assert "tools" not in cited.body
    assert "[leave.md #0 · 考勤与休假 > 年假]" in usual.prompt[-2][1]
    assert usual.body["tools"]


@pytest.mark.usefixtures("bases")
async def test_a_handler_that_answers_from_documents_alone_says_when_there_are_none(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    events = await _events(client, "Tell me about penguins", kb_prefix="coffee")
    assert events[-1][1]["sources"] == []
    assert "Nothing was found in the knowledge base" in model_server.requests[0].prompt[-2][1]


@pytest.mark.traced
@pytest.mark.usefixtures("bases")
async def test_a_question_that_goes_on_is_searched_for_with_the_one_before(client: httpx.AsyncClient) -> None:
    await _events(client, "入职满一年年假有几天？")
    events = await _events(client, "那它怎么休？")
    assert events[-1][1]["sources"][0]["heading"] == "考勤与休假 > 年假"


@pytest.mark.usefixtures("bases")
async def test_a_base_that_is_not_there_is_refused_before_anything_is_stored(client: httpx.AsyncClient) -> None:
    body = {"user_id": "u-9", "session_id": "s-9", "message": "Hi", "kb_prefix": "cellar"}
    for path in ("/api/v1/chat", "/api/v1/chat/stream"):
        refused = await client.post(path, json=body)
        assert refused.status_code == 422
        assert "kb_prefix: there is no knowledge base with the prefix 'cellar'" in refused.json()["detail"]
    assert (await client.get("/api/v1/conversations")).json()["items"] == []


@pytest.mark.usefixtures("bases")
async def test_an_expert_without_knowledge_reads_a_base_only_when_told_to(client: httpx.AsyncClient) -> None:
    plain = {"name": "plain", "system_prompt": "Be plain.", "parts_off": ["knowledge", "quick_tools"]}
    (await client.post("/api/v1/experts", json=plain)).raise_for_status()
    events = await _events(client, "How do I descale the Brevo?", expert="plain", debug=True)
    assert _routes(events)[0]["kb_prefix"] is None
    assert "knowledge" not in events[-1][1]["context_report"]["parts"]
    assert "recall" in events[-1][1]["context_report"]["parts"]
    named = await _events(client, "How do I descale the Brevo?", expert="plain", kb_prefix="coffee")
    assert named[-1][1]["sources"]


@pytest.mark.usefixtures("bases")
async def test_a_change_of_a_base_is_in_force_with_the_next_message(client: httpx.AsyncClient) -> None:
    assert _routes(await _events(client, "How do I descale the Brevo?"))[0]["kb_prefix"] == "coffee"
    (await client.delete("/api/v1/knowledge-bases/coffee")).raise_for_status()
    assert _routes(await _events(client, "How do I descale the Brevo?"))[0]["kb_prefix"] is None
