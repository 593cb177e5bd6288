"""A plan whose day is past leaves the profile for the archive, with its day, in the night after it."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Trigger
from services.time_reference.occasions import last_day
from tests.support.core_memory import know
from tests.support.filing import logged, written
from tests.support.upkeep import change, someone

TOLD = datetime(2026, 11, 30, tzinfo=UTC).date()


@pytest.mark.parametrize(
    ("plan", "day"),
    [
        ("Surgery on 2026-12-09", "2026-12-09"),
        ("flies to Rome on December 9, back on December 12", "2026-12-12"),
        ("下周三面试", "2026-12-09"),
        ("2026年12月去日本旅行", "2026-12-31"),
        ("wants to learn Portuguese", None),
        ("goes running every Monday", None),
        ("每周三上瑜伽课", None),
        ("wants to see Rome again, as in 2019", None),
    ],
)
def test_the_day_of_a_plan_lies_ahead_when_it_is_told(plan: str, day: str | None) -> None:
    assert last_day(plan, TOLD) == (datetime.fromisoformat(day).date() if day else None)


async def test_a_past_plan_is_written_down_with_its_day_and_can_be_brought_back(
    services: Services, client: httpx.AsyncClient
) -> None:
    owner = await someone(services)
    await change(services, "UPDATE visits SET last_active_at = started_at - interval '1 hour', "
                           "started_at = started_at - interval '2 hours'")  # fmt: skip
    now = datetime.now(UTC)
    soon, later = ((now + timedelta(days=days)).date() for days in (5, 90))
    stays = [f"moves to Bath on {later}", "wants to learn Portuguese"]
    plans = [f"has surgery on {soon}", *stays]
    birthdays = {"dates": [f"mother's birthday is on {soon}"]}
    await know(services, owner, "human", {"plans": plans, **birthdays}, Trigger("user"))
    scheduler = services.upkeep_scheduler
    await scheduler.keep_up(DEFAULT_TENANT, owner.user_id, datetime.now(UTC))
    assert await written(services) == []
    night = datetime.fromisoformat(f"{soon}T19:05+00:00")  # 3:05 of the next day in Shanghai
    assert await scheduler.find(night - timedelta(days=1)) == 0
    assert await scheduler.find(night) == 1, "though nothing else is new"
    await scheduler.keep_up(DEFAULT_TENANT, owner.user_id, night)
    [block] = await services.memory.core.read(owner)
    assert block.content == {"plans": stays, **birthdays}
    assert await written(services) == [f"has surgery on {soon} (planned for {soon})"]
    await change(services, "DELETE FROM procrastinate_jobs")
    assert await scheduler.find(night + timedelta(days=1)) == 0
    [retired] = [each for each in await logged(services) if each.type == "memory_command"]
    assert retired.trigger["actor"] == "maintenance"
    undone = await client.post(f"/api/v1/users/u-1/memory-operations/{retired.id}/undo")
    assert undone.is_success, undone.text
    [block] = await services.memory.core.read(owner)
    assert set(block.content["plans"]) == set(plans)
    assert await written(services) == []


async def test_what_is_pinned_stays(services: Services) -> None:
    owner = await someone(services)
    now = datetime.now(UTC)
    plan = f"has surgery on {(now + timedelta(days=5)).date()}"
    await know(services, owner, "human", {"plans": [plan]}, Trigger("user"))
    await services.memory.pins.set_on_value(owner, "human", "plans", plan, pinned=True)
    await services.upkeep_scheduler.keep_up(DEFAULT_TENANT, owner.user_id, now + timedelta(days=20))
    [block] = await services.memory.core.read(owner)
    assert block.content == {"plans": [plan]}
