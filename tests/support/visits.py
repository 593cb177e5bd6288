"""Visits for tests: passing time, and the rows in the database."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from services.bootstrap import Services
from services.identity.tenants import DEFAULT_TENANT
from services.platform.postgres import Database
from services.transfer.report import ImportReport
from tests.support.transfer import ndjson

_PASS = """
WITH said AS (UPDATE messages SET created_at = created_at - %(time)s),
     due AS (UPDATE turns SET started_at = started_at - %(time)s)
UPDATE visits SET started_at = started_at - %(time)s, last_active_at = last_active_at - %(time)s,
    ended_at = ended_at - %(time)s, daily_due_at = daily_due_at - %(time)s
"""

_VISITS = """
SELECT id, conversation_id, started_at, last_active_at, ended_at, end_reason, message_count, summary,
       summarised_count, daily_due_at
FROM visits ORDER BY started_at, id
"""

_DAYS = """
SELECT u.external_id AS user, d.date, d.timezone, d.summary, d.key_topics, d.session_count, d.message_count
FROM daily_summaries d JOIN users u ON u.id = d.user_id ORDER BY 1, 2
"""


async def let_pass(database: Database, time: timedelta) -> None:
    """Make everything that was said older by this much."""
    async with database.tenant(DEFAULT_TENANT) as connection:
        await connection.execute(_PASS, {"time": time})


async def visits_of(database: Database) -> list[dict[str, Any]]:
    """All visits of the default tenant, oldest first."""
    return await database.fetch(DEFAULT_TENANT, _VISITS, {}, dict_row)


async def days_of(database: Database) -> list[dict[str, Any]]:
    """All summaries of days of the default tenant, by user and date."""
    return await database.fetch(DEFAULT_TENANT, _DAYS, {}, dict_row)


def said(at: datetime, content: str = "Hello", **values: Any) -> dict[str, Any]:
    """A message of an import."""
    usual = {"user_id": "u-1", "session_id": "s-1", "role": "user", "content": content}
    return {**usual, "created_at": at.isoformat(), **values}


async def import_lines(
    services: Services, *lines: dict[str, Any], tenant_id: UUID = DEFAULT_TENANT
) -> ImportReport:
    async def chunks() -> AsyncIterator[bytes]:
        yield ndjson(*lines)

    report = await services.importer.run(tenant_id, chunks())
    assert not report.errors, report.errors
    return report


def talk_at(at: datetime, topic: str, *, exchanges: int = 2, **values: Any) -> Sequence[dict[str, Any]]:
    """Return the lines of a visit: the user asks about the topic and is answered, a minute apart."""
    lines = []
    for number in range(exchanges):
        begun = at + timedelta(minutes=2 * number)
        lines.append(said(begun, f"Tell me more about {topic}, part {number + 1}, please.", **values))
        answer = f"About {topic} there is this to say: {number + 1}."
        lines.append(said(begun + timedelta(minutes=1), answer, role="assistant", **values))
    return lines
