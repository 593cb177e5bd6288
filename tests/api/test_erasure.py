"""A user is erased over HTTP and from the command line."""

import asyncio
import json
import subprocess

import httpx
import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.memory.removal.tables import TABLES
from tests.support.command import run_command
from tests.support.turns import exchange, remember


async def test_an_erased_user_is_not_found_any_more(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi", space="a space")
    await remember(services.database, turn)
    erased = await client.delete("/api/v1/users/u-1")
    assert erased.status_code == 200
    told = erased.json()
    assert (told["user_id"], told["pending"], set(told["removed"])) == (
        "u-1",
        [],
        {"postgresql", "queue", "redis", "milvus"},
    )
    assert set(told["removed"]["postgresql"]) == set(TABLES)
    assert (told["removed"]["postgresql"]["messages"], told["removed"]["redis"]["turn_events"]) == (2, 0)
    for path in (f"turns/{turn.turn_id}", f"conversations/{turn.conversation_id}"):
        assert (await client.get(f"/api/v1/{path}")).status_code == 404
    assert (await client.delete("/api/v1/users/u-1")).json()["code"] == "not_found"
    assert (await client.delete("/api/v1/users/no%0Aid")).status_code == 422


async def test_earlier_paths_of_erasures_lead_to_the_same(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi")
    body = {"conversation_id": str(turn.conversation_id)}
    forgotten = (await client.post("/api/v1/users/u-1/forget", json=body)).json()
    listed = (await client.get("/api/v1/users/u-1/receipts")).json()
    assert [each["id"] for each in listed["items"]] == [forgotten["receipt_id"]]
    assert listed == (await client.get("/api/v1/users/u-1/erasures")).json()
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert "/api/v1/users/{user_id}/erasures" in paths
    assert not {"/api/v1/users/{user_id}/forget", "/api/v1/users/{user_id}/receipts", "/api/v1/health"} & set(
        paths
    )


@pytest.mark.in_clear
@pytest.mark.slow
async def test_the_command_erases_and_says_what(url: str, services: Services, engines: Engines) -> None:
    await exchange(services.turns, "Hello", "Hi")
    await exchange(services.turns, "Hello", "Hi", user_id="u-2")
    stores = {"ANAMNESIS_DATABASE_URL": engines.database_url}
    owner = {**stores, "ANAMNESIS_MIGRATION_DATABASE_URL": str(engines.owner_url)}

    async def erase(*arguments: str, **given: str) -> "subprocess.CompletedProcess[str]":
        variables = {"ANAMNESIS_URL": url, **given}
        return await asyncio.to_thread(run_command, "erase", *arguments, variables=variables)

    ownerless = await erase("u-1", "--yes", "--scrub", **stores)
    assert ownerless.returncode == 2
    assert "ANAMNESIS_MIGRATION_DATABASE_URL" in ownerless.stderr

    done = await erase("u-1", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Erased u-1: 1 memory, 1 conversation, 2 messages, 1 turn" in done.stdout
    again = await erase("u-1", "--yes")
    assert (again.returncode, again.stderr) == (1, "anamnesis: There is no user 'u-1'.\n")

    scrubbed = await erase("u-2", "--yes", "--scrub", "--json", **owner)
    assert scrubbed.returncode == 0, scrubbed.stderr
    told = json.loads(scrubbed.stdout)
    assert told["scrubbed"] is True
    assert told["removed"]["postgresql"]["messages"] == 2
