"""The events of turns in Redis, for readers in every process and for the one that ends a turn whose process died.

A turn is one Redis stream, `turn:{id}:events`. An entry holds a batch of events, and its id is the number of the
last of them, so that a position in the turn is a position in the stream. The turn's last event is a separate entry
with the greatest possible id: the first process to write it closes the stream for all others, including one that
was presumed dead and goes on writing. Redis may lose all of it: the turn itself is in PostgreSQL.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson
from redis.exceptions import RedisError, ResponseError

from services.encryption.vault import Vault
from services.errors import Unavailable
from services.platform.patience import CircuitBreaker
from services.platform.redis import RedisClient, is_own, probe
from state.events import PART, TurnEvent

_END = "9007199254740991-0"  # greater than the id of any batch
_WHILE_IT_RUNS_S = 3600
"""Seconds after their first event at which streams expire if nobody ends them."""


class EventLog:
    """Writes and reads turns' events in Redis."""

    def __init__(
        self, redis: RedisClient, breaker: CircuitBreaker, *, keep_s: int, vault: Vault | None = None
    ) -> None:
        """Take the seconds for which events stay after a turn's end, and the vault that encrypts them, if any."""
        self._vault = vault
        self._redis = redis
        self._breaker = breaker
        self._keep_s = keep_s

    @property
    def is_shared(self) -> bool:
        """Return whether other processes read it; an in-process Redis ends with its content."""
        return not is_own(self._redis)

    @property
    def failing(self) -> bool:
        """Return whether the last use of Redis failed, so that events may be missing."""
        return self._breaker.failing

    async def probe(self) -> None:
        """Check whether Redis takes events. Raises `Unavailable` if it does not."""
        async with self._breaker.use():
            await probe(self._redis)

    async def append(self, batches: Mapping[UUID, Sequence[TurnEvent]]) -> None:
        """Add events, in order, to any number of turns, in one round trip. Events that are there already, and
        events after a turn's end, are skipped. Raises `Unavailable` if Redis does not accept them; they may or
        may not be stored."""
        pipeline = self._redis.pipeline(transaction=False)
        for turn_id, events in batches.items():
            key = _key(turn_id)
            body = [event for event in events if not event.ends_turn]
            if body:
                pipeline.execute_command(
                    "XADD", key, f"{body[-1].sequence}-0", "events", self._encode(turn_id, body)
                )
            if events[0].sequence % PART == 1 and not events[-1].ends_turn:
                pipeline.expire(key, _WHILE_IT_RUNS_S)
            if events[-1].ends_turn:
                pipeline.execute_command("XADD", key, _END, "events", self._encode(turn_id, events[-1:]))
                pipeline.expire(key, self._keep_s)
        try:
            async with self._breaker.use():
                results = await pipeline.execute(raise_on_error=False)
                if refused := next(filter(_is_refusal, results), None):
                    raise refused
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable("Redis does not answer, or refuses events.") from error

    async def read(self, turn_id: UUID, after: int) -> list[TurnEvent]:
        """Return the events after number `after`, and always the last event of a turn, whatever its number.
        Raises `Unavailable` if Redis does not answer."""
        try:
            async with self._breaker.use():
                entries: Any = await self._redis.xrange(_key(turn_id), min=f"({after}-0")
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable("Redis does not answer.") from error
        events: list[TurnEvent] = []
        for _, fields in entries:
            for event in self._decode(fields["events"]):
                if event.sequence > after or event.ends_turn:
                    events.append(event)
                    after = max(after, event.sequence)
        return events

    async def delete(self, turn_ids: Iterable[UUID]) -> int:
        """Delete the events of turns; return the number of turns that had any. Raises `Unavailable` if Redis
        does not answer."""
        keys = [_key(turn_id) for turn_id in turn_ids]
        if not keys:
            return 0
        try:
            async with self._breaker.use():
                return int(await self._redis.delete(*keys))
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable("Redis does not answer.") from error

    def _encode(self, turn_id: UUID, events: Sequence[TurnEvent]) -> bytes | str:
        batch = orjson.dumps([(event.sequence, event.status, event.content) for event in events])
        if self._vault is None:
            return batch
        key = self._vault.key_of_turn(turn_id)
        if key is None:
            raise Unavailable("The user of the turn was erased.")
        return key.seal(batch)

    def _decode(self, batch: str) -> list[TurnEvent]:
        opened = batch if self._vault is None else self._vault.open_bytes(batch)
        return [TurnEvent(*event) for event in orjson.loads(opened)] if opened is not None else []


def _key(turn_id: UUID) -> str:
    return f"turn:{turn_id}:events"


def _is_refusal(result: object) -> bool:
    """Return whether an answer in a pipeline says that something was not stored: Redis is away, or refuses."""
    there_already = isinstance(result, ResponseError) and "equal or smaller" in str(result)
    return isinstance(result, RedisError | OSError) and not there_already
