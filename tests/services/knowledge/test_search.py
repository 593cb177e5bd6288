"""What a search finds, with everything up and with each thing down."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, get_args

import httpx
import pytest

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from state.turn import AgentType
from tests.support.knowledge import a_base, found, put
from tests.support.milvus_server import MilvusServer, indexed_chunks
from tests.support.ports import free_port

pytestmark = pytest.mark.untraced

DOCUMENTS = {
    "leave.md": "# Leave\n\n## Holidays\n\nThirty days of holidays a year.\n\n## Illness\n\nBring a certificate.",
    "hours.md": "# Hours\n\nThe office is open from nine to five.",
    "考勤.md": "# 考勤\n\n## 年假\n\n员工每年有八天年假。\n\n## 打卡\n\n忘记打卡可以补签两次。",
}
QUESTIONS = (("How many days of holidays do I get?", "leave.md"), ("年假有几天？", "考勤.md"))


async def _filled(services: Services) -> None:
    base = await a_base(services)
    for source, text in DOCUMENTS.items():
        await put(services, base, source, text)


async def _best(services: Services, question: str, **values: Any) -> str:
    return (await found(services, question, **values))[0][0]


@pytest.fixture
async def breaking(settings: Settings, engines: Engines, milvus_server: MilvusServer) -> AsyncIterator[Services]:
    """All services, over an index that is broken in the test."""
    async with open_services(settings, replace(engines, milvus_uri=milvus_server.uri)) as opened:
        yield opened


async def test_the_best_passage_is_first(remembering: Services) -> None:
    await _filled(remembering)
    for waiting in (True, False):
        if not waiting:
            assert await remembering.knowledge.indexing.index_waiting() == 5
        for agent_type in ("hybrid_agent", "naive_rag_agent"):
            for question, document in QUESTIONS:
                assert await _best(remembering, question, agent_type=agent_type) == document


async def test_what_has_nothing_to_do_with_it_finds_nothing(remembering: Services) -> None:
    await _filled(remembering)
    await remembering.knowledge.indexing.index_waiting()
    for question in ("Which film won the festival?", "推荐一部诺兰的电影", "…?!", "the", 'x\' OR "1"="1'):
        assert await found(remembering, question) == []


async def test_without_milvus_words_find_it_and_it_is_said(
    breaking: Services, milvus_server: MilvusServer
) -> None:
    await _filled(breaking)
    await breaking.knowledge.indexing.index_waiting()
    milvus_server.stop()
    for question, document in QUESTIONS:
        answer = await breaking.knowledge.search.search(DEFAULT_TENANT, "handbook", question)
        assert (answer.passages[0]["document"], answer.degraded) == (document, ["milvus"])
    milvus_server.start()


async def test_an_index_that_was_lost_is_noticed_and_made_again(
    breaking: Services, milvus_server: MilvusServer
) -> None:
    await _filled(breaking)
    await breaking.knowledge.indexing.index_waiting()
    milvus_server.restart(empty=True)
    base = await breaking.knowledge.bases.get(DEFAULT_TENANT, "handbook")
    assert base.waiting == 0
    for _ in range(40):  # its client may have to connect again
        answer = await breaking.knowledge.search.search(DEFAULT_TENANT, "handbook", QUESTIONS[0][0])
        assert answer.passages[0]["document"] == "leave.md"
        if (await breaking.knowledge.bases.get(DEFAULT_TENANT, "handbook")).waiting:
            break
    assert await breaking.knowledge.indexing.index_waiting() == 5
    assert len(indexed_chunks(milvus_server.uri, base.id)) == 5
    answer = await breaking.knowledge.search.search(DEFAULT_TENANT, "handbook", QUESTIONS[0][0])
    assert (answer.passages[0]["document"], answer.degraded) == ("leave.md", [])


async def test_without_the_embedding_endpoint_words_find_it_and_it_is_said(
    settings: Settings, engines: Engines, milvus_uri: str
) -> None:
    async with open_services(settings, replace(engines, milvus_uri=milvus_uri)) as services:
        await _filled(services)
        await services.knowledge.indexing.index_waiting()
    nowhere = settings.model_copy(
        update={
            "embedding_model": "built-in lexical embedder",
            "embedding_dim": 512,
            "embedding_base_url": str(httpx.URL(f"http://127.0.0.1:{free_port()}")),
        }
    )
    async with open_services(nowhere, replace(engines, milvus_uri=milvus_uri)) as services:
        for agent_type in get_args(AgentType):
            answer = await services.knowledge.search.search(
                DEFAULT_TENANT, "handbook", QUESTIONS[0][0], agent_type=agent_type
            )
            assert (answer.passages[0]["document"], answer.degraded) == ("leave.md", ["embedding"])
