"""Memories that have not been used for a while."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from services.bootstrap import Services
from services.maintenance.policy import MaintenancePolicy
from services.memory.blocks import Owner
from tests.support.compressing import change, write

ARCHIVE = MaintenancePolicy(fading="archive")
REMOVE = MaintenancePolicy(fading="remove")


async def written_before(
    services: Services, owner: Owner, *contents: str, days: int = 91, importance: float = 0.2
) -> list[UUID]:
    """Memories that were written some days ago and never recalled."""
    ids = await write(services, owner, *contents, importance=importance)
    at = datetime.now(UTC) - timedelta(days=days)
    await change(services, "UPDATE episodes SET created_at = %s, learned_at = %s WHERE id = ANY(%s)", at, at, ids)
    return ids
