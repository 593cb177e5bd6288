"""A service over two databases: `home`, and a shard `north` with a database and a Milvus of its own."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
from pydantic import SecretStr

from api.tenant_routing import ServedShards, serve_shards
from services.bootstrap import Services, open_services
from services.engines import Engines
from services.identity.tenants import Tenants
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.settings import Settings
from services.shards.addresses import settings_of_shards
from services.shards.directory import Directory
from services.shards.moving import Moves
from services.shards.registering import add_shard
from tests.support.application import running_turns, served

CHAT = "/api/v1/chat"


def with_shards(
    settings: Settings, home: Engines, postgres: EmbeddedPostgres, north: str, north_milvus: str, folder: Path
) -> Settings:
    """Settings with the addresses of both."""
    file = folder / "shards.toml"
    file.write_text(
        f"[north]\ndatabase_url = {json.dumps(postgres.url(SERVICE_ROLE, north))}\n"
        f"migration_database_url = {json.dumps(postgres.url(OWNER_ROLE, north))}\n"
        f"milvus_uri = {json.dumps(north_milvus)}\n"
    )
    stores = {"database_url": SecretStr(home.database_url), "milvus_uri": home.milvus_uri}
    return settings.model_copy(update={**stores, "shards": file})


@dataclass(frozen=True)
class Sharded:
    """A running service over two databases."""

    settings: Settings
    home: Services
    shards: ServedShards
    url: str

    @property
    def directory(self) -> Directory:
        """The directory, as another process reads it."""
        return Directory(self.home.database)

    def moves(self) -> Moves:
        """Moves, as another process makes them."""
        embedder = self.home.embedder
        return Moves(self.directory, self.settings, model=embedder.model, dimension=embedder.dimension)

    async def tenant(self, name: str) -> tuple[UUID, httpx.AsyncClient]:
        """A new tenant, and a client with its key; the caller closes it."""
        tenant = await Tenants(self.home.database).create(name)
        _, key = await self.home.api_keys.create(
            tenant.id, "test", ["chat", "memory:read", "memory:write", "admin"]
        )
        headers = {"Authorization": f"Bearer {key}"}
        return tenant.id, httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30, verify=False)


@asynccontextmanager
async def sharded_service(settings: Settings, engines: Engines, *, add: bool = True) -> AsyncIterator[Sharded]:
    """Serve with the shard `north`, which is added or was before."""
    async with open_services(settings, engines) as home, running_turns(home) as runner:
        if add:
            await add_shard(Directory(home.database), "north", settings_of_shards(settings)["north"])
        async with serve_shards(home, runner) as shards, served(home, runner, shards) as url:
            yield Sharded(settings, home, shards, url)


def variables_of(sharded: Sharded, engines: Engines) -> dict[str, str]:
    """The environment of a command that works on the service's stores."""
    settings = sharded.settings
    return {
        "ANAMNESIS_DATABASE_URL": engines.database_url,
        "ANAMNESIS_MILVUS_URI": engines.milvus_uri,
        "ANAMNESIS_SHARDS": str(settings.shards),
        "ANAMNESIS_ENCRYPTION": "on" if settings.encryption else "off",
        "ANAMNESIS_ENCRYPTION_KEYS_DIR": str(settings.keys_folder),
    }


async def say(client: httpx.AsyncClient, message: str, user: str = "mia") -> dict[str, Any]:
    """Send a message and return the answer's body."""
    answer = await client.post(CHAT, json={"user_id": user, "session_id": "s", "message": message})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
