"""Adding a shard: its database is migrated, marked and written into the directory."""

from typing import Any

from psycopg.rows import tuple_row

from services.engines import make_database, migrate_if_owner, open_engines
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.platform.settings import Settings
from services.shards.directory import Directory

_MARK = "SELECT mark FROM shard_mark"
_SET_MARK = "INSERT INTO shard_mark (mark) VALUES (%(mark)s) ON CONFLICT DO NOTHING RETURNING mark"
# The first migration makes the default tenant in every database, and it belongs to the first one.
_CLOSE_DEFAULT = """
INSERT INTO closed_tenants (tenant_id, reason) VALUES (%(tenant_id)s, 'gone') ON CONFLICT DO NOTHING
RETURNING reason
"""
_OTHERS = "SELECT count(*) FROM tenants WHERE id <> %(tenant_id)s"
_USERS = "SELECT EXISTS (SELECT FROM users)"


async def add_shard(directory: Directory, name: str, settings: Settings) -> None:
    """Add a shard; one that was added halfway is added completely.

    Args:
        directory: where it is written down.
        name: of the shard.
        settings: with the addresses of its stores.

    Raises:
        Conflict: the database holds data of a service, or there is a shard of this name.
        ConfigurationError: the database's role or schema is not what the service needs.
        DatabaseUnavailable: the database does not answer.
    """
    async with open_engines(settings) as engines:
        await migrate_if_owner(engines)
        database = make_database(settings, engines.database_url, engines.direct_url)
        try:
            await database.open()
            default: dict[str, Any] = {"tenant_id": DEFAULT_TENANT}
            marks = await database.fetch_without_tenant(_MARK, {}, tuple_row)
            if not marks:
                ((others,),) = await database.fetch_without_tenant(_OTHERS, default, tuple_row)
                everything = database.for_every_tenant()
                ((has_users,),) = await everything.fetch(DEFAULT_TENANT, _USERS, {}, tuple_row)
                if others or has_users:
                    raise Conflict(f"The database of {name} holds data of a service; a shard begins empty.")
            await database.fetch_without_tenant(_CLOSE_DEFAULT, default, tuple_row)
            mark = await directory.add(name, marks[0][0] if marks else None)
            await database.fetch_without_tenant(_SET_MARK, {"mark": mark}, tuple_row)
        finally:
            await database.close()
