"""At three o'clock of their own time, users' memory is compressed; not while they say something, nor twice."""

from datetime import UTC, datetime, timedelta

import pytest

from services.bootstrap import Services
from services.compression.scheduler import COMPRESSION_ROUND
from services.compression.store import COMPRESS
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.platform.settings import Settings
from tests.support.compressing import compress, living, merging, someone, undo, write
from tests.support.jobs import hurried_queue, statuses, until
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.untraced]

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).date()
THREE_IN_SHANGHAI = datetime.fromisoformat(f"{TOMORROW}T19:05+00:00")
"""The users' time zone, unless they say otherwise."""
TEA = [f"The user drinks a large cup of green tea with honey every single morning {word}" for word in "abcd"]


@pytest.fixture(autouse=True)
def _merges(model_server: ModelServer) -> None:
    model_server.default = merging()


async def _find(services: Services, now: datetime = THREE_IN_SHANGHAI) -> int:
    return await services.compression_scheduler.find(now)


async def _asleep(services: Services, user: str = "u-1") -> Owner:
    owner = await someone(services, user)
    await write(services, owner, *TEA)
    await _change(services, "UPDATE visits SET last_active_at = started_at - interval '1 hour', "
                            "started_at = started_at - interval '2 hours'")  # fmt: skip
    return owner


async def _change(services: Services, statement: str) -> None:
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(statement)


@pytest.mark.parametrize(
    ("zone", "utc", "due"),
    [
        ("Asia/Shanghai", "18:59", 0),
        ("Asia/Shanghai", "19:00", 1),
        ("Asia/Shanghai", "19:59", 1),
        ("Asia/Shanghai", "20:00", 0),
        ("Asia/Kathmandu", "21:14", 0),
        ("Asia/Kathmandu", "21:15", 1),
        ("America/Lima", "08:30", 1),
        ("-03:30", "06:30", 1),
    ],
)
async def test_it_is_three_where_the_user_is(services: Services, zone: str, utc: str, due: int) -> None:
    await _asleep(services)
    await _change(services, f"UPDATE users SET timezone = '{zone}'")
    now = datetime.fromisoformat(f"{TOMORROW}T{utc}+00:00")
    assert await _find(services, now) == due
    assert len(await statuses(services.database, COMPRESS)) == due


async def test_who_says_something_is_left_alone_and_nobody_is_found_twice(services: Services) -> None:
    await _asleep(services)
    await _change(services, f"UPDATE visits SET last_active_at = '{THREE_IN_SHANGHAI - timedelta(minutes=5)}', "
                            f"started_at = '{THREE_IN_SHANGHAI - timedelta(hours=1)}'")  # fmt: skip
    assert await _find(services) == 0
    later = THREE_IN_SHANGHAI + timedelta(minutes=10)
    assert await _find(services, later) == 1
    assert await _find(services, later) == 0
    assert await statuses(services.database, COMPRESS) == ["todo"]


async def test_memory_that_has_not_grown_is_left_alone(services: Services) -> None:
    owner = await _asleep(services)
    await compress(services, owner)
    await _change(services, "UPDATE compression_runs SET created_at = created_at - interval '1 year'")
    await _change(services, "UPDATE episodes SET created_at = created_at - interval '2 years'")
    assert await _find(services) == 0
    await write(services, owner, "Something new")
    assert await _find(services) == 1


async def test_who_has_looked_what_would_be_done_is_found_all_the_same(services: Services) -> None:
    owner = await _asleep(services)
    await compress(services, owner, dry_run=True)
    evening = THREE_IN_SHANGHAI - timedelta(hours=6)
    await _change(services, f"UPDATE compression_runs SET created_at = '{evening}'")
    assert await _find(services) == 1


async def test_a_night_leaves_alone_what_was_undone(services: Services) -> None:
    owner = await _asleep(services)
    run, _ = await compress(services, owner)
    await undo(services, owner, run)
    await _change(services, "UPDATE compression_runs SET created_at = created_at - interval '1 year'")
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        store = services.compression.store
        night = await store.add(connection, owner, reason="night", dry_run=False, job=False)
    assert night
    report = await services.compression.carry_out(DEFAULT_TENANT, night)
    assert report
    assert (report.consolidated, await living(services, owner)) == (0, TEA)


async def test_a_worker_does_what_a_round_found(services: Services) -> None:
    owner = await _asleep(services)
    await _find(services)
    services.jobs.start_worker()

    async def done() -> bool:
        return await statuses(services.database, COMPRESS) == ["succeeded"]

    await until(done)
    assert await living(services, owner) == [TEA[-1]]
    (run,) = await services.compression.store.runs(DEFAULT_TENANT, owner.user_id)
    assert (run.reason, run.status) == ("night", "done")


@pytest.mark.parametrize("name", ["memory_compression", "memory_episodes"])
async def test_it_can_be_switched_off(settings: Settings, services: Services, name: str) -> None:
    from services.compression.wiring import make_compression

    await _asleep(services)
    off = settings.model_copy(update={name: False})
    async with hurried_queue(services.database) as jobs:
        compressing = make_compression(
            off, services.database, services.models, services.embedder, services.memory.operations, jobs
        )
        assert await compressing.scheduler.find(THREE_IN_SHANGHAI) == 0
        assert COMPRESSION_ROUND in jobs.app.tasks
