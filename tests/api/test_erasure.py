"""A user is erased over HTTP and from the command line."""

import asyncio
import json
import subprocess

import httpx
import pytest

from services.bootstrap import Services
from services.engines import Engines
from tests.support.command import run_command
from tests.support.turns import exchange, remember

pytestmark = pytest.mark.anyio


async def test_an_erased_user_is_not_found_any_more(client: httpx.AsyncClient, services: Services) -> None:
    turn = await exchange(services.turns, "Hello", "Hi", space="a space")
    await remember(services.database, turn)
    erased = await client.delete("/api/v1/users/u-1")
    assert erased.status_code == 200
    assert erased.json() == {
        "user_id": "u-1",
        "removed": {
            "postgresql": {
                "users": 1,
                "conversations": 1,
                "messages": 2,
                "turns": 1,
                "conversation_summaries": 1,
                "summary_parts": 1,
                "topics": 1,
                "context_epochs": 1,
                "core_memory_blocks": 1,
                "core_memory_history": 1,
                "core_memory_generations": 1,
                "memory_generations": 1,
                "episodes": 2,
                "memory_operations": 1,
                "visits": 1,
                "daily_summaries": 1,
                "upkeep_runs": 1,
                "upkeep_changes": 1,
                "upkeep_nights": 1,
                "core_memory_pins": 1,
                "feedback": 1,
                "conversation_branches": 1,
                "usage": 1,
                "spaces": 1,
                "recall_exclusions": 1,
                "forget_receipts": 1,
                "forgotten_words": 1,
                "memory_versions": 1,
                "store_items": 1,
                "tool_accounts": 1,
                "knowledge_bases": 0,
                "kb_documents": 0,
                "kb_chunks": 0,
            },
            "queue": {"jobs": 0},
            "redis": {"turn_events": 0, "core_memory": 0},
            "milvus": {"units": 0},
        },
        "pending": [],
    }
    for path in (f"turns/{turn.turn_id}", f"conversations/{turn.conversation_id}"):
        assert (await client.get(f"/api/v1/{path}")).status_code == 404
    assert (await client.delete("/api/v1/users/u-1")).json()["code"] == "not_found"
    assert (await client.delete("/api/v1/users/no%0Aid")).status_code == 422


@pytest.mark.in_clear
@pytest.mark.slow
async def test_the_command_erases_and_says_what(url: str, services: Services, engines: Engines) -> None:
    await exchange(services.turns, "Hello", "Hi")
    await exchange(services.turns, "Hello", "Hi", external_user_id="u-2")
    stores = {"ANAMNESIS_DATABASE_URL": engines.database_url}
    owner = {**stores, "ANAMNESIS_MIGRATION_DATABASE_URL": str(engines.owner_url)}

    async def erase(*arguments: str, typed: str = "", **given: str) -> "subprocess.CompletedProcess[str]":
        variables = {"ANAMNESIS_URL": url, **given}
        return await asyncio.to_thread(run_command, "erase", *arguments, variables=variables, typed=typed)

    refused = await erase("u-1", typed="n\n")
    assert (refused.returncode, refused.stdout.strip()) == (1, "")
    ownerless = await erase("u-1", "--yes", "--scrub", **stores)
    assert ownerless.returncode == 2
    assert "ANAMNESIS_MIGRATION_DATABASE_URL" in ownerless.stderr

    done = await erase("u-1", typed="y\n")
    assert done.returncode == 0, done.stderr
    assert "Erased u-1: 1 memory, 1 conversation, 2 messages, 1 turn" in done.stdout
    again = await erase("u-1", "--yes")
    assert (again.returncode, again.stderr) == (1, "anamnesis: There is no user 'u-1'.\n")

    scrubbed = await erase("u-2", "--yes", "--scrub", "--json", **owner)
    assert scrubbed.returncode == 0, scrubbed.stderr
    told = json.loads(scrubbed.stdout)
    assert told["scrubbed"] is True
    assert told["removed"]["postgresql"]["messages"] == 2
