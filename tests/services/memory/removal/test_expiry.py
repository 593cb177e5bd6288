"""What a tenant's rules remove, and what they leave."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from services.bootstrap import Services
from services.errors import Conflict
from services.identity.tenants import DEFAULT_TENANT
from services.memory.operations import Operation, Trigger
from services.memory.removal.expiry import RetentionReport
from state.turn import OpenTurn
from tests.support.turns import exchange

pytestmark = pytest.mark.untraced


async def _rows(services: Services, statement: Any, *values: Any) -> list[Any]:
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        cursor = await connection.execute(statement, values)
        return await cursor.fetchall() if cursor.description else []


async def _said(services: Services, session: str, days_ago: int) -> OpenTurn:
    """A turn of `days_ago` days ago, with its episode."""
    turn = await exchange(services.turns, f"{session} {days_ago}", "An answer.", session_id=session)
    at = datetime.now(UTC) - timedelta(days=days_ago)
    await _rows(services, "UPDATE messages SET created_at = %s WHERE turn_id = %s", at, turn.turn_id)
    await _rows(
        services,
        "UPDATE turns SET finished_at = %s, prompt = %s, context_report = %s WHERE id = %s",
        at,
        Jsonb([]),
        Jsonb({"sources": []}),
        turn.turn_id,
    )
    return turn


async def _counts(services: Services) -> dict[str, int]:
    tables = ("conversations", "messages", "turns", "episodes", "memory_operations")
    return {table: (await _rows(services, f"SELECT count(*) FROM {table}"))[0][0] for table in tables}


def _counted(report: RetentionReport) -> dict[str, dict[str, int]]:
    return {each.kind: each.counts for each in report.kinds}


async def _set(services: Services, **rules: int | None) -> None:
    await services.retention.change_rules(DEFAULT_TENANT, rules)  # type: ignore[arg-type]


async def test_a_preview_counts_exactly_what_a_run_removes(services: Services) -> None:
    for session in ("old-1", "old-2"):
        await _said(services, session, 40)
    await _said(services, "goes-on", 40)
    await _said(services, "goes-on", 2)
    await _set(services, messages=30)

    before = await _counts(services)
    preview = await services.retention.preview(DEFAULT_TENANT)
    assert await _counts(services) == before
    (messages,) = preview.kinds
    assert messages.counts == {"conversations": 2, "messages": 4, "turns": 2, "turn_episodes": 2}
    assert messages.staying == 2
    assert datetime.now(UTC) - messages.before >= timedelta(days=30)

    report = await services.retention.run(DEFAULT_TENANT, seconds=60)
    assert (_counted(report), report.complete) == (_counted(preview), True)
    after = await _counts(services)
    assert {table: before[table] - after[table] for table in before} == {
        "conversations": 2,
        "messages": 4,
        "turns": 2,
        "episodes": 2,
        "memory_operations": 0,
    }
    assert _counted(await services.retention.preview(DEFAULT_TENANT))["messages"]["conversations"] == 0
    (kept,) = await services.retention.reports(DEFAULT_TENANT, limit=10)
    assert kept.report["kinds"][0]["counts"] == messages.counts


async def test_what_was_written_down_outlives_its_conversation(services: Services) -> None:
    turn = await _said(services, "old", 40)
    await _rows(
        services,
        "UPDATE episodes SET content = 'Plays the cello.', episode_type = 'preference' WHERE conversation_id = %s",
        turn.conversation_id,
    )
    await _set(services, messages=30)
    report = await services.retention.run(DEFAULT_TENANT, seconds=60)
    assert _counted(report)["messages"]["turn_episodes"] == 0
    assert await _rows(services, "SELECT content, conversation_id FROM episodes") == [("Plays the cello.", None)]


async def test_a_conversation_that_is_continued_meanwhile_stays(services: Services) -> None:
    turn = await _said(services, "old", 40)
    (conversation,) = await _rows(services, "SELECT id, user_id, expert_id FROM conversations")
    found = dict(zip(("conversation_id", "user_id", "expert_id"), conversation, strict=True))
    since = datetime.now(UTC) - timedelta(days=30)
    await exchange(services.turns, "Back again", "Welcome.", session_id="old")
    with pytest.raises(Conflict):
        await services.erasure.expire(DEFAULT_TENANT, found, silent_since=since)
    assert (await services.turns.get(DEFAULT_TENANT, turn.turn_id)).answer == "An answer."


async def test_turns_lose_their_prompts_and_reports_and_nothing_else(services: Services) -> None:
    old, new = await _said(services, "s", 40), await _said(services, "s", 2)
    await _set(services, turns=30)
    assert _counted(await services.retention.preview(DEFAULT_TENANT)) == {"turns": {"turns": 1}}
    assert _counted(await services.retention.run(DEFAULT_TENANT, seconds=60)) == {"turns": {"turns": 1}}
    emptied = await services.turns.get(DEFAULT_TENANT, old.turn_id)
    assert (emptied.answer, emptied.context_report) == ("An answer.", None)
    assert (await services.turns.get(DEFAULT_TENANT, new.turn_id)).context_report == {"sources": []}
    assert await _rows(services, "SELECT count(*) FROM turns WHERE prompt IS NULL") == [(1,)]


async def test_old_operations_and_finished_jobs_go_and_waiting_ones_stay(services: Services) -> None:
    turn = await _said(services, "s", 2)
    trigger = Trigger("user", expert_id=turn.expert_id)
    async with services.database.tenant(DEFAULT_TENANT) as connection:
        for operation in (
            Operation("episode_insert"),
            Operation("memory_proposal", new_value={"text": "x"}, results={"state": "waiting"}),
            Operation("memory_proposal", new_value={"text": "y"}, results={"state": "rejected"}),
        ):
            await services.memory.operations.append(connection, DEFAULT_TENANT, turn.user_id, operation, trigger)
        for number in range(2):
            await services.jobs.defer(
                connection, "erase_traces", tenant_id=DEFAULT_TENANT, user_id=turn.user_id, lock=str(number)
            )
    await _rows(services, "UPDATE memory_operations SET at = now() - interval '40 days'")
    await _rows(
        services,
        "UPDATE procrastinate_jobs SET status = 'succeeded' WHERE id = (SELECT max(id) FROM procrastinate_jobs "
        "WHERE task_name = 'erase_traces')",
    )
    await _rows(services, "UPDATE procrastinate_events SET at = now() - interval '40 days'")
    await _set(services, operations=30, jobs=30)
    preview = await services.retention.preview(DEFAULT_TENANT)
    report = await services.retention.run(DEFAULT_TENANT, seconds=60)
    assert _counted(report) == _counted(preview)
    assert _counted(report)["jobs"]["jobs"] == 1
    assert await _rows(services, "SELECT results->>'state' FROM memory_operations") == [("waiting",)]
    assert await _rows(services, "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'erase_traces'") == [
        (1,)
    ]
