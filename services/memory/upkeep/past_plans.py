"""Retires plans: a plan whose day is past leaves the profile, and is written as a memory with its day."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValue, CoreValues
from services.memory.model import ChangeRequest, Memory
from services.memory.operations import Trigger
from services.memory.planning.planner import ChangePlanner, as_written
from services.memory.removal.hiding import Hiding
from services.platform.postgres import Database
from services.text.language import Language, language_of
from services.time_reference.local_days import time_zone
from services.time_reference.occasions import last_day

_FIELD = "plans"
_ZONE: LiteralString = "SELECT timezone FROM users WHERE id = %(user_id)s AND tenant_id = %(tenant_id)s"
_RETIRED: dict[Language, str] = {"en": "{text} (planned for {day})", "zh": "{text}（原定{day}）"}


class PastPlans:
    """Moves past plans of users to the archive."""

    def __init__(self, database: Database, values: CoreValues, planner: ChangePlanner, hiding: Hiding) -> None:
        self._database = database
        self._values = values
        self._planner = planner
        self._hiding = hiding

    async def retire(self, tenant_id: UUID, user_id: UUID, now: datetime) -> datetime | None:
        """Move the plans that are past by the user's clock; return when the next one will be, None if no plan has
        a day."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        plans = await self._plans(tenant_id, user_id)
        zones = await self._database.fetch(tenant_id, _ZONE, values, tuple_row) if plans else []
        if not zones:
            return None
        zone = time_zone(zones[0][0])
        today = now.astimezone(zone).date()

        def days(of: Iterable[CoreValue]) -> list[tuple[CoreValue, date]]:
            told = ((each, last_day(each.text, each.since.astimezone(zone).date())) for each in of)
            return [(each, day) for each, day in told if day is not None]

        if any(day < today for _, day in days(plans)):
            async with self._database.tenant(tenant_id) as connection:
                await self._hiding.lock(connection, Owner(tenant_id, user_id, plans[0].expert_id))
                plans = await self._plans(tenant_id, user_id)
                for each, day in days(plans):
                    owner = Owner(tenant_id, user_id, each.expert_id, each.space_id)
                    trigger = Trigger("maintenance", expert_id=each.expert_id, space_id=each.space_id)
                    text = _RETIRED[language_of([each.text])].format(text=each.text, day=day)
                    known = Memory("value", "", each.text, section=each.section, field=_FIELD)
                    request = ChangeRequest.outside_of_turns(owner, trigger)
                    if day < today:
                        plan = await self._planner.plan_replace(request, [known], text)
                        await self._hiding.commit(connection, owner, as_written(plan, text), trigger)
        next_day = min((day for _, day in days(plans) if day >= today), default=None)
        return datetime.combine(next_day + timedelta(days=1), time(), zone) if next_day else None

    async def _plans(self, tenant_id: UUID, user_id: UUID) -> list[CoreValue]:
        found = await self._values.read(tenant_id, user_id)
        return [each for each in found if each.holds and each.field == _FIELD and not each.is_pinned]
