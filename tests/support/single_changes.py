"""Changes of memory, each in its own transaction."""

from collections.abc import Sequence
from uuid import UUID

from services.bootstrap import Services
from services.memory.core.blocks import Owner
from services.memory.operations import Trigger
from state.memory import ItemChange


async def change_items(
    services: Services, owner: Owner, changes: Sequence[ItemChange], trigger: Trigger
) -> list[ItemChange]:
    """Change single items of core memory."""
    core = services.memory.core
    return await services.database.transact(
        owner.tenant_id, lambda connection: core.change_items(connection, owner, changes, trigger)
    )


async def supersede(services: Services, owner: Owner, old: UUID, new: UUID, trigger: Trigger) -> UUID | None:
    """Let one memory supersede another."""
    archive = services.memory.archive
    return await services.database.transact(
        owner.tenant_id, lambda connection: archive.supersede(connection, owner, old, new, trigger)
    )
