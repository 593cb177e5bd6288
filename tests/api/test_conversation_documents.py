"""Documents that a user gives in one conversation."""

from typing import Any

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from tests.support.jobs import statuses
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.in_clear

LEASE = "# Lease\n\nThe rent of the flat is 912 euros a month. Notice has to be given three months before.\n"


def _path(user: str = "u-1", session: str = "s-1") -> str:
    return f"/api/v1/users/{user}/sessions/{session}/documents"


async def _give(
    client: httpx.AsyncClient, text: str = LEASE, *, path: str | None = None, source: str = "lease.md"
) -> Any:
    return await client.post(
        path or _path(),
        params={"source": source},
        content=text.encode(),
        headers={"content-type": "text/markdown"},
    )


async def _ask(client: httpx.AsyncClient, message: str, *, user: str = "u-1", session: str = "s-1") -> Any:
    answer = await client.post("/api/v1/chat", json={"user_id": user, "session_id": session, "message": message})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_only_its_conversation_answers_from_a_document(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.default = Reply(["It says so."])
    given = await _give(client)
    assert (given.status_code, given.json()["status"]) == (201, "created")

    about = await _ask(client, "Please sum this up.")
    assert [source["document"] for source in about["sources"]] == ["lease.md"]
    assert "912 euros" in str(model_server.requests[-1].prompt)
    asked = await _ask(client, "How high is the rent of the flat?")
    assert [source["document"] for source in asked["sources"]] == ["lease.md"]
    later = await _ask(client, "Please sum this up.")
    assert later["sources"] == []  # it came with the first message alone
    why = (await client.get(f"/api/v1/turns/{asked['turn_id']}/why")).json()
    assert "912 euros" in why["sources"][0]["text"]
    for user, session in (("u-1", "s-2"), ("u-2", "s-1")):
        other = await _ask(client, "How high is the rent of the flat?", user=user, session=session)
        assert other["sources"] == []
        assert (await client.get(_path(user, session))).json() == {"items": [], "next": None}
    assert (await client.get("/api/v1/knowledge-bases")).json()["items"] == []
    prefix = asked["sources"][0]["kb_prefix"]
    assert (await client.get(f"/api/v1/knowledge-bases/{prefix}/documents")).status_code == 404
    assert (await client.delete(f"/api/v1/knowledge-bases/{prefix}")).status_code == 404
    named = {"user_id": "u-2", "session_id": "s-1", "message": "rent?", "kb_prefix": prefix}
    assert (await client.post("/api/v1/chat", json=named)).status_code == 422


async def test_a_document_goes_alone_with_its_conversation_and_with_its_user(
    client: httpx.AsyncClient, services: Services, model_server: ModelServer
) -> None:
    model_server.default = Reply(["Noted."])
    document = (await _give(client)).json()["document"]["id"]
    assert (await client.delete(f"{_path('u-2')}/{document}")).status_code == 404
    assert (await client.delete(f"{_path()}/{document}")).status_code == 204
    assert (await client.get(_path())).json() == {"items": [], "next": None}

    await _give(client)
    conversation = (await _ask(client, "Good morning"))["conversation_id"]
    before = await statuses(services.database, "forget_passages")
    assert (await client.delete(f"/api/v1/conversations/{conversation}")).status_code == 200
    assert (await client.get(_path())).json() == {"items": [], "next": None}
    await _give(client, path=_path(session="s-9"))
    erased = (await client.delete("/api/v1/users/u-1")).json()
    assert erased["removed"]["postgresql"]["kb_documents"] == 1
    assert len(await statuses(services.database, "forget_passages")) == len(before) + 2
    rows = "SELECT FROM knowledge_bases UNION ALL SELECT FROM kb_chunks"
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        assert await (await connection.execute(rows)).fetchall() == []
