"""What memory shows of a user, now or as it was at a moment, so that both can be compared."""

from dataclasses import asdict, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.memory.blocks import Owner
from services.memory.catalog import EpisodeFilter
from services.memory.episodes.episode import Scope

_COUNTED = ("last_recalled_at", "recall_count")
"""How often a memory is used is no part of what it says."""


async def known(
    services: Services, user: str, owners: list[Owner], query: str, at: datetime | None = None
) -> dict[str, Any]:
    """Core memory, memories, search and days of a user; `owners` have one space each, or none."""
    found: dict[str, Any] = {"episodes": await _episodes(services, user, at)}
    for owner in owners:
        scope = replace(Scope.of(owner), as_of=at)
        search = await services.memory.archive.search(scope, query, top_k=100, now=at or datetime.now(UTC))
        days = services.daily.store
        first, last = date.today() - timedelta(days=3), date.today() + timedelta(days=1)
        stored = (
            await days.days_at(owner, first, last, at)
            if at
            else (await days.days(owner, first, last, *_whole(first, last)))[0]
        )
        found[str(owner.space_id)] = {
            "core_memory": [asdict(block) for block in await services.memory.core.read(owner, at)],
            "search": sorted((str(each.id), each.content) for each in search.items),
            "days": [asdict(day) for day in stored],
        }
    return found


def _whole(first: date, last: date) -> tuple[datetime, datetime]:
    return (
        datetime.combine(first, datetime.min.time(), UTC),
        datetime.combine(last, datetime.min.time(), UTC),
    )


async def _episodes(services: Services, user: str, at: datetime | None) -> list[dict[str, Any]]:
    wanted = EpisodeFilter(superseded=True, retracted=True, space="trip", as_of=at)
    page = await services.memory.catalog.page(DEFAULT_TENANT, user, wanted, after=None, limit=200)
    return [{key: value for key, value in asdict(each).items() if key not in _COUNTED} for each in page]
