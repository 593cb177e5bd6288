"""Upkeep of a user's memory: a preview, a run, and its undo.

A run merges memories that say the same, proposes to drop the older of two that contradict each other, and archives
what is unimportant and long unused. It changes memory in one transaction, and all of it can be undone.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from psycopg.rows import class_row, dict_row, tuple_row
from uuid_utils.compat import uuid7

from services.errors import Conflict, NotFound
from services.identity.tenants import user_id_of
from services.memory.core.blocks import Owner
from services.memory.core.values import CoreValues
from services.memory.operations import Actor, Operation, OperationLog, Trigger
from services.memory.proposals.pairs import Pairs, Side
from services.memory.removal.tables import Rows
from services.memory.upkeep import sql
from services.memory.upkeep.pairs import Pair, PairFinder, compared_memories
from services.memory.upkeep.policy import (
    FadingMemory,
    Merge,
    Reason,
    UpkeepPolicy,
    UpkeepPreview,
    UpkeepRun,
    policy_of,
)
from services.platform.connections import Connection
from services.platform.postgres import UNHURRIED_S, Database
from services.platform.shared_reads import page_after

_MOST_PREVIEWED = 1000

log = structlog.get_logger(__name__)


class Upkeep:
    """Previews, carries out, reports and undoes runs."""

    def __init__(
        self, database: Database, values: CoreValues, finder: PairFinder, proposed: Pairs, operations: OperationLog
    ) -> None:
        self._database = database
        self._values = values
        self._finder = finder
        self._proposed = proposed
        self._log = operations

    async def preview(self, tenant_id: UUID, user: str, policy: UpkeepPolicy | None = None) -> UpkeepPreview:
        """Return what a run would do now, by a given policy or the tenant's own."""
        policy = policy or await policy_of(self._database, tenant_id)
        user_id = await user_id_of(self._database, tenant_id, user)
        now = datetime.now(UTC)
        pairs = [
            (pair.dropped, pair.kept) for pair in await self._pairs(tenant_id, user_id, None) if pair.is_merge
        ]
        merges = [
            Merge(dropped.side.id, kept.side.id, dropped.content, kept.content, kept.in_core_memory)
            for dropped, kept in pairs
        ]
        rows: list[dict[str, Any]] = []
        if policy.fading != "never":
            values = {**_values(tenant_id, user_id, policy, "request", now), "limit": _MOST_PREVIEWED}
            rows = await self._database.fetch(tenant_id, sql.PREVIEW, values, dict_row)
        fading = [_explained(row, policy, now) for row in rows]
        return UpkeepPreview(policy, merges, rows[0]["total"] if rows else 0, fading)

    async def run(
        self, tenant_id: UUID, user: str, policy: UpkeepPolicy | None = None, *, now: datetime | None = None
    ) -> UpkeepRun:
        """Carry out a run for a user on request, by a given policy or the tenant's own; return its report. Raises
        `NotFound` if the tenant has no such user, or the user was erased."""
        policy = policy or await policy_of(self._database, tenant_id)
        user_id = await user_id_of(self._database, tenant_id, user)
        pairs = await self._pairs(tenant_id, user_id, None)
        run_id = await self._carry_out(tenant_id, user_id, policy, "request", pairs, now or datetime.now(UTC))
        if run_id is None:
            raise NotFound(f"There is no user {user!r}.")
        await self._propose(tenant_id, user_id, pairs)
        return await self.report(tenant_id, user, run_id)

    async def run_by_night(self, tenant_id: UUID, user_id: UUID, since: datetime | None, now: datetime) -> None:
        """Carry out the nightly run for a user. A run that finds nothing leaves no report.

        Args:
            since: when it was done last: only what was learned after is compared; None = everything.
        """
        policy = await policy_of(self._database, tenant_id)
        pairs = await self._pairs(tenant_id, user_id, since)
        await self._carry_out(tenant_id, user_id, policy, "night", pairs, now)
        await self._propose(tenant_id, user_id, pairs)

    async def report(self, tenant_id: UUID, user: str, run_id: UUID) -> UpkeepRun:
        """Return the report of a run. Raises `NotFound` if the tenant has no such user, or the user no such
        run."""
        found = await self.runs(tenant_id, user, run_id=run_id)
        if not found:
            raise NotFound(f"There is no run of upkeep {run_id}.")
        return found[0]

    async def runs(
        self,
        tenant_id: UUID,
        user: str,
        *,
        run_id: UUID | None = None,
        after: tuple[datetime, UUID] | None = None,
        limit: int = 1,
    ) -> Sequence[UpkeepRun]:
        """Return the reports of a user's runs, newest first, or only the one with this id."""
        user_id = await user_id_of(self._database, tenant_id, user)
        values = {"tenant_id": tenant_id, "user_id": user_id, "run_id": run_id, **page_after(after, limit)}
        return await self._database.fetch(tenant_id, sql.RUNS, values, class_row(UpkeepRun))

    async def undo(self, tenant_id: UUID, user: str, run_id: UUID) -> UpkeepRun:
        """Bring back everything that a run removed, except for what was brought back or removed since. Raises
        `NotFound` if the tenant has no such user, or the user no such run, and `Conflict` if it was undone before.
        """

        async def brought_back(rows: Rows) -> list[Any]:
            run = await rows.all(sql.LOCK_RUN)
            if not run:
                raise NotFound(f"There is no run of upkeep {run_id}.")
            if run[0][0] is not None:
                raise Conflict("This run was undone already.")
            await rows.run(sql.UNDONE)
            return [*await rows.all(sql.UNMERGE), *await rows.all(sql.UNFADE)]

        await self._bring_back(tenant_id, user, "upkeep_undo", brought_back, run_id=run_id, episode_id=None)
        return await self.report(tenant_id, user, run_id)

    async def restore(self, tenant_id: UUID, user: str, episode_id: UUID) -> None:
        """Bring one archived memory back. Raises `NotFound` if the tenant has no such user, or the user no such
        memory, and `Conflict` if it is not archived."""

        async def brought_back(rows: Rows) -> list[Any]:
            run_ids = await rows.firsts(sql.ARCHIVED_BY)
            if not run_ids:
                raise NotFound(f"There is no episode {episode_id}.")
            if run_ids[0] is None:
                raise Conflict(f"The episode {episode_id} is not archived.")
            rows.values["run_id"] = run_ids[0]
            return await rows.all(sql.UNFADE)

        await self._bring_back(tenant_id, user, "episode_restore", brought_back, episode_id=episode_id)

    async def _bring_back(
        self,
        tenant_id: UUID,
        user: str,
        kind: str,
        work: Callable[[Rows], Awaitable[list[Any]]],
        **ids: UUID | None,
    ) -> None:
        """Bring memories of a user back with `work`, and log it."""
        user_id = await user_id_of(self._database, tenant_id, user)

        async def brought_back(connection: Connection) -> None:
            rows = Rows(connection, {"tenant_id": tenant_id, "user_id": user_id, **ids})
            await rows.run(sql.LOCK_USER)
            memories = await work(rows)
            await self._note(connection, rows.values, kind, "user", memories)

        await self._database.transact(tenant_id, brought_back, statement_s=UNHURRIED_S)

    async def _pairs(self, tenant_id: UUID, user_id: UUID, since: datetime | None) -> list[Pair]:
        """Return the pairs of a user that were not found before and of which one memory was learned since a
        time."""
        compared = await compared_memories(self._database, self._values, tenant_id, user_id)
        if len(compared) < 2:  # noqa: PLR2004 — a pair
            return []
        before = await self._proposed.proposed(tenant_id, user_id)
        values = {"tenant_id": tenant_id, "user_id": user_id}
        apart = await self._database.fetch(tenant_id, sql.TAKEN_APART, values, tuple_row)
        before |= {frozenset((Side(one), Side(other))) for one, other in apart}
        return await self._finder.find(compared, since, before)

    async def _propose(self, tenant_id: UUID, user_id: UUID, pairs: Sequence[Pair]) -> None:
        """Propose to the user the pairs that a run does not merge."""
        for pair in pairs:
            if not pair.is_merge:
                owner = Owner(tenant_id, user_id, pair.kept.expert_id, pair.kept.space_id)
                await self._proposed.add(owner, pair.kind, pair.kept.side, pair.dropped.side)

    async def _carry_out(
        self,
        tenant_id: UUID,
        user_id: UUID,
        policy: UpkeepPolicy,
        reason: Reason,
        pairs: Sequence[Pair],
        now: datetime,
    ) -> UUID | None:
        """Merge memories and let them fade; return the run's id, or None if the user is gone or a nightly run
        found nothing."""
        run_id = uuid7()
        fades = policy.fading != "never"
        values = {**_values(tenant_id, user_id, policy, reason, now), "run_id": run_id}
        record = values if fades else {**values, "days": None, "importance": None}
        merges = [pair for pair in pairs if pair.is_merge]
        actor: Actor = "maintenance" if reason == "night" else "user"

        async def done(connection: Connection) -> bool:
            rows = Rows(connection, values)
            if not await rows.all(sql.LOCK_USER):
                return False
            await connection.execute(sql.ADD_RUN, record)
            merged = await rows.all(sql.MERGE, **_columns(merges))
            faded = [(*row, None) for row in await rows.all(sql.FADE)] if fades else []
            for change, taken in (("merge", merged), ("archive", faded)):
                ids, kept_ids = [row[0] for row in taken], [row[3] for row in taken]
                await rows.run(sql.ADD_CHANGES, ids=ids, kept_ids=kept_ids)
                await self._note(connection, values, f"episode_{change}", actor, [row[:3] for row in taken])
            if reason == "night" and not merged and not faded:
                await rows.run(sql.REMOVE_RUN)
                return False
            log.info("memory is kept up", run_id=str(run_id), merged=len(merged), faded=len(faded))
            return True

        return run_id if await self._database.transact(tenant_id, done, statement_s=UNHURRIED_S) else None

    async def _note(
        self, connection: Connection, values: dict[str, Any], kind: str, actor: Actor, memories: Sequence[Any]
    ) -> None:
        """Log one operation, with ids only, for each expert and space whose memory changed."""
        changed: dict[tuple[UUID, UUID | None], list[str]] = defaultdict(list)
        for episode_id, expert_id, space_id in memories:
            changed[expert_id, space_id].append(str(episode_id))
        details = {"run_id": str(values["run_id"])}
        for (expert_id, space_id), ids in changed.items():
            await self._log.append(
                connection,
                values["tenant_id"],
                values["user_id"],
                Operation(kind, field=str(values["run_id"]), results=ids),
                Trigger(actor, expert_id=expert_id, space_id=space_id, details=details),
            )


def _columns(merges: Sequence[Pair]) -> dict[str, Any]:
    return {
        "ids": [pair.dropped.side.id for pair in merges],
        "kept_ids": [pair.kept.side.id for pair in merges],
        "in_core": [pair.kept.in_core_memory for pair in merges],
        "hashes": [pair.dropped.content_hash for pair in merges],
        "kept_hashes": [pair.kept.content_hash for pair in merges],
    }


def _explained(row: dict[str, Any], policy: UpkeepPolicy, now: datetime) -> FadingMemory:
    learned, recalled = row["learned_at"], row["last_recalled_at"]
    unused = (now - max(learned, recalled or learned)).days
    used = (
        f"last recalled on {recalled:%Y-%m-%d}"
        if recalled
        else f"never recalled since it was learned on {learned:%Y-%m-%d}"
    )
    importance = round(row["importance"], 3)
    why = (
        f"Importance {importance:g} is below {policy.fading_importance:g}, and it was {used}: "
        f"{unused} days, where the policy allows {policy.fading_days}."
    )
    shown = {name: value for name, value in row.items() if name not in {"total", "importance"}}
    return FadingMemory(**shown, importance=importance, unused_days=unused, why=why)


def _values(tenant_id: UUID, user_id: UUID, policy: UpkeepPolicy, reason: Reason, now: datetime) -> dict[str, Any]:
    return {
        "tenant_id": tenant_id,
        "user_id": user_id,
        "reason": reason,
        "days": policy.fading_days,
        "importance": policy.fading_importance,
        "before": now - timedelta(days=policy.fading_days),
    }
