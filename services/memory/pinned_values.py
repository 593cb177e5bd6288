"""Which values of a section of core memory are pinned, and the changes that would take one away.

A pinned value is kept as a digest with the id of its section, so that no word of it is stored a second time.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from typing import Any, LiteralString
from uuid import UUID

from services.encryption.data_key import DIGEST_BYTES
from services.memory.items import ItemChange, apply_changes, values_of
from services.platform.connections import Connection

PINNED: LiteralString = """
SELECT block_id, digest FROM core_memory_pins WHERE tenant_id = %(tenant_id)s AND block_id = ANY(%(block_ids)s)
"""


async def digests_pinned(connection: Connection, tenant_id: UUID, block_ids: Sequence[UUID]) -> set[bytes]:
    """Return the digests of what is pinned in sections, in the caller's transaction."""
    values: dict[str, Any] = {"tenant_id": tenant_id, "block_ids": list(block_ids)}
    return {bytes(row[1]) for row in await (await connection.execute(PINNED, values)).fetchall()}


def digest_of_value(block_id: UUID, field: str, text: str) -> bytes:
    """Return the digest under which a value is pinned, 16 bytes; a value that changes has another."""
    return sha256(b"\0".join((block_id.bytes, field.encode(), text.encode()))).digest()[:DIGEST_BYTES]


def pinned_among(block_id: UUID, content: Mapping[str, Any], digests: Collection[bytes]) -> list[tuple[str, str]]:
    """Return the field and text of each value of a section that is pinned."""
    return [each for each in values_of(content) if digest_of_value(block_id, *each) in digests]


def without_removals_of(
    pinned: Sequence[tuple[str, str]], content: Mapping[str, Any], changes: Sequence[ItemChange]
) -> tuple[list[ItemChange], list[ItemChange]]:
    """Return the changes that keep every pinned value of a section, and those that would not."""
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
