import pytest

from services.bootstrap import Services
from services.health import Dependency, check_dependencies, overall
from services.platform.settings import Settings

pytestmark = pytest.mark.untraced


@pytest.mark.traced
async def test_without_its_database_the_service_is_down(services: Services) -> None:
    await services.database.close()
    assert overall(await check_dependencies(services)) == "down"


async def _worker(services: Services, settings: Settings | None = None) -> Dependency:
    found = await check_dependencies(services.with_others(settings=settings or services.settings))
    return next(dependency for dependency in found if dependency.name == "worker")


async def test_a_worker_elsewhere_is_well_as_long_as_it_gives_signs_of_life(services: Services) -> None:
    external = services.settings.model_copy(update={"worker": "external"})
    found = await _worker(services, external)
    assert (found.state, found.detail) == ("degraded", "none runs: 0 waiting, 0 failed")
    for age, state in (("10 s", "ok"), ("40 s", "degraded")):
        async with services.database.pool.connection() as connection:
            await connection.execute("DELETE FROM procrastinate_workers")
            await connection.execute(
                "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - %s::interval)", [age]
            )
        assert (await _worker(services, external)).state == state
