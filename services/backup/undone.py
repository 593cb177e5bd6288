"""Finds erasures that restoring an older backup would undo, and repeats them.

A receipt names messages and memories by their ids, and values by digests. A user who was erased has left no
receipt; such users are in the backup and no longer in the database.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import orjson
import psycopg
from psycopg.rows import tuple_row

from services.backup.archive import Archive
from services.backup.snapshot import set_tenant, tenants_of
from services.bootstrap import Services
from services.errors import DatabaseUnavailable, NotFound
from services.identity.tenants import user_id_of
from services.memory.removal.receipts import digest_of
from services.memory.removal.targets import Target, ValueTarget

_HAS_TABLES: LiteralString = "SELECT to_regclass('public.forget_receipts') IS NOT NULL"
_USERS: LiteralString = "SELECT id FROM users WHERE tenant_id = %(tenant_id)s"
_RECEIPTS: LiteralString = """
SELECT id, document FROM forget_receipts WHERE tenant_id = %(tenant_id)s ORDER BY created_at, id
"""
_CONVERSATIONS: LiteralString = "SELECT id FROM conversations WHERE tenant_id = %(tenant_id)s"
_EXPERTS: LiteralString = "SELECT id, name FROM experts WHERE tenant_id = %(tenant_id)s"
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True)
class Receipt:
    """A forgetting for good that happened after the backup."""

    tenant_id: UUID
    user: str
    document: dict[str, Any]


@dataclass(frozen=True)
class UndoneErasures:
    """Users and memories that a backup brings back although they were erased after it was made."""

    users: Sequence[tuple[UUID, str]] = ()
    """Tenants and names of the users who no longer exist."""
    receipts: Sequence[Receipt] = ()
    conversations: int = 0
    """Number of conversations of other users that were deleted, by hand or by retention."""

    @property
    def named(self) -> list[str]:
        """Return the users whose erasures these are."""
        return list(dict.fromkeys([*(name for _, name in self.users), *(each.user for each in self.receipts)]))


def undone_by(owner_url: str, archive: Archive) -> UndoneErasures:
    """Compare a database with a backup that is to replace it; a database without users shows no erasures.
    Raises `InvalidInput` if the backup is damaged."""
    try:
        return _compared(owner_url, archive)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable("The database does not answer; nothing was changed.") from error


def _compared(owner_url: str, archive: Archive) -> UndoneErasures:
    with psycopg.connect(owner_url, connect_timeout=10) as connection:
        if connection.execute(_HAS_TABLES).fetchone() != (True,):
            return UndoneErasures()
        tenants = tenants_of(connection)
        users, conversations = set[str](), set[str]()
        receipts: dict[str, Receipt] = {}
        for tenant_id in tenants:
            set_tenant(connection, tenant_id)
            named = {"tenant_id": tenant_id}
            users |= {str(row[0]) for row in connection.execute(_USERS, named)}
            conversations |= {str(row[0]) for row in connection.execute(_CONVERSATIONS, named)}
            for receipt_id, text in connection.execute(_RECEIPTS, named):
                document = orjson.loads(text)
                receipts[str(receipt_id)] = Receipt(UUID(tenant_id), str(document["user"]), document)
    if not users:
        return UndoneErasures()
    stored = {row["id"]: row for row in _rows(archive, "users")}
    known = {row["id"] for row in _rows(archive, "forget_receipts")}
    gone = [row for each, row in stored.items() if each not in users and row["tenant_id"] in tenants]
    deleted = [each for each in _rows(archive, "conversations") if each["user_id"] in users]
    return UndoneErasures(
        [(UUID(row["tenant_id"]), row["external_id"]) for row in gone],
        [each for receipt_id, each in receipts.items() if receipt_id not in known],
        sum(each["id"] not in conversations for each in deleted),
    )


def _rows(archive: Archive, name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a backup's table as dictionaries of texts."""
    for table in archive.manifest.tables:
        if table.name == name:
            text = b"".join(archive.blocks(table)).decode()
            for line in text.split("\n")[:-1]:
                values = (_ESCAPED.sub(r"\1", each) for each in line.split("\t"))
                yield dict(zip(table.columns, values, strict=True))


async def repeat(services: Services, undone: UndoneErasures) -> int:
    """Erase again, by ids, what a backup has brought back; return the number of users, messages, memories and
    values. Raises `AnamnesisError` if something could not be erased."""
    count = 0
    for tenant_id, user in undone.users:
        with suppress(NotFound):
            await services.erasure.user(tenant_id, user)
            count += 1
    for receipt in undone.receipts:
        for target in await _targets(services, receipt):
            with suppress(NotFound):
                result = await services.forgetting.forget(
                    receipt.tenant_id,
                    receipt.user,
                    target,
                    by="operator",
                    delete_messages=receipt.document["delete_messages"] is True,
                )
                count += sum(result.counts.get(each, 0) for each in ("messages", "episodes", "values"))
    return count


async def _targets(services: Services, receipt: Receipt) -> list[Target]:
    """Return the targets that a receipt names and that exist."""
    nonce, removed = receipt.document["nonce"], receipt.document["removed"]
    found = [Target(message_id=UUID(each["name"])) for each in removed if each["kind"] == "message"]
    found += [Target(episode_id=UUID(each["name"])) for each in removed if each["kind"] == "episode"]
    digests = {each["sha256"] for each in removed if each["kind"] == "value"}
    if not digests:
        return found
    with suppress(NotFound):
        user_id = await user_id_of(services.database, receipt.tenant_id, receipt.user)
        experts: dict[UUID, str] = dict(
            await services.database.fetch(receipt.tenant_id, _EXPERTS, {"tenant_id": receipt.tenant_id}, tuple_row)
        )
        for value in await services.memory.values.read(receipt.tenant_id, user_id):
            if digest_of(nonce, "value", f"{value.section}.{value.field}", value.text) in digests:
                named = ValueTarget(value.section, value.field, value.text)
                found.append(Target(value=named, expert=experts.get(value.expert_id)))
    return found
