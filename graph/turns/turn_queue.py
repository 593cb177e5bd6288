"""The queue of a conversation: it runs one turn at a time, in the order in which they were accepted."""

import asyncio
from collections import defaultdict
from uuid import UUID

from services.conversations.leases import TurnLeases
from services.conversations.turn import OpenTurn
from services.errors import DatabaseUnavailable

_LOOK_AGAIN_S = 1.0
"""Seconds between a waiting turn's checks whether it may run, in case a notification is lost."""


class TurnQueue:
    """The waiting turns of this process."""

    def __init__(self, leases: TurnLeases) -> None:
        self._leases = leases
        self._waiting: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)

    def free(self, conversation_id: UUID | None) -> None:
        """Tell the turns waiting in the conversation, or in all of them, to check."""
        conversations = list(self._waiting) if conversation_id is None else [conversation_id]
        for conversation in conversations:
            for told in self._waiting.get(conversation, ()):
                told.set()

    async def wait(self, turn: OpenTurn) -> bool:
        """Wait until the turn may run, and mark it as running. False: it was ended while it waited."""
        told = asyncio.Event()
        self._waiting[turn.conversation_id].add(told)
        try:
            while True:
                told.clear()
                status = await self._begin(turn)
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

    async def _begin(self, turn: OpenTurn) -> str | None:
        try:
            return await self._leases.begin(turn.tenant_id, turn.turn_id)
        except DatabaseUnavailable:
            return "waiting"
