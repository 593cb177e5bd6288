"""Episodes over HTTP: hostile texts and names, strangers who guess ids, and recall before anything is indexed."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import Tenants
from tests.conftest import free_port
from tests.support.model_server import ModelServer
from tests.support.service_process import ServiceProcess, answer_of, chat
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]

NASTY = (
    '" or 1==1 --',
    'x" or user_id != "',
    "\\",
    '\\"',
    "'; DROP TABLE episodes; --",
    "😀",
    '{"$ne": null}',
    "%s %(user_id)s",
    "id in [1, 2]",
)


async def _search(client: httpx.AsyncClient, user: str, **body: Any) -> httpx.Response:
    return await client.post(
        f"/api/v1/users/{quote(user, safe='')}/episodes/search", json={"query": "dog", **body}
    )


async def _texts(client: httpx.AsyncClient, user: str, **body: Any) -> list[str]:
    answer = await _search(client, user, **body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == []
    return [item["content"] for item in answer.json()["items"]]


@pytest.fixture
async def neighbours(services: Services) -> Services:
    """Two users who said nearly the same."""
    for user in ("u-1", "u-2"):
        await exchange(services.turns, f"The dog of {user} is Bruno", "Nice", external_user_id=user)
    return services


async def test_hostile_queries_and_names_find_nothing_of_others(
    client: httpx.AsyncClient, neighbours: Services
) -> None:
    for text in NASTY:
        await exchange(neighbours.turns, f"{text} dog", "Nice", external_user_id="u-1", session_key="s-2")
    await neighbours.memory.indexing.index_waiting()
    for text in NASTY:
        for query in (text, f"{text} dog"):
            assert all("u-2" not in found for found in await _texts(client, "u-1", query=query, top_k=100))
        assert (await _search(client, text)).status_code in {404, 422}
        assert (await _search(client, "u-1", episode_type=text)).status_code == 422
        assert (await _search(client, "u-1", conversation_id=text)).status_code == 422
        assert (await _search(client, "u-1", since=text)).status_code == 422
        assert (await _search(client, "u-1", expert=text)).status_code in {404, 422}
    assert (await _search(client, "u-1", query="a\x00b")).status_code == 422
    assert any("u-2" in found for found in await _texts(client, "u-2"))


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "not indexed"])
async def test_ids_that_were_guessed_show_nothing(
    client: httpx.AsyncClient, services: Services, engines: Engines, indexed: bool
) -> None:
    mine = await exchange(services.turns, "My dog is Bruno", "Nice", external_user_id="u-1")
    theirs = await exchange(services.turns, "My dog is Bruno", "Nice", external_user_id="u-2")
    tenants = Tenants(services.database)
    other = await tenants.create("other")
    foreign = await exchange(services.turns, "My dog is Bruno", "Nice", tenant_id=other.id, external_user_id="u-1")
    if indexed:
        await services.memory.indexing.index_waiting()
    answer = await _search(client, "u-1", top_k=100)
    found = {source["message_id"] for item in answer.json()["items"] for source in item["sources"]}
    assert str(mine.user_message_id) in found
    assert found <= {str(mine.user_message_id), str(mine.answer_message_id)}
    for guessed in (theirs.conversation_id, foreign.conversation_id, uuid4()):
        assert await _texts(client, "u-1", conversation_id=str(guessed)) == []
    for user in (str(theirs.user_id), str(foreign.user_id), "other"):
        assert (await _search(client, user)).status_code == 404


@pytest.mark.in_clear
async def test_what_is_told_in_one_conversation_is_in_the_next_prompt_of_another_without_a_worker(
    tmp_path_factory: pytest.TempPathFactory, engines: Engines, services: Services, model_server: ModelServer
) -> None:
    service = ServiceProcess(
        tmp_path_factory.mktemp("service") / "data",
        free_port(),
        database_url=engines.database_url,
        milvus_uri=engines.milvus_uri,
        worker="external",
        memory_recall_budget_ms="2000",
        llm_model="scripted",
        llm_base_url=model_server.base_url,
    )
    service.start()
    try:
        answer_of(chat(service.url, "My cat is called Minka, she is grey.", session_id="s-1"))
        answer_of(chat(service.url, "What is my cat called?", session_id="s-2"))
    finally:
        service.end()
    prompt = model_server.requests[-1].prompt
    assert prompt[-1] == ("user", "What is my cat called?")
    assert any("My cat is called Minka, she is grey." in text for _, text in prompt[:-1])
