"""Episodes over HTTP: hostile texts and names, strangers who guess ids, and recall before anything is indexed."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from services.bootstrap import Services
from services.engines import Engines
from tests.conftest import free_port
from tests.support.model_server import ModelServer
from tests.support.service_process import ServiceProcess, answer_of, chat

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
