"""Renews the leases of this process's turns, and takes care of turns whose process is gone."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable, Container, Mapping
from typing import Any
from uuid import UUID

import structlog
from uuid_utils.compat import uuid7

from graph.turns.log import LOST_PROCESS, stored_ending
from graph.turns.run import TurnRun
from services.bootstrap import Services
from services.conversations.leases import AdoptedTurn
from services.conversations.turn import LEASE, StopReason, TurnOutcome, TurnStatus
from services.errors import Conflict, DatabaseUnavailable, NotFound, Unavailable
from services.platform.metrics import TURNS
from state.events import TurnEvent, streamed_text

log = structlog.get_logger(__name__)


async def keep(
    services: Services,
    running: Mapping[UUID, TurnRun],
    stop: Callable[[UUID, StopReason], None],
    adopt: Callable[[AdoptedTurn], None],
    draining: Callable[[], bool],
) -> None:
    """Renew leases, pass on requests to stop, and end or adopt abandoned turns, until cancelled.

    A process that is `draining` adopts none: it would not have the time, and has just handed over its own.
    """
    seen_clock = False
    while True:
        try:
            if not seen_clock:  # otherwise a jump before the first look at leases would go unnoticed
                await services.leases.look_at_clock()
                seen_clock = True
            await _renew(services, running, stop)
            # Only after a renewal: after an outage of the database every process first reports that it is alive.
            await asyncio.sleep(LEASE.total_seconds() / 6)
            if not draining():
                await recover(services, running, adopt)
        except DatabaseUnavailable:
            log.warning("leases not renewed", reason="database unavailable")
        await asyncio.sleep(LEASE.total_seconds() / 6)


async def _renew(
    services: Services, running: Mapping[UUID, TurnRun], stop: Callable[[UUID, StopReason], None]
) -> None:
    by_tenant: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for run in (each for each in running.values() if each.turn.stored):
        by_tenant[run.turn.tenant_id].append(run.turn.turn_id)
    for tenant_id, turn_ids in by_tenant.items():
        for turn_id, reason in (await services.leases.renew(tenant_id, turn_ids)).items():
            stop(turn_id, reason)


async def recover(services: Services, running: Container[UUID], adopt: Callable[[AdoptedTurn], None]) -> None:
    """End or adopt turns whose process is gone; those that are `running` here are left alone."""
    for turn in await services.leases.expired():
        if turn.turn_id in running:
            continue  # this process was paused since it renewed the lease, and does so next
        if turn.status == "waiting":
            if adopted := await services.leases.adopt(turn.tenant_id, turn.turn_id):
                adopt(adopted)
                log.info("waiting turn adopted", turn_id=str(turn.turn_id))
        elif status := await end_from_outside(
            services, turn.tenant_id, turn.turn_id, error=LOST_PROCESS, abandoned=True
        ):
            TURNS.labels(status).inc()
            log.warning("turn abandoned by its process", turn_id=str(turn.turn_id), status=status)


async def end_from_outside(
    services: Services,
    tenant_id: UUID,
    turn_id: UUID,
    *,
    error: dict[str, Any],
    status: TurnStatus | None = None,
    abandoned: bool = False,
) -> TurnStatus | None:
    """End a turn of another process with what it has streamed, and tell its readers.

    Returns:
        How it ended; None if it had ended already, or if only an `abandoned` one was to be ended and its
        process is alive.
    """
    answer, last = "", 0
    with contextlib.suppress(Unavailable):
        events = await services.events.read(turn_id, 0)
        answer, last = streamed_text(events), events[-1].sequence if events else 0
    how = status or ("partial" if answer else "failed")
    outcome = TurnOutcome(status=how, answer=answer, error=error)
    try:
        await services.turns.end(tenant_id, turn_id, uuid7(), outcome, abandoned=abandoned)
        stored = await services.turns.get(tenant_id, turn_id)
    except (Conflict, NotFound):
        return None
    with contextlib.suppress(Unavailable):
        await services.events.append({turn_id: [TurnEvent(last + 1, *stored_ending(stored))]})
    return how
