"""After a change of the embedding model recall goes on, and the index is rebuilt beside the old one."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.health import check_dependencies
from services.memory.episodes.episode import Scope
from services.memory.episodes.index import shard_of
from services.platform.settings import Settings
from state.turn import OpenTurn
from tests.support.jobs import until
from tests.support.model_server import EmbeddingsScript, ModelServer
from tests.support.turns import exchange

# An index that is rebuilt for another model is of no use to the tests after it
pytestmark = [pytest.mark.process, pytest.mark.own_milvus]


def _another(settings: Settings, server: ModelServer) -> Settings:
    update = {
        "embedding_model": "scripted-embeddings",
        "embedding_base_url": server.base_url,
        "embedding_api_key": "secret-key",
        "embedding_dim": 8,
        "embedding_api": "openai",
    }
    return Settings.model_validate({**settings.model_dump(), **update})


async def _hits(services: Services, turn: OpenTurn, text: str) -> list[Any]:
    scope = Scope(turn.tenant_id, turn.user_id, turn.expert_id)
    found = await services.memory.recall.search(scope, text, now=datetime.now(UTC))
    return list(found.ranking.results)


async def _milvus(services: Services) -> str:
    return next(each.detail for each in await check_dependencies(services) if each.name == "milvus")


async def test_words_are_found_meanwhile_and_afterwards_meaning_is(
    services: Services, settings: Settings, engines: Engines, model_server: ModelServer
) -> None:
    turns = [await exchange(services.turns, f"My dog number {n} is Bruno", "A good dog") for n in range(3)]
    await services.memory.indexing.index_waiting()
    async with open_services(_another(settings, model_server), engines) as changed:
        before = await _hits(changed, turns[0], "Bruno the dog")
        assert before
        assert {each.cosine for each in before} == {None}
        model_server.embeddings = EmbeddingsScript(delay_s=60, from_texts=3)
        rebuilding = asyncio.create_task(changed.index_rebuild.keep_current())

        async def begun() -> bool:
            return changed.index_rebuild.progress is not None

        await until(begun)
        assert "its indexes are being rebuilt: 0 of 3" in await _milvus(changed)
        assert await _hits(changed, turns[0], "Bruno the dog")
        rebuilding.cancel()
        await asyncio.wait({rebuilding})
        assert "its indexes are of another model" in await _milvus(changed)
        model_server.embeddings = EmbeddingsScript()
        await changed.index_rebuild.keep_current()
        assert not changed.index_rebuild.is_due
        after = await _hits(changed, turns[0], "Bruno the dog")
        assert {each.unit.id for each in after} == {each.unit.id for each in before}
        assert None not in {each.cosine for each in after}
        assert "its indexes" not in await _milvus(changed)


async def test_while_the_endpoint_fails_what_is_there_stays_in_use(
    services: Services, settings: Settings, engines: Engines, model_server: ModelServer
) -> None:
    turn = await exchange(services.turns, "My dog is Bruno", "A good dog")
    await services.memory.indexing.index_waiting()
    model_server.embeddings = EmbeddingsScript(status=503)
    async with open_services(_another(settings, model_server), engines) as changed:
        rebuilding = asyncio.create_task(changed.index_rebuild.keep_current())

        async def failed() -> bool:
            return changed.index_rebuild.is_due and changed.index_rebuild.progress is None

        await until(failed)
        assert not rebuilding.done()
        assert await _hits(changed, turn, "Bruno the dog")
        rebuilding.cancel()
        await asyncio.wait({rebuilding})


async def test_what_was_rebuilt_before_a_failure_is_not_rebuilt_again(
    services: Services, settings: Settings, engines: Engines, model_server: ModelServer
) -> None:
    said: dict[int, list[str]] = {}
    while len(said) < 2:
        user = f"u-{len(said)}-{sum(map(len, said.values()))}"
        text = f"My dog is Bruno, says {user}"
        turn = await exchange(services.turns, text, "A good dog", user_id=user, session_id=user)
        said.setdefault(shard_of(turn.user_id), []).append(text)
    last_user = said[max(said)][-1].rpartition(" ")[-1]
    for n in range(20):
        text = f"My cat number {n} is Flora"
        await exchange(services.turns, text, "A good cat", user_id=last_user, session_id="more")
    await services.memory.indexing.index_waiting()
    async with open_services(_another(settings, model_server), engines) as changed:
        await changed.embedder.prepare()
        model_server.embeddings = EmbeddingsScript(status=503, from_texts=30)
        rebuilding = asyncio.create_task(changed.index_rebuild.keep_current())

        async def failed() -> bool:
            return changed.index_rebuild.is_due and changed.embedder.failing

        await until(failed)
        rebuilding.cancel()
        await asyncio.wait({rebuilding})
        model_server.embeddings = EmbeddingsScript()
        model_server.requests.clear()
        with capture_logs() as logged:
            await changed.index_rebuild.keep_current()
        assert not changed.index_rebuild.is_due
        asked = {text for request in model_server.requests for text in request.body["input"]}
        assert {f"My cat number {n} is Flora" for n in range(20)} <= asked
        assert not asked & set(said[min(said)])
        told = [(each["done"], each["of"]) for each in logged if each["event"] == "the indexes are being rebuilt"]
        total = 20 + sum(map(len, said.values()))
        assert told
        assert told[-1] == (total, total)


async def test_an_index_that_is_left_to_the_service_is_made_while_words_are_found(
    services: Services, settings: Settings, engines: Engines
) -> None:
    turns = [await exchange(services.turns, f"My dog number {n} is Bruno", "A good dog") for n in range(3)]
    await services.memory.indexing.index_waiting()
    before = await _hits(services, turns[0], "Bruno the dog")
    assert await services.index_rebuild.leave_to_service() == (3, 0)
    assert await services.memory.index.terms_of(turns[0].user_id) == []
    async with open_services(settings, engines) as restarted:
        assert not await restarted.index_rebuild.look()
        meanwhile = await _hits(restarted, turns[0], "Bruno the dog")
        assert {each.unit.id for each in meanwhile} == {each.unit.id for each in before}
        assert await restarted.memory.indexing.index_waiting() == 3
        assert len(await restarted.memory.index.terms_of(turns[0].user_id)) == 6
        assert await _hits(restarted, turns[0], "Bruno the dog")
