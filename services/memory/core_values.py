"""Values of core memory one by one: where each stands, since when, and the message that brought it in.

A value is named by its section's id and a digest, as pins name it, so that no word of it is stored a second time.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row, tuple_row

from services.memory.items import values_of
from services.memory.pinned_values import digest_of_value, pinned_among
from services.platform.postgres import Database
from services.platform.shared_reads import Query

# What nobody but an importer wrote, or a message with foreign words brought in, is not the user's own. A section
# may have thousands of versions of some kilobytes: what each shares with the one before is not read again.
_VERSIONS: LiteralString = """
SELECT b.id AS block_id, b.section, b.expert_id, b.space_id, h.new,
       CASE WHEN h.old IS DISTINCT FROM lag(h.new) OVER versions THEN h.old END AS old,
       h.old IS NOT DISTINCT FROM lag(h.new) OVER versions AS follows,
       CASE WHEN lead(h.version) OVER versions IS NULL THEN b.content END AS content,
       h.at AS since, h.trigger_message_id AS message_id, h.actor, h.made_by,
       h.actor = 'import' OR coalesce(m.origin IS NOT NULL, false) AS is_foreign
FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
LEFT JOIN messages m ON m.id = h.trigger_message_id AND m.tenant_id = b.tenant_id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
  AND (%(block_ids)s::uuid[] IS NULL OR b.id = ANY(%(block_ids)s))
WINDOW versions AS (PARTITION BY b.id ORDER BY h.version)
ORDER BY b.id, h.version
"""
_PINS: LiteralString = """
SELECT p.digest FROM core_memory_blocks b
JOIN core_memory_pins p ON p.block_id = b.id AND p.tenant_id = b.tenant_id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
  AND (%(block_ids)s::uuid[] IS NULL OR b.id = ANY(%(block_ids)s))
"""


_CONTENTS = frozenset(["content", "old", "new", "follows"])


@dataclass(frozen=True)
class CoreValue:
    """A text of core memory: the value of a field, or an item of its list; what is nested has a path of names."""

    block_id: UUID
    section: str
    field: str
    text: str
    expert_id: UUID
    space_id: UUID | None
    since: datetime
    """When it was brought in."""
    message_id: UUID | None
    actor: str
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
        versions, pins = await self._database.read_each(
            tenant_id,
            Query(_VERSIONS, values, dict_row),
            Query(_PINS, values, tuple_row),
            of_one_moment=False,
        )
        digests = {bytes(row[0]) for row in pins}
        return [
            value
            for _, history in groupby(versions, itemgetter("block_id"))
            for value in _values(list(history), digests)
        ]


def _values(history: Sequence[dict[str, Any]], pins: Collection[bytes]) -> Iterator[CoreValue]:
    brought: dict[tuple[str, str], dict[str, Any]] = {}
    went: dict[tuple[str, str], datetime] = {}
    after = dict[tuple[str, str], None]()
    for version in history:
        before = after if version["follows"] else dict.fromkeys(values_of(version["old"] or {}))
        after = dict.fromkeys(values_of(version["new"]))
        for named in before:
            brought.setdefault(named, version)
            if named not in after:
                went[named] = version["since"]
        for named in after:
            went.pop(named, None)
            if named not in before:
                brought[named] = version
    block_id, content = history[-1]["block_id"], history[-1]["content"]
    current, pinned = set(values_of(content)), set(pinned_among(block_id, content, pins))
    for named, version in brought.items():
        yield CoreValue(
            field=named[0],
            text=named[1],
            is_pinned=named in pinned,
            holds=named in current,
            until=went.get(named),
            **{name: value for name, value in version.items() if name not in _CONTENTS},
        )
