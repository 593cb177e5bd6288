"""`anamnesis reindex` as a process beside a service that answers, and starts over an index of another model."""

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from services.bootstrap import Services
from services.conversations.turn import OpenTurn
from services.engines import Engines
from services.memory.episodes.scope import Scope
from services.platform.settings import Settings
from tests.conftest import free_port
from tests.support.archiving import with_embeddings
from tests.support.command import run_command, start_command
from tests.support.fork_server import ForkedProcess
from tests.support.jobs import until
from tests.support.milvus_server import MilvusServer, collections, of_user
from tests.support.model_server import EmbeddingsScript, ModelServer
from tests.support.turns import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.traced]

DIMENSIONS = 8
QUESTIONS = ("Bruno the dog", "number 7", "a good dog")


@pytest.fixture
def settings(model_server: ModelServer) -> Settings:
    """With an endpoint of embeddings."""
    return with_embeddings(model_server)


@pytest.fixture
def engines(engines: Engines, milvus_server: MilvusServer) -> Engines:
    """With a Milvus of the test's own."""
    return replace(engines, milvus_uri=milvus_server.uri)


def _start(command: str, engines: Engines, server: ModelServer, **variables: str) -> ForkedProcess:
    return start_command(command, variables=_variables(engines, server, **variables))


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


@asynccontextmanager
async def _searched_meanwhile(services: Services, turn: OpenTurn, fewest: int) -> AsyncIterator[list[int]]:
    """Search all the time; every search has to answer in full."""
    counts: list[int] = []
    stop = asyncio.Event()

    async def search() -> None:
        while not stop.is_set():
            degraded, units = await _search(services, turn, QUESTIONS[0])
            assert degraded == []
            assert len(units) >= fewest
            counts.append(len(units))

    searching = asyncio.create_task(search())
    yield counts
    stop.set()
    await searching


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


@pytest.mark.soak
async def test_while_it_runs_every_search_finds_as_much_as_before_and_broken_off_it_is_run_again(
    services: Services, engines: Engines, milvus_server: MilvusServer, model_server: ModelServer
) -> None:
    turns = await _said(services)
    before = await _answers(services, turns[0])
    fewest = len(before[0])
    for how in (signal.SIGINT, signal.SIGKILL):
        model_server.embeddings = EmbeddingsScript(delay_s=60, from_texts=len(turns))
        model_server.requests.clear()
        async with _searched_meanwhile(services, turns[0], fewest) as counts:
            process = _start("reindex", engines, model_server)

            async def begun() -> bool:
                return any(len(request.body.get("input", "")) >= len(turns) for request in model_server.requests)

            await until(begun, seconds=60)
            assert len(collections(milvus_server.uri)) > 1
            process.send_signal(how)
            _, err = await asyncio.to_thread(process.communicate, timeout=60)
            assert process.returncode != 0
            assert "Traceback" not in err
            if how is signal.SIGINT:
                assert "run the command again" in err
        assert counts
        assert of_user(milvus_server.uri, turns[0].user_id) == _units(turns)
    model_server.embeddings = EmbeddingsScript()
    async with _searched_meanwhile(services, turns[0], fewest) as counts:
        done = await _run("reindex", engines, model_server)
        assert done.returncode == 0, done.stderr
    assert len(counts) > 1
    assert await _answers(services, turns[0]) == before
    assert of_user(milvus_server.uri, turns[0].user_id) == _units(turns)
    assert len(collections(milvus_server.uri)) == 1
