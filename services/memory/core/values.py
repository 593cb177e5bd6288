"""Single values of core memory, each with its place, its beginning, the message it comes from, and its pin.

A value is identified by its section and a digest, so its words are not stored a second time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any, LiteralString
from uuid import UUID

from psycopg.rows import dict_row, tuple_row

from services.encryption.data_key import DIGEST_BYTES
from services.memory.core.items import apply_changes, values_of
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.platform.shared_reads import Query
from state.memory import ItemChange

PINNED: LiteralString = """
SELECT block_id, digest FROM core_memory_pins WHERE tenant_id = %(tenant_id)s AND block_id = ANY(%(block_ids)s)
"""


async def digests_pinned(connection: Connection, tenant_id: UUID, block_ids: Sequence[UUID]) -> set[bytes]:
    """Return the digests of the pinned values in sections, in the caller's transaction."""
    values: dict[str, Any] = {"tenant_id": tenant_id, "block_ids": list(block_ids)}
    return {bytes(row[1]) for row in await (await connection.execute(PINNED, values)).fetchall()}


def digest_of_value(block_id: UUID, field: str, text: str) -> bytes:
    """Return the digest that identifies a pinned value, 16 bytes. A changed value has another digest."""
    return sha256(b"\0".join((block_id.bytes, field.encode(), text.encode()))).digest()[:DIGEST_BYTES]


def pinned_among(block_id: UUID, content: Mapping[str, Any], digests: Collection[bytes]) -> list[tuple[str, str]]:
    """Return the field and text of each value of a section that is pinned."""
    return [each for each in values_of(content) if digest_of_value(block_id, *each) in digests]


def without_removals_of(
    pinned: Sequence[tuple[str, str]], content: Mapping[str, Any], changes: Sequence[ItemChange]
) -> tuple[list[ItemChange], list[ItemChange]]:
    """Split changes into those that keep every pinned value of the section, and those that would remove one."""
    kept: list[ItemChange] = []
    refused: list[ItemChange] = []
    left = dict(content)
    for change in changes:
        changed = apply_changes(left, [change]).content
        if set(pinned) <= set(values_of(changed)):
            kept.append(change)
            left = changed
        else:
            refused.append(change)
    return kept, refused


IS_FOREIGN: LiteralString = "h.actor = 'import' OR h.made_by->>'by' IN ('api', 'mcp') OR m.origin IS NOT NULL"
"""Whether a version of a section comes from an import, a program, or a message with words of others."""
# A section may have thousands of versions of some kilobytes: what each shares with the one before is not read
# again.
_VERSIONS: LiteralString = f"""
SELECT b.id AS block_id, b.section, b.expert_id, b.space_id, h.new,
       CASE WHEN h.old IS DISTINCT FROM lag(h.new) OVER versions THEN h.old END AS old,
       h.old IS NOT DISTINCT FROM lag(h.new) OVER versions AS follows,
       CASE WHEN lead(h.version) OVER versions IS NULL THEN b.content END AS content,
       h.at AS since, h.trigger_message_id AS message_id, h.actor, h.made_by,
       coalesce({IS_FOREIGN}, false) AS is_foreign
FROM core_memory_blocks b JOIN core_memory_history h ON h.block_id = b.id
LEFT JOIN messages m ON m.id = h.trigger_message_id AND m.tenant_id = b.tenant_id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
  AND (%(block_ids)s::uuid[] IS NULL OR b.id = ANY(%(block_ids)s))
WINDOW versions AS (PARTITION BY b.id ORDER BY h.version)
ORDER BY b.id, h.version
"""  # noqa: S608 — our own text only
_PINS: LiteralString = """
SELECT p.digest FROM core_memory_blocks b
JOIN core_memory_pins p ON p.block_id = b.id AND p.tenant_id = b.tenant_id
WHERE b.tenant_id = %(tenant_id)s AND b.user_id = %(user_id)s
  AND (%(block_ids)s::uuid[] IS NULL OR b.id = ANY(%(block_ids)s))
"""


_CONTENTS = frozenset(["content", "old", "new", "follows"])


@dataclass(frozen=True)
class CoreValue:
    """A text in core memory: the value of a field, or an item of its list; a nested value has the path of its
    names."""

    block_id: UUID
    section: str
    field: str
    text: str
    expert_id: UUID
    space_id: UUID | None
    since: datetime
    """When the value was added."""
    message_id: UUID | None
    actor: str
    made_by: dict[str, Any]
    is_foreign: bool
    """Whether it may be in words of others."""
    is_pinned: bool
    holds: bool
    """Whether the section still has it."""
    until: datetime | None = None
    """When the value was removed; None = the section still has it."""

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
        """Return the present and past values of a user's sections; None = of all sections."""
        ids = None if block_ids is None else list(block_ids)
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "block_ids": ids}
        versions, pins = await self._database.read_each(
            tenant_id, Query(_VERSIONS, values, dict_row), Query(_PINS, values, tuple_row), of_one_moment=False
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
                brought[named] = _brought_back(version, brought.get(named))
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


def _brought_back(version: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """Return the version that first brought a value in. A value that merely came back, for example by an undo,
    belongs to the earlier version."""
    if before is None or version["message_id"] is not None:
        return version
    return {**version, "is_foreign": version["is_foreign"] or before["is_foreign"]}
