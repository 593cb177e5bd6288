"""Pins: written memories that never fade, and values of core memory that only the user removes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.encryption.marks import SoughtDigest, WordsDigest
from services.errors import NotFound
from services.identity.tenants import user_id_of
from services.memory.core.blocks import Block, Owner
from services.memory.core.items import values_of
from services.memory.core.store import CoreMemory
from services.memory.core.values import PINNED, digest_of_value, pinned_among
from services.memory.operations import Operation, OperationLog, Trigger
from services.platform.connections import Connection
from services.platform.postgres import Database

_PIN: LiteralString = """
UPDATE episodes SET pinned_at = CASE WHEN %(pinned)s THEN coalesce(pinned_at, clock_timestamp()) END
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND retracted_at IS NULL
RETURNING expert_id, space_id
"""

_PIN_VALUE: LiteralString = """
INSERT INTO core_memory_pins (block_id, digest, tenant_id) VALUES (%(block_id)s, %(digest)s, %(tenant_id)s)
ON CONFLICT DO NOTHING
"""

_UNPIN_VALUE: LiteralString = """
DELETE FROM core_memory_pins
WHERE block_id = %(block_id)s AND tenant_id = %(tenant_id)s AND digest = ANY(%(sought)s::bytea[])
"""


@dataclass(frozen=True)
class PinnedValue:
    """A value of core memory that is pinned."""

    field: str
    """Field of the value; for a nested value the path of its names."""
    text: str


class Pins:
    """Sets and reads pins."""

    def __init__(self, database: Database, core: CoreMemory, log: OperationLog) -> None:
        self._database = database
        self._core = core
        self._log = log

    async def set_on_episode(self, tenant_id: UUID, user: str, episode_id: UUID, *, pinned: bool) -> None:
        """Pin or unpin an episode; repeating it changes nothing. Raises `NotFound` if the tenant has no such
        user, or the user no such episode."""
        user_id = await user_id_of(self._database, tenant_id, user)
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "id": episode_id, "pinned": pinned}

        async def noted(connection: Connection) -> None:
            row = await (await connection.execute(_PIN, values)).fetchone()
            if row is None:
                raise NotFound(f"There is no episode {episode_id}.")
            await self._log.append(
                connection,
                tenant_id,
                values["user_id"],
                Operation("episode_pin" if pinned else "episode_unpin", field=str(episode_id)),
                Trigger("user", expert_id=row[0], space_id=row[1]),
            )

        await self._database.transact(tenant_id, noted)

    async def set_on_value(self, owner: Owner, section: str, field: str, text: str, *, pinned: bool) -> None:
        """Pin or unpin a value of a section of core memory. Raises `NotFound` if there is no such section, or
        it has no such value."""
        block = next((each for each in await self._core.read(owner) if each.section == section), None)
        if block is None or (field, text) not in values_of(block.content):
            raise NotFound(f"The section {section} has no value {text!r} in the field {field!r}.")
        digest = digest_of_value(block.id, field, text)
        values = {
            **vars(owner),
            "block_id": block.id,
            "digest": WordsDigest(digest),
            "sought": [SoughtDigest(digest)],
        }

        async def noted(connection: Connection) -> None:
            await connection.execute(_PIN_VALUE if pinned else _UNPIN_VALUE, values)
            await self._log.append(
                connection,
                owner.tenant_id,
                owner.user_id,
                Operation("core_memory_pin" if pinned else "core_memory_unpin", field=section),
                Trigger("user", expert_id=owner.expert_id, space_id=owner.space_id),
            )

        await self._database.transact(owner.tenant_id, noted)

    async def values(self, tenant_id: UUID, blocks: Sequence[Block]) -> Mapping[str, list[PinnedValue]]:
        """Return the pinned values of sections, by the names of the sections."""
        if not blocks:
            return {}
        values = {"tenant_id": tenant_id, "block_ids": [block.id for block in blocks]}
        digests = {bytes(row[1]) for row in await self._database.fetch(tenant_id, PINNED, values, tuple_row)}
        return {
            block.section: [PinnedValue(*each) for each in pinned_among(block.id, block.content, digests)]
            for block in blocks
        }
