"""Stores for a process: those at configured addresses, and embedded ones that are started here."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from services.encryption.key_store import KeyStore
from services.encryption.vault import Vault
from services.platform.data_folder import held, unusable
from services.platform.embedded_milvus import EmbeddedMilvus, Standby
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate, role_of
from services.platform.postgres import Database
from services.platform.settings import Settings

_LEAST_CONNECTIONS, _CONNECTIONS_OF_A_PROCESS = 100, 24


@dataclass(frozen=True)
class Engines:
    """Addresses of the stores."""

    database_url: str
    owner_url: str | None
    """Address for the tables' owner; None if the operator migrates by hand."""
    milvus_uri: str
    direct_url: str | None = None
    """Address of the database past a pooler; None if `database_url` leads through none."""
    redis_url: SecretStr | None = None
    """Address of a Redis that was started here for several processes."""

    standby: Standby | None = None
    """The embedded Milvus, which sleeps until it is needed; None = it is not embedded."""


@asynccontextmanager
async def open_engines(
    settings: Settings, *, alone: bool = False, processes: int = 1, shared_in: Path | None = None
) -> AsyncIterator[Engines]:
    """Start the embedded stores; stop them at the end.

    Args:
        alone: Whether to hold the data folder, so that no other service starts on it.
        processes: Number of processes that will use the stores.
        shared_in: Folder for the socket of a Redis that several processes share; None = no such Redis.

    Raises:
        ConfigurationError: A store cannot be started, or another service holds the data folder.
    """
    ending: list[asyncio.Task[None]] = []
    async with AsyncExitStack() as stack:
        if alone and (settings.milvus_uri is None or settings.database_url is None):
            stack.enter_context(held(settings.data_dir, settings.address))
        milvus = EmbeddedMilvus(settings.data_dir) if settings.milvus_uri is None else None
        if milvus is not None:
            await stack.enter_async_context(milvus.running(_launched(milvus, settings)))
        database_url, owner_url = await stack.enter_async_context(open_postgres(settings, processes=processes))
        if milvus is not None:
            stack.callback(lambda: ending.append(asyncio.create_task(milvus.stop())))  # while PostgreSQL ends
        redis_url = None
        if settings.redis_url is None and shared_in is not None:
            from services.platform.embedded_redis import open_redis  # noqa: PLC0415 — its driver is not small

            log = settings.data_dir.resolve() / "redis.log"
            redis_url = SecretStr(await stack.enter_async_context(open_redis(shared_in, log)))
        yield Engines(
            database_url,
            owner_url,
            milvus.uri if milvus else settings.milvus_uri or "",
            direct_url(settings),
            redis_url,
            milvus.standby if milvus else None,
        )


def direct_url(settings: Settings) -> str | None:
    """Return the address of the database past a pooler, if the settings name one."""
    return settings.direct_database_url.get_secret_value() if settings.direct_database_url else None


@asynccontextmanager
async def open_postgres(settings: Settings, *, processes: int = 1) -> AsyncIterator[tuple[str, str | None]]:
    """Yield the addresses of the database for the service and, if it is known, for the tables' owner."""
    if settings.database_url is not None:
        owner = settings.migration_database_url
        yield settings.database_url.get_secret_value(), owner.get_secret_value() if owner else None
        return
    connections = max(_LEAST_CONNECTIONS, processes * _CONNECTIONS_OF_A_PROCESS)
    postgres = EmbeddedPostgres(settings.data_dir, options=(f"max_connections={connections}",))
    async with postgres.running(postgres.start()):
        yield postgres.url(SERVICE_ROLE), postgres.url(OWNER_ROLE)


async def _launched(milvus: EmbeddedMilvus, settings: Settings) -> None:
    try:
        await asyncio.to_thread(milvus.launch)
    except OSError as error:
        raise unusable(settings.data_dir, error) from None


async def migrate_if_owner(engines: Engines) -> None:
    """Bring the schema up to date if the owner's address is known. Raises `ConfigurationError` if the service's
    role is missing."""
    if engines.owner_url:
        await asyncio.to_thread(migrate, engines.owner_url, role_of(engines.database_url))


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Yield the database alone, for callers that need nothing else; migrated if the owner's address is known."""
    async with open_postgres(settings) as (database_url, owner_url):
        if owner_url:
            await asyncio.to_thread(migrate, owner_url, role_of(database_url))
        database = make_database(settings, database_url, direct_url(settings))
        try:
            await database.open()
            yield database
        finally:
            await database.close()


def make_database(settings: Settings, url: str, direct: str | None) -> Database:
    """Return the database at an address, with the settings applied, not yet connected."""
    vault = make_vault(settings)
    return Database(url, direct_url=direct, vault=vault)


def make_vault(settings: Settings) -> Vault | None:
    """Return the vault that encrypts users' words, as the settings say; None = nothing is encrypted."""
    if not settings.encryption:
        return None
    return Vault(KeyStore(settings.keys_folder, settings.encryption_key_file))
