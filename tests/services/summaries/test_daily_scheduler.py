"""Each user's day is summarised once, at half past midnight of their own zone."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.platform.settings import Settings
from services.summaries.daily_scheduler import DailyScheduler
from services.visits.visit import SUMMARISE_DAYS
from tests.services.summaries.test_daily_summaries import written
from tests.support.jobs import statuses
from tests.support.model_server import ModelServer, Reply
from tests.support.visits import days_of, import_lines, talk_at, visits_of

pytestmark = pytest.mark.untraced

ZONES = ("Asia/Shanghai", "America/New_York", "Asia/Kathmandu", "Pacific/Kiritimati", "Pacific/Pago_Pago")
FIVE_MINUTES = timedelta(minutes=5)


def _today() -> datetime:
    """A noon that is still to come, so that what is said before it is recent, whenever the tests run."""
    return datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=1)


async def _as_if_then(services: Services) -> None:
    """Visits are due since they ended, not since they were imported."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("UPDATE visits SET daily_due_at = ended_at")


async def _work(services: Services) -> None:
    """Run the jobs that wait, as a worker without periodic rounds would: those go by the real clock."""
    jobs = JobQueue(services.database)
    DailyScheduler(services.database, services.daily, jobs, on=False)
    await jobs.open()
    await jobs.app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)


async def _user(services: Services, user: str, zone: str, starts: list[datetime]) -> None:
    line = {"kind": "user", "user_id": user, "timezone": zone, "created_at": starts[0].isoformat()}
    lines = [each for at in starts for each in talk_at(at, f"day {at:%d}", user_id=user)]
    await import_lines(services, line, *lines)


@pytest.mark.parametrize("days", [2, pytest.param(7, marks=pytest.mark.soak)])
async def test_users_in_five_zones_get_one_summary_a_day(
    services: Services, model_server: ModelServer, days: int
) -> None:
    model_server.default = written("A summary.")
    end = _today()
    mornings: dict[str, list[date]] = {}
    for zone in ZONES:
        local = [(end - timedelta(days=number)).astimezone(ZoneInfo(zone)) for number in range(days + 2, 2, -1)]
        starts = [day.replace(hour=hour) for day in local for hour in (9, 20)]
        await _user(services, zone.replace("/", "-"), zone, [at.astimezone(UTC) for at in starts])
        mornings[zone] = sorted({at.date() for at in starts})
    await _as_if_then(services)
    made: list[tuple[str, date, datetime]] = []
    now = end - timedelta(days=days + 3)
    while now < end:
        before = {(day["user"], day["date"]) for day in await days_of(services.database)}
        if await services.daily_scheduler.find(now):
            await _work(services)
            made += [
                (day["user"], day["date"], now)
                for day in await days_of(services.database)
                if (day["user"], day["date"]) not in before
            ]
        now += FIVE_MINUTES
    for zone in ZONES:
        of_user = [(day, at) for user, day, at in made if user == zone.replace("/", "-")]
        assert [day for day, _ in of_user] == mornings[zone], zone
        for day, at in of_user:
            clock = at.astimezone(ZoneInfo(zone))
            assert (clock.date(), clock.hour, clock.minute) == (day + timedelta(days=1), 0, 30), zone
    # Of each day: two visits, and the two together.
    assert len(model_server.requests) == 3 * days * len(ZONES)


async def test_two_schedulers_at_once_make_one_summary(
    services: Services, engines: Engines, settings: Settings, model_server: ModelServer
) -> None:
    model_server.default = written("A summary.")
    at = _today() - timedelta(days=2)
    await _user(services, "u-1", "UTC", [at, at + timedelta(hours=3)])
    async with open_services(settings, engines) as other:
        both = [services.daily_scheduler, other.daily_scheduler] * 3
        found = await asyncio.gather(*(rounds.find(_today()) for rounds in both))
        assert sum(found) == 1
        await asyncio.gather(_work(services), _work(other))
    assert len(await days_of(services.database)) == 1
    assert len(model_server.requests) == 3


async def test_days_on_which_the_service_was_away_are_caught_up(
    services: Services, model_server: ModelServer
) -> None:
    model_server.default = written("A summary.")
    starts = [_today() - timedelta(days=number) for number in range(9, 2, -1)]
    await _user(services, "u-1", "Asia/Shanghai", starts)
    assert await services.daily_scheduler.find(_today()) == 7
    await _work(services)
    assert len(await days_of(services.database)) == 7
    assert [visit["daily_due_at"] for visit in await visits_of(services.database)] == [None] * 7
    assert await services.daily_scheduler.find(_today() + timedelta(days=1)) == 0


async def test_one_users_failure_does_not_keep_the_others_from_theirs(
    services: Services, model_server: ModelServer
) -> None:
    at = _today() - timedelta(days=2)
    for number in range(7):
        topic = "POISON" if number == 3 else "tea"
        await import_lines(services, *talk_at(at, topic, user_id=f"u-{number}"))
    model_server.default = lambda request: (
        Reply(status=400) if "POISON" in str(request.prompt) else written("A summary.")
    )
    assert await services.daily_scheduler.find(_today()) == 7
    assert await statuses(services.database, SUMMARISE_DAYS) == ["todo", "todo"], "five users, then two"
    await _work(services)
    assert [day["user"] for day in await days_of(services.database)] == [f"u-{n}" for n in range(7) if n != 3]
    model_server.default = written("A summary.")
    assert await services.daily_scheduler.find(_today() + timedelta(minutes=10)) == 0, "not at once again"
    assert await services.daily_scheduler.find(_today() + timedelta(minutes=25)) == 1
    await _work(services)
    assert len(await days_of(services.database)) == 7
