"""Turns of other processes: followed wherever they run, and taken over when their process has died."""

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Container, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import structlog

from graph.turns.log import LOST_PROCESS, NO_RESULTS, stored_calls_ending, stored_ending
from graph.turns.run import TurnRun
from services.bootstrap import Services
from services.conversations.event_log import EventLog
from services.conversations.leases import ExpiredTurn
from services.conversations.turn import StopReason, StoredTurn, TurnOutcome, TurnStatus
from services.conversations.turns import Turns
from services.errors import Conflict, DatabaseUnavailable, NotFound, Unavailable
from services.platform.metrics import TURNS, TURNS_RUN_AGAIN
from state.client_tools import said_in
from state.events import PART, SHOWS_NOTHING, TurnEvent, streamed_text
from state.turn import OpenTurn

_RENEW_EVERY_S = 1.0
_OUTAGE_S = 3.0
"""Seconds without a renewal that show that the database was away, for the other processes too."""
_SETTLES_S = 5.0
"""Seconds after an outage within which every living process renews its leases."""
_LOOK_S = 0.1
_LOOK_AT_TURN_S = 1.0
_EVENTS_ARRIVE_WITHIN = timedelta(seconds=1)
"""Seconds after a turn's end within which its last events reach Redis, if they do at all."""

log = structlog.get_logger(__name__)


async def follow_anywhere(
    turns: Turns, events: EventLog, tenant_id: UUID, turn_id: UUID, after: int
) -> AsyncGenerator[Sequence[TurnEvent], None]:
    """Yield the events after number `after` as they come, and in any case the turn's last event. Events that
    Redis has lost are skipped: the last event, with the whole answer, comes next. Raises `NotFound` if the
    tenant has no such turn, or it has been erased."""
    looked = 0.0
    stored: StoredTurn | None = None
    while True:
        batch = _unbroken(await _read(events, turn_id, after), after)
        if batch:
            after = batch[-1].sequence
            yield batch
            if batch[-1].is_last:
                return
            continue
        if stored is not None and _all_has_arrived(stored, events):
            rounds, part = (stored.context_report or {}).get("rounds", []), after // PART
            ended = stored_calls_ending(stored, part) if part < len(rounds) else stored_ending(stored)
            yield [TurnEvent(after + 1, *ended)]
            return
        if time.monotonic() - looked >= _LOOK_AT_TURN_S:
            looked = time.monotonic()
            stored = await _stored_if_ended(turns, tenant_id, turn_id, after // PART)
            if stored is not None:
                continue
        await asyncio.sleep(_LOOK_S)


async def _read(events: EventLog, turn_id: UUID, after: int) -> list[TurnEvent]:
    try:
        return await events.read(turn_id, after)
    except Unavailable:
        return []


async def _stored_if_ended(turns: Turns, tenant_id: UUID, turn_id: UUID, part: int) -> StoredTurn | None:
    """Return the stored turn if at least this part of it has ended."""
    try:
        # Shielded: a reader that disconnects during a query would cost the pool its connection.
        stored = await asyncio.shield(turns.get(tenant_id, turn_id))
    except DatabaseUnavailable:
        return None
    ended = stored.ended or part < len((stored.context_report or {}).get("rounds", []))
    return stored if ended else None


def _all_has_arrived(stored: StoredTurn, events: EventLog) -> bool:
    if events.failing or stored.finished_at is None:
        return True
    # An end in the future: the clock was set back since.
    return abs(datetime.now(UTC) - stored.finished_at) > _EVENTS_ARRIVE_WITHIN


def _unbroken(batch: list[TurnEvent], after: int) -> list[TurnEvent]:
    """Return the part of a batch without gaps after number `after`; the last event may follow anything."""
    unbroken: list[TurnEvent] = []
    for event in batch:
        if event.is_last:
            unbroken.append(event if event.sequence > after else replace(event, sequence=after + 1))
            break
        if event.sequence == after + 1:
            unbroken.append(event)
            after += 1
    return unbroken


class Adopt(Protocol):
    """Runs a turn of a process that is gone; that process has told the `earlier` events."""

    def __call__(self, turn: OpenTurn, earlier: Sequence[TurnEvent] = ()) -> None: ...


async def keep(
    services: Services,
    running: Mapping[UUID, TurnRun],
    stop: Callable[[UUID, StopReason], None],
    adopt: Adopt,
    draining: Callable[[], bool],
    unread: asyncio.Event,
) -> None:
    """Renew leases, pass on requests to stop, and take care of abandoned turns, until cancelled.

    Leases are renewed at once when Redis has not what a turn has shown: the database then knows of it.
    A process that is `draining` adopts none: it would not have the time, and has just handed over its own.
    """
    seen_clock, away = False, False
    renewed, settled = time.monotonic(), 0.0
    while True:
        try:
            if not seen_clock:  # otherwise a jump before the first look at leases would go unnoticed
                await services.leases.look_at_clock()
                seen_clock = True
            await _renew(services, running, stop)
            # After an outage of the database every process first reports that it is alive.
            if time.monotonic() - renewed > _OUTAGE_S:
                settled = time.monotonic() + _SETTLES_S
            renewed, away = time.monotonic(), False
            if not draining() and renewed >= settled:
                await recover(services, running, adopt)
        except DatabaseUnavailable:
            if not away:
                log.warning("leases not renewed", reason="database unavailable")
            away = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_RENEW_EVERY_S):
                await (asyncio.sleep(_RENEW_EVERY_S) if away else unread.wait())
        unread.clear()


async def _renew(
    services: Services, running: Mapping[UUID, TurnRun], stop: Callable[[UUID, StopReason], None]
) -> None:
    by_tenant: defaultdict[UUID, list[TurnRun]] = defaultdict(list)
    for run in (each for each in running.values() if each.turn.stored):
        by_tenant[run.turn.tenant_id].append(run)
    for tenant_id, runs in by_tenant.items():
        shown = {run.turn.turn_id: run.log.shown for run in runs}
        for turn_id, reason in (await services.leases.renew(tenant_id, shown)).items():
            stop(turn_id, reason)
        for run in runs:
            run.log.known_as_shown = shown[run.turn.turn_id]


async def recover(services: Services, running: Container[UUID], adopt: Adopt) -> None:
    """Adopt or end turns whose process is gone; those in `running` belong to this process and are left alone."""
    for turn in await services.leases.expired():
        if turn.turn_id in running:
            continue  # this process was paused since it renewed the lease, and does so next
        if turn.status == "waiting":
            if adopted := await services.leases.adopt(turn.tenant_id, turn.turn_id):
                adopt(adopted)
                log.info("waiting turn adopted", turn_id=str(turn.turn_id))
        elif turn.status == "paused":
            await end_paused(services, turn.tenant_id, turn.turn_id)
        elif await _run_again(services, turn, adopt):
            TURNS_RUN_AGAIN.inc()
            log.warning("turn of a process that is gone is run again", turn_id=str(turn.turn_id))
        elif status := await end_from_outside(
            services, turn.tenant_id, turn.turn_id, error=LOST_PROCESS, abandoned=True
        ):
            TURNS.labels(status).inc()
            log.warning("turn abandoned by its process", turn_id=str(turn.turn_id), status=status)


async def _run_again(services: Services, turn: ExpiredTurn, adopt: Adopt) -> bool:
    """Run a turn again if nothing was shown that another run could contradict; return whether it runs."""
    if not services.events.is_shared:
        return False
    try:
        await services.events.probe()  # what refuses events now may have refused those of this turn
        earlier = await services.events.read(turn.turn_id, 0)
    except Unavailable:
        return False
    if any(event.status not in SHOWS_NOTHING for event in earlier):
        return False
    if [event.sequence for event in earlier] != list(range(1, len(earlier) + 1)):  # Redis has lost some
        return False
    adopted = await services.leases.adopt(turn.tenant_id, turn.turn_id, again=True, shown=bool(earlier))
    if adopted is None:
        return False
    adopt(adopted, earlier)
    return True


async def end_paused(services: Services, tenant_id: UUID, turn_id: UUID) -> None:
    """End a turn as partial, with what it has said, because its client brings no results of its tools."""
    try:
        stored = await services.turns.get(tenant_id, turn_id)
        said = said_in((stored.context_report or {}).get("rounds", [])).rstrip()
        outcome = TurnOutcome(status="partial", answer=said, error=NO_RESULTS, degraded=stored.degraded)
        await services.turns.end_elsewhere(tenant_id, turn_id, outcome, ends="paused")
        ended = await services.turns.get(tenant_id, turn_id)
    except (Conflict, NotFound):  # its results have come, or it was removed
        return
    TURNS.labels("partial").inc()
    log.info("a client brought no results of its tools", turn_id=str(turn_id))
    with contextlib.suppress(Unavailable):
        rounds = (ended.context_report or {}).get("rounds", [])
        last = TurnEvent(len(rounds) * PART + 1, *stored_ending(ended))
        await services.events.append({turn_id: [last]})


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
        The status with which it ended; None if it had already ended, or if only an `abandoned` turn was to be
        ended and its process is alive.
    """
    answer, last = "", 0
    with contextlib.suppress(Unavailable):
        events = await services.events.read(turn_id, 0)
        answer, last = streamed_text(events), events[-1].sequence if events else 0
    how = status or ("partial" if answer else "failed")
    outcome = TurnOutcome(status=how, answer=answer, error=error)
    try:
        await services.turns.end_elsewhere(tenant_id, turn_id, outcome, abandoned=abandoned)
        stored = await services.turns.get(tenant_id, turn_id)
    except (Conflict, NotFound):
        return None
    with contextlib.suppress(Unavailable):
        await services.events.append({turn_id: [TurnEvent(last + 1, *stored_ending(stored))]})
    return how
