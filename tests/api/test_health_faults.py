"""Health says what is wrong while it is wrong: stores that hang, a Redis that only reads, a model that fails."""

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.api_keys import ApiKeys
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import SERVICE_ROLE, EmbeddedPostgres
from services.platform.settings import Settings
from tests.support.application import running_turns, served
from tests.support.hanging import hanging_proxy, silent_server
from tests.support.issuer import bearer
from tests.support.jobs import until
from tests.support.model_server import ModelServer, Reply
from tests.support.redis_servers import PROGRAM, RedisServer, redis_process

pytestmark = pytest.mark.untraced

SOON_S = 3.0
"""The two seconds that are promised, and one for a machine that is busy with other tests."""
ASK = {"user_id": "u-1", "session_id": "s-1", "message": "Hello"}


async def _dependencies(client: httpx.AsyncClient, headers: dict[str, str] | None = None) -> dict[str, Any]:
    begun = time.perf_counter()
    found = (await client.get("/readyz", headers=headers)).json()["dependencies"]
    assert time.perf_counter() - begun < SOON_S
    return {each["name"]: each for each in found}


async def _database_is_ok(client: httpx.AsyncClient, headers: dict[str, str]) -> bool:
    ready = (await client.get("/readyz", headers=headers)).json()
    return bool(ready["dependencies"][0]["state"] == "ok")


async def _metrics(client: httpx.AsyncClient, headers: dict[str, str] | None = None) -> dict[Any, float]:
    text = (await client.get("/metrics", headers=headers)).raise_for_status().text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {(each.name, *each.labels.values()): each.value for each in samples}


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    if PROGRAM is None:
        pytest.skip("no redis-server on this machine; install the system's package")
    with redis_process(tmp_path, "--save", "") as server:
        yield server


@pytest.fixture
async def with_redis(
    settings: Settings, engines: Engines, own_redis: RedisServer
) -> AsyncIterator[httpx.AsyncClient]:
    address = SecretStr(f"redis://127.0.0.1:{own_redis.port}/0")
    async with (
        open_services(settings.model_copy(update={"redis_url": address}), engines) as services,
        running_turns(services) as runner,
        served(services, runner) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize(
    ("fault", "cure", "said"),
    [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "its memory (maxmemory) is full"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "a replica, which only reads"),
    ],
)
async def test_a_redis_that_refuses_writes_is_not_ok(
    with_redis: httpx.AsyncClient,
    own_redis: RedisServer,
    model_server: ModelServer,
    fault: str,
    cure: str,
    said: str,
) -> None:
    model_server.default = Reply(["Yes ", "indeed."], gap_s=1.0)  # longer than events wait for each other
    await with_redis.get("/readyz")  # it imports the client of Milvus
    assert (await _dependencies(with_redis))["redis"]["state"] == "ok"
    with own_redis.client() as redis:
        redis.execute_command(*fault.split())
        found = (await _dependencies(with_redis))["redis"]
        assert found["state"] == "degraded"
        assert said in found["detail"]
        assert "ANAMNESIS_REDIS_URL" in found["advice"]
        assert (await _metrics(with_redis))["anamnesis_dependency_up", "redis"] == 0
        turn = (await with_redis.post("/api/v1/chat", json=ASK)).raise_for_status().json()
        assert turn["degraded"] == ["redis"]
        redis.execute_command(*cure.split())
        assert redis.keys("turn:probe*") == []
    assert (await _dependencies(with_redis))["redis"]["state"] == "ok"
    assert (await _metrics(with_redis))["anamnesis_dependency_up", "redis"] == 1


async def test_whatever_hangs_health_answers_and_tells_also_who_cannot_be_known(
    settings: Settings, engines: Engines, postgres: EmbeddedPostgres, database_name: str
) -> None:
    async with AsyncExitStack() as stack:
        port, flows = await stack.enter_async_context(hanging_proxy(f"{postgres.sockets}/.s.PGSQL.5432"))
        silent = await stack.enter_async_context(silent_server())
        hanging = replace(
            engines,
            database_url=f"postgresql://{SERVICE_ROLE}@127.0.0.1:{port}/{database_name}?sslmode=disable",
            milvus_uri=f"http://127.0.0.1:{silent}",
        )
        changes = {"redis_url": SecretStr(f"redis://127.0.0.1:{silent}/0"), "auth": "api_key"}
        services = await stack.enter_async_context(open_services(settings.model_copy(update=changes), hanging))
        runner = await stack.enter_async_context(running_turns(services))
        url = await stack.enter_async_context(served(services, runner))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60))
        known, late = [
            bearer((await ApiKeys(services.database).create(DEFAULT_TENANT, "test", ["admin"]))[1]) for _ in "12"
        ]
        await until(lambda: _database_is_ok(client, known))
        flows.clear()
        for headers in (known, late, known):
            found = await _dependencies(client, headers)
            states = {name: found[name]["state"] for name in ("postgres", "redis", "milvus", "worker")}
            assert states == {"postgres": "down", "redis": "degraded", "milvus": "degraded", "worker": "degraded"}
            assert all(found[name]["advice"] for name in states)
            assert bool(found["postgres"]["detail"]) == (headers is known)
        assert await _dependencies(client) == {}
        assert (await client.get("/metrics", headers=late)).status_code == 503
        begun = time.perf_counter()
        seen = await _metrics(client, known)
        assert time.perf_counter() - begun < 2 * SOON_S
        assert [seen["anamnesis_dependency_up", name] for name in ("postgres", "redis", "milvus")] == [0, 0, 0]
        assert seen[("anamnesis_jobs_waiting",)] != seen[("anamnesis_jobs_waiting",)]  # it is NaN
        flows.set()


async def test_a_model_that_fails_in_two_of_five_turns_is_not_ok(
    client: httpx.AsyncClient, model_server: ModelServer
) -> None:
    before = await _metrics(client)
    cut, whole = Reply(["Cer", "tain"], ending="cut"), Reply(["Yes."])
    for number, reply in enumerate((cut, whole, cut, whole, whole)):
        model_server.default = reply
        await client.post("/api/v1/chat", json={**ASK, "session_id": f"s-{number}"})
    found = (await _dependencies(client))["llm"]
    assert (found["state"], "failed 2 of 5 turns" in found["detail"]) == ("degraded", True)
    failed = ("anamnesis_turn_errors_total", "llm_stream_broken")
    assert (await _metrics(client))[failed] - before.get(failed, 0) == 2


async def test_requests_refused_before_a_turn_are_counted_by_reason(
    client: httpx.AsyncClient, services: Services
) -> None:
    before = await _metrics(client)
    await client.post("/api/v1/chat", json={"message": "Hello"})
    await client.post("/api/v1/chat/stream", json=ASK, headers={"Host": "elsewhere.example"})
    await services.database.close()
    said = [{"role": "user", "content": "Hello"}]
    await client.post("/v1/chat/completions", json={"model": "default", "messages": said, "user": "u-1"})
    assert (await client.get("/readyz")).json()["state"] == "down"
    after = await _metrics(client)
    for reason in ("invalid_input", "wrong_host", "database_unavailable"):
        counted = ("anamnesis_turns_refused_total", reason)
        assert after[counted] - before.get(counted, 0) == 1, reason
