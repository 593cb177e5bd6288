"""`anamnesis backfill` as a process: what it makes, what it leaves, and how it goes on."""

import asyncio
import json
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from services.bootstrap import Services
from services.engines import Engines
from services.identity.tenants import DEFAULT_TENANT
from services.summaries.store import StoredSummary
from tests.services.summaries.test_daily_summaries import written
from tests.support.command import run_command, start_command
from tests.support.fork_server import ForkedProcess
from tests.support.jobs import until
from tests.support.model_server import ModelServer, Received, Reply
from tests.support.talks import new_expert, talk
from tests.support.visits import days_of, import_lines, talk_at, visits_of

pytestmark = [pytest.mark.slow, pytest.mark.traced]

QUICK = Reply(["They ", "talked."])
SLOW = Reply(["They ", "talked."], delay_s=60)


def _start(
    engines: Engines, server: ModelServer, *more: str, command: str = "summaries", **variables: str
) -> ForkedProcess:
    given = _variables(engines, server, **variables)
    return start_command("backfill", command, *more, variables=given)


def _variables(engines: Engines, server: ModelServer, **variables: str) -> dict[str, str]:
    return {
        "ANAMNESIS_DATABASE_URL": engines.database_url,
        "ANAMNESIS_LLM_MODEL": "scripted",
        "ANAMNESIS_SMALL_LLM_MODEL": "small",
        "ANAMNESIS_LLM_BASE_URL": server.base_url,
        # As the services of these tests: fewer messages than usual until there is a summary.
        "ANAMNESIS_MEMORY_SUMMARY_MIN_MESSAGES": "10",
        "ANAMNESIS_MEMORY_SUMMARY_UPDATE_DELTA": "5",
        **variables,
    }


async def _run(
    engines: Engines, server: ModelServer, *more: str, command: str = "summaries", **variables: str
) -> "subprocess.CompletedProcess[str]":
    given = _variables(engines, server, **variables)
    return await asyncio.to_thread(run_command, "backfill", command, *more, variables=given)


async def _report(engines: Engines, server: ModelServer, *more: str, command: str = "summaries") -> dict[str, Any]:
    done = await _run(engines, server, "--json", *more, command=command)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def _summary(
    services: Services, conversation_id: UUID, tenant_id: UUID = DEFAULT_TENANT
) -> StoredSummary | None:
    return await services.summaries.store.get(tenant_id, conversation_id)


async def test_what_is_due_is_made_and_a_second_run_asks_no_model(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    for name in ("topics", "window"):
        await services.experts.create(DEFAULT_TENANT, new_expert(name, context_strategy=name))
    due = [await talk(services.turns, f"due-{number}", 6) for number in range(3)]
    short = await talk(services.turns, "short", 4)
    others = [await talk(services.turns, name, 6, expert=name) for name in ("topics", "window")]
    model_server.default = QUICK

    done = await _run(engines, model_server)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 made, 1 already up to date, 0 failed.\n"
    assert "4/4" in done.stderr
    assert {request.body["model"] for request in model_server.requests} == {"small"}
    for conversation in due:
        assert (made := await _summary(services, conversation))
        assert (made.summary, made.covered_message_count) == ("They talked.", 6)
    assert [await _summary(services, each) for each in (short, *others)] == [None] * 3

    model_server.requests.clear()
    assert await _report(engines, model_server) == {"made": 0, "up_to_date": 4, "failed": []}
    assert model_server.requests == []


async def test_a_conversation_that_fails_is_named_and_the_others_go_on(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    conversations = {
        name: await talk(services.turns, name, 6) for name in ("good-1", "rejected", "wordy", "good-2")
    }

    def answer(received: Received) -> Reply:
        said = " ".join(text for _, text in received.prompt)
        if "In rejected" in said:
            return Reply(status=500)
        return Reply(["word " * 1000]) if "In wordy" in said else QUICK

    model_server.default = answer

    done = await _run(engines, model_server)

    assert done.returncode == 1
    assert done.stdout == "2 made, 0 already up to date, 2 failed.\n"
    failed = [line for line in done.stderr.splitlines() if line.startswith("default: conversation ")]
    assert sorted(failed) == sorted(
        [
            f"default: conversation {conversations['rejected']} failed: The language model's server failed.",
            f"default: conversation {conversations['wordy']} failed: "
            "a summary of 1251 tokens; at most 500 are accepted",
        ]
    )
    assert "Traceback" not in done.stderr

    model_server.default = QUICK
    assert await _report(engines, model_server) == {"made": 2, "up_to_date": 2, "failed": []}


async def test_a_run_that_was_cut_off_is_taken_up(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    conversations = [await talk(services.turns, f"s-{number}", 6) for number in range(6)]
    model_server.script(QUICK, QUICK, QUICK)
    model_server.default = SLOW

    async def made() -> list[StoredSummary]:
        found = [await _summary(services, each) for each in conversations]
        return [summary for summary in found if summary is not None]

    async def three_are_made_and_two_asked_for() -> bool:
        return len(await made()) == 3 and len(model_server.requests) == 5

    process = _start(engines, model_server)
    try:
        await until(three_are_made_and_two_asked_for, seconds=60)
    finally:
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.to_thread(process.communicate, timeout=120)
    before = await made()
    assert len(before) == 3
    assert process.returncode == 1
    assert "anamnesis: stopped; 3 summaries are done, run the command again for the rest" in err
    assert "Traceback" not in err

    model_server.reset()
    model_server.default = QUICK
    assert await _report(engines, model_server) == {"made": 3, "up_to_date": 3, "failed": []}
    assert len(model_server.requests) == 3
    after = await made()
    assert len(after) == 6
    assert {summary.summary_version for summary in after} == {1}
    assert all(summary in after for summary in before)


async def _without_visits(services: Services) -> None:
    """As a database stands whose conversations are older than visits."""
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute("DELETE FROM visits")


async def test_visits_and_then_days_of_older_conversations_are_found(
    services: Services, engines: Engines, model_server: ModelServer
) -> None:
    noon = datetime(2025, 3, 10, 4, tzinfo=UTC)
    for number in range(4):
        await import_lines(services, *talk_at(noon + timedelta(days=number), "tea"))
    await import_lines(services, *talk_at(noon, "skiing", user_id="u-2"))
    shape = [(each["started_at"], each["message_count"]) for each in await visits_of(services.database)]
    await _without_visits(services)
    assert await _report(engines, model_server, command="visits") == {"made": 2, "up_to_date": 0, "failed": []}
    assert [(each["started_at"], each["message_count"]) for each in await visits_of(services.database)] == shape
    assert await _report(engines, model_server, command="visits") == {"made": 0, "up_to_date": 2, "failed": []}
    assert model_server.requests == []
    model_server.default = written("A summary.")
    done = await _run(engines, model_server, command="daily")
    assert done.stdout == "5 made, 0 already up to date, 0 failed.\n"
    assert "5/5" in done.stderr
    assert len(await days_of(services.database)) == 5
    asked = len(model_server.requests)
    assert (await _report(engines, model_server, command="daily"))["up_to_date"] == 5
    assert len(model_server.requests) == asked
