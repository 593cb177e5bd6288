"""Moving a tenant to another shard, step by step.

Each step is noted in the directory when it is done, and can be repeated: a command that was ended anywhere is run
again and goes on. Until the directory names the target, the source holds everything and the move can be undone.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from services.engines import Engines, open_engines
from services.errors import Conflict, NotFound
from services.platform.milvus import Milvus
from services.platform.settings import Settings
from services.shards import rows
from services.shards.addresses import HOME, settings_of_shard
from services.shards.directory import Directory, Move
from services.shards.index_rows import TenantIndex
from services.shards.steps import STEPS, Step

_LOOK_AGAIN_S = 0.5
_UNSAVED_S = 3.0
"""Seconds in which every process has written what it counted of the tenant's last turns."""

OnStep = Callable[[str], None]
"""Called with a line on what begins now."""


@dataclass(frozen=True)
class _End:
    """Source or target of a move."""

    place: rows.Place
    index: TenantIndex
    is_home: bool


class Moves:
    """Moves tenants between shards."""

    def __init__(self, directory: Directory, settings: Settings, *, model: str, dimension: int) -> None:
        """Take the directory, the service's settings, and the embedding model with its dimensions."""
        self._directory = directory
        self._settings = settings
        self._model = model
        self._dimension = dimension

    async def move(self, tenant_id: UUID, target: str, *, wait_s: float, on_step: OnStep = lambda _: None) -> Move:
        """Move a tenant, or go on with its move to the same target, and return what it was.

        Args:
            tenant_id: who is moved.
            target: name of the shard.
            wait_s: seconds to wait for the end of running turns and jobs.
            on_step: called with what begins.

        Raises:
            InvalidInput: the tenant is there already, or there is no such shard.
            Conflict: turns or jobs did not end in time, the copy differs, or another move is in the way.
            Unavailable: a store does not answer. The move goes on when the command is run again.
        """
        async with self._directory.alone(tenant_id):
            move = await self._directory.move_of(tenant_id)
            if move is None or move.step == "done":
                await self._end_old(move, target)
                await self._directory.begin_move(tenant_id, target)
            elif move.target != target:
                raise Conflict(
                    f"The tenant is being moved to {move.target} (step {move.step}); finish that, or --undo it."
                )
            move = await self._known(tenant_id)
            async with self._end(move.source, tenant_id) as source, self._end(move.target, tenant_id) as end:
                await self._go_on(move, source, end, wait_s, on_step)
            return await self._known(tenant_id)

    async def undo(self, tenant_id: UUID) -> Move:
        """Take back a move that is not done: the tenant is served where it was. Return what it was.

        Raises:
            NotFound: there is no move.
            Conflict: the tenant is served by the target already.
            Unavailable: a store does not answer.
        """
        async with self._directory.alone(tenant_id):
            move = await self._known(tenant_id)
            if move.step in {"switched", "done"}:
                raise Conflict(
                    f"The tenant is in {move.target} already; what was said there since is only there. "
                    f"Move it back: anamnesis shard move {move.tenant} {move.source}"
                )
            async with self._end(move.source, tenant_id) as source, self._end(move.target, tenant_id) as target:
                await self._remove(target)
                await asyncio.to_thread(rows.reopen, source.place, "leaving")
            await self._directory.end_move(tenant_id)
            return move

    async def purge(self, tenant_id: UUID) -> Move:
        """Remove the copy that a finished move left at its source, and return the move.

        Raises:
            NotFound: there is none.
            Conflict: the move is not finished.
            Unavailable: a store does not answer.
        """
        async with self._directory.alone(tenant_id):
            move = await self._known(tenant_id)
            if move.step != "done":
                raise Conflict(f"The move is not finished (step {move.step}).")
            await self._purge(move)
            await self._directory.end_move(tenant_id)
            return move

    async def _purge(self, move: Move) -> None:
        async with self._end(move.source, move.tenant_id) as source:
            await self._remove(source)

    async def _remove(self, end: _End) -> None:
        await end.index.remove()
        await asyncio.to_thread(rows.remove, end.place, keeps_tenant=end.is_home)

    async def _end_old(self, move: Move | None, target: str) -> None:
        """Let go of a finished move; its old copy is replaced if the tenant goes back there."""
        if move is None:
            return
        if move.source != target:
            raise Conflict(
                f"{move.source} still has the copy of the last move. Remove it first: anamnesis shard move "
                f"{move.tenant} --purge"
            )
        await self._directory.end_move(move.tenant_id)

    async def _known(self, tenant_id: UUID) -> Move:
        if (move := await self._directory.move_of(tenant_id)) is None:
            raise NotFound("The tenant has no move; see: anamnesis shard status")
        return move

    async def _go_on(self, move: Move, source: _End, target: _End, wait_s: float, on_step: OnStep) -> None:
        tenant_id, step = move.tenant_id, move.step
        if step == "draining":
            on_step("waiting for running turns and jobs")
            await self._close(source, wait_s)
            step = await self._advance(tenant_id, step)
        if step == "closed":
            await asyncio.to_thread(
                rows.copy,
                source.place,
                target.place,
                keeps_tenant=target.is_home,
                on_table=lambda name: on_step(f"copying {name}"),
            )
            on_step("copying the index")
            await source.index.copy_into(target.index)
            step = await self._advance(tenant_id, step)
        if step == "copied":
            on_step("comparing")
            report = await self._compare(source, target)
            if report["differs"]:
                await self._directory.advance(tenant_id, "copied", "closed", report)
                raise Conflict(
                    f"The copy differs in {', '.join(report['differs'])}. The tenant is still in {move.source}; "
                    "run the command again, or --undo the move."
                )
            step = await self._advance(tenant_id, step, report)
        if step == "verified":
            on_step("switching the directory")
            step = await self._advance(tenant_id, step)
        if step == "switched":
            on_step(f"opening {move.target}")
            await asyncio.to_thread(rows.reopen, target.place, "arriving")
            await asyncio.to_thread(rows.leave, source.place)
            await self._advance(tenant_id, step)

    async def _advance(self, tenant_id: UUID, before: Step, report: dict[str, Any] | None = None) -> Step:
        step = STEPS[STEPS.index(before) + 1]
        await self._directory.advance(tenant_id, before, step, report)
        return step

    async def _close(self, source: _End, wait_s: float) -> None:
        end = time.monotonic() + wait_s
        ended_at: float | None = None
        while True:
            turns, jobs = await asyncio.to_thread(rows.under_way, source.place)
            now = time.monotonic()
            ended_at = None if turns or jobs else ended_at or now
            settled = ended_at is not None and now >= ended_at + min(_UNSAVED_S, wait_s)
            if settled and await asyncio.to_thread(rows.close, source.place):
                return
            if now >= end and not settled:
                raise Conflict(
                    f"{turns} turns and {jobs} jobs of the tenant have not ended in {wait_s:.0f} s. Its requests "
                    "are refused until the command is run again, or the move is undone with --undo."
                )
            await asyncio.sleep(_LOOK_AGAIN_S)

    async def _compare(self, source: _End, target: _End) -> dict[str, Any]:
        before, after = await asyncio.gather(
            asyncio.to_thread(rows.digests, source.place), asyncio.to_thread(rows.digests, target.place)
        )
        before |= await source.index.digests()
        after |= await target.index.digests()
        differs = sorted(name for name in before | after if before.get(name) != after.get(name))
        found = {name: {"rows": count, "sha256": digest} for name, (count, digest) in before.items() if count}
        return {"differs": differs, "copied": found}

    @asynccontextmanager
    async def _end(self, name: str, tenant_id: UUID) -> AsyncIterator[_End]:
        settings = settings_of_shard(self._settings, name)
        async with AsyncExitStack() as stack:
            engines = await stack.enter_async_context(open_engines(settings))
            milvus = Milvus(engines.milvus_uri, settings.milvus_token)
            stack.push_async_callback(milvus.close)
            index = TenantIndex(milvus, tenant_id, model=self._model, dimension=self._dimension)
            yield _End(rows.Place(_direct(engines), tenant_id), index, name == HOME)


def _direct(engines: Engines) -> str:
    return engines.direct_url or engines.database_url
