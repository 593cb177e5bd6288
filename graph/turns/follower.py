"""Follow a turn of any process: its events from Redis, its end from PostgreSQL."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from graph.turns.log import stored_ending
from services.conversations.event_log import EventLog
from services.conversations.turn import StoredTurn
from services.conversations.turns import Turns
from services.errors import DatabaseUnavailable, Unavailable
from state.events import TurnEvent

_LOOK_S = 0.1
_LOOK_AT_TURN_S = 1.0
_EVENTS_ARRIVE_WITHIN = timedelta(seconds=1)
"""Seconds after a turn's end within which its last events reach Redis, if they do at all."""


async def follow_anywhere(
    turns: Turns, events: EventLog, tenant_id: UUID, turn_id: UUID, after: int
) -> AsyncGenerator[Sequence[TurnEvent], None]:
    """Yield the events after number `after` as they come, and in any case the turn's last event.

    Events that Redis has lost are skipped: the last event, with the whole answer, comes next.

    Raises:
        NotFound: the tenant has no such turn, or it has been erased.
    """
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
            yield [TurnEvent(after + 1, *stored_ending(stored))]
            return
        if time.monotonic() - looked >= _LOOK_AT_TURN_S:
            looked = time.monotonic()
            stored = await _stored_if_ended(turns, tenant_id, turn_id)
            if stored is not None:
                continue
        await asyncio.sleep(_LOOK_S)


async def _read(events: EventLog, turn_id: UUID, after: int) -> list[TurnEvent]:
    try:
        return await events.read(turn_id, after)
    except Unavailable:
        return []


async def _stored_if_ended(turns: Turns, tenant_id: UUID, turn_id: UUID) -> StoredTurn | None:
    try:
        # Shielded: a reader that disconnects during a query would cost the pool its connection.
        stored = await asyncio.shield(turns.get(tenant_id, turn_id))
    except DatabaseUnavailable:
        return None
    return stored if stored.ended else None


def _all_has_arrived(stored: StoredTurn, events: EventLog) -> bool:
    if events.failing or stored.finished_at is None:
        return True
    # An end in the future: the clock was set back since.
    return abs(datetime.now(UTC) - stored.finished_at) > _EVENTS_ARRIVE_WITHIN


def _unbroken(batch: list[TurnEvent], after: int) -> list[TurnEvent]:
    """Return the part of a batch that follows number `after` without a gap; the last event may follow anything."""
    unbroken: list[TurnEvent] = []
    for event in batch:
        if event.is_last:
            unbroken.append(event if event.sequence > after else replace(event, sequence=after + 1))
            break
        if event.sequence == after + 1:
            unbroken.append(event)
            after += 1
    return unbroken
