"""With encryption a word of a user is in no file of any store, and without the user's key no copy can be read."""

import asyncio
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.rows import tuple_row
from pydantic import SecretStr

from services.bootstrap import Services
from services.encryption.data_key import TOKEN, UNREADABLE, open_text
from services.encryption.key_store import KeyStore
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.jobs.queue import JobQueue
from services.memory.core.pins import PinnedValue
from services.memory.core.values import digest_of_value
from services.memory.removal.canary import CanarySearch
from services.memory.removal.key_renewal import KeyRenewal
from services.platform.embedded_postgres import OWNER_ROLE, SERVICE_ROLE, EmbeddedPostgres
from services.platform.settings import Settings
from tests.support.derived import derive_everything, maintain_everything
from tests.support.milvus_server import MilvusServer
from tests.support.model_server import ModelServer
from tests.support.retracting import FILED, SECRET

pytestmark = pytest.mark.process

_TEXTS = """
SELECT format('SELECT coalesce(string_agg(t::text, E''\\n''), '''') FROM %%I t', relname) FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname
"""


@pytest.fixture
def engines(server: EmbeddedPostgres, milvus_server: MilvusServer) -> Engines:
    """Stores of the test's own, whose files are searched."""
    return Engines(server.url(SERVICE_ROLE), server.url(OWNER_ROLE), milvus_server.uri)


@pytest.fixture
def settings(settings: Settings, redis_server: str, tmp_path: Path) -> Settings:
    """With encryption, and a Redis of its own process."""
    return settings.model_copy(
        update={"encryption": True, "encryption_keys_dir": tmp_path / "keys", "redis_url": SecretStr(redis_server)}
    )


def _copy_of(server: EmbeddedPostgres) -> str:
    """Everything that the database holds, as a backup would take it."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        statements = connection.execute(_TEXTS.replace("%%", "%")).fetchall()
        return "\n".join(str((connection.execute(sql.SQL(row[0])).fetchone() or ("",))[0]) for row in statements)


async def _redis_folder(services: Services) -> Path:
    """The folder into which Redis has just written everything."""
    await services.redis.save()
    found = await services.redis.config_get("dir")
    return Path(str(found["dir"]))


async def test_a_word_is_in_no_file_and_a_copy_cannot_be_read_once_the_key_is_destroyed(
    services: Services,
    client: httpx.AsyncClient,
    model_server: ModelServer,
    server: EmbeddedPostgres,
    milvus_server: MilvusServer,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
) -> None:
    owner = await derive_everything(services, client, model_server)
    await maintain_everything(services, client, owner)
    (block,) = [each for each in await services.memory.core.read(owner) if each.section == "human"]
    pin = digest_of_value(block.id, "health", FILED).hex()
    await services.memory.indexing.index_waiting()
    copy = await asyncio.to_thread(_copy_of, server)
    assert pin not in copy, "a digest of a short text can be guessed"
    assert SECRET not in copy.lower()
    assert "hamburg" not in copy.lower()
    assert (await services.memory.pins.values(DEFAULT_TENANT, [block]))["human"] == [PinnedValue("health", FILED)]
    folders = [Path(server._parent), Path(milvus_server.folder), settings.keys_folder]
    folders.append(await _redis_folder(services))
    search = CanarySearch(services.database, services.memory.index, services.redis)
    for word in (SECRET, "Hamburg"):
        found = await search.search(DEFAULT_TENANT, "u-1", word, folders)
        assert found.unreachable == []
        # In PostgreSQL the search sees what the service reads; the copy above is what stands there.
        assert {each.store for each in found.findings} == {"postgresql"}
    assert SECRET not in "".join(capfd.readouterr()).lower()

    # Who has the key reads everything, also in the copy.
    exported = await client.get("/api/v1/users/u-1/export")
    assert SECRET in exported.text.lower()
    keys = KeyStore(settings.keys_folder)
    keys.open(make=False)
    tokens = {found[0] for found in TOKEN.finditer(copy)}
    assert len(tokens) > 100
    assert SECRET in open_text(copy, keys.of_id).lower()
    assert all(open_text(token, keys.of_id) != UNREADABLE for token in tokens)

    # What is forgotten for good cannot be read in the copy either, and everything else goes on.
    forgotten = await client.post(
        "/api/v1/users/u-1/erasures", json={"topic": "my asthma", "delete_messages": True}
    )
    assert forgotten.json()["counts"]["messages"], forgotten.text
    keys.renew(DEFAULT_TENANT, "u-1")
    renewal = KeyRenewal(services.database, JobQueue(services.database), others_end_s=0)
    [[user_id]] = await services.database.fetch(DEFAULT_TENANT, "SELECT id FROM users", {}, tuple_row)
    assert await renewal.reseal(DEFAULT_TENANT, user_id) > 20
    keys.drop_cached()
    assert {open_text(token, keys.of_id) for token in tokens} == {UNREADABLE}
    left = (await client.get("/api/v1/users/u-1/export")).text
    assert "skiing" in left
    assert UNREADABLE not in left
    assert SECRET not in left.lower()
    assert await renewal.reseal(DEFAULT_TENANT, user_id) == 0, "nothing is left to do"
    later = await asyncio.to_thread(_copy_of, server)
    assert UNREADABLE not in open_text(later, keys.of_id)

    tokens = {found[0] for found in TOKEN.finditer(later)}
    response = await client.delete("/api/v1/users/u-1")
    assert response.status_code == 200, response.text
    keys.drop_cached()
    assert {open_text(token, keys.of_id) for token in tokens} == {UNREADABLE}
    assert keys.count() == 0
    keys.close()
