"""Knowledge bases over HTTP: made, filled, searched, changed, removed; and the sources of an answer."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from tests.support.knowledge import a_base, pdf, put, word
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.indexed, pytest.mark.settings(knowledge_max_document_mb=1)]

BASES = "/api/v1/knowledge-bases"
DOCUMENTS = f"{BASES}/handbook/documents"
HANDBOOK: dict[str, Any] = {"prefix": "handbook", "description": "Our handbook.", "keywords": ["leave"]}
LEAVE = "# Leave\n\n## Holidays\n\nThirty days of holidays a year.\n\n## Illness\n\nBring a certificate."
ASK = {"user_id": "u-1", "session_id": "s-1", "message": "How many days of holidays?", "kb_prefix": "handbook"}
SOURCE = {
    "kb_prefix": "handbook",
    "document": "leave.md",
    "position": 0,
    "heading": "Leave > Holidays",
    "page": None,
    "score": pytest.approx(1.0, abs=0.05),
}


async def _sent(
    client: httpx.AsyncClient, source: str, data: bytes, kind: str = "text/markdown"
) -> httpx.Response:
    return await client.post(DOCUMENTS, params={"source": source}, content=data, headers={"Content-Type": kind})


def _assert_problem(response: httpx.Response, status: int, *names: str) -> None:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    for name in names:
        assert name in response.json()["detail"]


async def test_a_base_is_made_filled_searched_and_removed(client: httpx.AsyncClient, services: Services) -> None:
    made = await client.post(BASES, json=HANDBOOK)
    assert made.status_code == 201, made.text
    assert made.json() | {"created_at": 0, "updated_at": 0} == {
        **HANDBOOK,
        "system_prompt": "",
        "handler": None,
        "documents": 0,
        "chunks": 0,
        "waiting": 0,
        "created_at": 0,
        "updated_at": 0,
    }
    sent = await _sent(client, "leave.md", LEAVE.encode())
    assert (sent.status_code, sent.json()["status"]) == (201, "created"), sent.text
    again = await _sent(client, "leave.md", LEAVE.encode())
    assert (again.status_code, again.json()["status"]) == (200, "unchanged")
    listed = (await client.get(DOCUMENTS)).json()
    assert listed == {"items": [sent.json()["document"]], "next": None}
    assert (listed["items"][0]["chunk_count"], listed["items"][0]["waiting"]) == (2, 2)
    assert listed["items"][0]["left_out"] == []
    await services.knowledge.indexing.index_waiting()
    for agent_type in ("hybrid_agent", "naive_rag_agent"):
        asked = {"query": "How many days of holidays?", "top_k": 1, "agent_type": agent_type}
        found = (await client.post(f"{BASES}/handbook/search", json=asked)).json()
        assert [(each["heading"], each["text"]) for each in found["items"]] == [
            ("Leave > Holidays", "Thirty days of holidays a year.")
        ]
        assert found["degraded"] == []
    assert (await client.get(f"{BASES}/handbook")).json()["chunks"] == 2
    document = f"{DOCUMENTS}/{listed['items'][0]['id']}"
    assert (await client.delete(document)).status_code == 204
    _assert_problem(await client.delete(document), 404, "document")
    assert (await client.delete(f"{BASES}/handbook")).status_code == 204
    assert (await client.get(BASES)).json() == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("source", "data", "kind"),
    [
        ("a.pdf", pdf("年假有八天"), "application/pdf"),
        ("b", word((0, "年假有八天")), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("c.html", "<p>年假有八天</p>".encode("gb18030"), "application/octet-stream"),
    ],
)
async def test_every_kind_is_taken_in(
    client: httpx.AsyncClient, services: Services, source: str, data: bytes, kind: str
) -> None:
    await a_base(services)
    sent = await _sent(client, source, data, kind)
    assert (sent.status_code, sent.json()["document"]["source"]) == (201, source), sent.text
    found = (await client.post(f"{BASES}/handbook/search", json={"query": "年假几天"})).json()["items"]
    assert [each["document"] for each in found] == [source]


async def test_what_cannot_be_taken_in_is_told(client: httpx.AsyncClient, services: Services) -> None:
    _assert_problem(await _sent(client, "a.md", b"x"), 404, "knowledge base")
    await a_base(services)
    _assert_problem(await _sent(client, "a.md", b" "), 422, "document: is empty")
    _assert_problem(await _sent(client, "a.pdf", pdf("x", password="p"), "application/pdf"), 422, "password")
    _assert_problem(await _sent(client, "a.png", b"x", "image/png"), 415, "unknown kind")
    _assert_problem(await _sent(client, "a\x00.md", b"x"), 422, "source")
    _assert_problem(await _sent(client, "", b"x"), 422, "source")
    _assert_problem(await client.post(DOCUMENTS, content=b"x"), 422, "source")
    _assert_problem(await _sent(client, "a.txt", b"x" * 1_048_577, "text/plain"), 413, "larger than 1048576")
    assert (await client.get(DOCUMENTS)).json()["items"] == []


async def test_a_base_is_changed(client: httpx.AsyncClient) -> None:
    made = (await client.post(BASES, json=HANDBOOK)).json()
    changed = await client.patch(f"{BASES}/handbook", json={"description": "Leave.", "handler": "cited"})
    assert changed.json() | {"updated_at": 0} == made | {
        "description": "Leave.",
        "handler": "cited",
        "updated_at": 0,
    }
    assert changed.json()["updated_at"] > made["updated_at"] == made["created_at"]
    again = await client.patch(f"{BASES}/handbook", json={"keywords": [], "handler": None})
    assert (again.json()["keywords"], again.json()["description"], again.json()["handler"]) == ([], "Leave.", None)
    _assert_problem(await client.patch(f"{BASES}/handbook", json={"prefix": "other"}), 422, "prefix")
    _assert_problem(await client.patch(f"{BASES}/other", json={}), 404)
    _assert_problem(await client.post(BASES, json=HANDBOOK), 409, "handbook")


async def test_an_answer_tells_its_sources_also_later(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    base = await a_base(services)
    await put(services, base, "leave.md", LEAVE)
    await services.knowledge.indexing.index_waiting()
    answer = (await client.post("/api/v1/chat", json=ASK)).json()
    assert answer["sources"] == [SOURCE]
    role, tail = model_server.requests[0].prompt[-2]
    assert role == "system"
    assert "[leave.md #0 · Leave > Holidays]\nThirty days of holidays a year." in tail
    turn = (await client.get(f"/api/v1/turns/{answer['turn_id']}")).json()
    assert turn["context_report"]["sources"] == [SOURCE]
    await services.redis.flushall()
    replayed = await client.get(f"/api/v1/turns/{answer['turn_id']}/stream")
    assert '"heading":"Leave > Holidays"' in replayed.text
    without = (await client.post("/api/v1/chat", json={**ASK, "kb_prefix": None, "message": "Hello"})).json()
    assert without["sources"] == []


async def test_a_message_finds_its_base_and_a_question_that_goes_on_is_searched_for_with_the_one_before(
    client: httpx.AsyncClient, services: Services
) -> None:
    base = await a_base(services, "handbook", description="员工手册", keywords=("年假",))
    await put(
        services,
        base,
        "leave.md",
        "# 考勤与休假\n\n## 年假\n\n入职满一年有五天年假。\n\n## 病假\n\n病假要交医院证明。",
    )
    await services.knowledge.indexing.index_waiting()
    for message in ("入职满一年年假有几天？", "那它怎么休？"):
        answer = (await client.post("/api/v1/chat", json={**ASK, "kb_prefix": None, "message": message})).json()
        assert answer["sources"][0]["heading"] == "考勤与休假 > 年假"
