"""`anamnesis reindex` as a process beside a service that answers, and starts over an index of another model."""

import asyncio
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.engines import Engines
from services.memory.episodes.episode import Scope
from tests.support.command import run_command
from tests.support.jobs import until
from tests.support.milvus_server import MilvusServer, collections, of_user
from tests.support.model_server import ModelServer
from tests.support.ports import free_port
from tests.support.turns import exchange

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.traced,
    pytest.mark.own_milvus,
    pytest.mark.settings(embedding_model="scripted-embeddings", embedding_dim=8),
]

DIMENSIONS = 8
QUESTIONS = ("Bruno the dog", "number 7", "a good dog")


def _variables(engines: Engines, server: ModelServer, **variables: str) -> dict[str, str]:
    given = {
        "database_url": engines.database_url,
        "milvus_uri": engines.milvus_uri,
        "llm_model": "scripted",
        "llm_base_url": server.base_url,
        "embedding_model": "scripted-embeddings",
        "embedding_dim": str(DIMENSIONS),
        "port": str(free_port()),
        **variables,
    }
    return {f"ANAMNESIS_{name.upper()}": value for name, value in given.items()}


async def _run(
    command: str, engines: Engines, server: ModelServer, **variables: str
) -> "subprocess.CompletedProcess[str]":
    return await asyncio.to_thread(run_command, command, variables=_variables(engines, server, **variables))


async def _said(services: Services, count: int = 20) -> list[OpenTurn]:
    turns = [await exchange(services.turns, f"My dog number {n} is Bruno", "A good dog") for n in range(count)]
    await services.memory.indexing.index_waiting()
    return turns


async def _search(services: Services, turn: OpenTurn, text: str) -> tuple[list[str], list[Any]]:
    scope = Scope(turn.tenant_id, turn.user_id, turn.expert_id)
    found = await services.memory.recall.search(scope, text, now=datetime.now(UTC))
    return list(found.degraded), [result.unit.id for result in found.ranking.results]


async def _answers(services: Services, turn: OpenTurn) -> list[set[str]]:
    found = [await _search(services, turn, text) for text in QUESTIONS]
    assert [degraded for degraded, _ in found] == [[]] * len(QUESTIONS)
    return [set(units) for _, units in found]


def _units(turns: list[OpenTurn]) -> dict[Any, int]:
    return {message: 1 for turn in turns for message in (turn.user_message_id, turn.answer_message_id)}


@pytest.mark.soak
async def test_after_its_folder_was_deleted_the_index_answers_as_before(
    services: Services, engines: Engines, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    turns = await _said(services)
    before = await _answers(services, turns[0])
    milvus_server.restart(empty=True)
    for _ in range(2):  # a second time changes nothing
        done = await _run("reindex", engines, model_server)
        assert (done.returncode, done.stdout) == (
            0,
            "Indexed 20 episodes.\n",
        ), done.stderr
        assert "20/20" in done.stderr
        assert of_user(milvus_server.uri, turns[0].user_id) == _units(turns)
        assert len(collections(milvus_server.uri)) == 1

    async def answers() -> bool:
        return (await _search(services, turns[0], QUESTIONS[0]))[0] == []

    await until(answers)  # its connection to the server that was has to be noticed as broken
    assert await _answers(services, turns[0]) == before
