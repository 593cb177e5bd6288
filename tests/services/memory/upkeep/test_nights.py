"""At three o'clock of their own time, users' memory is kept up; ninety nights leave no hole in its lineage."""

from datetime import UTC, datetime, timedelta

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.core.blocks import Owner
from services.memory.upkeep.policy import UpkeepPolicy, change_policy
from services.memory.upkeep.scheduler import UPKEEP
from tests.support.jobs import statuses, until
from tests.support.model_server import ModelServer
from tests.support.upkeep import change, everything, judging, someone, write, written_before

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).date()
THREE_IN_SHANGHAI = datetime.fromisoformat(f"{TOMORROW}T19:05+00:00")
"""The users' time zone, unless they say otherwise."""


async def _asleep(services: Services) -> Owner:
    owner = await someone(services)
    await change(services, "UPDATE visits SET last_active_at = started_at - interval '1 hour', "
                           "started_at = started_at - interval '2 hours'")  # fmt: skip
    return owner


async def test_who_has_something_new_or_something_that_fades_is_found_once_a_night(services: Services) -> None:
    owner = await _asleep(services)
    scheduler = services.upkeep_scheduler
    assert await scheduler.find(THREE_IN_SHANGHAI) == 0
    await written_before(services, owner, "The user lives in Berlin", "The user lives in Lisbon")
    for hours in (-1, 6):
        assert await scheduler.find(THREE_IN_SHANGHAI + timedelta(hours=hours)) == 0
    assert await scheduler.find(THREE_IN_SHANGHAI + timedelta(hours=5)) == 1, "whoever was left is found later"
    assert await scheduler.find(THREE_IN_SHANGHAI + timedelta(hours=5)) == 0, "and waits once"
    await change(services, "DELETE FROM procrastinate_jobs")
    assert await scheduler.find(THREE_IN_SHANGHAI) == 1
    await change(services, "DELETE FROM procrastinate_jobs")
    await scheduler.keep_up(DEFAULT_TENANT, owner.user_id, THREE_IN_SHANGHAI)
    tomorrow = THREE_IN_SHANGHAI + timedelta(days=1)
    assert await scheduler.find(tomorrow) == 0
    await change_policy(services.database, DEFAULT_TENANT, UpkeepPolicy(fading="archive"))
    assert await scheduler.find(tomorrow) == 1


async def test_a_worker_does_what_a_round_found(services: Services, model_server: ModelServer) -> None:
    model_server.default = judging(lambda *_: "replaces")
    owner = await _asleep(services)
    await write(services, owner, "The user lives in Berlin", "The user lives in Lisbon")
    await services.upkeep_scheduler.find(THREE_IN_SHANGHAI)
    services.jobs.start_worker()

    async def done() -> bool:
        # The worker's own round queues another job when the test runs while it is three in Shanghai.
        return set(await statuses(services.database, UPKEEP)) == {"succeeded"}

    await until(done)
    (proposal,) = await services.memory.proposals.list(DEFAULT_TENANT, "u-1", limit=5)
    assert proposal.text == "The user lives in Lisbon"


async def test_a_night_leaves_alone_what_was_brought_back(services: Services) -> None:
    owner = await _asleep(services)
    fading = services.upkeep
    await change_policy(services.database, DEFAULT_TENANT, UpkeepPolicy(fading="archive"))
    first, second = await written_before(services, owner, "Owns a red kettle", "Owns a ladder")
    before = await everything(services, owner)
    await services.upkeep_scheduler.keep_up(DEFAULT_TENANT, owner.user_id, datetime.now(UTC))
    (night,) = await fading.runs(DEFAULT_TENANT, "u-1", limit=5)
    assert (night.reason, set(night.faded_ids)) == ("night", {first, second})
    await fading.undo(DEFAULT_TENANT, "u-1", night.id)
    await services.upkeep_scheduler.keep_up(DEFAULT_TENANT, owner.user_id, datetime.now(UTC))
    assert await everything(services, owner) == before
    assert len(await fading.runs(DEFAULT_TENANT, "u-1", limit=5)) == 1
    assert len((await fading.run(DEFAULT_TENANT, "u-1")).faded_ids) == 2
