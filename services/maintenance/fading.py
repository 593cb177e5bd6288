"""Fading: takes memories that are unimportant and were not used for long out of prompts and recall.

A run is one transaction. While it can be undone, a memory that it took points to it (`archived_by`).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import structlog
from psycopg.rows import class_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.jobs.queue import JobQueue
from services.maintenance import sql
from services.maintenance.policy import Action, MaintenancePolicies, MaintenancePolicy
from services.memory.episodes.episode import EpisodeType
from services.memory.episodes.store import FORGET
from services.memory.operations import Actor, Operation, OperationLog, Trigger
from services.memory.removal.merged import remove_with_merged
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database

Reason = Literal["night", "request", "import"]

_MOST_PREVIEWED = 1000
_RUNS_AT_ONCE = 100

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class FadingMemory:
    """A memory that would fade, and why."""

    id: UUID
    expert: str
    space: str | None
    """Name of its space; None = all spaces share it."""
    episode_type: EpisodeType
    content: str
    """The memory as it was written; of a turn what was said, with who said it."""
    importance: float
    learned_at: datetime
    last_recalled_at: datetime | None
    unused_days: int
    """Whole days since it was last recalled, or learned if it never was."""
    why: str
    """The reason in words."""


@dataclass(frozen=True)
class FadingPreview:
    """What a run would do at this moment."""

    policy: MaintenancePolicy
    total: int
    """Memories that would fade."""
    items: list[FadingMemory]
    """The first 1000 of them, longest unused first."""


@dataclass(frozen=True)
class FadingRun:
    """A run as it is reported."""

    id: UUID
    reason: Reason
    action: Action
    days: int | None
    """The figures of the policy that it followed; None where an import brought archived memories."""
    importance: float | None
    episode_ids: list[UUID]
    """Memories that it archived or removed."""
    created_at: datetime
    undone_at: datetime | None
    forgotten_at: datetime | None
    """When what it removed was deleted for good."""
    can_be_undone: bool


class MemoryFading:
    """Previews, carries out, reports and undoes runs."""

    def __init__(
        self, database: Database, policies: MaintenancePolicies, operations: OperationLog, jobs: JobQueue
    ) -> None:
        self._database = database
        self._policies = policies
        self._log = operations
        self._jobs = jobs

    async def preview(
        self, tenant_id: UUID, user: str, policy: MaintenancePolicy | None = None, *, now: datetime | None = None
    ) -> FadingPreview:
        """Return what a run by request would take now, by a policy or the tenant's own.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        policy = policy or await self._policies.of(tenant_id)
        user_id = await user_id_of(self._database, tenant_id, user)
        now = now or datetime.now(UTC)
        if policy.fading == "never":
            return FadingPreview(policy, 0, [])
        values = {**_values(tenant_id, user_id, policy, "request", now), "limit": _MOST_PREVIEWED}
        rows = await self._database.fetch(tenant_id, sql.PREVIEW, values, class_row(_Unused))
        return FadingPreview(policy, rows[0].total if rows else 0, [_explained(row, policy, now) for row in rows])

    async def run(
        self,
        tenant_id: UUID,
        user: str,
        policy: MaintenancePolicy | None = None,
        *,
        now: datetime | None = None,
    ) -> FadingRun:
        """Carry out a run for a user by request, by a policy or the tenant's own; return its report.

        Raises:
            Conflict: by the policy nothing fades.
            NotFound: the tenant has no such user, or the user was erased.
            DatabaseUnavailable: the database does not answer; nothing was changed.
        """
        policy = policy or await self._policies.of(tenant_id)
        if policy.fading == "never":
            raise Conflict("By the tenant's policy of maintenance nothing fades: its `fading` is `never`.")
        user_id = await user_id_of(self._database, tenant_id, user)
        run_id = await self._fade(tenant_id, user_id, policy, "request", now or datetime.now(UTC))
        if run_id is None:
            raise NotFound(f"There is no user {user!r}.")
        return await self.report(tenant_id, user, run_id)

    async def run_by_night(self, tenant_id: UUID, user_id: UUID, policy: MaintenancePolicy, now: datetime) -> None:
        """Carry out the nightly run for a user; a night that finds nothing leaves no report.

        Raises:
            DatabaseUnavailable: the database does not answer; nothing was changed.
        """
        if policy.fading != "never":
            await self._fade(tenant_id, user_id, policy, "night", now)

    async def report(self, tenant_id: UUID, user: str, run_id: UUID) -> FadingRun:
        """Return the report of a run.

        Raises:
            NotFound: the tenant has no such user, or the user no such run.
            DatabaseUnavailable: the database does not answer.
        """
        found = await self.runs(tenant_id, user, run_id=run_id)
        if not found:
            raise NotFound(f"There is no run of fading {run_id}.")
        return found[0]

    async def runs(
        self,
        tenant_id: UUID,
        user: str,
        *,
        run_id: UUID | None = None,
        after: tuple[datetime, UUID] | None = None,
        limit: int = 1,
    ) -> Sequence[FadingRun]:
        """Reports of a user's runs, newest first, or of the one with this id.

        Raises:
            NotFound: the tenant has no such user.
            DatabaseUnavailable: the database does not answer.
        """
        at, last = after or (None, None)
        values = {
            "tenant_id": tenant_id,
            "user_id": await user_id_of(self._database, tenant_id, user),
            "run_id": run_id,
            "after_at": at,
            "after_id": last,
            "limit": limit,
        }
        return await self._database.fetch(tenant_id, sql.RUNS, values, class_row(FadingRun))

    async def undo(self, tenant_id: UUID, user: str, run_id: UUID) -> FadingRun:
        """Bring back everything that a run took and that was not brought back or removed since.

        Raises:
            NotFound: the tenant has no such user, or the user no such run.
            Conflict: it was undone before, or what it removed is gone for good.
            DatabaseUnavailable: the database does not answer; nothing was changed.
        """
        values: dict[str, Any] = {
            "tenant_id": tenant_id,
            "user_id": await user_id_of(self._database, tenant_id, user),
            "run_id": run_id,
        }

        async def brought_back(connection: Connection) -> None:
            await connection.execute(sql.LOCK_USER, values)
            row = await (await connection.execute(sql.LOCK_RUN, values)).fetchone()
            if row is None:
                raise NotFound(f"There is no run of fading {run_id}.")
            undone, forgotten, _ = row
            if undone:
                raise Conflict("This run was undone already.")
            if forgotten:
                raise Conflict("This run cannot be undone any more: what it removed was deleted for good.")
            back = await (await connection.execute(sql.BRING_BACK, values)).fetchall()
            await connection.execute(sql.UNDONE, values)
            await self._note(connection, values, "fading_undo", "user", back)

        await self._database.transact(tenant_id, brought_back, statement_s=UNHURRIED_S)
        return await self.report(tenant_id, user, run_id)

    async def restore(self, tenant_id: UUID, user: str, episode_id: UUID) -> None:
        """Bring one archived or removed memory back.

        Raises:
            NotFound: the tenant has no such user, or the user no such memory.
            Conflict: it is not archived.
            DatabaseUnavailable: the database does not answer.
        """
        values: dict[str, Any] = {
            "tenant_id": tenant_id,
            "user_id": await user_id_of(self._database, tenant_id, user),
            "episode_id": episode_id,
        }

        async def brought_back(connection: Connection) -> None:
            await connection.execute(sql.LOCK_USER, values)
            row = await (await connection.execute(sql.RESTORE, values)).fetchone()
            if row is None:
                if await (await connection.execute(sql.EPISODE, values)).fetchone() is None:
                    raise NotFound(f"There is no episode {episode_id}.")
                raise Conflict(f"The episode {episode_id} is not archived.")
            values["run_id"] = row[2]
            await self._note(connection, values, "episode_restore", "user", [(episode_id, row[0], row[1])])

        await self._database.transact(tenant_id, brought_back)

    async def delete_older(self, tenant_id: UUID, before: datetime) -> int:
        """Delete for good what runs before a time removed and nobody brought back; return how many runs.

        Raises:
            DatabaseUnavailable: the database does not answer.
        """
        values = {"tenant_id": tenant_id, "before": before, "limit": _RUNS_AT_ONCE}
        old = await self._database.fetch(tenant_id, sql.OLD_REMOVALS, values, tuple_row)
        for run_id, user_id in old:
            await self._delete(tenant_id, user_id, run_id)
        return len(old)

    async def _delete(self, tenant_id: UUID, user_id: UUID, run_id: UUID) -> None:
        values: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id, "run_id": run_id}

        async def deleted(connection: Connection) -> None:
            await connection.execute(sql.LOCK_USER, values)
            row = await (await connection.execute(sql.LOCK_RUN, values)).fetchone()
            if row is None or row[0] or row[1]:
                return
            gone: list[UUID] = []
            for (episode_id,) in await (await connection.execute(sql.STILL_REMOVED, values)).fetchall():
                gone += await remove_with_merged(connection, tenant_id, user_id, episode_id)
            await connection.execute(sql.FORGOTTEN, values)
            if gone:
                await self._jobs.defer(connection, FORGET, tenant_id=tenant_id, user_id=user_id, episode_ids=gone)

        await self._database.transact(tenant_id, deleted, statement_s=UNHURRIED_S)

    async def _fade(
        self, tenant_id: UUID, user_id: UUID, policy: MaintenancePolicy, reason: Reason, now: datetime
    ) -> UUID | None:
        """Carry out a run; return its id, None if the user is gone or a night found nothing."""
        run_id = uuid7()
        values = {**_values(tenant_id, user_id, policy, reason, now), "run_id": run_id, "action": policy.fading}

        async def faded(connection: Connection) -> list[Any] | None:
            if await (await connection.execute(sql.LOCK_USER, values)).fetchone() is None:
                return None
            taken = await (await connection.execute(sql.FADE, values)).fetchall()
            if not taken and reason == "night":
                return None
            await connection.execute(sql.ADD_RUN, {**values, "episode_ids": [row[0] for row in taken]})
            actor: Actor = "maintenance" if reason == "night" else "user"
            await self._note(connection, values, f"episode_{policy.fading}", actor, taken)
            return taken

        taken = await self._database.transact(tenant_id, faded, statement_s=UNHURRIED_S)
        if taken is None:
            return None
        log.info("memories faded", run_id=str(run_id), action=policy.fading, memories=len(taken))
        return run_id

    async def _note(
        self,
        connection: Connection,
        values: dict[str, Any],
        kind: str,
        actor: Actor,
        memories: Sequence[tuple[UUID, UUID, UUID | None]],
    ) -> None:
        """Log one operation for each expert and space whose memory changed, with ids only."""
        changed: dict[tuple[UUID, UUID | None], list[str]] = defaultdict(list)
        for episode_id, expert_id, space_id in memories:
            changed[expert_id, space_id].append(str(episode_id))
        details = {"run_id": str(values["run_id"])}
        details |= {name: values[name] for name in ("days", "importance") if name in values}
        for (expert_id, space_id), ids in changed.items():
            await self._log.append(
                connection,
                tenant_id=values["tenant_id"],
                user_id=values["user_id"],
                operation=Operation(kind, field=str(values["run_id"]), results=ids),
                trigger=Trigger(actor, expert_id=expert_id, space_id=space_id, details=details),
            )


@dataclass(frozen=True)
class _Unused:
    id: UUID
    expert: str
    space: str | None
    episode_type: EpisodeType
    importance: float
    learned_at: datetime
    last_recalled_at: datetime | None
    content: str
    total: int


def _explained(row: _Unused, policy: MaintenancePolicy, now: datetime) -> FadingMemory:
    unused = (now - max(row.learned_at, row.last_recalled_at or row.learned_at)).days
    used = (
        f"last recalled on {row.last_recalled_at:%Y-%m-%d}"
        if row.last_recalled_at
        else f"never recalled since it was learned on {row.learned_at:%Y-%m-%d}"
    )
    importance = round(row.importance, 3)
    return FadingMemory(
        id=row.id,
        expert=row.expert,
        space=row.space,
        episode_type=row.episode_type,
        content=row.content,
        importance=importance,
        learned_at=row.learned_at,
        last_recalled_at=row.last_recalled_at,
        unused_days=unused,
        why=f"Importance {importance:g} is below {policy.fading_importance:g}, and it was {used}: "
        f"{unused} days, where the policy allows {policy.fading_days}.",
    )


def _values(
    tenant_id: UUID, user_id: UUID, policy: MaintenancePolicy, reason: Reason, now: datetime
) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "user_id": user_id,
        "reason": reason,
        "days": policy.fading_days,
        "importance": policy.fading_importance,
        "before": now - timedelta(days=policy.fading_days),
    }
