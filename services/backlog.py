"""How far the index, the nightly upkeep and the backups are behind, for the gauges."""

import math
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.platform.postgres import Database

_LAST_BACKUP = "last-backup"
_INDEX_EVERY_S, _UPKEEP_EVERY_S = 30.0, 600.0
_KNOWN_FOR_S = 1800.0
"""Seconds after which the last measurement counts as unknown."""
_OVERDUE = timedelta(days=2)

_FIRST_WAITING: LiteralString = """
SELECT id FROM episodes WHERE tenant_id = %(tenant_id)s AND indexed_at IS NULL ORDER BY id LIMIT 1
"""

# A user who is active at three waits for the next night, so one night may pass.
_USERS_OVERDUE: LiteralString = """
SELECT count(*) FROM users u LEFT JOIN upkeep_nights last ON last.user_id = u.id
WHERE u.tenant_id = %(tenant_id)s AND (last.at IS NULL OR last.at < %(before)s)
  AND (EXISTS (SELECT FROM remembered_episodes e WHERE e.user_id = u.id AND e.content IS NOT NULL
      AND e.learned_at > coalesce(last.at, '-infinity') AND e.learned_at < %(before)s)
    OR EXISTS (SELECT FROM core_memory_blocks b WHERE b.user_id = u.id
      AND b.updated_at > coalesce(last.at, '-infinity') AND b.updated_at < %(before)s))
"""


class Backlog:
    """Measures, over all tenants, what waits to be indexed and who waits for upkeep."""

    def __init__(
        self, database: Database, *, indexes: bool, upkeep: bool, index_every_s: float = _INDEX_EVERY_S
    ) -> None:
        """Take whether this deployment indexes episodes and runs upkeep, and the seconds between two looks."""
        self._database = database
        self._index_every_s = index_every_s
        self._indexes = indexes
        self._keeps_up = upkeep
        self._since: dict[UUID, tuple[UUID, float]] = {}
        self._index_at = self._upkeep_at = -math.inf
        self._users_overdue = math.nan

    @property
    def index_waits_s(self) -> float:
        """Return how long the longest waiting episode has been seen waiting, in seconds; NaN = unknown. The age
        of an episode would not do: a forgotten one waits to be removed, however old it is."""
        if not self._indexes or time.monotonic() - self._index_at > _KNOWN_FOR_S:
            return math.nan
        return max((self._index_at - since for _, since in self._since.values()), default=0.0)

    @property
    def users_overdue(self) -> float:
        """Return the number of users with changes from two days ago or more that no upkeep has seen; NaN =
        unknown."""
        return math.nan if time.monotonic() - self._upkeep_at > _KNOWN_FOR_S else self._users_overdue

    async def measure(self) -> None:
        """Measure again if the last measurement is old enough."""
        now = time.monotonic()
        if self._indexes and now - self._index_at >= self._index_every_s:
            await self._measure_index(now)
        if self._keeps_up and now - self._upkeep_at >= _UPKEEP_EVERY_S:
            await self._measure_upkeep(now)

    async def _measure_index(self, now: float) -> None:
        waiting = await self._database.fetch_without_tenant("SELECT tenants_to_index()", {}, tuple_row)
        found: dict[UUID, tuple[UUID, float]] = {}
        for (tenant_id,) in waiting:
            for (first,) in await self._database.fetch(
                tenant_id, _FIRST_WAITING, {"tenant_id": tenant_id}, tuple_row
            ):
                before = self._since.get(tenant_id)
                found[tenant_id] = before if before is not None and before[0] == first else (first, now)
        self._since, self._index_at = found, now

    async def _measure_upkeep(self, now: float) -> None:
        overdue, before = 0, datetime.now(UTC) - _OVERDUE
        for tenant_id in await self._database.tenants():
            values = {"tenant_id": tenant_id, "before": before}
            ((users,),) = await self._database.fetch(tenant_id, _USERS_OVERDUE, values, tuple_row)
            overdue += users
        self._users_overdue, self._upkeep_at = float(overdue), now


def note_backup(data_dir: Path) -> None:
    """Note that a backup was made now. Raises `OSError` if the data folder cannot be written."""
    data_dir.mkdir(parents=True, exist_ok=True)
    (data_dir / _LAST_BACKUP).touch()


def backup_age_s(data_dir: Path) -> float:
    """Return the seconds since the last backup with this data folder; NaN = none is known."""
    try:
        return max(time.time() - (data_dir / _LAST_BACKUP).stat().st_mtime, 0.0)
    except OSError:
        return math.nan
