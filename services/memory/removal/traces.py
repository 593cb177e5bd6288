"""Traces of users outside of PostgreSQL and the index: events of turns and cached memory."""

from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from services.memory.cache import CoreMemoryCache

_KEYS_AT_ONCE = 500


class TurnEvents(Protocol):
    """The events of turns."""

    async def delete(self, turn_ids: Iterable[UUID]) -> int:
        """Delete those of some turns; return the number of turns that had any.

        Raises:
            Unavailable: Redis does not answer.
        """


class Traces:
    """Events of turns and cached core memory."""

    def __init__(self, events: TurnEvents, core_memory: CoreMemoryCache) -> None:
        self._events = events
        self._core_memory = core_memory

    async def remove(self, user_id: UUID, turn_ids: Sequence[UUID], expert_ids: Sequence[UUID]) -> dict[str, int]:
        """Remove the events of turns and a user's core memory with experts; return how many of each there were.

        Raises:
            Unavailable: Redis does not answer.
        """
        removed = 0
        for start in range(0, len(turn_ids), _KEYS_AT_ONCE):
            removed += await self._events.delete(turn_ids[start : start + _KEYS_AT_ONCE])
        return {"turn_events": removed, "core_memory": await self._core_memory.delete(user_id, expert_ids)}
