from dataclasses import replace

import pytest

from services.bootstrap import Services
from services.health import check_dependencies, overall

pytestmark = pytest.mark.anyio


async def test_what_is_up_and_what_is_not_is_told_apart(services: Services) -> None:
    found = await check_dependencies(
        services.settings, services.database, services.redis, services.milvus, services.jobs
    )
    states = {dependency.name: dependency.state for dependency in found}
    assert states == {
        "postgres": "ok",
        "milvus": "degraded",
        "redis": "ok",
        "worker": "ok",
        "llm": "ok",
        "embeddings": "ok",
    }
    assert overall(found) == "degraded"
    milvus = next(dependency for dependency in found if dependency.name == "milvus")
    assert "does not answer" in milvus.detail


async def test_without_its_database_the_service_is_down(services: Services) -> None:
    await services.database.close()
    found = await check_dependencies(
        services.settings, services.database, services.redis, services.milvus, services.jobs
    )
    assert overall(found) == "down"
    assert overall([replace(dependency, state="ok") for dependency in found]) == "ok"


async def test_a_running_worker_is_told(services: Services) -> None:
    assert services.jobs.worker_state == "external"
    services.jobs.start_worker()
    assert services.jobs.worker_state == "running"
