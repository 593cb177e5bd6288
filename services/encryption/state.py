"""Whether a database is encrypted, and with which store of keys: checked before anything is read or written."""

from typing import TYPE_CHECKING, Any, LiteralString

import structlog
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from services.errors import ConfigurationError

if TYPE_CHECKING:
    from services.encryption.vault import Vault

_STORE: LiteralString = "SELECT store_id FROM encryption"
_TENANTS: LiteralString = "SELECT id FROM tenants"
_TENANT: LiteralString = "SELECT set_config('anamnesis.tenant_id', %s, true)"
_HAS_USERS: LiteralString = "SELECT EXISTS (SELECT FROM users)"
_SWITCH_ON: LiteralString = "INSERT INTO encryption (store_id) VALUES (%s) ON CONFLICT DO NOTHING"
_BEGIN: LiteralString = "INSERT INTO encryption (store_id, sealed_at) VALUES (%s, NULL) ON CONFLICT DO NOTHING"
_IS_SEALED: LiteralString = "SELECT sealed_at IS NOT NULL FROM encryption"
log = structlog.get_logger(__name__)


async def check_encryption(connection: AsyncConnection[TupleRow], vault: "Vault | None") -> None:
    """Compare a database with the setting; switch encryption on for one that holds no users, or where it is begun.

    Raises:
        ConfigurationError: it is encrypted and encryption is off, it holds users in clear and encryption is on, or
            its keys are missing or another database's.
    """
    stored = await _one(connection, _STORE)
    if vault is None:
        if stored is not None:
            raise ConfigurationError(
                "The database is encrypted: set ANAMNESIS_ENCRYPTION=on, with the keys that it was encrypted with."
            )
        return
    in_clear = stored is None and await _has_users(connection)
    if in_clear and not vault.begins:
        raise ConfigurationError(
            "ANAMNESIS_ENCRYPTION=on, and the database holds users that are not encrypted. Stop the service and "
            "run: anamnesis encrypt. Or set ANAMNESIS_ENCRYPTION=off."
        )
    store_id = vault.keys.open(make=stored is None)
    if stored is None:
        await connection.execute(_BEGIN if in_clear else _SWITCH_ON, [store_id])
        stored = await _one(connection, _STORE)
    if stored != store_id:
        raise ConfigurationError(
            f"The keys in {vault.keys.folder} are those of another database; name the folder with this one's in "
            "ANAMNESIS_ENCRYPTION_KEYS_DIR."
        )

    vault.seals_everything = bool(await _one(connection, _IS_SEALED))
    if not vault.seals_everything and not vault.begins:
        log.warning("what was stored before encryption is still in clear: run anamnesis encrypt")


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
