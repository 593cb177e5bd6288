"""Checks at the start whether a database is encrypted, and with the keys of which store."""

from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from services.encryption.vault import Vault
from services.errors import ConfigurationError

_STORE: LiteralString = "SELECT store_id FROM encryption"
_TENANTS: LiteralString = "SELECT id FROM tenants"
_TENANT: LiteralString = "SELECT set_config('anamnesis.tenant_id', %s, true)"
_HAS_USERS: LiteralString = "SELECT EXISTS (SELECT FROM users)"
_SWITCH_ON: LiteralString = "INSERT INTO encryption (store_id) VALUES (%s) ON CONFLICT DO NOTHING"


async def check_encryption(connection: AsyncConnection[TupleRow], vault: Vault | None) -> None:
    """Compare a database with the setting; switch encryption on for a database without users. Raises
    `ConfigurationError` if it is encrypted and encryption is off, it holds unencrypted users and encryption is
    on, or its keys are missing or belong to another database."""
    stored = await _one(connection, _STORE)
    if vault is None:
        if stored is not None:
            raise ConfigurationError(
                "The database is encrypted: set ANAMNESIS_ENCRYPTION=on, with the keys that it was encrypted with."
            )
        return
    if stored is None and await _has_users(connection):
        raise ConfigurationError(
            "ANAMNESIS_ENCRYPTION=on, and the database holds users that are not encrypted. Set it to off, or "
            "begin with an empty database, and move users there by `anamnesis export` and `import`."
        )
    store_id = vault.keys.open(make=stored is None)
    if stored is None:
        await connection.execute(_SWITCH_ON, [store_id])
        stored = await _one(connection, _STORE)
    if stored != store_id:
        raise ConfigurationError(
            f"The keys in {vault.keys.folder} are those of another database; name the folder with this one's in "
            "ANAMNESIS_ENCRYPTION_KEYS_DIR."
        )


async def _has_users(connection: AsyncConnection[TupleRow]) -> bool:
    tenants = await (await connection.execute(_TENANTS)).fetchall()
    for (tenant_id,) in tenants:
        async with connection.transaction():
            await connection.execute(_TENANT, [str(tenant_id)])
            if await _one(connection, _HAS_USERS):
                return True
    return False


async def _one(connection: AsyncConnection[TupleRow], statement: LiteralString) -> Any:
    row = await (await connection.execute(statement)).fetchone()
    return row[0] if row else None
