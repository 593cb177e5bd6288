"""What a service over two databases does beside chatting: encryption, MCP, doctor, backups, embedded shards."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

import httpx
import httpx2
import psycopg
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from psycopg import sql

from services.engines import Engines
from services.identity.caller import Scope
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import OWNER_ROLE, EmbeddedPostgres
from services.platform.settings import Settings
from tests.conftest import free_port
from tests.support.command import run_command
from tests.support.folders import new_folder
from tests.support.shards import (
    Sharded,
    say,
    sharded_service,
    variables_of,
    with_shards,
)

pytestmark = [pytest.mark.anyio, pytest.mark.indexed]

SECRET = "My password for the safe is Quetzalcoatl."
DOG = "My dog is called Bruno."


def _dump(database_url: str) -> str:
    """Everything that a database holds, as its superuser reads it."""
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        ).fetchall()
        rows = [
            connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(name))).fetchall()
            for (name,) in tables
        ]
    return str(rows)


def _forget_owners(shards: Path) -> None:
    kept = [line for line in shards.read_text().splitlines() if not line.startswith("migration_")]
    shards.write_text("\n".join(kept))


@asynccontextmanager
async def _assistant(sharded: Sharded, tenant_id: UUID) -> AsyncIterator[Client]:
    """An MCP client of a tenant's user."""
    rights: tuple[Scope, ...] = ("memory:read", "memory:write")
    _, key = await sharded.home.api_keys.create(tenant_id, "assistant", rights, default_user="mia")
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, verify=False, timeout=30) as http,
        Client(streamable_http_client(f"{sharded.url}/mcp", http_client=http)) as assistant,
    ):
        yield assistant


async def test_an_encrypted_tenant_is_read_where_it_has_moved_and_its_words_are_nowhere_in_clear(
    keyed: Settings,
    engines: Engines,
    postgres: EmbeddedPostgres,
    north: str,
    north_milvus: str,
    tmp_path: Path,
    database_name: str,
) -> None:
    sealed = {"encryption": True, "encryption_keys_dir": tmp_path / "keys"}
    given = with_shards(keyed.model_copy(update=sealed), engines, postgres, north, north_milvus, tmp_path)
    databases = [postgres.url("postgres", name) for name in (database_name, north)]
    async with sharded_service(given, engines) as sharded:
        tenant, client = await sharded.tenant("shop")
        async with client:
            await say(client, SECRET)
            await sharded.moves().move(tenant, "north", wait_s=0)
            await say(client, DOG)
            conversation = (await client.get("/api/v1/conversations", params={"user_id": "mia"})).json()["items"][
                0
            ]
            messages = f"/api/v1/conversations/{conversation['id']}/messages"
            page = (await client.get(messages)).json()["items"]
            assert [said["content"] for said in page if said["role"] == "user"] == [SECRET, DOG]
            assert all("Quetzalcoatl" not in _dump(url) and "Bruno" not in _dump(url) for url in databases)
            await sharded.moves().move(tenant, "home", wait_s=0)
            assert (await client.get(messages)).json()["items"] == page
            assert (await client.delete("/api/v1/users/mia")).status_code in {200, 202, 204}
            assert (await client.get(messages)).status_code == 404


@pytest.mark.in_clear
async def test_an_mcp_client_works_in_the_database_of_its_tenant(
    sharded: Sharded, postgres: EmbeddedPostgres, database_name: str, north: str
) -> None:
    stays, _ = await sharded.tenant("stays")
    goes, _ = await sharded.tenant("goes")
    await sharded.moves().move(goes, "north", wait_s=0)
    async with _assistant(sharded, stays) as here, _assistant(sharded, goes) as there:
        assert not (await there.call_tool("remember", {"text": DOG})).is_error
        assert "Bruno" in str((await there.call_tool("profile", {})).structured_content)
        assert "Bruno" not in str((await here.call_tool("profile", {})).structured_content)
    assert "Bruno" in _dump(postgres.url("postgres", north))
    assert "Bruno" not in _dump(postgres.url("postgres", database_name))


async def test_doctor_names_the_stores_of_every_shard_and_one_that_does_not_answer(
    sharded: Sharded, engines: Engines, tmp_path: Path
) -> None:
    _, key = await sharded.home.api_keys.create(DEFAULT_TENANT, "operator", ["admin"])
    async with httpx.AsyncClient(base_url=sharded.url, timeout=60, verify=False) as operator:
        answer = await operator.post("/api/v1/doctor", headers={"Authorization": f"Bearer {key}"})
    found = {each["name"] for each in answer.json()["dependencies"] if each["state"] == "ok"}
    assert {"postgres", "north: postgres", "north: milvus"} <= found

    def asked(**changed: str) -> dict[str, str]:
        variables = variables_of(sharded, engines) | changed
        ran = run_command("doctor", "--json", "--url", f"http://127.0.0.1:{free_port()}", variables=variables)
        return {each["name"]: each["state"] for each in json.loads(ran.stdout)["dependencies"]}

    assert asked()["north: postgres"] == "ok"
    nowhere = f"127.0.0.1:{free_port()}"
    broken = tmp_path / "broken.toml"
    broken.write_text(f'[north]\ndatabase_url = "postgresql://a@{nowhere}/x"\nmilvus_uri = "http://{nowhere}"\n')
    states = asked(ANAMNESIS_SHARDS=str(broken))
    assert (states["postgres"], states["north: postgres"]) == ("ok", "degraded")


async def test_migrate_names_the_shard_whose_owner_is_missing(
    sharded: Sharded, engines: Engines, postgres: EmbeddedPostgres, database_name: str
) -> None:
    variables = variables_of(sharded, engines)
    variables["ANAMNESIS_MIGRATION_DATABASE_URL"] = postgres.url(OWNER_ROLE, database_name)
    done = run_command("migrate", variables=variables)
    assert [line.rpartition(" ")[2] for line in done.stdout.splitlines()] == ["home.", "north."], done.stderr
    _forget_owners(Path(variables["ANAMNESIS_SHARDS"]))
    refused = run_command("migrate", variables=variables)
    assert refused.returncode == 1
    assert "migration_database_url of [north]" in refused.stderr


async def test_a_lost_shard_comes_back_from_its_backup(
    keyed: Settings,
    engines: Engines,
    postgres: EmbeddedPostgres,
    north: str,
    north_milvus: str,
    tmp_path: Path,
) -> None:
    given = with_shards(keyed, engines, postgres, north, north_milvus, tmp_path)
    file = tmp_path / "north.zip"
    async with sharded_service(given, engines) as sharded:
        tenant, client = await sharded.tenant("shop")
        variables = variables_of(sharded, engines)
        await sharded.moves().move(tenant, "north", wait_s=0)
        await say(client, DOG)
        made = run_command("backup", str(file), "--shard", "north", variables=variables)
        assert made.returncode == 0, made.stderr
        before = (await client.get("/api/v1/conversations", params={"user_id": "mia"})).json()
        key = client.headers["Authorization"]
        await client.aclose()
    with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
        name, owner = sql.Identifier(north), sql.Identifier(OWNER_ROLE)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(name, owner))
    restored = run_command("restore", str(file), "--shard", "north", variables=variables)
    assert restored.returncode == 0, restored.stderr
    async with (
        sharded_service(given, engines, add=False) as sharded,
        httpx.AsyncClient(base_url=sharded.url, headers={"Authorization": key}, verify=False) as client,
    ):
        assert (await client.get("/api/v1/conversations", params={"user_id": "mia"})).json() == before
        await say(client, "Here again.")


async def test_a_shard_may_be_embedded(
    keyed: Settings, engines: Engines, postgres: EmbeddedPostgres, north: str, tmp_path: Path
) -> None:
    with new_folder() as folder:
        given = with_shards(keyed, engines, postgres, north, "http://127.0.0.1:9", tmp_path)
        assert given.shards
        given.shards.write_text(f"[north]\ndata_dir = {json.dumps(str(Path(folder) / 'north'))}\n")
        async with sharded_service(given, engines) as sharded:
            tenant, client = await sharded.tenant("shop")
            async with client:
                await say(client, DOG)
                await sharded.moves().move(tenant, "north", wait_s=0)
                await say(client, "And a cat.")
                found = await client.get("/api/v1/conversations", params={"user_id": "mia"})
                assert len(found.json()["items"]) == 1
                await sharded.moves().move(tenant, "home", wait_s=0)
                await say(client, "And a bird.")
