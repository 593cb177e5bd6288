"""Tenants in two databases: each request reaches its tenant's, and a move that is ended anywhere loses nothing."""

import asyncio
import json
import signal
import threading
from pathlib import Path
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.rows import tuple_row
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from services.engines import Engines
from services.errors import ConfigurationError, Conflict, InvalidInput, TenantElsewhere
from services.health import check_shards
from services.identity.tenants import DEFAULT_TENANT
from services.platform.embedded_postgres import EmbeddedPostgres
from services.platform.postgres import Database
from services.shards import rows
from services.shards.addresses import settings_of_shard
from services.shards.opened import open_shard
from services.shards.steps import STEPS, Step
from tests.conftest import free_port
from tests.support.command import run_command, start_command
from tests.support.databases import Databases
from tests.support.jobs import until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.shards import CHAT, Sharded, say, variables_of, with_shards

pytestmark = [pytest.mark.anyio, pytest.mark.indexed, pytest.mark.untraced]

SAID = (
    "My dog is called Bruno and he is nine.",
    "I moved to Lyon in March.",
    "Remember that I am allergic to nuts.",
)


class Killed(Exception):
    """The command was ended here."""


async def _waiting_jobs(database: Database, tenant_id: UUID) -> list[tuple[str, str]]:
    found = await database.fetch_without_tenant(
        "SELECT task_name, args::text FROM procrastinate_jobs "
        "WHERE args->>'tenant_id' = %(tenant_id)s::text AND status = 'todo' ORDER BY task_name, args::text",
        {"tenant_id": str(tenant_id)},
        tuple_row,
    )
    return [(str(name), str(arguments)) for name, arguments in found]


async def _everything(sharded: Sharded, name: str, tenant_id: UUID) -> dict[str, tuple[int, str]]:
    """Digests of what a database holds of a tenant."""
    url = sharded.shards.opened[name].services.database.pool.conninfo
    assert isinstance(url, str)
    return await asyncio.to_thread(rows.digests, rows.Place(url, tenant_id))


async def _with_memory(sharded: Sharded, tenant_id: UUID, client: httpx.AsyncClient) -> None:
    """Let the tenant talk, and run the jobs that index and file it; then leave others waiting."""
    for message in SAID:
        await say(client, message)
    home = sharded.home
    home.jobs.start_worker()

    async def indexed() -> bool:
        return not await _waiting_jobs(home.database, tenant_id)

    await until(indexed)
    await home.jobs.close()
    await say(client, "My sister Ada visits on Sunday.")
    assert await _waiting_jobs(home.database, tenant_id)


async def test_a_turn_of_each_tenant_is_stored_in_its_own_database(sharded: Sharded) -> None:
    _, here = await sharded.tenant("stays")
    goes, there = await sharded.tenant("goes")
    async with here, there:
        await sharded.moves().move(goes, "north", wait_s=0)
        for client in (here, there):
            await say(client, "Hello.")
            assert (await client.get("/api/v1/conversations", params={"user_id": "mia"})).json()["items"]
            assert (await client.get("/api/v1/keys")).status_code == 200
            assert (await client.post("/api/v1/keys", json={"name": "x", "scopes": ["chat"]})).status_code == 201
        models = await there.get("/v1/models")
        assert models.status_code == 200
    north = sharded.shards.opened["north"].services
    assert await north.database.tenants() == [goes]
    assert goes not in await sharded.home.database.tenants()
    with pytest.raises(TenantElsewhere):
        await sharded.home.transcript.conversations(goes, user_id="mia", limit=1)
    with pytest.raises(TenantElsewhere):
        await north.transcript.conversations(DEFAULT_TENANT, user_id="mia", limit=1)


async def test_a_move_keeps_every_row_the_index_and_waiting_jobs(sharded: Sharded) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await _with_memory(sharded, tenant, client)
        jobs = await _waiting_jobs(sharded.home.database, tenant)
        before = (await client.get("/api/v1/users/mia/episodes")).json()
        move = await sharded.moves().move(tenant, "north", wait_s=0)
        assert move.step == "done"
        copied = (move.report or {})["copied"]
        assert {"messages", "turns", "episodes", "users", "jobs", "indexed_episodes"} <= copied.keys()
        assert (await client.get("/api/v1/users/mia/episodes")).json() == before
        north = sharded.shards.opened["north"].services
        assert await _waiting_jobs(north.database, tenant) == jobs
        assert await _waiting_jobs(sharded.home.database, tenant) == []
        north.jobs.start_worker()

        async def worked() -> bool:
            return not await _waiting_jobs(north.database, tenant)

        await until(worked)
        found = await client.post("/api/v1/users/mia/episodes/search", json={"query": "What is my dog called?"})
        assert "Bruno" in found.text


@pytest.mark.parametrize("step", STEPS)
async def test_a_move_that_is_ended_at_any_step_goes_on_when_it_is_run_again(sharded: Sharded, step: Step) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])
        jobs = await _waiting_jobs(sharded.home.database, tenant)
        moves = sharded.moves()

        def end_there(line: str) -> None:
            at = {
                "draining": "waiting", "closed": "copying episodes", "copied": "comparing",
                "verified": "switching", "switched": "opening", "done": "never",
            }[step]  # fmt: skip
            if line.startswith(at):
                raise Killed

        if step != "done":
            with pytest.raises(Killed):
                await moves.move(tenant, "north", wait_s=0, on_step=end_there)
            refused = await client.post(CHAT, json={"user_id": "mia", "session_id": "s", "message": "Hello?"})
            assert refused.status_code == 503
            assert refused.json()["code"] == "tenant_moving"
            assert refused.headers["Retry-After"]
        assert (await moves.move(tenant, "north", wait_s=0)).step == "done"
        assert await _waiting_jobs(sharded.shards.opened["north"].services.database, tenant) == jobs
        await say(client, "And now?")
        conversation = (await client.get("/api/v1/conversations", params={"user_id": "mia"})).json()["items"][0]
        page = (await client.get(f"/api/v1/conversations/{conversation['id']}/messages")).json()["items"]
        assert [said["content"] for said in page if said["role"] == "user"] == [SAID[0], "And now?"]


@pytest.mark.parametrize("step", ["waiting", "copying users", "comparing", "switching"])
async def test_a_move_is_taken_back_until_the_directory_names_the_target(sharded: Sharded, step: str) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])
        await sharded.home.usage.write()
        before = await _everything(sharded, "home", tenant)
        jobs = await _waiting_jobs(sharded.home.database, tenant)

        def end_there(line: str) -> None:
            if line.startswith(step):
                raise Killed

        moves = sharded.moves()
        with pytest.raises(Killed):
            await moves.move(tenant, "north", wait_s=0, on_step=end_there)
        await moves.undo(tenant)
        assert await _everything(sharded, "home", tenant) == before
        assert await _waiting_jobs(sharded.home.database, tenant) == jobs
        left = await _everything(sharded, "north", tenant)
        assert not any(count for count, _ in left.values())
        await say(client, "Still here?")
        assert (await moves.move(tenant, "north", wait_s=0)).step == "done"


async def test_a_tenant_goes_back_with_what_was_said_meanwhile(sharded: Sharded) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])
        moves = sharded.moves()
        await moves.move(tenant, "north", wait_s=0)
        with pytest.raises(Conflict, match="Move it back"):
            await moves.undo(tenant)
        await say(client, SAID[1])
        await moves.move(tenant, "home", wait_s=0)
        await say(client, SAID[2])
        found = await _everything(sharded, "home", tenant)
        assert found["messages"][0] == 6
        await moves.purge(tenant)
        assert not any(count for count, _ in (await _everything(sharded, "north", tenant)).values())
        await say(client, "Bruno says hello.")


async def test_the_old_copy_is_kept_until_it_is_purged(sharded: Sharded) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])
        moves = sharded.moves()
        await moves.move(tenant, "north", wait_s=0)
        assert (await _everything(sharded, "home", tenant))["messages"][0] == 2
        await moves.purge(tenant)
        left = await _everything(sharded, "home", tenant)
        assert {name for name, (count, _) in left.items() if count} == {"tenants"}
        await say(client, SAID[1])  # its key is still there


async def test_running_turns_end_first_and_new_ones_are_refused(
    sharded: Sharded, model_server: ModelServer
) -> None:
    tenant, client = await sharded.tenant("shop")
    asked, may_answer = threading.Event(), threading.Event()

    def answer_when_told(_: Received) -> Reply:
        asked.set()
        may_answer.wait(60)
        return Reply(("At last.",))

    async with client:
        await say(client, "Hello.")
        model_server.default = answer_when_told
        running = asyncio.create_task(say(client, SAID[0]))
        await asyncio.to_thread(asked.wait, 60)
        moving = asyncio.create_task(sharded.moves().move(tenant, "north", wait_s=60))

        async def is_refused() -> bool:
            answer = await client.get("/api/v1/conversations", params={"user_id": "mia"})
            return answer.status_code == 503

        await until(is_refused)
        assert not moving.done()
        may_answer.set()
        assert "At last." in str(await running)
        assert (await moving).step == "done"
        assert (await _everything(sharded, "north", tenant))["messages"][0] == 4


@pytest.mark.traced
async def test_turns_that_do_not_end_in_time_stop_the_move(sharded: Sharded) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, "Hello.")
        async with sharded.home.database.tenant(tenant) as connection:
            await connection.execute(
                "UPDATE turns SET status = 'running', lease_expires_at = now() + interval '5 minutes' "
                "WHERE tenant_id = %s",
                [tenant],
            )
        with pytest.raises(Conflict, match="1 turns"):
            await sharded.moves().move(tenant, "north", wait_s=0)
        await sharded.moves().undo(tenant)
        assert (await client.get("/api/v1/conversations", params={"user_id": "mia"})).status_code == 200


async def test_a_copy_that_differs_is_not_used(sharded: Sharded, postgres: EmbeddedPostgres) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])
        north = sharded.shards.opened["north"].services.database.pool.conninfo
        assert isinstance(north, str)

        def change(line: str) -> None:
            if line == "comparing":
                with psycopg.connect(north) as connection:
                    connection.execute("SELECT set_config('anamnesis.tenant_id', %s, true)", [str(tenant)])
                    connection.execute("UPDATE messages SET content = 'another' WHERE role = 'user'")

        moves = sharded.moves()
        with pytest.raises(Conflict, match="differs in messages"):
            await moves.move(tenant, "north", wait_s=0, on_step=change)
        await moves.move(tenant, "north", wait_s=0)
        await say(client, "Hello.")
        assert (await _everything(sharded, "north", tenant))["messages"][0] == 4


async def test_a_broken_connection_in_the_midst_of_copying_leaves_nothing(
    sharded: Sharded, postgres: EmbeddedPostgres
) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])

        def cut(line: str) -> None:
            if line == "copying messages":
                with psycopg.connect(postgres.url("postgres", "postgres"), autocommit=True) as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE state = 'idle in transaction' AND query LIKE '%arriving_%'"
                    )

        moves = sharded.moves()
        with pytest.raises(Exception, match="does not answer"):
            await moves.move(tenant, "north", wait_s=0, on_step=cut)
        assert not any(count for count, _ in (await _everything(sharded, "north", tenant)).values())
        assert (await moves.move(tenant, "north", wait_s=0)).step == "done"
        await say(client, SAID[1])


async def test_a_command_that_is_killed_while_it_copies_is_run_again(sharded: Sharded, engines: Engines) -> None:
    tenant, client = await sharded.tenant("shop")
    variables = variables_of(sharded, engines)
    async with client:
        for message in SAID:
            await say(client, message)
        await sharded.home.usage.write()
        before = await _everything(sharded, "home", tenant)
        command = start_command("shard", "move", "shop", "north", "--wait", "0", variables=variables)
        assert command.stderr
        for line in command.stderr:
            if line.startswith("copying"):
                command.kill()
                break
        command.communicate()
        assert (await sharded.moves().move(tenant, "north", wait_s=0)).step == "done"
        after = await _everything(sharded, "north", tenant)
        assert {**after, "jobs": None} == {**before, "jobs": None}
        await say(client, "Hello.")


@pytest.mark.traced
async def test_an_open_socket_is_closed_when_its_tenant_has_moved(sharded: Sharded) -> None:
    tenant, client = await sharded.tenant("shop")
    turn = {"user_id": "mia", "session_id": "s", "message": "Hello.", "request_id": "1"}
    url = f"{sharded.url.replace('http', 'ws', 1)}/api/v1/chat/ws"
    async with client:
        headers = {"Authorization": client.headers["Authorization"]}
        async with connect(url, additional_headers=headers) as socket:
            await sharded.moves().move(tenant, "north", wait_s=0)
            await socket.send(json.dumps(turn))
            assert "tenant_moving" in str(await socket.recv())
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 1012
        await say(client, "Hello.")


@pytest.mark.traced
async def test_a_shard_is_found_again_by_its_mark_and_begins_empty(
    sharded: Sharded, databases: Databases, postgres: EmbeddedPostgres, engines: Engines, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="no shard south"):
        await sharded.moves().move(DEFAULT_TENANT, "south", wait_s=0)
    with databases.taken() as other:
        settings = with_shards(sharded.settings, engines, postgres, other, "http://127.0.0.1:9", tmp_path)
        listed = (await sharded.directory.shards())[0]
        with pytest.raises(ConfigurationError, match="another database"):
            async with open_shard(sharded.home, settings_of_shard(settings, "north"), listed):
                pass


async def test_a_process_without_addresses_does_not_serve_tenants_that_are_elsewhere(
    sharded: Sharded, engines: Engines
) -> None:
    tenant, client = await sharded.tenant("shop")
    await client.aclose()
    await sharded.moves().move(tenant, "north", wait_s=0)
    alone = Database(engines.database_url)
    with pytest.raises(ConfigurationError, match="ANAMNESIS_SHARDS"):
        await alone.open()
    await alone.close()


@pytest.mark.traced
async def test_readiness_names_the_stores_of_every_shard(sharded: Sharded) -> None:
    found = {each.name: each.state for each in await check_shards(sharded.shards)}
    assert found["north: postgres"] == "ok"
    assert "north: llm" not in found
    async with httpx.AsyncClient(base_url=sharded.url, verify=False) as anybody:
        assert (await anybody.get("/readyz")).status_code == 200
        assert (await anybody.get("/healthz")).text == "ok"
        assert (await anybody.get("/api/v1/conversations", params={"user_id": "mia"})).status_code == 401


@pytest.mark.traced
async def test_commands_reach_the_tenants_database(sharded: Sharded, engines: Engines) -> None:
    _, client = await sharded.tenant("shop")
    variables = variables_of(sharded, engines)
    async with client:
        await say(client, SAID[0])
        moved = run_command("shard", "move", "shop", "north", "--wait", "0", variables=variables)
        assert moved.returncode == 0, moved.stderr
        assert "compared row by row" in moved.stdout
        shown = json.loads(run_command("shard", "list", "--json", variables=variables).stdout)
        assert [(each["name"], each["tenants"]) for each in shown] == [("home", 1), ("north", 1)]
        users = run_command("users", "list", "--tenant", "shop", "--json", variables=variables)
        assert [user["user_id"] for user in json.loads(users.stdout)] == ["mia"], users.stderr
        assert "done" in run_command("shard", "status", "shop", variables=variables).stdout
        keys = run_command("keys", "list", "--tenant", "shop", "--json", variables=variables)
        assert len(json.loads(keys.stdout)) == 1
        purged = run_command("shard", "move", "shop", "--purge", "--yes", variables=variables)
        assert purged.returncode == 0, purged.stderr
        again = run_command("shard", "move", "shop", "--undo", variables=variables)
        assert again.returncode == 1
        await say(client, SAID[1])


@pytest.mark.parametrize("command", ["worker", "serve"])
async def test_a_process_works_through_the_jobs_of_every_shard(
    sharded: Sharded, engines: Engines, command: str
) -> None:
    tenant, client = await sharded.tenant("shop")
    async with client:
        await say(client, SAID[0])
        await sharded.moves().move(tenant, "north", wait_s=0)
        north = sharded.shards.opened["north"].services.database
        assert await _waiting_jobs(north, tenant)
        port = ["--port", str(free_port())] if command == "serve" else []
        process = start_command(command, *port, variables=variables_of(sharded, engines))
        try:

            async def worked() -> bool:
                return not await _waiting_jobs(north, tenant)

            await until(worked)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(60)
        assert process.wait() == 0
