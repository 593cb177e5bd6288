"""Order of turns in a conversation and in a process, and signals about turns between processes."""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Hashable
from contextlib import ExitStack, aclosing
from uuid import UUID

import structlog

from services.conversations.leases import TurnLeases
from services.errors import DatabaseUnavailable
from services.platform.postgres import Database
from state.turn import OpenTurn

_LOOK_AGAIN_S = 1.0
"""Seconds between the checks of a waiting turn whether it may run, in case a notification is lost."""

log = structlog.get_logger(__name__)

_RECONNECT_S = 1.0


class FairGate:
    """Admits a limited number of holders at a time, and chooses fairly who comes next.

    Two rules alternate: the oldest request; and the first request of the user with the fewest requests, waiting
    and admitted, among equals the user who came last. A burst therefore delays a user with a single request by a
    place or two, and nobody waits forever. (Newest first: B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.)
    Requests to end something are admitted, oldest first, when nobody waits to begin.
    """

    def __init__(self, places: int) -> None:
        """Take the maximum number of holders."""
        self._free = places
        self._inside: Counter[Hashable] = Counter()
        self._requests: deque[tuple[Hashable, asyncio.Future[None]]] = deque()
        """All waiting requests, oldest first, and some that were admitted or gave up."""
        self._of_user: dict[Hashable, deque[asyncio.Future[None]]] = {}
        """Waiting requests by user; the user who came last is the last."""
        self._oldest_next = True
        self._ends: dict[asyncio.Future[None], Hashable] = {}
        """Requests that wait to end something, oldest first."""

    @property
    def is_full(self) -> bool:
        """Return whether a new request has to wait."""
        return not self._free

    async def enter(self, user: Hashable, *, ends: bool = False) -> ExitStack:
        """Wait for a place, to begin or to end; closing the returned stack releases it."""
        place = ExitStack()
        if self._free:
            self._free -= 1
            self._inside[user] += 1
            place.callback(self._leave, user)
            return place
        let_in: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if ends:
            self._ends[let_in] = user
        else:
            self._requests.append((user, let_in))
            self._of_user.setdefault(user, deque()).append(let_in)
        try:
            await let_in
        except asyncio.CancelledError:
            if let_in.cancelled():
                self._forget(user, let_in)
            else:  # it had been admitted
                self._leave(user)
            raise
        place.callback(self._leave, user)
        return place

    def _leave(self, user: Hashable) -> None:
        self._inside[user] -= 1
        if not self._inside[user]:
            del self._inside[user]
        while self._of_user or self._ends:
            if begins := bool(self._of_user):
                user, let_in = self._requests.popleft() if self._oldest_next else self._of_fewest()
            else:
                let_in, user = next(iter(self._ends.items()))
            self._forget(user, let_in)
            if let_in.done():  # it was admitted by the other rule, or its task is cancelled and has not run since
                continue
            self._oldest_next ^= begins
            self._inside[user] += 1
            let_in.set_result(None)
            return
        self._free += 1
        self._requests.clear()

    def _of_fewest(self) -> "tuple[Hashable, asyncio.Future[None]]":
        user = min(reversed(self._of_user), key=lambda user: self._inside[user] + len(self._of_user[user]))
        return user, self._of_user[user][0]

    def _forget(self, user: Hashable, let_in: "asyncio.Future[None]") -> None:
        self._ends.pop(let_in, None)
        waiting = self._of_user.get(user)
        if waiting is None or let_in not in waiting:
            return
        waiting.remove(let_in)
        if not waiting:
            del self._of_user[user]


class TurnQueue:
    """The waiting turns of this process."""

    def __init__(self, leases: TurnLeases) -> None:
        self._leases = leases
        self._waiting: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)

    def free(self, conversation_id: UUID | None) -> None:
        """Tell the turns that wait in the conversation, or in all of them, to check again."""
        conversations = list(self._waiting) if conversation_id is None else [conversation_id]
        for conversation in conversations:
            for told in self._waiting.get(conversation, ()):
                told.set()

    async def wait(self, turn: OpenTurn) -> bool:
        """Wait until the turn may run, and mark it as running. Return False if it was ended while it waited."""
        told = asyncio.Event()
        self._waiting[turn.conversation_id].add(told)
        try:
            while True:
                told.clear()
                try:
                    status = await self._leases.begin(turn.tenant_id, turn.turn_id)
                except DatabaseUnavailable:
                    status = "waiting"
                if status != "waiting":
                    return status == "running"
                try:
                    async with asyncio.timeout(_LOOK_AGAIN_S):
                        await told.wait()
                except TimeoutError:
                    continue
        finally:
            self._waiting[turn.conversation_id].discard(told)
            if not self._waiting[turn.conversation_id]:
                del self._waiting[turn.conversation_id]


async def turn_signals(database: Database) -> AsyncIterator[list[str]]:
    """Yield signals between processes without end: a kind, and its values (`TurnRunner._listen`).

    An empty one follows every gap in listening, because any conversation may be free. Signals only reduce latency:
    queue positions and stop requests are in the table `turns`, which is checked every few seconds anyway.
    """
    while True:
        try:
            async with aclosing(database.notifications("anamnesis_turns")) as notifications:
                async for text in notifications:
                    yield text.split(":")
        except DatabaseUnavailable:
            log.debug("not listening for turns", reason="database unavailable")
        await asyncio.sleep(_RECONNECT_S)
