"""An installation in clear is encrypted as it stands: nothing is lost, and no word is left in the files in use."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from services.bootstrap import Services, open_services
from services.encryption.data_key import open_text
from services.encryption.key_store import KeyStore
from services.engines import Engines, make_database
from services.errors import ConfigurationError
from services.identity.tenants import DEFAULT_TENANT
from services.memory.removal.canary import CanarySearch
from services.memory.removal.scrub import scrub
from services.memory.removal.sealing import Sealing, require_alone
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.migrate import migrate
from services.platform.settings import Settings
from tests.support.application import running_turns, served
from tests.support.derived import derive_everything
from tests.support.folders import new_folder
from tests.support.fork_server import ForkedProcess
from tests.support.milvus_server import MilvusServer
from tests.support.model_server import ModelServer
from tests.support.retracting import SECRET

AS_OF = "/api/v1/users/u-1/core-memory?as_of=2026-03-01T00:00:00Z"

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.in_clear]


@asynccontextmanager
async def _client(settings: Settings, engines: Engines) -> AsyncIterator[tuple[Services, httpx.AsyncClient]]:
    async with (
        open_services(settings, engines) as services,
        running_turns(services) as runner,
        served(services, runner) as url,
        httpx.AsyncClient(base_url=url, timeout=30, verify=False) as opened,
    ):
        yield services, opened


def _said(export: str) -> list[str]:
    """The lines of an export, without the order of keys."""
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in export.splitlines())


async def _fill(engines: Engines, settings: Settings, model_server: ModelServer) -> tuple[str, str]:
    """Have everything derived in clear; return the user's export, and core memory as it was at a moment."""
    async with _client(settings, engines) as (services, client):
        await derive_everything(services, client, model_server)
        body = {"user_id": "u-2", "session_id": "s", "message": f"My {SECRET} is better."}
        assert (await client.post("/api/v1/chat", json=body)).status_code == 200
        with pytest.raises(ConfigurationError, match="stop all"):
            await require_alone(engines.database_url)
        return (await client.get("/api/v1/users/u-1/export")).text, (await client.get(AS_OF)).text


async def _seal(engines: Engines, encrypted: Settings) -> None:
    """Seal everything, with an interruption after the first user."""
    await require_alone(engines.database_url)
    database = make_database(encrypted, engines.database_url, None, begins=True)
    await database.open()

    def interrupted() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        await Sealing(database).seal(interrupted)
    progress = await Sealing(database).progress()
    assert (progress.under_way, progress.sealed_users, progress.users) == (True, 1, 2)
    assert await Sealing(database).seal() > 0
    assert await Sealing(database).seal() == 0
    await database.close()


async def test_what_was_in_clear_is_sealed_by_user_and_read_as_before(
    settings: Settings, model_server: ModelServer, milvus_server: MilvusServer, tmp_path: Path
) -> None:
    encrypted = settings.model_copy(update={"encryption": True, "encryption_keys_dir": tmp_path / "keys"})
    with new_folder() as folder:
        server = EmbeddedPostgres(Path(folder))
        await server.start()
        await asyncio.to_thread(migrate, server.url(OWNER_ROLE), SERVICE_ROLE)
        engines = Engines(server.url(SERVICE_ROLE), server.url(OWNER_ROLE), milvus_server.uri)
        before, as_told = await _fill(engines, settings, model_server)
        with pytest.raises(ConfigurationError, match="run: anamnesis encrypt"):
            async with open_services(encrypted, engines):
                pass
        await _seal(engines, encrypted)
        async with _client(encrypted, engines) as (services, client):
            assert "run anamnesis encrypt" in (await client.get("/readyz")).text
            await services.memory.indexing.rebuild(lambda _: None)
            await Sealing(services.database).finish()
            assert _said((await client.get("/api/v1/users/u-1/export")).text) == _said(before)
            assert (await client.get(AS_OF)).text == as_told
            found = await client.post("/api/v1/users/u-1/episodes/search", json={"query": SECRET})
            assert SECRET in found.text.lower()
            await scrub(server.url(OWNER_ROLE))
            search = CanarySearch(services.database, services.memory.index, services.redis)
            for word in (SECRET, "Hamburg"):
                seen = await search.search(DEFAULT_TENANT, "u-1", word, [Path(server._parent)])
                assert [each.place for each in seen.findings if each.columns != ["write-ahead log"]] == []
        async with open_services(encrypted, engines) as services:
            assert services.database.vault is not None
            assert services.database.vault.seals_everything
        await server.stop()


_OTHER = """
import sys, time
from pathlib import Path
from uuid import UUID
from services.encryption.data_key import open_text
from services.encryption.key_store import KeyStore

keys = KeyStore(Path(sys.argv[1]))
keys.open(make=False)
print(keys.make_for(UUID(int=1), "u-1").seal_text("told elsewhere"), flush=True)
while not Path(sys.argv[3]).exists():
    time.sleep(0.02)
keys.drop_cached()
print(open_text(sys.argv[2], keys.of_id), flush=True)
"""


def test_processes_that_share_the_folder_of_keys_read_each_others_words(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys")
    keys.open(make=True)
    go_on = tmp_path / "go on"
    token = keys.make_for(UUID(int=1), "u-2").seal_text("told here")
    process = ForkedProcess("-c", _OTHER, str(tmp_path / "keys"), token, str(go_on))
    assert process.stdout
    theirs = process.stdout.readline().strip()
    assert open_text(theirs, keys.of_id) == "told elsewhere"
    assert keys.rotate_master() == 2
    go_on.touch()
    rest, _ = process.communicate(30)
    assert rest.strip() == "told here", "a new master key is taken over"
    keys.close()
