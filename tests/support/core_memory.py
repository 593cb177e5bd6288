"""Core memory of a test's user, as filing changes it."""

from collections.abc import Mapping
from typing import Any

from services.bootstrap import Services
from services.memory.core.blocks import Block, Owner
from services.memory.operations import Trigger
from state.memory import ItemChange


async def know(services: Services, owner: Owner, section: str, content: Mapping[str, Any], by: Trigger) -> Block:
    """Add values to the fields of a section, all in one version; None removes a field."""
    changes = [
        ItemChange("remove" if value is None else "add", section, name, value) for name, value in content.items()
    ]
    async with services.database.tenant(owner.tenant_id) as connection:
        await services.memory.hiding.lock(connection, owner)
        await services.memory.core.change_items(connection, owner, changes, by)
    return next(each for each in await services.memory.core.read(owner) if each.section == section)
