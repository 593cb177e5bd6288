"""Pairs of memories or values of core memory of which one is enough or no longer holds.

A pair is a proposal in the log of operations. It holds ids and digests, and no words.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, LiteralString
from uuid import UUID

from psycopg.rows import tuple_row

from services.errors import Conflict
from services.memory.archive import Archive
from services.memory.core.blocks import Owner
from services.memory.core.items import removed_value, values_of
from services.memory.core.store import CoreMemory
from services.memory.core.values import CoreValue, CoreValues, digests_pinned, pinned_among
from services.memory.operations import PROPOSAL, Operation, OperationLog, Trigger
from services.memory.removal.hiding_sql import LOCK_USER
from services.platform.connections import Connection, again_if_contended
from services.platform.postgres import Database

PairKind = Literal["duplicate", "contradiction"]

# Digests are compared by the caller: they may be encrypted.
_PAIRS: LiteralString = """
SELECT results->>'kept', results->>'kept_value', results->>'dropped', results->>'dropped_value'
FROM memory_operations
WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s AND type = 'memory_proposal' AND results ? 'kept'
"""

_CHANGED = "One of the two memories is remembered no more, was changed or is pinned."

_REMEMBERED: LiteralString = """
SELECT id FROM remembered_episodes
WHERE id = %(id)s AND tenant_id = %(tenant_id)s AND user_id = %(user_id)s FOR SHARE
"""


@dataclass(frozen=True)
class Side:
    """One of the two: a memory, or a value of core memory."""

    id: UUID
    """Id of the memory, or of the value's section."""
    digest: str | None = None
    """Digest of the value (`CoreValue.digest`); None = the side is a written memory."""


class Pairs:
    """Keeps pairs, and carries them out."""

    def __init__(
        self, database: Database, core: CoreMemory, values: CoreValues, archive: Archive, log: OperationLog
    ) -> None:
        self._database = database
        self._core = core
        self._values = values
        self._archive = archive
        self._log = log

    @again_if_contended
    async def add(self, owner: Owner, kind: PairKind, kept: Side, dropped: Side) -> UUID | None:
        """Propose that one replaces another; returns None if the two were proposed before."""
        results = {"state": "waiting", "kept": str(kept.id), "dropped": str(dropped.id)}
        results |= {
            name: side.digest
            for name, side in (("kept_value", kept), ("dropped_value", dropped))
            if side.digest is not None
        }
        values = vars(owner)
        async with self._database.tenant(owner.tenant_id) as connection:
            await connection.execute(LOCK_USER, values)
            rows = await (await connection.execute(_PAIRS, values)).fetchall()
            if frozenset((kept, dropped)) in _sides(rows):
                return None
            return await self._log.append(
                connection,
                owner.tenant_id,
                owner.user_id,
                Operation(PROPOSAL, kind, new_value={}, results=results),
                Trigger("maintenance", expert_id=owner.expert_id, space_id=owner.space_id),
            )

    async def proposed(self, tenant_id: UUID, user_id: UUID) -> set[frozenset[Side]]:
        """Return every pair that was proposed, whatever became of it."""
        values = {"tenant_id": tenant_id, "user_id": user_id}
        return _sides(await self._database.fetch(tenant_id, _PAIRS, values, tuple_row))

    @again_if_contended
    async def carry_out(self, owner: Owner, kept: Side, dropped: Side, trigger: Trigger) -> None:
        """Remove the dropped one: a memory is superseded, a value is removed from its section. Raises `Conflict`
        if either is no longer remembered or was changed, or the dropped one is pinned."""
        blocks = [side.id for side in (kept, dropped) if side.digest is not None]
        found = await self._values.read(owner.tenant_id, owner.user_id, blocks) if blocks else []
        named = {Side(each.block_id, each.digest): each for each in found}
        if any(side.digest is not None and side not in named for side in (kept, dropped)):
            raise Conflict(_CHANGED)
        async with self._database.tenant(owner.tenant_id) as connection:
            for side in (kept, dropped):
                if side in named:
                    await self._check(connection, owner, named[side], dropped=side is dropped)
            if dropped in named:
                memory = {**vars(owner), "id": kept.id}
                if kept.digest is None and not (await connection.execute(_REMEMBERED, memory)).rowcount:
                    raise Conflict(_CHANGED)
                value = named[dropped]
                change = removed_value(value.section, value.field, value.text)
                if await self._core.change_items(connection, _with(owner, value), [change], trigger):
                    raise Conflict(_CHANGED)
            elif not await self._archive.supersede(connection, owner, dropped.id, kept.id, trigger):
                raise Conflict(_CHANGED)

    async def _check(self, connection: Connection, owner: Owner, value: CoreValue, *, dropped: bool) -> None:
        """Lock the section, and check that it has the value, and that a value to be removed is not pinned."""
        content = await self._core.locked_content(connection, _with(owner, value), value.section)
        pins = await digests_pinned(connection, owner.tenant_id, [value.block_id]) if dropped else set()
        named = (value.field, value.text)
        if named not in set(values_of(content)) or named in pinned_among(value.block_id, content, pins):
            raise Conflict(_CHANGED)


def _with(owner: Owner, value: CoreValue) -> Owner:
    return replace(owner, expert_id=value.expert_id, space_id=value.space_id)


def _sides(rows: Any) -> set[frozenset[Side]]:
    return {
        frozenset((Side(UUID(kept), kept_value), Side(UUID(dropped), dropped_value)))
        for kept, kept_value, dropped, dropped_value in rows
    }
