"""Keeps promises: says what is due in the conversation where it was asked for, exactly once.

Each minute, one statement finds the users of whom anything is due, and a job for each says it. What is said, and
that it was said, is one transaction under the lock of the promise's row: a job that is killed, doubled or run
again says nothing twice, and what it could not say is found in the next minute.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog
from psycopg.rows import dict_row, tuple_row
from uuid_utils.compat import uuid7

from services.conversations.values import message_digest, message_tokens, title_of
from services.encryption.marks import Words, WordsDigest
from services.jobs.queue import JobQueue
from services.jobs.tasks import RunningJob
from services.llm.chat_models import ChatModels
from services.platform.connections import Connection
from services.platform.postgres import Database
from services.promises import sql
from services.promises.following import Following
from services.promises.promise import stands
from services.promises.quiet import is_quiet
from services.promises.wording import worded
from services.time_reference.occasions import next_moment

KEEP = "keep_promises"
"""Task that says what is due of a user's."""
ROUND = "find_due_promises"

_EVERY = "* * * * *"
"""A cron expression: at the beginning of each minute, to which promises are made."""
_OVER = timedelta(days=1)
"""After its moment, a promise that nobody could keep is missed."""
_AT_ONCE = 50
_AGAIN_S = 3.0
"""Seconds after which the rest is looked at: more than that, and conversations in which a turn runs."""
_SESSION = "reminders"
"""Name of the conversation of a user who has none."""

log = structlog.get_logger(__name__)


class Keeping:
    """Finds what is due, and says it. Every process with a worker has one."""

    def __init__(
        self,
        database: Database,
        models: ChatModels,
        jobs: JobQueue,
        *,
        following: Following | None = None,
        quiet_hours: str = "never",
    ) -> None:
        """Register the jobs; `quiet_hours` are those of users who have set none."""
        self._database = database
        self._models = models
        self._jobs = jobs
        self._quiet_hours = quiet_hours
        self._following = following
        jobs.task(KEEP)(self._job)
        jobs.periodic(ROUND, _EVERY)(self._round)

    async def find(self, now: datetime) -> int:
        """Queue a job for each user of whom something is due, of all tenants; return how many."""
        due = await self._database.fetch_without_tenant(sql.USERS_WITH_DUE, {"now": now}, tuple_row)
        by_tenant: dict[UUID, list[UUID]] = {}
        for tenant_id, user_id in due:
            by_tenant.setdefault(tenant_id, []).append(user_id)
        for tenant_id, users in by_tenant.items():
            async with self._database.tenant(tenant_id) as connection:
                for user_id in users:
                    await self._jobs.defer(connection, KEEP, tenant_id=tenant_id, one_of=user_id, user_id=user_id)
        return len(due)

    async def keep(self, tenant_id: UUID, user_id: UUID, now: datetime) -> bool:
        """Say what is due of a user's; return whether more is, or something waits for the end of a turn."""
        whose = {"tenant_id": tenant_id, "user_id": user_id}
        values = {**whose, "now": now, "limit": _AT_ONCE}
        if self._following is not None:
            await self._following.follow(tenant_id, user_id, now)
        rows = await self._database.fetch(tenant_id, sql.DUE, values, dict_row)
        waits = len(rows) == _AT_ONCE
        for row in rows:
            if self._waits_for_day(row, now):
                continue
            said: str | None = ""
            if stands(row) and now - row["due_at"] <= _OVER:
                said = await worded(self._models, row, await self._since(row), now)
            waits |= not await self._settle(row, said, now)
        return waits

    def _waits_for_day(self, row: Mapping[str, Any], now: datetime) -> bool:
        """Whether it was the assistant's offer, and the user wants to be asked nothing now."""
        hours = row["quiet_hours"] or self._quiet_hours
        asks = row["asked_by"] == "offer" and now - row["due_at"] <= _OVER
        return asks and is_quiet(hours, now, row["users_zone"])

    async def _since(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        values = {name: row[name] for name in ("tenant_id", "user_id", "expert_id", "space_id")}
        values["since"] = row["asked_at"] or row["created_at"]
        found = await self._database.fetch(row["tenant_id"], sql.SAID_SINCE, values, tuple_row)
        return [(role, content) for role, content, _ in found]

    async def _settle(self, seen: Mapping[str, Any], said: str | None, now: datetime) -> bool:
        """Store what is said, and that it was; return whether it is done. None = it is kept in silence. A
        promise that was settled, moved or forgotten meanwhile is left alone. One without words is missed."""

        async def settle(connection: Connection) -> bool:
            values = {name: seen[name] for name in ("id", "tenant_id", "user_id", "expert_id", "space_id")}
            values["conversation_id"] = seen["conversation_id"]
            async with connection.cursor(row_factory=dict_row) as cursor:
                row = await (await cursor.execute(sql.LOCK, values)).fetchone()
            if row is None or row["state"] != "open" or row["due_at"] != seen["due_at"]:
                return True
            message_id = None
            if said and stands(row):
                place = await self._place(connection, seen, values)
                if await _is_busy(connection, place):
                    return False
                message_id = uuid7()
                await _say(connection, place, said, message_id)
            await connection.execute(sql.SETTLE, {**values, **_outcome(row, said, now), "message_id": message_id})
            return True

        return await self._database.transact(seen["tenant_id"], settle)

    async def _place(
        self, connection: Connection, row: Mapping[str, Any], values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the values of the conversation in which it is said, which nobody else changes until then."""
        found = await (await connection.execute(sql.PLACE, values)).fetchone()
        if found is None:
            new = {**values, "new_id": uuid7(), "new_key": _SESSION, "title": Words(title_of(row["text"]))}
            if row["expert"] != "default" or row["space"]:
                new["new_key"] = f"{_SESSION}-{row['expert']}-{row['space_id'] or ''}".rstrip("-")
            await connection.execute(sql.BEGIN_CONVERSATION, new)
            found = await (await connection.execute(sql.PLACE, values)).fetchone()
            assert found is not None  # noqa: S101 — it was just begun
        lock = f"{row['tenant_id']} {row['external_id']} {found[1]}"
        await connection.execute(sql.TAKE_PLACE, {"lock": lock})
        return {**values, "conversation_id": found[0]}

    async def _job(self, job: RunningJob, *, user_id: UUID, **_: UUID) -> float | None:
        return _AGAIN_S if await self.keep(job.tenant_id, user_id, datetime.now(UTC)) else None

    async def _round(self) -> None:
        if users := await self.find(datetime.now(UTC)):
            log.info("promises are due", users=users)


async def _is_busy(connection: Connection, place: Mapping[str, Any]) -> bool:
    row = await (await connection.execute(sql.IS_BUSY, place)).fetchone()
    return bool(row and row[0])


async def _say(connection: Connection, place: Mapping[str, Any], said: str, message_id: UUID) -> None:
    """Store the message, with the turn that began by itself."""
    values = {
        **place,
        "turn_id": uuid7(),
        "message_id": message_id,
        "no_message_id": uuid4(),
        "content": Words(said),
        "token_count": message_tokens(said),
        "digest": WordsDigest(message_digest("assistant", said)),
    }
    await connection.execute(sql.SAY, values)


def _outcome(row: Mapping[str, Any], said: str | None, now: datetime) -> dict[str, Any]:
    """Return the state of a promise that was due, and when it is due next."""
    state = "missed" if said == "" else "kept"
    if not row["rule"]:
        return {"state": state, "next": None}
    following = next_moment(row["rule"], max(now, row["due_at"]), row["timezone"])
    return {"state": state, "next": None} if following is None else {"state": "open", "next": following}
