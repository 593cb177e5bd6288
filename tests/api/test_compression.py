"""Compression over HTTP and on the command line."""

import asyncio
import json
import subprocess
from typing import Any
from uuid import uuid4

import httpx
import pytest

from services.bootstrap import Services
from services.compression.store import COMPRESS
from services.engines import Engines
from services.identity.tenants import Tenants
from tests.support.command import run_command
from tests.support.compressing import compress, everything, living, merging, someone, write
from tests.support.jobs import statuses, until
from tests.support.model_server import ModelServer
from tests.support.transfer import export, send

pytestmark = pytest.mark.anyio

RUNS = "/api/v1/users/u-1/compression-runs"
TEA = [f"The user drinks a large cup of green tea with honey every single morning {word}" for word in "abcd"]


@pytest.fixture(autouse=True)
def _merges(model_server: ModelServer) -> None:
    model_server.default = merging()


async def _ended(services: Services, runs: int) -> None:
    async def done() -> bool:
        return await statuses(services.database, COMPRESS) == ["succeeded"] * runs

    await until(done)


async def test_a_run_is_asked_for_told_and_undone(client: httpx.AsyncClient, services: Services) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)
    before = await everything(services, owner)
    asked = await client.post(RUNS, json={"dry_run": True})
    assert (asked.status_code, asked.json()["status"], asked.json()["dry_run"]) == (202, "waiting", True)
    busy = await client.post(RUNS, json={})
    assert (busy.status_code, busy.json()["code"]) == (409, "conflict")
    services.jobs.start_worker()
    await _ended(services, 1)
    assert await everything(services, owner) == before
    run = (await client.post(RUNS, json={})).json()
    await _ended(services, 2)
    page = (await client.get(RUNS)).json()
    assert [item["dry_run"] for item in page["items"]] == [False, True]
    newest = page["items"][0]
    assert (newest["id"], newest["status"], newest["can_be_undone"]) == (run["id"], "done", True)
    told = {
        name: newest["report"][name] for name in ("episodes_before", "episodes_after", "superseded", "dropped")
    }
    assert told == {"episodes_before": 4, "episodes_after": 1, "superseded": 4, "dropped": []}
    undone = (await client.post(f"{RUNS}/{run['id']}/undo")).json()
    assert (undone["status"], undone["can_be_undone"]) == ("undone", False)
    assert await everything(services, owner) == before
    assert (await client.post(f"{RUNS}/{run['id']}/undo")).status_code == 409


async def test_wrong_requests_are_refused(client: httpx.AsyncClient, services: Services) -> None:
    assert (await client.get(RUNS)).status_code == 404
    assert (await client.post(RUNS, json={})).status_code == 404
    await someone(services)
    assert (await client.post(RUNS, json={"expert": "nobody"})).status_code == 404
    assert (await client.post(RUNS, json={"dry_run": "perhaps"})).status_code == 422
    assert (await client.post(f"{RUNS}/{uuid4()}/undo")).status_code == 404
    assert (await client.get(RUNS)).json() == {"items": [], "next": None}


async def test_an_export_of_compressed_memory_gives_an_equal_export_elsewhere(
    client: httpx.AsyncClient, services: Services
) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA, "A letter from Lisbon")
    await compress(services, owner)
    whole = await export(client)
    kinds = [json.loads(line).get("episode_type") for line in whole.splitlines()]
    assert [kind for kind in kinds if kind] == ["consolidated", "context"]
    await services.erasure.erase(owner.tenant_id, "u-1")
    answer = await send(client, whole.encode())
    assert (answer["skipped"], answer["refused"]) == (0, 0)
    assert await export(client) == whole
    assert len(await Tenants(services.database).list()) == 1


def _command(engines: Engines, server: ModelServer, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables = {
        "ANAMNESIS_DATABASE_URL": engines.database_url,
        "ANAMNESIS_MILVUS_URI": engines.milvus_uri,
        "ANAMNESIS_LLM_MODEL": "scripted",
        "ANAMNESIS_LLM_BASE_URL": server.base_url,
    }
    return run_command("compress", *arguments, variables=variables)


@pytest.mark.slow
async def test_the_command_compresses_and_takes_back(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    owner = await someone(services)
    await write(services, owner, *TEA)

    async def told(*arguments: str) -> dict[str, Any]:
        ended = await asyncio.to_thread(_command, engines, model_server, "u-1", *arguments, "--json")
        assert ended.returncode == 0, ended.stderr
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    assert (await told("--dry-run"))["superseded"] == 4
    assert len(await living(services, owner)) == 4
    run = await told()
    assert await living(services, owner) == [TEA[-1]]
    both = await asyncio.to_thread(_command, engines, model_server, "u-1", "--undo", run["run"], "--dry-run")
    assert (both.returncode, await living(services, owner)) == (2, [TEA[-1]])
    assert await told("--undo", run["run"]) == {"run": run["run"], "restored": 4}
    again = await asyncio.to_thread(_command, engines, model_server, "u-1", "--undo", run["run"])
    assert (again.returncode, again.stderr) == (1, "anamnesis: This run was undone already.\n")
    nobody = await asyncio.to_thread(_command, engines, model_server, "u-9")
    assert (nobody.returncode, nobody.stderr) == (1, "anamnesis: There is no user 'u-9'.\n")
