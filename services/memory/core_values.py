"""Values of core memory one by one: where each stands, since when, and the message that brought it in.

A value is named by its section's id and a digest, as pins name it, so that no word of it is stored a second time.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import class_row, tuple_row

from services.memory.items import values_of
from services.memory.pinned_values import PINNED, digest_of_value, pinned_among
from services.platform.postgres import Database

# What nobody but an importer wrote, or a message with foreign words brought in, is not the user's own.
_VERSIONS: LiteralString = """
SELECT b.id AS block_id, b.section, b.expert_id, b.space_id, b.content, h.old, h.new, h.at,
       h.trigger_message_id AS message_id, h.actor, h.made_by,
       h.actor = 'import' OR coalesce(m.origin IS NOT NULL, false) AS is_foreign
FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
LEFT JOIN messages m ON m.id = h.trigger_message_id AND m.tenant_id = b.tenant_id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
  AND (%(block_ids)s::uuid[] IS NULL OR b.id = ANY(%(block_ids)s))
ORDER BY b.id, h.version
"""


@dataclass(frozen=True)
class CoreValue:
    """A text of core memory: the value of a field, or an item of its list; what is nested has a path of names."""

    block_id: UUID
    """Id of its section."""
    section: str
    field: str
    text: str
    expert_id: UUID
    space_id: UUID | None
    since: datetime
    """When it was brought in."""
    message_id: UUID | None
    """Message that brought it in."""
    actor: str
    """Who brought it in."""
    made_by: dict[str, Any]
    is_foreign: bool
    """Whether it need not be the user's own words."""
    is_pinned: bool
    holds: bool
    """Whether the section has it now."""
    until: datetime | None = None
    """When it went; None = it holds."""

    @property
    def digest(self) -> str:
        """Hexadecimal digest under which it is known together with its section."""
        return digest_of_value(self.block_id, self.field, self.text).hex()


@dataclass(frozen=True)
class _Version:
    block_id: UUID
    section: str
    expert_id: UUID
    space_id: UUID | None
    content: dict[str, Any]
    old: dict[str, Any] | None
    new: dict[str, Any]
    at: datetime
    message_id: UUID | None
    actor: str
    made_by: dict[str, Any]
    is_foreign: bool


class CoreValues:
    """Reads values of core memory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(
        self, tenant_id: UUID, user_id: UUID, block_ids: Collection[UUID] | None = None
    ) -> list[CoreValue]:
        """Return the values of a user's sections, those that they had before as well; None = of all sections."""
        ids = None if block_ids is None else list(block_ids)
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "block_ids": ids}
        versions = await self._database.fetch(tenant_id, _VERSIONS, values, class_row(_Version))
        values["block_ids"] = list({each.block_id for each in versions})
        pins = await self._database.fetch(tenant_id, PINNED, values, tuple_row) if versions else []
        digests = {bytes(row[1]) for row in pins}
        return [
            value
            for _, history in groupby(versions, attrgetter("block_id"))
            for value in _values(list(history), digests)
        ]


def _values(history: Sequence[_Version], pins: Collection[bytes]) -> Iterator[CoreValue]:
    brought: dict[tuple[str, str], _Version] = {}
    went: dict[tuple[str, str], datetime] = {}
    for version in history:
        before = set(values_of(version.old or {}))
        after = set(values_of(version.new))
        went = {named: at for named, at in went.items() if named not in after}
        went |= dict.fromkeys(before - after, version.at)
        for named in values_of(version.old or {}):
            brought.setdefault(named, version)
        brought |= {named: version for named in values_of(version.new) if named not in before}
    now = history[-1]
    current = set(values_of(now.content))
    pinned = set(pinned_among(now.block_id, now.content, pins))
    for (field, text), version in brought.items():
        yield CoreValue(
            now.block_id,
            now.section,
            field,
            text,
            now.expert_id,
            now.space_id,
            version.at,
            version.message_id,
            version.actor,
            version.made_by,
            version.is_foreign,
            (field, text) in pinned,
            (field, text) in current,
            went.get((field, text)),
        )
